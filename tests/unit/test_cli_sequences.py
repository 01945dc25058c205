"""The commands for sequences: three formats, what is written, what is measured, wrong usage and input."""

from __future__ import annotations

import json
import lzma
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import bad, good, run
from sentences import TEMPLATE, generator, write_files

import bmrm
from bmrm.structured.spans import span_scores

LAM = ("--lam", "0.01")
FORMATS = {"train.conll": ("--template", "T"), "train.crfsuite": (), "train.svm": ()}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sentences(folder):
    return write_files(generator())


def blocks(text):
    """The lines of each sequence."""
    return [block.splitlines() for block in text.strip("\n").split("\n\n")]


def trained(file="train.conll", *arguments):
    good("train", file, "--loss", "structured_log", *LAM, "--model", "m.bmrm", "--quiet", *FORMATS[file], *arguments)
    return bmrm.load("m.bmrm")


@pytest.mark.parametrize("loss", ["structured_log", "structured_hinge"])
@pytest.mark.parametrize("file", FORMATS)
def test_train_predict_evaluate(sentences, file, loss):
    _, labels = sentences
    result = good("train", file, "--loss", loss, *LAM, *FORMATS[file])
    assert "certified" in result.stdout
    assert "30 sequences" in result.stdout
    assert "model saved to train.bmrm" in result.stdout
    assert "gap" in result.stderr
    model = bmrm.load("train.bmrm")
    assert isinstance(model, bmrm.SequenceModel)
    assert model.certificate.closes(1e-3)
    assert model.config["lam"] == model.lam == 0.01
    assert model.history["iterations"] > 1
    found = [[line.split(" ")[-1] for line in block] for block in blocks(good("predict", "train.bmrm", file).stdout)]
    assert [len(each) for each in found] == [len(each) for each in labels]
    measures = json.loads(good("evaluate", "train.bmrm", file, "--json").stdout)
    true = labels if file != "train.svm" else [[str(one) for one in each] for each in bmrm.read_sequences(file).y]
    right = [a == b for one, other in zip(true, found) for a, b in zip(one, other)]
    assert measures["token_accuracy"] == pytest.approx(np.mean(right))
    assert measures["sequence_accuracy"] == pytest.approx(np.mean([a == b for a, b in zip(true, found)]))
    assert measures["n_tokens"] == len(right)
    text = good("evaluate", "train.bmrm", file).stdout
    assert "token accuracy" in text
    if file == "train.svm":
        assert "f1" not in measures
    else:
        total, kinds = span_scores(true, found)
        assert (measures["precision"], measures["recall"], measures["f1"]) == (total.precision, total.recall, total.f1)
        assert measures["kinds"]["NP"]["f1"] == kinds["NP"].f1
        assert text.splitlines()[-1].split()[0] == "VP"


def test_the_problem_is_the_labeler_s(sentences):
    model = trained("train.conll", "--tol", "1e-6")
    data = bmrm.read_sequences("train.conll", template="T")
    labeler = bmrm.SequenceLabeler(lam=0.01, tol=1e-6).fit(data.X, data.y)
    assert np.array_equal(model.coef, labeler.coef_)
    assert model.attributes.names == labeler.attributes_.names
    measures = json.loads(good("evaluate", "m.bmrm", "train.conll", "--json").stdout)
    objective = measures["mean_loss"] + 0.005 * float(model.coef @ model.coef)
    assert objective == pytest.approx(model.certificate.upper, rel=1e-9)


def test_columns_get_one_more(sentences):
    model = trained()
    lines = Path("train.conll").read_text().splitlines()
    written = good("predict", "m.bmrm", "train.conll").stdout.splitlines()
    assert len(written) == len(lines)
    for line, predicted in zip(lines, written):
        assert predicted.startswith(line)
        assert len(predicted.split()) == (4 if line else 0)
    Path("bare.conll").write_text("".join(line.rpartition(" ")[0] + "\n" for line in lines))
    bare = good("predict", "m.bmrm", "bare.conll").stdout.splitlines()
    assert [line.split()[-1:] for line in bare] == [line.split()[-1:] for line in written]
    result = good("predict", "m.bmrm", "train.conll", "-o", "out.conll")
    assert "labels of 30 sequences written to out.conll" in result.stderr
    assert Path("out.conll").read_text().splitlines() == written
    assert model.config["n_columns"] == 2


