"""Dask workers that die or do not fit, schedulers that do not answer: an answer, or an error that says what it is."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from clusters import WITNESS, cluster, distributed, lonely_workers
from commands import bad

import bmrm
from bmrm import Problem, Shards, solve
from bmrm.parallel import DaskEngine, EngineError, WorkerLost
from bmrm.risks import linear_risk

da = pytest.importorskip("dask.array")


@pytest.fixture(scope="module")
def client():
    with cluster(2) as found:
        yield found


@pytest.fixture
def engine(client):
    client.wait_for_workers(2, timeout=60)
    with DaskEngine(client, patience=60.0) as found:
        yield found


@pytest.fixture
def nobody():
    """The client of a scheduler without workers."""
    with cluster(0) as found:
        yield found


@pytest.fixture
def binary(rng):
    X = rng.normal(size=(90, 4))
    return X, np.where(X @ [1.0, -2.0, 0.5, 0.0] + 0.5 * rng.normal(size=90) > 0.0, 1.0, -1.0)


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def test_a_worker_is_killed_between_two_calls(engine):
    placed = engine.place([WITNESS] * 4)
    first = placed.call("pid")
    kill(first[0])
    second = placed.call("pid")
    assert first[0] not in second
    assert placed.remade == 2
    assert [pid for pid in first if pid != first[0]] == [pid for pid, old in zip(second, first) if old != first[0]]


def test_a_worker_is_killed_while_it_computes(engine):
    placed = engine.place([WITNESS] * 2)
    first = placed.call("pid")
    timer = threading.Timer(0.3, kill, [first[1]])
    timer.start()
    assert placed.call("sleep", 1.0) == [None, None]
    timer.join()
    assert placed.remade == 1
    assert first[1] not in placed.call("pid")


def test_a_shard_that_kills_its_workers(nobody):
    with lonely_workers(nobody, 2):
        placed = DaskEngine(nobody, patience=1.0).place([WITNESS])
        with pytest.raises(WorkerLost, match="has no workers; waited 1 s"):
            placed.call("leave", 1)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "roc_area"])
def test_a_run_goes_on(loss, engine, binary, client):
    X, y = binary
    shards = Shards.from_arrays([(X[:20],), (X[20:55],), (X[55:],)], engine)
    risk = linear_risk(shards, y, loss, intercept=loss != "roc_area")
    pids = list(client.run(os.getpid).values())

    def monitor(record):
        if record.iteration == 3:
            kill(pids[0])

    result = solve(Problem(risk, "l2", 0.001), "bmrm", tol=1e-6, monitor=monitor)
    one = solve(Problem(bmrm.LinearRisk(X, y, loss, intercept=loss != "roc_area"), "l2", 0.001), tol=1e-6)
    assert shards.placed.remade > 0
    assert result.converged
    assert result.certificate.lower <= one.certificate.upper
    assert one.certificate.lower <= result.certificate.upper


def test_partitions_of_a_lost_worker_are_computed_again(engine, binary, client):
    X, y = binary
    with client.as_current():
        shards = Shards.from_dask(
            da.from_array(X, chunks=(20, 4)).persist(), da.from_array(y, chunks=90), client=client
        )
        w = np.arange(4.0)
        risk = linear_risk(shards, y, "logistic")
        before = risk.evaluate(w)[0]
        kill(next(iter(client.run(os.getpid).values())))
        after = risk.evaluate(w)[0]
    assert shards.placed.remade > 0
    assert after == before


def test_all_workers_are_lost(nobody, binary):
    X, y = binary
    with lonely_workers(nobody, 2) as processes:
        shards = Shards.from_arrays([(X[:40],), (X[40:],)], DaskEngine(nobody, patience=2.0))
        risk = linear_risk(shards, y, "hinge")
        assert risk.evaluate(np.zeros(4))[0] == pytest.approx(1.0)
        for process in processes:
            process.kill()
        began = time.monotonic()
        with pytest.raises(WorkerLost, match=r"the Dask scheduler tcp://.* has no workers; waited 2 s"):
            risk.evaluate(np.ones(4))
        assert time.monotonic() - began < 30.0


def test_a_scheduler_without_workers(nobody):
    with pytest.raises(WorkerLost, match=r"has no workers; waited 0\.3 s"):
        DaskEngine(nobody, patience=0.3)


def test_a_scheduler_that_is_gone(binary):
    X, y = binary
    with cluster(1) as client:
        shards = Shards.from_arrays([(X,)], DaskEngine(client, patience=2.0))
        risk = linear_risk(shards, y, "hinge")
        client.cluster.close()
        with pytest.raises(EngineError):
            risk.evaluate(np.ones(4))


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://127.0.0.1:1", r"the Dask scheduler tcp://127\.0\.0\.1:1 cannot be reached"),
        ("nonsense", "the Dask scheduler nonsense cannot be reached: missing port number"),
        ("carrier://pigeon:7", "the Dask scheduler carrier://pigeon:7 cannot be reached: unknown address scheme"),
    ],
)
def test_an_unreachable_scheduler(address, words, tmp_path):
    with pytest.raises(EngineError, match=words):
        DaskEngine(address, patience=1.0)


def test_an_unreachable_scheduler_of_a_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.svm").write_text("1 1:1\n-1 1:2\n")
    line = bad("train", "data.svm", "--engine", "dask", "--scheduler", "nonsense", "--model", "no.bmrm")
    assert line == "error: the Dask scheduler nonsense cannot be reached: missing port number in address 'nonsense'"
    assert [path.name for path in tmp_path.iterdir()] == ["data.svm"]


def test_workers_with_another_version(binary, nobody):
    before = "import bmrm; bmrm.__version__ = '0.0.0'"
    words = r"worker tcp://.* has version 0\.0\.0 of bmrm, but this process"
    with lonely_workers(nobody, 1, before), pytest.raises(EngineError, match=words):
        Shards.from_arrays([binary], DaskEngine(nobody))


def test_workers_without_the_library(nobody):
    before = "import sys; sys.modules['bmrm'] = None"
    with lonely_workers(nobody, 1, before):
        with pytest.raises(EngineError, match=r"the Dask worker tcp://.* cannot import bmrm .*: install it there"):
            DaskEngine(nobody)
        assert len(nobody.nthreads()) == 1  # and the worker has not been harmed


def test_dask_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(EngineError, match=r"pip install 'bmrm\[dask\]'"):
        DaskEngine(n_workers=1)


def test_what_an_engine_is_made_of(client):
    with pytest.raises(ValueError, match="n_workers=2 is for workers on this machine"):
        DaskEngine(client, n_workers=2)

    async def asynchronous():
        async with distributed.Client(client.scheduler.address, asynchronous=True) as other:
            DaskEngine(other)

    with pytest.raises(EngineError, match="an asynchronous Client cannot be used"):
        client.sync(asynchronous)


def test_workers_of_an_engine_end_with_it():
    with DaskEngine(n_workers=1) as engine:
        (pid,) = engine.place([WITNESS]).call("pid")
        os.kill(pid, signal.SIGINT)  # Ctrl-C is for the process that started them
        assert engine.place([WITNESS]).call("pid") == [pid]
        assert engine.threads == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
