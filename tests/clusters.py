"""Small Dask clusters for tests, and what can be asked of their workers."""

from __future__ import annotations

import contextlib
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
def lonely_workers(client, n_workers: int, before: str = ""):
    """Start workers that nobody starts again, after some code; give their processes."""
    code = f"{before}\nfrom distributed.cli.dask_worker import main\nmain()"
    command = [sys.executable, "-c", code, client.scheduler.address]
    options = ["--no-nanny", "--no-dashboard", "--nthreads", "1"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen([*command, *options], **silent) for _ in range(n_workers)]
    try:
        client.wait_for_workers(n_workers, timeout=60)
        yield processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait(timeout=20)
