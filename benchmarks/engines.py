"""What an engine costs: each iteration by itself, T(n) = s + t / n on n processes, and what travels.

    python benchmarks/engines.py --engine mpi [--rows 200000] [--columns 100] [--evaluations 20]

Each number of processes is a run of its own: of MPI under mpiexec, of Dask on a cluster of this machine with as many
workers. The rows of logistic regression are generated where the shards are, one shard and one thread for each process.

    cost      one round trip: w of --dim numbers out, a value and as many slopes back, from shards that hold nothing;
              and an evaluation of a risk with one row in each shard. Medians.
    T(n)      the time of an evaluation of the generated risk; s and t from the medians for n = 1 and the largest n
    travels   bytes and round trips of an iteration of ls_bmrm on that risk, all shards together, counted by value

The results are printed as a table and appended to build/engines.jsonl.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bmrm
from bmrm.data import Dataset
from bmrm.parallel import ENGINES, engine
from bmrm.risks import linear_risk
from bmrm.risks.shard import Shard

OUTPUT = Path("build/engines.jsonl")
LAM, TOL = 1e-4, 1e-4


class Nothing:
    """A shard that holds nothing and answers at once."""

    def touch(self, w):
        return 0.0, np.zeros(len(w)), 0.0


@dataclass(frozen=True)
class Generated:
    """Makes a shard of random rows where it is called."""

    seed: int
    rows: int
    columns: int
    n_threads: int | None = 1

    def __call__(self):
        X = np.random.default_rng([1, self.seed]).normal(size=(self.rows, self.columns))
        truth = np.random.default_rng(0).normal(size=self.columns) / np.sqrt(self.columns)
        noise = np.random.default_rng([2, self.seed]).normal(size=self.rows)
        return Shard(Dataset(X, np.where(X @ truth + noise > 0.0, 1.0, -1.0)), f"part {self.seed}", self.n_threads)


def risk_of(makers, found, loss="logistic"):
    shards = bmrm.Shards.from_makers(makers, found)
    return linear_risk(shards, shards.y, loss), shards.placed


def median_seconds(work, repeats):
    times = []
    for number in range(repeats + 3):
        began = time.perf_counter()
        work()
        times += [time.perf_counter() - began] if number >= 3 else []
    return statistics.median(times)


def measured(found, n, arguments):
    """Return the figures of one engine with n processes."""
    w = np.random.default_rng(0).normal(size=arguments.dim)
    nothing = found.place([Nothing] * n)
    trip = median_seconds(lambda: nothing.call("touch", w), arguments.trips)
    small, placed = risk_of([Generated(seed, 1, arguments.dim) for seed in range(n)], found)
    evaluation = median_seconds(lambda: small.evaluate(w), arguments.trips)
    placed.release()
    share = [len(part) for part in np.array_split(np.arange(arguments.rows), n)]
    risk, placed = risk_of([Generated(seed, rows, arguments.columns) for seed, rows in enumerate(share)], found)
    point = 0.1 * np.random.default_rng(1).normal(size=risk.dim)
    seconds = median_seconds(lambda: risk.evaluate(point), arguments.evaluations)
    placed.calls = placed.sent = placed.received = 0
    result = bmrm.solve(bmrm.Problem(risk, "l2", LAM), "ls_bmrm", tol=TOL)
    steps = max(result.iterations, 1)
    return {
        "n": n, "round_trip": trip, "evaluate_one_row": evaluation, "evaluate": seconds, "iterations": steps,
        "objective": result.certificate.upper, "trips_per_iteration": placed.calls / steps,
        "sent_per_iteration": placed.sent / steps, "received_per_iteration": placed.received / steps,
        "seconds_per_iteration": result.seconds / steps,
    }  # fmt: skip


def mpiexec(n, *command, ulfm=False):
    """Return a command for n ranks, as root or not, with more ranks than cores or not."""
    beside = Path(sys.executable).with_name("mpiexec")
    program = str(beside) if beside.exists() else shutil.which("mpiexec")
    if program is None:
        sys.exit("mpiexec is missing: pip install 'bmrm[mpi]'")
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
    return [program, *(["--with-ft", "ulfm"] if ulfm else []), "-n", str(n), sys.executable, *map(str, command)]


def started(name, n):
    """Return this command again, as a process, or n of them, that measure."""
    again = [__file__, *sys.argv[1:], "--inside", n]
    return mpiexec(n, *again) if name == "mpi" else [sys.executable, *map(str, again)]


def inside(arguments):
    """Measure here, and print the figures for the process that has started this one."""
    workers = arguments.inside if arguments.engine == "dask" else None
    with engine(arguments.engine, n_workers=workers) as found:
        if found is not None:
            print(json.dumps(measured(found, arguments.inside, arguments)))


def table(rows):
    print(" n  round trip  evaluate, 1 row  evaluate     trips/it    sent/it  received/it  iteration")
    for row in rows:
        print(
            f"{row['n']:2d}  {1e3 * row['round_trip']:7.3f} ms       {1e3 * row['evaluate_one_row']:7.3f} ms "
            f"{1e3 * row['evaluate']:7.2f} ms  {row['trips_per_iteration']:8.2f}  {row['sent_per_iteration']:7.0f} B  "
            f"{row['received_per_iteration']:8.0f} B  {1e3 * row['seconds_per_iteration']:6.2f} ms"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=ENGINES, default="mpi")
    parser.add_argument("--processes", type=int, nargs="+", help="numbers of them; 1 and 2 by default")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--evaluations", type=int, default=20)
    parser.add_argument("--dim", type=int, default=1000, help="length of w where the cost of the engine is measured")
    parser.add_argument("--trips", type=int, default=300)
    parser.add_argument("--inside", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return inside(arguments)
    rows = []
    for n in arguments.processes or ((1,) if arguments.engine == "local" else (1, 2)):
        child = subprocess.run(
            started(arguments.engine, n), stdout=subprocess.PIPE, text=True, timeout=1800, check=True
        )
        rows.append(json.loads(child.stdout.splitlines()[-1]))
    print(f"engine {arguments.engine}, {arguments.rows} x {arguments.columns} dense, logistic, {os.cpu_count()} cores")
    table(rows)
    record = {"engine": arguments.engine, "rows": arguments.rows, "columns": arguments.columns, "runs": rows}
    if len(rows) > 1:
        one, most = rows[0], rows[-1]
        t = (one["evaluate"] - most["evaluate"]) / (1.0 / one["n"] - 1.0 / most["n"])
        s = one["evaluate"] - t / one["n"]
        print(f"T(n) = s + t / n: s = {1e3 * s:.2f} ms, t = {1e3 * t:.2f} ms")
        record |= {"s": s, "t": t}
    OUTPUT.parent.mkdir(exist_ok=True)
    with OUTPUT.open("a") as file:
        print(json.dumps(record | {"python": platform.python_version(), "version": bmrm.__version__}), file=file)
    return None


if __name__ == "__main__":
    main()
