"""Kills `bmrm train` with SIGKILL at random moments, resumes it, and compares the weights with those of a whole run.

    python benchmarks/kill_resume.py [--kills 20] [--seed 0] [--engine local|mpi|dask] [--workers 2]

Each trial takes the next of a few settings and kills the run, with all processes that it has started, at a moment drawn
from the time that the solver takes by itself, counted from the first checkpoint; every sixth trial from the start of
the process. Then it goes on with --resume; every other trial kills it a second time. Written are the number of trials
with the same weights, bit for bit, of runs that were killed before they had ended, and of trials that were killed when
there was a checkpoint to go on from. With --engine the rows are on three shards.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from engines import mpiexec

import bmrm

SETTINGS = {
    "hinge, bmrm": ("--loss", "hinge", "--solver", "bmrm", "--lam", "1e-6", "--max-iter", "250"),
    "hinge, ls_bmrm, l1": ("--loss", "hinge", "--solver", "ls_bmrm", "--regularizer", "l1", "--max-iter", "120"),
    "logistic, lbfgs": ("--loss", "logistic", "--solver", "lbfgs", "--lam", "1e-8"),
    "hinge, auto, four classes": ("--loss", "hinge", "--multiclass", "one_vs_rest", "--max-iter", "40"),
    "squared_hinge, sgd": ("--loss", "squared_hinge", "--solver", "sgd", "--max-iter", "150"),
}
CHECKPOINT = ("--checkpoint", "run.checkpoint", "--checkpoint-seconds", "0.02", "--resume")


def write_data(classes, rows=20_000, columns=100):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    scores = X @ rng.normal(size=(columns, classes)) + 3.0 * rng.normal(size=(rows, classes))
    bmrm.write(f"data{classes}.npz", X, scores.argmax(axis=1).astype(float))


def command(name, options, *more):
    """The command of a run; with an engine on three shards."""
    data = "data4.npz" if "classes" in name else "data2.npz"
    fixed = ("--tol", "1e-8", "--threads", "1", "--quiet", "--model", "model.bmrm")
    start = ["-m", "bmrm", "train"]
    start = mpiexec(options.workers, *start) if options.engine == "mpi" else [sys.executable, *start]
    if options.engine is not None:
        more = ("--engine", options.engine, "--shards", "3", *more)
    if options.engine == "dask":
        more = ("--workers", str(options.workers), *more)
    return [*start, data, *fixed, *SETTINGS[name], *more]


def settings(engine):
    """The settings whose solvers run on shards, where there is an engine."""
    return [name for name in SETTINGS if engine is None or "sgd" not in name]


def weights():
    model = bmrm.load("model.bmrm")
    return model.coef.tobytes() + model.intercept.tobytes()


def written():
    path = Path("run.checkpoint")
    return path.stat().st_mtime_ns if path.exists() else None


def killed(name, options, seconds, at_work):
    """Start or resume a run and kill it some seconds later, or after its first checkpoint; say whether it still ran."""
    before = written()
    child = subprocess.Popen(command(name, options, *CHECKPOINT))
    while at_work and child.poll() is None and written() == before:
        time.sleep(0.002)
    try:
        child.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        for pid in [child.pid, *descendants(child.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.wait()
        return True


def descendants(pid):
    """The processes that one has started, and those that they have: launchers put them into groups of their own."""
    own = Path(f"/proc/{pid}/task/{pid}/children")
    children = [int(word) for word in own.read_text().split()] if own.exists() else []
    return children + [below for child in children for below in descendants(child)]


def trial(name, options, whole, seconds, rng, kills, at_work):
    for path in ("run.checkpoint", "model.bmrm"):
        Path(path).unlink(missing_ok=True)
    killings, with_file = 0, False
    for _ in range(kills):
        ended = killed(name, options, rng.uniform(0.0, 0.8 * seconds), at_work)
        killings, with_file = killings + ended, with_file or (ended and written() is not None)
    subprocess.run(command(name, options, *CHECKPOINT), check=False, timeout=600)
    litter = [file for file in os.listdir() if file.endswith(".tmp")]
    return weights() == whole and not litter, killings, with_file


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="the number of trials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=("local", "mpi", "dask"), help="train on three shards")
    parser.add_argument("--workers", type=int, default=2, help="of the engines mpi and dask")
    options = parser.parse_args()
    rng, same, killings, resumed, known = random.Random(options.seed), 0, 0, 0, {}
    names = settings(options.engine)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for classes in (2, 4):
            write_data(classes)
        for number in range(options.kills):
            name = names[number % len(names)]
            if name not in known:
                subprocess.run(command(name, options), check=False, timeout=600)
                known[name] = weights(), bmrm.load("model.bmrm").history["seconds"]
            right, kills, with_file = trial(name, options, *known[name], rng, 1 + number % 2, number % 6 < 5)
            same, killings, resumed = same + right, killings + kills, resumed + with_file
            text = f"{number + 1:3d} {name} ({known[name][1]:.1f} s), kills: {kills}"
            print(f"{text}: {'same' if right else 'OTHER'}", flush=True)
        os.chdir(os.path.dirname(folder))
    print(f"{same} of {options.kills} runs ended with the same weights, bit for bit, and without leftovers;")
    print(f"they were killed {killings} times in all; {resumed} had a checkpoint to go on from")
    sys.exit(0 if same == options.kills else 1)


if __name__ == "__main__":
    main()
