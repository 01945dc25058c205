"""Where results go: only over regular files, to standard output, checked before the work, and saved in any case."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from commands import bad, good, write_files

import bmrm
from bmrm import DataError
from bmrm.cli import main

posix = pytest.mark.skipif(os.name == "nt", reason="special files are different there")
TRAIN = ("train", "two.svm")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path / "here")
    write_files()
    good(*TRAIN, "--model", "good.bmrm", "--quiet")
    return tmp_path / "here"


def special(kind):
    """Make a special file and return its name, what it is called in messages, and how it is told."""
    name = f"special.{kind}"
    if kind == "fifo":
        os.mkfifo(name)
        return name, "pipe (FIFO)", stat.S_ISFIFO
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(name)
        return name, "socket", stat.S_ISSOCK
    if kind == "directory":
        os.mkdir(name)
        return name, "directory", stat.S_ISDIR
    try:
        os.mknod(name, 0o666 | stat.S_IFCHR, os.makedev(1, 7))  # as /dev/full
    except PermissionError:
        pytest.skip("making a device needs root")
    return name, "device", stat.S_ISCHR


OUTPUTS = [
    (*TRAIN, "--model"),
    (*TRAIN, "--history"),
    (*TRAIN, "--checkpoint"),
    ("predict", "good.bmrm", "two.svm", "--output"),
    ("convert", "two.svm"),
]


@posix
@pytest.mark.parametrize("linked", [False, True], ids=["itself", "link"])
@pytest.mark.parametrize("kind", ["fifo", "socket", "directory", "device"])
def test_only_regular_files_are_replaced(kind, linked, monkeypatch):
    path, what, is_it = special(kind)
    monkeypatch.setattr("bmrm.cli.train.training_data", lambda *args: pytest.fail("read too early"))
    if linked:
        os.symlink(path, "link")
    name = "link" if linked else path
    for arguments in OUTPUTS:
        assert f"{name}: is a {what}; expected the name of a file" in bad(*arguments, name)
    for write in (bmrm.load("good.bmrm").save, lambda path: bmrm.write(path, np.eye(2), [1, -1])):
        with pytest.raises(DataError, match=f"{name}: is a "):
            write(name)
    assert is_it(os.stat(path).st_mode)
    assert os.path.islink(name) == linked


@posix
def test_links_to_files_stay_links(files):
    (files / "old.bmrm").write_bytes(b"old")
    os.symlink("old.bmrm", "link")
    os.symlink("new.bmrm", "dangling")
    for link, target in (("link", "old.bmrm"), ("dangling", "new.bmrm")):
        good(*TRAIN, "--model", link, "--quiet")
        assert os.path.islink(link)
        assert bmrm.load(target).n_features == 6


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none/m.bmrm", "none/m.bmrm: cannot be written (No such file or directory)"),
        ("two.svm/m.bmrm", "cannot be written (Not a directory)"),
        ("x" * 300, "cannot be written (File name too long)"),
        (os.fsdecode(b"m\xff.bmrm"), "the name of an output must be UTF-8"),
        ("two.svm", "two.svm: is an input of this command and would be overwritten"),
        ("./../here/two.svm", "is an input of this command and would be overwritten"),
    ],
)
def test_names_are_checked_before_any_work(name, message, monkeypatch):
    monkeypatch.setattr("bmrm.cli.train.training_data", lambda *args: pytest.fail("read too early"))
    monkeypatch.setattr("bmrm.cli.convert.convert_files", lambda *args, **more: pytest.fail("read too early"))
    for arguments in OUTPUTS:
        assert message in bad(*arguments, name)


def test_two_outputs_must_differ():
    message = "same: is another output of this command and would be overwritten"
    assert message in bad(*TRAIN, "--model", "same", "--history", "same")
    assert message in bad(*TRAIN, "--model", "./same", "--checkpoint", "same")
    assert not os.path.exists("same")


@posix
def test_the_file_that_messages_go_to_is_not_replaced():
    with open("both", "wb") as both:
        for name in ("both", "/dev/stdout"):
            command = [sys.executable, "-m", "bmrm", *TRAIN, "--model", name]
            done = subprocess.run(command, stdout=both, stderr=subprocess.PIPE, text=True, check=False)
            assert done.returncode == 2
            message = f"error: {name}: is where the messages of this command go and would be overwritten\n"
            assert done.stderr == message


def test_a_name_that_no_file_can_have():
    with pytest.raises(DataError, match=r"'a\\x00b': no name that a file can have \(embedded null byte\)"):
        bmrm.load("good.bmrm").save("a\0b")


@posix
def test_names_of_inputs_that_are_not_utf_8(files):
    name = os.fsdecode(b"d\xff.svm")
    Path(name).write_bytes(Path("two.svm").read_bytes())
    assert "the name of an output must be UTF-8" in bad("train", name)
    good("train", name, "--model", "m.bmrm", "--quiet")
    assert bmrm.load("m.bmrm").config["file"] == "d\ufffd.svm"


def test_models_and_predictions_go_to_standard_output():
    result = good(*TRAIN, "--model", "-")
    Path("out.bmrm").write_bytes(result.stdout_bytes)
    assert np.array_equal(bmrm.load("out.bmrm").coef, bmrm.load("good.bmrm").coef)
    assert "certified: the gap is closed" in result.stderr
    assert result.stderr.rstrip().endswith("model saved to standard output")
    result = good(*TRAIN, "--model", "-", "--json", "--quiet")
    assert json.loads(result.stderr)["model"] == "-"
    Path("out.bmrm").write_bytes(result.stdout_bytes)
    lines = good("predict", "out.bmrm", "two.svm").stdout
    assert good("predict", "out.bmrm", "two.svm", "--output", "-").stdout == lines
    for arguments in ((*TRAIN, "--history"), (*TRAIN, "--checkpoint"), ("convert", "two.svm")):
        assert "- is standard output, where this cannot be written; a file of that name is ./-" in bad(*arguments, "-")
    assert not os.path.exists("-")


def test_sequences_go_to_standard_output():
    Path("s.crfsuite").write_text("A\ta\nB\tb\n\nB\tb\nA\ta\n")
    result = good("train", "s.crfsuite", "--loss", "structured_log", "--model", "-")
    Path("s.bmrm").write_bytes(result.stdout_bytes)
    assert "model saved to standard output" in result.stderr
    assert good("predict", "s.bmrm", "s.crfsuite").stdout.split() == ["A", "B", "B", "A"]


class Failing:
    """Makes writing the model fail as a full disk does, a number of times."""

    def __init__(self, monkeypatch, times, error=errno.ENOSPC):
        import bmrm.data.atomic

        self.left, real = times, os.fsync

        def fsync(number):
            if self.left > 0:
                self.left -= 1
                raise OSError(error, os.strerror(error))
            real(number)

        monkeypatch.setattr(bmrm.data.atomic.os, "fsync", fsync)


def saved_in(line):
    return Path(line.split("the model is saved to ")[1].removesuffix(" instead"))


def test_a_model_that_cannot_be_saved_goes_elsewhere(files, monkeypatch):
    (files / "deep").mkdir()
    for times, folder in ((1, files), (2, Path(tempfile.gettempdir()))):
        Failing(monkeypatch, times)
        line = bad(*TRAIN, "--model", "deep/m.bmrm", "--quiet")
        assert line.startswith("error: deep/m.bmrm: cannot be written (No space left on device); the model is saved to")
        place = saved_in(line)
        assert place == folder / "m.bmrm"
        assert np.array_equal(bmrm.load(place).coef, bmrm.load("good.bmrm").coef)
        monkeypatch.undo()
        monkeypatch.chdir(files)
        monkeypatch.setattr(tempfile, "tempdir", str(files.parent / "tmp"))
    Failing(monkeypatch, 1)
    assert saved_in(bad(*TRAIN, "--model", "deep/m.bmrm", "--quiet")) == files / "m-1.bmrm"  # nothing is overwritten
    assert not os.listdir("deep")
    Failing(monkeypatch, 9)
    line = bad(*TRAIN, "--model", "deep/m.bmrm", "--quiet")
    assert "nor can the model be saved to the current directory or to that of temporary files" in line


@posix
def test_a_directory_that_is_gone(files, monkeypatch):
    (files / "deep").mkdir()
    real = bmrm.cli.train.fit_file

    def fit(*arguments):
        (files / "deep").rmdir()
        return real(*arguments)

    monkeypatch.setattr("bmrm.cli.train.fit_file", fit)
    line = bad(*TRAIN, "--model", "deep/m.bmrm", "--quiet")
    assert "deep/m.bmrm: cannot be written (No such file or directory); the model is saved to" in line
    assert bmrm.load(saved_in(line)).n_features == 6


def test_a_history_that_cannot_be_written_says_where_the_model_is(files, monkeypatch):
    def fail(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("bmrm.cli.outputs.write_history", fail)
    message = "h.csv: cannot be written (No space left on device); the model is saved to m.bmrm"
    assert message in bad(*TRAIN, "--model", "m.bmrm", "--history", "h.csv", "--quiet")
    assert bmrm.load("m.bmrm").n_features == 6


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_standard_output_that_is_full(files):
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "bmrm", *TRAIN, "--model", "-", "--quiet"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    line = done.stderr.strip()
    assert line.startswith("error: standard output: cannot be written (No space left on device); the model is saved to")
    assert np.array_equal(bmrm.load(saved_in(line)).coef, bmrm.load("good.bmrm").coef)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@posix
def test_signals_do_not_interrupt_the_saving(files, monkeypatch):
    import signal

    real = bmrm.model_file.write

    def write(*arguments):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        real(*arguments)

    monkeypatch.setattr("bmrm.model_file.write", write)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    good(*TRAIN, "--model", "m.bmrm", "--quiet")
    assert bmrm.load("m.bmrm").status is bmrm.Status.CONVERGED
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def piped(content, *arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=content)
    assert result.exit_code == code, result.stderr
    return result


def test_standard_input_is_a_file():
    text = Path("two.svm").read_bytes()
    piped(text, "train", "-", "--quiet")
    model = bmrm.load("stdin.bmrm")
    assert np.array_equal(model.coef, bmrm.load("good.bmrm").coef)
    assert model.config["file"] == "-"
    assert piped(text, "predict", "good.bmrm", "-").stdout == good("predict", "good.bmrm", "two.svm").stdout
    assert piped(text, "evaluate", "good.bmrm", "-").stdout == good("evaluate", "good.bmrm", "two.svm").stdout
    both = piped(text, "train", "-", "two.svm", "--model", "both.bmrm", "--json").stdout
    assert json.loads(both)["n_examples"] == 240
    assert not os.listdir(tempfile.gettempdir())


def test_standard_input_has_the_format_that_is_named():
    pytest.importorskip("pyarrow", reason="pyarrow is missing")
    data = bmrm.read("two.svm")
    rows = np.column_stack([data.X.toarray(), data.y])
    names = [*"abcdef", "label"]
    text = "\n".join([",".join(names), *(",".join(map(repr, row)) for row in rows.tolist()), ""]).encode()
    piped(text, "train", "-", "--format", "csv", "--target", "label", "--model", "m.bmrm", "--quiet")
    assert bmrm.load("m.bmrm").feature_names == tuple("abcdef")
    lines = piped(text, "predict", "m.bmrm", "-", "--format", "csv").stdout.split()
    assert np.mean(np.array(lines, float) == data.y) > 0.6
    buffer = Path("two.npz")
    bmrm.write(buffer, data)
    piped(buffer.read_bytes(), "train", "-", "--format", "npz", "--model", "m.bmrm", "--quiet")
    assert np.array_equal(bmrm.load("m.bmrm").coef, bmrm.load("good.bmrm").coef)
    sequences = b"A\ta\nB\tb\n\nB\tb\nA\ta\n"
    piped(sequences, "train", "-", "--format", "crfsuite", "--loss", "structured_log", "--model", "s.bmrm", "--quiet")
    found = piped(sequences, "predict", "s.bmrm", "-", "--format", "crfsuite").stdout.split()
    assert found == ["A", "B", "B", "A"]


def test_wrong_use_of_standard_input():
    cases = {
        ("train", "-"): "standard input, line 1, column 1: ",
        ("train", "-", "-"): "-: standard input can be read once only",
        ("train", "-", "--format", "conll"): "--format conll is for sequences",
        ("train", "two.svm", "--format", "csv"): "--format is for models of sequences and for standard input",
        ("train", "-", "--target", "y"): "--target is for tables (Parquet, Arrow, CSV), which standard input is not",
        ("train", "-", "--engine", "dask"): "-: standard input is not for --engine dask",
        ("predict", "good.bmrm", "-"): "standard input, line 1, column 1: ",
        ("evaluate", "good.bmrm", "-"): "standard input, line 1, column 1: ",
    }
    for arguments, message in cases.items():
        result = piped(b"nonsense here\n", *arguments, code=2)
        assert message in result.stderr, arguments
        assert len(result.stderr.splitlines()) == 1


def test_evaluate_takes_several_files():
    data = bmrm.read("two.svm")
    for name, rows in (("a.svm", slice(0, 50)), ("b.npz", slice(50, None))):
        bmrm.write(name, data.X[rows], data.y[rows])
    good("convert", "b.npz", "b.store", "--quiet")
    whole = json.loads(good("evaluate", "good.bmrm", "two.svm", "--json").stdout)
    for second in ("b.npz", "b.store"):
        found = json.loads(good("evaluate", "good.bmrm", "a.svm", second, "--json").stdout)
        assert found == pytest.approx(whole, rel=1e-12)
    assert "none.svm: cannot be read" in bad("evaluate", "good.bmrm", "a.svm", "none.svm")
    good("train", "sets.svm", "--loss", "multilabel_hinge", "--model", "sets.bmrm", "--quiet")
    once, twice = (good("evaluate", "sets.bmrm", *["sets.svm"] * n, "--json").stdout for n in (1, 2))
    assert json.loads(twice) == pytest.approx(json.loads(once) | {"n_examples": 240})


def test_evaluate_takes_several_files_of_sequences():
    Path("a.crfsuite").write_text("A\ta\nB\tb\n\nB\tb\nA\ta\n")
    Path("b.crfsuite").write_text("A\tb\n")
    Path("ab.crfsuite").write_text("A\ta\nB\tb\n\nB\tb\nA\ta\n\nA\tb\n")
    good("train", "a.crfsuite", "--loss", "structured_log", "--model", "s.bmrm", "--quiet")
    whole = json.loads(good("evaluate", "s.bmrm", "ab.crfsuite", "--json").stdout)
    assert json.loads(good("evaluate", "s.bmrm", "a.crfsuite", "b.crfsuite", "--json").stdout) == pytest.approx(whole)


@posix
def test_checkpoints_of_the_library_replace_regular_files_only():
    problem = bmrm.Problem(bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], "hinge"), "l2", 0.5)
    for kind in ("fifo", "socket", "directory"):
        name, what, is_it = special(kind)
        with pytest.raises(DataError) as error:
            bmrm.solve(problem, checkpoint=name)
        assert str(error.value) == f"{name}: is a {what}; expected the name of a file"
        assert is_it(os.stat(name).st_mode)
