"""Repeats distributed fits in one group of processes, and watches their memory, files, sockets and number.

    python benchmarks/soak.py [--engine mpi] [--minutes 10] [--processes 3]

Each round places new shards, fits them by one of a few losses, certified, and lets them go; every third one forgets
about them without saying so, every fifth one also fails on purpose. After some rounds to warm up, and in the end, every
process is measured, of some rounds the one where it has least: what the allocator keeps for a while is no leak. The run
is right if resident memory has grown by less than 3% + 4 MB in each process, and nothing else has.

Dask keeps records of its own, up to some length: samples of its profiler, and of its monitor two each second for an
hour. The profiler is off here, and the other records are short, so that what is left is ours.
"""

import argparse
import gc
import itertools
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from engines import Generated, mpiexec, risk_of

import bmrm
from bmrm.parallel import engine

LOSSES = ("hinge", "logistic", "roc_area", "squared_hinge")
WARM_UP, LOOKS = 12, 12  # rounds
SHORT_RECORDS = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__LOG_LENGTH": "20",
    "DASK_DISTRIBUTED__ADMIN__LOG_LENGTH": "100",
    "DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "20",
}


@dataclass(frozen=True)
class Measured:
    """A process at one moment."""

    process: int
    resident: int
    files: int
    sockets: int
    threads: int
    children: int


class Gauge:
    """Measures the process it is in."""

    def measure(self):
        gc.collect()
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        links = [link for link in map(_target, Path("/proc/self/fd").iterdir()) if link is not None]
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        sockets = sum(link.startswith("socket:") for link in links)
        resident = int(status["VmRSS"].split()[0]) * 1024
        return Measured(os.getpid(), resident, len(links) - sockets, sockets, int(status["Threads"]), len(children))


def _target(link):
    try:
        return os.readlink(link)
    except OSError:
        return None


def one_round(number, found, n_shards):
    """Fit once; return whether it was certified."""
    loss = LOSSES[number % len(LOSSES)]
    risk, placed = risk_of([Generated(seed, 1500, 200) for seed in range(n_shards)], found, loss)
    result = bmrm.solve(bmrm.Problem(risk, "l2", 1e-2), "ls_bmrm", tol=1e-4)
    if number % 5 == 0:
        try:
            placed.call("no_such_method")
        except (AttributeError, TypeError):  # by a call here, by one on a worker of Dask
            pass
        else:
            raise AssertionError("a method that is not there was called")
    if number % 3:
        placed.release()
    return result.converged


def soak(found, arguments):
    """Fit again and again; print what was measured, and raise if something has grown."""
    n = found.n_workers
    gauges = found.place([Gauge] * n)
    until = time.monotonic() + 60.0 * arguments.minutes
    looks, certified = [], 0
    for number in itertools.count():
        if number > WARM_UP + 2 * LOOKS and time.monotonic() > until:
            break
        certified += one_round(number, found, 2 * n)
        gc.collect()
        here = [Gauge().measure()] if found.name == "dask" else []  # of MPI, rank 0 is a worker
        looks.append(gauges.call("measure") + here)
    before, after = least(looks[WARM_UP:][:LOOKS]), least(looks[-LOOKS:])
    print(f"{number} fits, {certified} certified, on {n} processes in {arguments.minutes:g} minutes")
    print("process   resident MB       files    sockets    threads   children")
    for one, two in zip(before, after):
        columns = [
            f"{getattr(one, name):5d} {getattr(two, name):4d}" for name in ("files", "sockets", "threads", "children")
        ]
        print(f"{one.process:7d}  {one.resident / 2**20:6.1f} {two.resident / 2**20:6.1f}  " + " ".join(columns))
    if certified < number or any(grown(one, two) for one, two in zip(before, after)):
        sys.exit("NOT flat, or not certified")
    print("flat")


def least(looks):
    """Return the look at each process where its memory is least."""
    return [min(of_process, key=lambda look: look.resident) for of_process in zip(*looks)]


def grown(one, two):
    counts = ("files", "sockets", "threads", "children")
    more = any(getattr(two, name) > getattr(one, name) for name in counts)
    return more or one.process != two.process or two.resident > 1.03 * one.resident + 4 * 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=["mpi", "dask", "local"], default="mpi")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.engine == "mpi" and not arguments.inside:
        sys.exit(
            subprocess.run(mpiexec(arguments.processes, __file__, *sys.argv[1:], "--inside"), check=False).returncode
        )
    os.environ.update(SHORT_RECORDS)
    with engine(arguments.engine, n_workers=arguments.processes if arguments.engine == "dask" else None) as found:
        if found is not None:
            soak(found, arguments)


if __name__ == "__main__":
    main()
