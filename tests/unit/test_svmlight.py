from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from svmlight_text import bits, random_text

from bmrm import _core
from bmrm._errors import DataError
from bmrm.data.svmlight import read_svmlight


@pytest.fixture
def read(tmp_path):
    """Read bytes or text as a file called train.svm."""

    def from_text(text, **options):
        path = tmp_path / "train.svm"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_svmlight(path, **options)

    return from_text


def test_golden(read):
    data = read("# a comment: 1:2, 3\n\n+1 1:0.5 3:-2e-3 # 7:1\n   \n-1.5\t2:1\t\r\n0\n3 4:.25 5:1.", n_threads=1)
    assert data.X.toarray().tolist() == [
        [0.5, 0, -0.002, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0.25, 1],
    ]
    assert data.y.tolist() == [1, -1.5, 0, 3]
    assert data.groups is None
    assert data.weight is None
    assert isinstance(data.X, sparse.csr_array)
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
    assert data.X.dtype == data.y.dtype == np.float64
    data.X.check_format(full_check=True)


def test_byte_order_mark_and_crlf(read):
    data = read(b"\xef\xbb\xbf1 1:2\r\n2 2:3\r\n")
    assert data.X.toarray().tolist() == [[2, 0], [0, 3]]
    with pytest.raises(DataError, match="line 1, column 3: malformed 'x'"):
        read(b"\xef\xbb\xbf1 x\n")


def test_groups(read):
    data = read("1 qid:0 1:1\n2 qid:9223372036854775807 1:2\n")
    assert data.groups.dtype == np.int64
    assert data.groups.tolist() == [0, 2**63 - 1]


def test_multilabel(read):
    text = "1,2.5 1:1\n 2:5\n3\n1:4\n"
    data = read(text)
    assert data.y == [(1.0, 2.5), (), (3.0,), ()]
    assert data.X.toarray().tolist() == [[1, 0], [0, 5], [0, 0], [4, 0]]
    assert read(" qid:1\n1 qid:2\n").y == [(), (1.0,)]
    assert read("1 1:1\n2 1:1\n", multilabel=True).y == [(1.0,), (2.0,)]
    assert read("  1 1:1\n").y.tolist() == [1.0]


def test_index_base(read):
    assert read("1 0:1 2:1\n").X.indices.tolist() == [0, 2]
    assert read("1 3:1\n1 0:1 2:1\n").X.indices.tolist() == [3, 0, 2]
    assert read("1 1:1 2:1\n").X.indices.tolist() == [0, 1]
    assert read("1 1:1 2:1\n", zero_based=True).X.indices.tolist() == [1, 2]
    assert read("1 1:1 2:1\n", zero_based=False, n_features=9).X.shape == (1, 9)
    assert read("1 1:1 2:1\n", n_features=2).X.shape == (1, 2)
    assert read("1\n2\n").X.shape == (2, 0)


@pytest.mark.parametrize("top", [2**31 - 3, 2**31 - 1, 2**31, 2**31 + 1, 2**60 - 1])
def test_wide_indices(read, top):
    data = read(f"1 1:1\n2 7:2 {top}:3\n")
    assert data.X.shape == (2, top)
    assert data.X.indices.tolist() == [0, 6, top - 1]
    wide = np.int32 if top < 2**31 else np.int64
    assert data.X.indices.dtype == data.X.indptr.dtype == wide
    assert read("1 1:1\n", n_features=top).X.indices.dtype == wide
    data = read(f"1 0:1\n2 {top - 1}:3\n")
    assert data.X.shape == (2, top)
    assert data.X.indices.tolist() == [0, top - 1]
    assert data.X.indices.dtype == wide


def test_single_precision(read):
    data = read("1 1:0.1 2:16777217 3:1e-60\n", dtype=np.float32)
    assert data.X.dtype == np.float32
    assert data.X.data.tolist() == np.array([0.1, 16777217, 1e-60]).astype(np.float32).tolist()
    with pytest.raises(DataError, match="line 1, column 5: value out of range '1e39'"):
        read("1 1:1e39\n", dtype="float32")


