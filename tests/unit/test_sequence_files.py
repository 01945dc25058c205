from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from sentences import TEMPLATE, generator, write_files

import bmrm
from bmrm import DataError
from bmrm.data import read_sequences
from bmrm.data.template import Template
from bmrm.structured.attributes import Attributes


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(name, text):
    with open(name, "w", newline="") as file:
        file.write(text)
    return name


def test_columns():
    put("a.conll", "the DT B\ncat\tNN \t I\n\n\n-DOCSTART- -X- O\n\nsees V O\r\n")
    data = read_sequences("a.conll", template=Template.parse(["U:%x[0,0]", "U1:%x[-1,1]|%x[1,0]|", "B"]))
    assert data.y == [["B", "I"], ["O"]]
    assert [list(each) for each in data.X] == [
        [("U:the", "U1:_B-1|cat|"), ("U:cat", "U1:DT|_B+1|")],
        [("U:sees", "U1:_B-1|_B+1|")],
    ]
    assert data.n_columns == 2
    assert data.with_labels([["x", "y"], ["z"]]) == [
        "the DT B x", "cat\tNN \t I\ty", "", "", "-DOCSTART- -X- O O", "", "sees V O z",
    ]  # fmt: skip


def test_columns_without_labels():
    put("a.conll", "the DT\ncat NN\n")
    template = Template.parse(["U:%x[0,1]"])
    data = read_sequences("a.conll", template=template, n_columns=2, labels=False)
    assert data.y is None
    assert list(data.X) == [[("U:DT",), ("U:NN",)]]
    assert data.with_labels([["x", "y"]]) == ["the DT x", "cat NN y"]
    with pytest.raises(DataError, match=r"a.conll, line 1: the number of columns is 2; expected 2 and the label"):
        read_sequences("a.conll", template=template, n_columns=2)


def test_far_neighbors_and_plain_patterns():
    template = Template.parse(["U1:%x[-3,0]/%x[3,0]", "Ubias"])
    assert template.attributes([["a"], ["b"]]) == [("U1:_B-3/_B+2", "Ubias"), ("U1:_B-2/_B+3", "Ubias")]
    assert not template.transitions


def test_attributes():
    put("a.crfsuite", "B\\:x\ta\tb:2.5\tc\\:d:1e1\te\\\\f\ta\nO\n\n\nO\tg:\tg\\:\n")
    data = read_sequences("a.crfsuite")
    assert data.y == [["B:x", "O"], ["O"]]
    assert data.X == [[{"a": 2.0, "b": 2.5, "c:d": 10.0, "e\\f": 1.0}, []], [{"g": 1.0, "g:": 1.0}]]
    assert data.with_labels([["x", "y"], ["z"]]) == ["x", "y", "", "z"]


def test_attributes_without_labels():
    put("a.crfsuite", "\ta\n\tb\n")
    data = read_sequences("a.crfsuite", labels=False)
    assert data.y is None
    assert data.X == [[["a"], ["b"]]]


def test_rows():
    put("a.svm", "2 qid:7 1:1 3:0.5\n1 qid:7 2:1\n2 qid:3 1:4\n")
    data = read_sequences("a.svm")
    assert data.y == [[2, 1], [2]]
    assert data.X.offsets.tolist() == [0, 2, 3]
    assert data.X[0].toarray().tolist() == [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]
    np.savez("a.npz", X=np.eye(3), y=np.array(["u", "v", "u"]), groups=np.array([1, 1, 2]))
    data = read_sequences("a.npz")
    assert data.y == [["u", "v"], ["u"]]
    assert data.X[1].tolist() == [[0.0, 0.0, 1.0]]


def test_compressed_files_and_given_formats():
    text = "the DT B\n\ncat NN I\n"
    put("T", TEMPLATE)
    with gzip.open("a.conll.gz", "wt") as file:
        file.write(text)
    with lzma.open("a.xz", "wt") as file:
        file.write(text)
    for data in (read_sequences("a.conll.gz", template="T"), read_sequences("a.xz", "conll", template="T")):
        assert data.y == [["B"], ["I"]]


