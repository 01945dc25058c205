"""Small Dask clusters for tests, and what can be asked of their workers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import pytest

distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'bmrm[dask]'")

# An object for a worker, which says and does what tests want to know and see done.
WITNESS = partial(SimpleNamespace, pid=os.getpid, sleep=time.sleep, leave=os._exit, echo=list, read=open)
SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@contextlib.contextmanager
def cluster(n_workers: int):
    """Give the client of workers on this machine, each in a process that is started again when it dies."""
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL"
        ) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        yield client


@contextlib.contextmanager
def lonely_scheduler(folder, before: str = ""):
    """Start a scheduler in a process of its own, after some code; give the process and the address."""
    code = f"{before}\nfrom distributed.cli.dask_scheduler import main\nmain()"
    file = folder / "scheduler.json"
    options = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    process = subprocess.Popen([sys.executable, "-c", code, *options], **SILENT)
    try:
        deadline = time.monotonic() + 60.0
        while not file.exists() or not file.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield process, json.loads(file.read_text())["address"]
    finally:
        process.kill()
        process.wait(timeout=20)


@contextlib.contextmanager
def lonely_workers(address: str, n_workers: int, before: str = ""):
    """Start workers that nobody starts again, after some code; give their processes."""
    code = f"{before}\nfrom distributed.cli.dask_worker import main\nmain()"
    command = [sys.executable, "-c", code, address]
    options = ["--no-nanny", "--no-dashboard", "--nthreads", "1"]
    processes = [subprocess.Popen([*command, *options], **SILENT) for _ in range(n_workers)]
    try:
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(n_workers, timeout=60)
        yield processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait(timeout=20)