ERRORS = [
    ("1 1:1\n2 7:1 4:2\n", {}, 2, 7, "index 4 after 7; indices must increase within a line"),
    ("1 7:1 7:2\n", {}, 1, 7, "index 7 after 7; indices must increase"),
    ("1 1:1\n\n# c\n2 foo 1:1\n", {}, 4, 3, "malformed 'foo'; expected index:value"),
    ("1 5\n", {}, 1, 3, "no colon in '5'; expected index:value"),
    ("1 1.5:2\n", {}, 1, 3, "malformed '1.5:2'; expected index:value"),
    ("1 -3:2\n", {}, 1, 3, "negative index in '-3:2'"),
    ("1 :2\n", {}, 1, 3, "malformed ':2'"),
    ("1 2:\n", {}, 1, 5, "malformed value ''"),
    ("1 2:x\n", {}, 1, 5, "malformed value 'x'; expected a finite number"),
    ("1 2:1e\n", {}, 1, 5, "malformed value '1e'"),
    ("1 2:1_0\n", {}, 1, 5, "malformed value '1_0'"),
    ("1 2:0x1p3\n", {}, 1, 5, "malformed value '0x1p3'"),
    ("1 2:1:3\n", {}, 1, 5, "malformed value '1:3'"),
    ("1 2:3,4\n", {}, 1, 5, "malformed value '3,4'"),
    ("1 2: 3\n", {}, 1, 5, "malformed value ''"),
    ("1 2:nan\n", {}, 1, 5, "value out of range 'nan'; expected a finite number"),
    ("1 2:-Infinity\n", {}, 1, 5, "value out of range '-Infinity'"),
    ("1 2:1e400\n", {}, 1, 5, "value out of range '1e400'"),
    ("1 9223372036854775808:1\n", {}, 1, 3, "index 9223372036854775808 is too large"),
    ("1 1:1\n1 9223372036854775807:1\n", {}, 2, 3, "index 9223372036854775807 is too large; expected at most 2^60 - 1"),
    (f"1 {2**60}:1\n", {"zero_based": False}, 1, 3, f"index {2**60} is too large; expected at most 2^60 - 1"),
    (f"1 {2**60 - 1}:1\n", {"zero_based": True}, 1, 3, f"index {2**60 - 1} is too large; expected at most 2^60 - 2"),
    ("1 0:1\n", {"zero_based": False}, 1, 3, "index 0 in a file that counts from 1"),
    (
        "1 3:1\n1 4:1\n",
        {"n_features": 3},
        2,
        3,
        "index 4 is out of range for n_features=3; expected at most 3",
    ),
    ("1 3:1\n", {"n_features": 3, "zero_based": True}, 1, 3, "index 3 is out of range"),
    ("1 2:1 3:1\n1 0:1\n", {"n_features": 3}, 1, 7, "index 3 is out of range for n_features=3"),
    ("1 1:1\n 1:1\n", {"multilabel": False}, 2, 2, "no label before '1:1'; expected a number"),
    ("qid:1 1:1\n", {"multilabel": False}, 1, 1, "no label before 'qid:1'"),
    ("spam 1:1\n", {}, 1, 1, "malformed label 'spam'; expected a finite number"),
    ("1, 1:1\n", {}, 1, 1, "malformed label '1,'"),
    (",1 1:1\n", {}, 1, 1, "malformed label ',1'"),
    ("1,x 1:1\n", {}, 1, 1, "malformed label '1,x'"),
    ("nan 1:1\n", {}, 1, 1, "label out of range 'nan'"),
    ("-1e999 1:1\n", {}, 1, 1, "label out of range '-1e999'"),
    ("1 1:1\n1,2 1:1\n", {"multilabel": False}, 2, 1, "several labels '1,2'; expected one number"),
    ("1 qid:x 1:1\n", {}, 1, 3, "malformed 'qid:x'; expected qid: and a whole number"),
    ("1 qid:-1 1:1\n", {}, 1, 3, "malformed 'qid:-1'"),
    ("1 qid:9223372036854775808\n", {}, 1, 3, "malformed 'qid:9223372036854775808'"),
    ("1 qid: 1:1\n", {}, 1, 3, "malformed 'qid:'"),
    ("1 qid:1 qid:2\n", {}, 1, 9, "misplaced 'qid:2'"),
    ("1 1:1 qid:2\n", {}, 1, 7, "misplaced 'qid:2'"),
    ("1 qid:1 1:1\n1 1:1\n1 qid:1\n", {}, 2, 1, "no qid here, but on the lines before"),
    ("1 1:1\n1 qid:1 1:1\n", {}, 2, 3, "a qid here, but not before"),
    ("1 1:1\n1 1:1\x00 2:2\n", {}, 2, 5, r"malformed value '1\x00' (a NUL byte"),
    ("\x00\x01\x02\x03", {}, 1, 1, r"malformed label '\x00\x01\x02\x03' (a NUL byte"),
    ("1 1:1\n2 \x7fELF\n", {}, 2, 3, r"malformed '\x7fELF'"),
    ("1 " + "x" * 99 + "\n", {}, 1, 3, "malformed '" + "x" * 40 + "...'"),
]


