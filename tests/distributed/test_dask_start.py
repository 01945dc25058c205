"""Schedulers that cannot be reached and workers that do not fit: one error that says what is wrong, at the start."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from clusters import WITNESS, cluster, distributed, lonely_scheduler, lonely_workers
from commands import bad

from bmrm import Shards
from bmrm.parallel import DaskEngine, EngineError, WorkerLost
from bmrm.parallel.dask_placed import DaskPlaced


@pytest.fixture(scope="module")
def nobody():
    """The client of a scheduler without workers."""
    with cluster(0) as found:
        yield found


def test_a_scheduler_without_workers(nobody):
    with pytest.raises(WorkerLost, match=r"has no workers; waited 0\.3 s"):
        DaskEngine(nobody, patience=0.3)


def test_a_scheduler_without_the_library(binary, tmp_path):
    before = "import sys; sys.modules['bmrm'] = None"
    words = "the Dask scheduler cannot import bmrm: install it"
    with (
        lonely_scheduler(tmp_path, before) as (_, address),
        lonely_workers(address, 1),
        DaskEngine(address) as engine,
        pytest.raises(EngineError, match=words),
    ):
        Shards.from_arrays([binary], engine)


def test_workers_that_cannot_be_reached(nobody, monkeypatch):
    async def no_route(self, address, *message):
        raise OSError("no route to host")

    monkeypatch.setattr(DaskPlaced, "_request", no_route)
    words = r"is alive, but OSError: no route to host; DaskEngine\(client, direct=False\)"
    with lonely_workers(nobody.scheduler.address, 1), pytest.raises(EngineError, match=words):
        DaskEngine(nobody).place([WITNESS])


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
    with lonely_workers(nobody.scheduler.address, 1, before), pytest.raises(EngineError, match=words):
        Shards.from_arrays([binary], DaskEngine(nobody))


def test_workers_without_the_library(nobody):
    before = "import sys; sys.modules['bmrm'] = None"
    with lonely_workers(nobody.scheduler.address, 1, before):
        with pytest.raises(EngineError, match=r"the Dask worker tcp://.* cannot import bmrm .*: install it there"):
            DaskEngine(nobody)
        assert len(nobody.nthreads()) == 1  # and the worker has not been harmed


def test_dask_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(EngineError, match=r"pip install 'bmrm\[dask\]'"):
        DaskEngine(n_workers=1)


def test_what_an_engine_is_made_of(nobody):
    with pytest.raises(ValueError, match="n_workers=2 is for workers on this machine"):
        DaskEngine(nobody, n_workers=2)

    async def asynchronous():
        async with distributed.Client(nobody.scheduler.address, asynchronous=True) as other:
            DaskEngine(other)

    with pytest.raises(EngineError, match="an asynchronous Client cannot be used"):
        nobody.sync(asynchronous)


def test_workers_of_an_engine_end_with_it():
    with DaskEngine(n_workers=1) as engine:
        (pid,) = engine.place([WITNESS]).call("pid")
        os.kill(pid, signal.SIGINT)  # Ctrl-C is for the process that started them
        assert engine.place([WITNESS]).call("pid") == [pid]
        assert engine.threads == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_own_workers_are_reached_from_this_machine_only():
    with DaskEngine(n_workers=1) as engine:
        assert engine.address.startswith("tcp://127.0.0.1:")
        assert all(address.startswith("tcp://127.0.0.1:") for address in engine.workers())
        server = engine._cluster.scheduler.http_server
        addresses = {s.getsockname()[0] for s in server._sockets.values()}
        assert addresses == {"127.0.0.1"}