def test_all_three_say_the_same():
    rows, labels = write_files(generator())
    columns = read_sequences("train.conll", template="T")
    fields = read_sequences("train.crfsuite")
    lines = read_sequences("train.svm")
    assert columns.y == fields.y == labels
    assert len(columns.X) == len(fields.X) == len(lines.X) == len(rows)
    assert [len(each) for each in lines.y] == [len(each) for each in labels]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.conll: has no sequences"),
        ("\n \n", "a.conll: has no sequences"),
        ("a b C\nd E\n", "a.conll, line 2: 2 columns; expected 3, as many as line 1 has"),
        ("\na b C\n\nd e f G\n", "a.conll, line 4: 4 columns; expected 3, as many as line 2 has"),
        ("a\nb\n", "a.conll, line 1: the number of columns is 1; expected at least one and the label"),
        ("a B\n", "T, line 4: %x[1,1] asks for column 1, but a.conll has 1 beside the label"),
    ],
)
def test_bad_columns(text, message):
    put("a.conll", text)
    put("T", TEMPLATE)
    with pytest.raises(DataError) as error:
        read_sequences("a.conll", template="T")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.crfsuite: has no sequences"),
        ("B\ta\n\tb\n", "a.crfsuite, line 2: begins with a tab, so the label is missing"),
        ("B\ta:x\n", "a.crfsuite, line 1: 'x' in 'a:x' is no finite number"),
        ("B\ta:nan\n", "a.crfsuite, line 1: 'nan' in 'a:nan' is no finite number"),
        ("B\ta:1:2\n", "'1:2' in 'a:1:2' is no finite number (a colon that belongs to a name is written \\:)"),
        ("B\n\nB\t:1\n", "a.crfsuite, line 3: attribute ':1' has no name"),
        ("B\ta\\\n", "a.crfsuite, line 1: attribute 'a\\\\' ends in a single backslash"),
        ("@weight:2\nB\ta\n", "a.crfsuite, line 1: '@weight:2': weights of sequences"),
    ],
)
def test_bad_attributes(text, message):
    put("a.crfsuite", text)
    with pytest.raises(DataError) as error:
        read_sequences("a.crfsuite")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "T: has no line that begins with U"),
        ("B\n", "T: has no line that begins with U"),
        ("U:%x[0,0]\nX:%x[0,0]\n", "T, line 2: 'X:%x[0,0]'; expected a line that begins with U, B or #"),
        ("U:%x[0]\n", "T, line 1: 'U:%x[0]'; expected macros of the form %x[row,column]"),
        ("U:%x[0,-1]\n", "T, line 1: 'U:%x[0,-1]'; expected macros"),
        ("U:%x[999,0]\n", "T, line 1: row 999 is too far"),
        ("U:%x[0,0]\n\nB1:%x[0,0]\n", "T, line 3: 'B1:%x[0,0]' joins attributes to pairs of labels"),
    ],
)
def test_bad_templates(text, message):
    with pytest.raises(DataError) as error:
        Template.read(Path(put("T", text)))
    assert message in str(error.value)


def test_bad_rows():
    put("a.svm", "1 1:1\n2 2:1\n")
    with pytest.raises(DataError, match=r"a.svm: the rows belong to no sequences: expected qid:NUMBER"):
        read_sequences("a.svm")
    put("a.svm", "1 qid:1 1:1\n2 qid:2 2:1\n2 qid:1 2:1\n")
    with pytest.raises(DataError, match=r"a.svm: row 2 has the qid 1 of earlier rows"):
        read_sequences("a.svm")
    put("a.svm", "1,2 qid:1 1:1\n")
    with pytest.raises(DataError, match="several labels"):
        read_sequences("a.svm")
    np.savez("a.npz", X=np.eye(2), groups=np.array([1, 1]))
    with pytest.raises(DataError, match=r"a.npz: has no labels"):
        read_sequences("a.npz")


def test_bad_files():
    with pytest.raises(DataError, match=r"no.conll: cannot be read"):
        read_sequences("no.conll", template=Template.parse(["U:%x[0,0]"]))
    with pytest.raises(DataError, match=r"a.txt: its name does not tell the format .* conll, crfsuite, svmlight"):
        read_sequences("a.txt")
    with pytest.raises(ValueError, match="format 'xml'; expected one of conll"):
        read_sequences("a.txt", "xml")
    put("a.conll", "a B\n")
    with pytest.raises(DataError, match=r"a.conll: a file of columns needs a feature template"):
        read_sequences("a.conll")
    with pytest.raises(DataError, match="a template is for files of columns, not for crfsuite"):
        read_sequences("a.crfsuite", template="T")
    with open("b.conll", "wb") as file:
        file.write(b"a B\n\xff B\n")
    with pytest.raises(DataError, match=r"b.conll, line 2: not UTF-8 text"):
        read_sequences("b.conll", template=Template.parse(["U:%x[0,0]"]))
    assert bmrm.read_sequences is read_sequences