def test_probabilities(sentences):
    model = trained()
    rows = [line.split() for line in good("predict", "m.bmrm", "train.conll", "--proba").stdout.splitlines()]
    tables = model.marginals(bmrm.read_sequences("train.conll", template="T").X)
    assert [list(map(float, row)) for row in rows if row] == np.concatenate(tables).tolist()
    assert sum(not row for row in rows) == len(tables) - 1
    good("train", "train.svm", "--loss", "structured_hinge", *LAM, "--quiet")
    assert "loss 'structured_hinge' yields no probabilities" in bad("predict", "train.bmrm", "train.svm", "--proba")


def test_options(sentences, folder):
    np.save("w.npy", np.arange(30) % 3)
    np.savetxt("costs.txt", 2.0 * (1.0 - np.eye(4)))
    report = json.loads(
        good(
            "train", "train.conll", "--template", "T", "--loss", "structured_hinge", "--C", "1", "--weights", "w.npy",
            "--costs", "costs.txt", "--loss-param", "scaling=slack", "--emissions", "all", "--transitions", "all",
            "--hashing", "64", "--solver", "ls_bmrm", "--history", "h.csv", "--json", "--threads", "1",
        ).stdout
    )  # fmt: skip
    assert report["converged"] is True
    assert report["lam"] == pytest.approx(1.0 / 30)
    assert report["n_attributes"] == 64
    assert report["n_weights"] == 64 * 4 + 16 + 8
    assert report["classes"] == ["B-NP", "B-VP", "I-NP", "O"]
    assert len(Path("h.csv").read_text().splitlines()) == report["iterations"] + 1
    model = bmrm.load("train.bmrm")
    assert model.loss.scaling == "slack"
    assert model.chain.costs.max() == 2.0
    good("predict", "train.bmrm", "train.conll")


def test_a_template_without_B_has_no_transitions(sentences):
    Path("T").write_text(TEMPLATE.replace("B\n", ""))
    model = trained()
    blocks = model.chain.blocks()
    assert blocks["transitions"].stop == blocks["transitions"].start
    assert trained("train.conll", "--transitions", "all").transitions()


def test_compressed_files_and_formats(sentences):
    with lzma.open("train.txt.xz", "wt") as file:
        file.write(Path("train.conll").read_text())
    arguments = ("--loss", "structured_log", *LAM, "--template", "T", "--quiet")
    assert "its name does not tell the format" in bad("train", "train.txt.xz", *arguments)
    good("train", "train.txt.xz", *arguments, "--format", "conll")
    written = good("predict", "train.bmrm", "train.txt.xz").stdout  # the format is that of training
    assert written == good("predict", "train.bmrm", "train.conll").stdout
    assert "token accuracy" in good("evaluate", "train.bmrm", "train.txt.xz", "--format", "conll").stdout


def test_sentences_of_another_file(sentences):
    trained()
    Path("test.conll").write_text("the D B-NP\nzebra Q I-NP\n\nruns V B-ADVP\n")
    result = good("evaluate", "m.bmrm", "test.conll")
    assert "warning: 1 tokens have labels that the model does not know (B-ADVP); they count as wrong" in result.stderr
    assert "unknown labels" in result.stdout
    assert "undefined here" in result.stdout
    measures = json.loads(good("evaluate", "m.bmrm", "test.conll", "--json").stdout)
    assert measures["unknown_labels"] == 1
    assert measures["mean_loss"] is None
    assert measures["kinds"]["ADVP"]["recall"] == 0.0


def test_document_lines(sentences):
    trained()
    Path("test.conll").write_text("-DOCSTART- -X- O\n\nthe D B-NP\n")
    assert good("predict", "m.bmrm", "test.conll").stdout == "-DOCSTART- -X- O O\n\nthe D B-NP B-NP\n"


def test_not_certified(sentences):
    arguments = ("--loss", "structured_hinge", "--lam", "1e-6", "--template", "T", "--max-iter", "2")
    result = good("train", "train.conll", *arguments, code=3)
    assert "NOT certified: stopped at --max-iter" in result.stdout
    assert "warning" not in result.stderr
    assert bmrm.load("train.bmrm").status is bmrm.Status.ITERATION_LIMIT


