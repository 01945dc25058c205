"""Training on the ranks of MPI: the same answers as in one process, from Python and from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from commands import good, run
from mpirun import SCRIPTS, needs_mpi, ranks

import bmrm
from bmrm.parallel.held import Call, Drop, Held, Make, told
from bmrm.parallel.messages import number_of, packed, unpacked


@needs_mpi
def test_same_as_in_one_place():
    ended = ranks(3, SCRIPTS / "mpi_same.py")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["n"] == 3
    assert len(found["values"]) > 40
    assert {name: off for name, off in found["values"].items() if off > 1e-12} == {}
    assert len(found["optima"]) > 10
    assert {name: off for name, off in found["optima"].items() if off > 1e-9} == {}
    assert found["structured"] <= 1e-12
    assert found["moved"] == {
        "right": True,
        "owners": ["rank 0", "rank 1", "rank 2"],
        "said": ["the shards have 39999 to 40000 features; taken as 40000"],
        "gone": "the shards have been let go, so they cannot be asked any more",
    }


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Three files of each kind of data, and one of all their rows."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 6))
    f = X @ rng.normal(size=6) + 0.5 * rng.normal(size=150)
    groups = np.repeat(np.arange(15), 10)
    kinds = {
        "two": (np.where(f > 0.0, 1.0, -1.0), None),
        "three": (np.digitize(f, [-1.0, 1.0]).astype(float), None),
        "query": (np.digitize(f, [-1.0, 0.0, 1.0]).astype(float), groups),
    }
    for kind, (y, qid) in kinds.items():
        for part, rows in enumerate([slice(0, 40), slice(40, 120), slice(120, 150), slice(None)]):
            name = f"{kind}{'_all' if part == 3 else part}.svm"
            bmrm.write(name, X[rows], y[rows], groups=None if qid is None else qid[rows])
    return tmp_path


CASES = [
    (2, "two", "--loss", "hinge"),
    (3, "three", "--loss", "softmax"),
    (2, "two", "--loss", "roc_area"),
    (3, "query", "--loss", "pairwise_rank"),
    (4, "two", "--loss", "logistic", "--regularizer", "l1", "--lam", "1e-2"),
]


@needs_mpi
@pytest.mark.parametrize(("n", "kind", "loss"), [(n, kind, args) for n, kind, *args in CASES], ids=str)
def test_command_line_same_as_without(n, kind, loss, files):
    parts = [f"{kind}{part}.svm" for part in range(3)]
    options = [*loss, "--tol", "1e-10", "--json"]
    one = json.loads(good("train", *parts, *options, "--model", "one.bmrm").stdout)
    ended = ranks(
        n, "-m", "bmrm", "train", *parts, *options, "--engine", "mpi", "--model", "m.bmrm", "--history", "h.csv"
    )
    assert ended.code == 0, ended.err
    other = json.loads(ended.out)  # one rank has written, and nothing else
    assert other["objective"] == pytest.approx(one["objective"], rel=1e-9)
    assert other["lower_bound"] <= one["objective"]
    scored = [good("predict", model, f"{kind}_all.svm").stdout for model in ("one.bmrm", "m.bmrm")]
    if kind == "query":
        first, second = (np.array(text.split(), dtype=float) for text in scored)
        np.testing.assert_allclose(first, second, atol=1e-4)
    else:
        assert scored[0] == scored[1]
    assert "busy" in (files / "h.csv").read_text().splitlines()[0]


@needs_mpi
def test_one_rank_without_mpiexec(files):
    command = [sys.executable, "-m", "bmrm", "train", "two0.svm", "two1.svm", "--engine", "mpi", "--max-iter", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 3, ended.stderr
    assert "2 shards" in ended.stdout


@needs_mpi
@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("bad.svm", "1 1:0.5\n-1 1:x\n", "bad.svm, line 2"),
        ("empty.svm", "", "empty.svm: no examples"),
        ("missing.svm", None, "missing.svm: cannot be read"),
    ],
)
def test_a_shard_that_cannot_be_read(name, text, said, files):
    if text is not None:
        (files / name).write_text(text)
    (files / "m.bmrm").write_text("not to be overwritten")
    ended = ranks(2, "-m", "bmrm", "train", "two0.svm", "two1.svm", name, "--engine", "mpi", "--model", "m.bmrm")
    assert ended.code == 2
    assert ended.err.count("error:") == 1
    assert f"error: {said}" in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""
    assert (files / "m.bmrm").read_text() == "not to be overwritten"


def test_without_mpi4py(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    result = run("train", "two0.svm", "--engine", "mpi")
    assert result.exit_code == 2
    assert "pip install 'bmrm[mpi]'" in result.stderr


def test_options_of_other_engines_are_refused(files):
    result = run("train", "two0.svm", "--engine", "mpi", "--workers", "2")
    assert result.exit_code == 2
    assert "--scheduler and --workers are for --engine dask" in result.stderr


def test_messages(rng):
    large, small, apart = rng.normal(size=(50, 30)), np.arange(3), rng.normal(size=(64, 64))[::2, ::3]
    fixed = rng.normal(size=1000)
    fixed.flags.writeable = False
    message = packed(12, {"a": (large, small), "b": [apart, fixed, None], "c": np.zeros((0, 3))})
    assert number_of(message) == 12
    value = unpacked(message)
    np.testing.assert_array_equal(value["a"][0], large)
    np.testing.assert_array_equal(value["a"][1], small)
    np.testing.assert_array_equal(value["b"][0], apart)
    np.testing.assert_array_equal(value["b"][1], fixed)
    assert value["c"].shape == (0, 3)
    assert value["a"][0].flags.aligned
    assert np.shares_memory(value["a"][0], message)
    large[:] = 0.0
    assert value["a"][0].any()


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Moody:
    def fail(self, error):
        raise error

    def leave(self):
        sys.exit(5)

    def warn(self):
        warnings.warn("a word", UserWarning, stacklevel=1)
        return 1


def test_what_comes_of_a_request_can_travel():
    held = Held()
    held.outcomes(Make(1, [(3, Moody)]))
    for error, kind, said in [
        (ValueError("wrong"), ValueError, "wrong"),
        (Unpicklable(1, 2), bmrm.parallel.EngineError, "Unpicklable: 1 and 2"),
    ]:
        outcome = unpacked(packed(0, told(held, Call(1, "fail", (error,))))).outcomes[3]
        assert type(outcome.error) is kind
        assert str(outcome.error) == said
        assert "Traceback" in outcome.error.__notes__[0]
    assert "SystemExit(5)" in str(told(held, Call(1, "leave", ())).outcomes[3].error)
    found = told(held, Call(1, "warn", (), [(3, ())]))
    assert found.outcomes[3].value == 1
    assert found.warnings == [(UserWarning, "a word")]
    assert isinstance(told(held, Call(1, "warn", (), [(4, ())])).outcomes[4].error, KeyError)
    held.outcomes(Drop((1,)))
    assert told(held, Call(1, "warn", ())).outcomes == {}
