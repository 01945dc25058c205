"""Dask workers and schedulers that die while they are needed: the run goes on, or ends with an error that says why."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from clusters import WITNESS, cluster, lonely_scheduler, lonely_workers

import bmrm
from bmrm import Problem, Shards, solve
from bmrm.parallel import DaskEngine, WorkerLost
from bmrm.risks import linear_risk

da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'bmrm[dask]'")


@pytest.fixture
def client():
    with cluster(2) as found:
        yield found


@pytest.fixture
def engine(client):
    with DaskEngine(client, patience=60.0) as found:
        yield found


@pytest.fixture
def nobody():
    """The client of a scheduler without workers."""
    with cluster(0) as found:
        yield found


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
    with lonely_workers(nobody.scheduler.address, 2):
        placed = DaskEngine(nobody, patience=1.0).place([WITNESS])
        with pytest.raises(WorkerLost, match="has no workers; waited 1 s"):
            placed.call("leave", 1)


@pytest.mark.parametrize("loss", ["hinge", "roc_area"])
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
    with lonely_workers(nobody.scheduler.address, 2) as processes:
        shards = Shards.from_arrays([(X[:40],), (X[40:],)], DaskEngine(nobody, patience=2.0))
        risk = linear_risk(shards, y, "hinge")
        assert risk.evaluate(np.zeros(4))[0] == pytest.approx(1.0)
        for process in processes:
            process.kill()
        began = time.monotonic()
        with pytest.raises(WorkerLost, match=r"the Dask scheduler tcp://.* has no workers; waited 2 s"):
            risk.evaluate(np.ones(4))
        assert time.monotonic() - began < 30.0


def test_a_scheduler_that_is_killed(binary, tmp_path):
    X, y = binary
    with lonely_scheduler(tmp_path) as (scheduler, address), lonely_workers(address, 1):
        engine = DaskEngine(address, patience=2.0)
        risk = linear_risk(Shards.from_arrays([(X,)], engine), y, "hinge")
        scheduler.kill()
        with pytest.raises(WorkerLost, match="does not answer any more"):
            evaluate_until(risk, time.monotonic() + 60.0)  # the worker goes on until it notices
        engine.close()


def evaluate_until(risk, deadline):
    while time.monotonic() < deadline:
        risk.evaluate(np.ones(4))