def test_list(folder):
    losses = {loss["name"]: loss for loss in json.loads(good("list", "losses", "--json").stdout)["losses"]}
    assert losses["structured_hinge"]["parameters"] == {"scaling": "margin"}
    assert losses["structured_log"]["parameters"] == {}
    assert losses["structured_log"]["smooth"] is True
    assert losses["structured_log"]["task"] == "sequences"
    assert "structured_log" in good("list", "losses").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train train.conll --loss structured_log", "train.conll: a file of columns needs a feature template"),
        ("train train.conll --loss structured_log --template no", "no: cannot be read"),
        ("train plain.svm --loss structured_log", "plain.svm: the rows belong to no sequences: expected qid:NUMBER"),
        ("train train.svm --loss structured_log --template T", "a template is for files of columns"),
        ("train train.conll --loss hinge", "train.conll: for sequences, which loss 'hinge' is not for"),
        ("train plain.svm --template T", "--template: for sequences, which loss 'hinge' is not for"),
        ("train plain.svm --emissions all", "--emissions: for sequences"),
        ("train train.svm --loss structured_lag", "Did you mean 'structured_log'"),
        ("train train.svm --loss structured_log --intercept", "--intercept/--no-intercept means nothing"),
        ("train train.svm --loss structured_log --hierarchy T", "--hierarchy means nothing"),
        ("train train.svm --loss structured_log --multiclass joint", "--multiclass means nothing"),
        ("train train.svm --loss structured_log --loss-param tau=1", "has no parameter 'tau'; accepted: scaling"),
        ("train train.svm --loss structured_log --loss-param scaling=slack", "no parameter 'scaling'"),
        ("train train.svm --loss structured_log --costs costs.txt", "costs are for the loss structured_hinge"),
        ("train train.svm --loss structured_hinge --costs costs.txt", "costs must be a 4 x 4 matrix"),
        ("train train.svm --loss structured_log --weights w.npy", "w.npy: has type float64 and shape (3,)"),
        ("train one.crfsuite --loss structured_log", "one.crfsuite: y has one label only, 'A'"),
        ("train bad.crfsuite --loss structured_log", "bad.crfsuite, line 2: 'x' in 'b:x' is no finite number"),
        ("train empty.crfsuite --loss structured_log", "empty.crfsuite: has no sequences"),
        ("predict m.bmrm train.conll --scores", "--scores is not for models of sequences"),
        ("predict m.bmrm train.conll --path", "--path is not for models of sequences"),
        ("predict m.bmrm train.svm", "train.svm: the model was trained on named attributes"),
        ("predict m.bmrm wide.conll", "wide.conll, line 1: the number of columns is 5"),
        ("evaluate m.bmrm bare.conll", "bare.conll, line 1: the number of columns is 2; expected 2 and the label"),
        ("evaluate m.bmrm train.conll --k 3", "--k and --beta are not for models of sequences"),
        ("predict plain.bmrm plain.svm --format conll", "--format is for models of sequences"),
        ("evaluate plain.bmrm plain.svm --format conll", "--format is for models of sequences"),
        ("predict s.bmrm train.conll", "train.conll: is a file of columns, but the model has no template"),
    ],
)  # fmt: skip
def test_wrong_usage_and_input(sentences, arguments, message):
    bmrm.write("plain.svm", np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]))
    Path("one.crfsuite").write_text("A\ta\n\nA\tb\n")
    Path("bad.crfsuite").write_text("A\ta\nB\tb:x\n")
    Path("empty.crfsuite").write_text("\n")
    Path("wide.conll").write_text("a b c d E\n")
    Path("bare.conll").write_text("a b\n")
    np.savetxt("costs.txt", np.zeros((2, 2)))
    np.save("w.npy", np.ones(3))
    if "m.bmrm" in arguments:
        trained()
    if "plain.bmrm" in arguments:
        good("train", "plain.svm", "--quiet")
    if "s.bmrm" in arguments:
        good("train", "train.svm", "--loss", "structured_log", *LAM, "--quiet", "--model", "s.bmrm")
    assert message in bad(*arguments.split())


def test_inputs_are_not_overwritten(sentences):
    arguments = ("--loss", "structured_log", "--template", "T")
    assert "would be overwritten" in bad("train", "train.conll", *arguments, "--model", "T")
    assert "would be overwritten" in bad("train", "train.conll", *arguments, "--history", "train.conll")


@pytest.mark.skipif(os.name == "nt", reason="signals are different there")
def test_ctrl_c_saves_the_model(folder):
    write_files(generator(), 20_000)
    arguments = ["--loss", "structured_hinge", "--lam", "1e-9", "--tol", "0", "--solver", "bmrm", "--threads", "1"]
    command = [sys.executable, "-m", "bmrm", "train", "train.crfsuite", *arguments]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stderr.readline().startswith("gap ")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 3, err
    assert "Traceback" not in err
    assert "NOT certified: interrupted" in out
    assert bmrm.load("train.bmrm").status is bmrm.Status.INTERRUPTED


def test_in_a_process_of_its_own(sentences):
    arguments = ["train", "train.conll", "--loss", "structured_log", "--template", "T", *LAM, "--json"]
    command = [sys.executable, "-m", "bmrm", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["task"] == "sequences"
    assert run("predict", "train.bmrm", "train.conll").exit_code == 0