def named(attributes, sequences):
    """Return a dict of names and values for each token."""
    tokens = sequences.tokens.toarray()
    return [{attributes.name(j): row[j] for j in np.flatnonzero(row)} for row in tokens]


def test_names_of_attributes():
    X = [
        [
            {"w": "a", "n": 2, "x": 0.5, "yes": True, "no": False, "zero": 0.0, "np": np.float32(1.5), "b": b"c"},
            ["u", "v", "u"],
            ("u",),
            "u",
            {"u"},
            {"in": {"w": "a", "deep": {"n": 3}}, "list": ["p", "q"], "set": {"r", "s"}},
            {},
        ]
    ]
    attributes, sequences = Attributes.learn(X)
    assert named(attributes, sequences) == [
        {"w:a": 1.0, "n": 2.0, "x": 0.5, "yes": 1.0, "np": 1.5, "b:c": 1.0},
        {"u": 2.0, "v": 1.0},
        {"u": 1.0},
        {"u": 1.0},
        {"u": 1.0},
        {"in:w:a": 1.0, "in:deep:n": 3.0, "list:p": 1.0, "list:q": 1.0, "set:r": 1.0, "set:s": 1.0},
        {},
    ]
    again = attributes.encode([[{"w": "new", "n": 7}], [["v", "other"]]])
    assert named(attributes, again) == [{"n": 7.0}, {"v": 1.0}]
    assert again.offsets.tolist() == [0, 1, 2]


def test_hashed_attributes():
    attributes, sequences = Attributes.learn([[["a", "b"], {"c": 2.0}]], hashing=2**16)
    assert sequences.tokens.shape == (2, 2**16)
    assert sequences.tokens.sum() == 4.0
    assert (attributes.encode([[["b", "a"], {"c": 2.0}]]).tokens != sequences.tokens).nnz == 0
    assert attributes.name(17) == "17"
    for bad in (0, -1, 2**31, 1.5, True, "many"):
        with pytest.raises(ValueError, match="hashing must be a number of columns"):
            Attributes.learn([[["a"]]], hashing=bad)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "there are no sequences"),
        ("text", "expected a list of sequences, got str"),
        (iter([]), "expected a list of sequences"),
        ([[["a"]], []], "sequence 1 is empty"),
        (["text"], "sequence 0 is str; expected a list of tokens"),
        ([[["a"]], {"a": 1}], "sequence 1 is dict; expected a list of tokens"),
        ([[["a"], [1.0]]], "sequence 0, token 1: attribute 1.0 is no text"),
        ([[["a"]], [["a"], 3]], "sequence 1, token 1: a token is a dict or a list of attributes, not int"),
        ([[{"a": None}]], "sequence 0, token 0: attribute 'a' is None; expected a number, text"),
        ([[{"a": float("nan")}]], "sequence 0, token 0: attribute 'a' is nan; NaN and infinity are not accepted"),
        ([[["b"]], [["b"], {"c": 1, "a": np.inf}]], "sequence 1, token 1: attribute 'a' is inf"),
        ([[{3: 1.0}]], "the name of an attribute must be text, got 3"),
        ([[[]]], "no token has an attribute"),
        ([[["a"]], np.eye(2)], "sequence 1 is an array, but others are lists"),
    ],
)
def test_bad_attributes_in_memory(X, message):
    with pytest.raises(ValueError) as error:
        Attributes.learn(X)
    assert message in str(error.value)


def test_arrays_and_names_do_not_mix():
    named_ones, _ = Attributes.learn([[["a"]]])
    plain, sequences = Attributes.learn([np.eye(3), np.ones((1, 3))])
    assert (plain.n_attributes, plain.names, len(sequences)) == (3, None, 2)
    with pytest.raises(ValueError, match="trained on named attributes, but these sequences are arrays"):
        named_ones.encode([np.eye(3)])
    with pytest.raises(ValueError, match="trained on arrays with 3 columns"):
        plain.encode([[["a"]]])
    with pytest.raises(ValueError, match="attributes"):
        plain.encode([np.eye(2)])
    with pytest.raises(ValueError, match="hashing is for attributes with names"):
        Attributes.learn([np.eye(3)], hashing=8)