@pytest.mark.parametrize(("text", "options", "line", "column", "message"), ERRORS)
def test_errors_name_the_place(read, tmp_path, text, options, line, column, message):
    for n_threads in (1, 2):
        with pytest.raises(DataError) as caught:
            read(text, n_threads=n_threads, **options)
        said = str(caught.value)
        assert said.startswith(f"{tmp_path / 'train.svm'}, line {line}, column {column}: {message}")


def test_errors_of_whole_files(tmp_path):
    with pytest.raises(DataError, match=r"absent\.svm: cannot be read \(No such file"):
        read_svmlight(tmp_path / "absent.svm")
    with pytest.raises(DataError, match="is a directory"):
        read_svmlight(tmp_path)
    for text in ("", "\n\n", "# only a comment", "\ufeff"):
        path = tmp_path / "empty.svm"
        path.write_text(text)
        with pytest.raises(DataError, match=r"empty\.svm: no examples"):
            read_svmlight(path)


@pytest.mark.parametrize(
    "options",
    [{"zero_based": "yes"}, {"n_features": -1}, {"n_features": 2**60}, {"n_features": 2**63}, {"dtype": int}],
)
def test_bad_options(read, options):
    with pytest.raises(ValueError, match=f"^{next(iter(options))} is"):
        read("1 1:1\n", **options)


@pytest.mark.parametrize("bad", [0, 2500, 4999])
def test_first_bad_line_is_reported_for_any_number_of_threads(bad):
    lines = ["1 1:1 2:2"] * 5000
    for row in (bad, 4999):
        lines[row] = f"1 1:1 x{row}"
    text = np.frombuffer("\n".join(lines).encode(), np.uint8)
    for n_threads in (1, 2, 4):
        for block_bytes in (1, 100, 1000, 1 << 20):
            with pytest.raises(ValueError, match=f"^line {bad + 1}, column 7: malformed 'x{bad}'"):
                _core.parse_svmlight(text, None, None, None, False, n_threads, block_bytes)


@pytest.mark.parametrize(("first", "qid"), [(0, False), (1, False), (1, True)])
def test_equals_scikit_learn_for_any_number_of_threads(tmp_path, first, qid):
    path = tmp_path / "random.svm"
    path.write_text("# head\n" + random_text(first, first=first, qid=qid) * 60)
    expected = load_svmlight_file(str(path), query_id=qid)
    assert path.stat().st_size > 2 << 20
    for n_threads in (1, 2, 4):
        data = read_svmlight(path, n_threads=n_threads)
        assert data.X.shape == expected[0].shape
        assert bits(data.X.data) == bits(expected[0].data)
        assert np.array_equal(data.X.indices, expected[0].indices)
        assert np.array_equal(data.X.indptr, expected[0].indptr)
        assert bits(data.y) == bits(expected[1])
        if qid:
            assert np.array_equal(data.groups, expected[2])


def test_very_long_line(read):
    n = 300_000
    data = read("1 " + " ".join(f"{i}:{i}" for i in range(1, n + 1)) + "\n-1 5:1 # " + "x" * 3_000_000)
    assert data.X.shape == (2, n)
    assert np.array_equal(data.X.data, [*range(1, n + 1), 1])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["{!r}", "{:.3e}", "{:.20f}", "{:.16g}"]),
)
def test_values_are_bit_for_bit_those_of_python(value, form):
    token = form.format(value)
    text = np.frombuffer(f"1 1:{token}\n".encode(), np.uint8)
    if np.isinf(float(token)):
        return
    assert bits(_core.parse_svmlight(text, None, None, None, False, 1)[0]) == bits(float(token))


def test_mutations_give_arrays_or_data_errors(tmp_path):
    rng = random.Random(11)
    valid = random_text(2, n_rows=6).encode() + b"1,2 7:3 # c\n"
    path = tmp_path / "mutant.svm"
    survivors = 0
    for _ in range(2000):
        text = bytearray(valid)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text))
            byte = rng.choice(b"0123456789:,.#-+eqid \n\r\t") if rng.random() < 0.5 else rng.randrange(256)
            change = rng.randrange(3)
            if change == 0:
                text[at] = byte
            elif change == 1:
                text.insert(at, byte)
            else:
                del text[at : at + rng.randint(1, 9)]
        path.write_bytes(text)
        try:
            data = read_svmlight(path, n_threads=2)
        except DataError:
            continue
        survivors += 1
        data.X.check_format(full_check=True)
        assert np.isfinite(data.X.data).all()
    assert 0 < survivors < 2000
