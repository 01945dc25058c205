"""Runs on the ranks of MPI that are interrupted: they leave what another run goes on from, to the last bit."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from mpirun import Run, needs_mpi, ranks

import bmrm

pytestmark = needs_mpi

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
    "100",
    "--threads",
    "1",
]
CHECKPOINT = ["--checkpoint", "c.bmrm", "--checkpoint-seconds", "0.05"]


def train(*more):
    return [
        "-m",
        "bmrm",
        "train",
        "0.npz",
        "1.npz",
        "2.npz",
        *OPTIONS,
        "--engine",
        "mpi",
        "--shards",
        "3",
        "--model",
        "m.bmrm",
        *more,
    ]


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
    [(signal.SIGUSR1, False), (signal.SIGTERM, False), (signal.SIGINT, True)],
    ids=["mpiexec passes SIGUSR1 on", "mpiexec is told to end", "rank 0 gets Ctrl-C"],
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
