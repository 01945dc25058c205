"""Ranks of MPI that fail, are killed or interrupted: the run goes on or ends, and never hangs."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from mpirun import SCRIPTS, Run, needs_mpi, ranks

import bmrm

pytestmark = needs_mpi

FAULTS = SCRIPTS / "mpi_faults.py"


def test_errors_of_a_rank_are_raised_on_the_first():
    ended = ranks(3, FAULTS, "errors")
    assert "all caught" in ended.out, ended.err
    assert ended.code == 1
    assert ended.err.count("bmrm._errors.DataError: rank") + ended.err.count("\nDataError: rank") <= 2
    assert "does not like this" in ended.err


def test_an_error_of_the_first_rank_ends_all():
    ended = ranks(3, FAULTS, "first")
    assert ended.code == 1
    assert ended.err.count("LookupError: rank 0 has lost its way") == 1
    assert "AssertionError" not in ended.err


@pytest.mark.parametrize("kills", [{1: 9}, {1: 1, 2: 12}], ids=["one of three", "all others"])
def test_survivors_take_over(kills, monkeypatch):
    for rank, number in kills.items():
        monkeypatch.setenv(f"KILL_{rank}", str(number))
    ended = ranks(3, FAULTS, "killed", ulfm=True)
    assert ended.code == 0, ended.err
    assert f"lost {len(kills)} of 3" in ended.out


@pytest.mark.parametrize("how", ["kill", "crash", "vanish"])
def test_without_fault_tolerance_the_run_ends(how):
    ended = ranks(3, FAULTS, "lost", how, timeout=60)
    assert ended.code != 0
    assert "went on" not in ended.out


@pytest.mark.parametrize(
    ("arguments", "ulfm"), [((1,), False), ((1,), True), ((1, "started"), False), ((0, "started"), True)], ids=str
)
def test_a_rank_that_fails_before_the_start(arguments, ulfm):
    ended = ranks(2, FAULTS, "start", *arguments, ulfm=ulfm, timeout=60)
    assert ended.code != 0
    assert "this rank has no such module" in ended.err


OPTIONS = [
    "--loss",
    "hinge",
    "--solver",
    "bmrm",
    "--lam",
    "1e-6",
    "--tol",
    "1e-9",
    "--max-iter",
    "150",
    "--threads",
    "1",
]
CHECKPOINT = ["--checkpoint", "c.bmrm", "--checkpoint-seconds", "0.05"]


def train(*more):
    return ["-m", "bmrm", "train", "0.npz", "1.npz", "2.npz", *OPTIONS, "--engine", "mpi", "--model", "m.bmrm", *more]


def weights():
    model = bmrm.load("m.bmrm")
    return model.coef.tobytes() + model.intercept.tobytes()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with data, and the weights of a run that was left alone."""
    folder = tmp_path_factory.mktemp("interrupted")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 30))
    y = np.sign(X @ rng.normal(size=30) + 3.0 * rng.normal(size=3000))
    before = os.getcwd()
    os.chdir(folder)
    for part, rows in enumerate(np.split(np.arange(3000), [800, 2000])):
        bmrm.write(f"{part}.npz", X[rows], y[rows])
    ended = ranks(2, *train("--quiet"))
    assert ended.code == 3, ended.err
    yield folder, weights()
    os.chdir(before)


def stopped(number, to_rank_0):
    """Start a run, send a signal after its first checkpoint, and return how it ended."""
    with Run(3, *train(*CHECKPOINT, "--quiet")) as run:
        until = time.monotonic() + 60.0
        while not os.path.exists("c.bmrm") and run.process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        if to_rank_0:
            os.kill(run.ranks()[0], number)
        else:
            run.process.send_signal(number)
        return run.ended()


@pytest.mark.parametrize(
    ("number", "to_rank_0"),
    [(signal.SIGUSR1, False), (signal.SIGTERM, False), (signal.SIGINT, True), (signal.SIGKILL, False)],
    ids=["mpiexec passes SIGUSR1 on", "mpiexec is told to end", "rank 0 gets Ctrl-C", "mpiexec is killed"],
)
def test_interrupted_runs_go_on_to_the_last_bit(number, to_rank_0, trained):
    folder, whole = trained
    os.chdir(folder)
    for name in ("c.bmrm", "m.bmrm"):
        if os.path.exists(name):
            os.remove(name)
    ended = stopped(number, to_rank_0)
    assert ended.code != 0
    if number in (signal.SIGUSR1, signal.SIGINT):
        assert ended.code == 3, ended.err
        assert bmrm.load("m.bmrm").status is bmrm.Status.INTERRUPTED
    resumed = ranks(2, *train(*CHECKPOINT, "--resume", "--quiet"))
    assert resumed.code == 3, resumed.err
    assert weights() == whole
    assert not [name for name in os.listdir() if name.endswith(".tmp")]
