"""Kills `bmrm train` with SIGKILL at random moments, resumes it, and compares the weights with those of a whole run.

    python benchmarks/kill_resume.py [--kills 20] [--seed 0]

Each trial takes the next of a few settings and kills the run at a moment drawn from the time that the solver takes by
itself, counted from the first checkpoint; every third trial from the start of the process. Then it goes on with
--resume; every other trial kills it a second time. Written are the number of trials with the same weights, bit for bit,
and of runs that were killed before they had ended.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import bmrm

SETTINGS = {
    "hinge, bmrm": ("--loss", "hinge", "--solver", "bmrm", "--lam", "1e-6", "--max-iter", "250"),
    "hinge, ls_bmrm, l1": ("--loss", "hinge", "--solver", "ls_bmrm", "--regularizer", "l1", "--max-iter", "120"),
    "logistic, lbfgs": ("--loss", "logistic", "--solver", "lbfgs", "--lam", "1e-8"),
    "hinge, auto, four classes": ("--loss", "hinge", "--multiclass", "one_vs_rest", "--lam", "1e-6"),
    "squared_hinge, sgd": ("--loss", "squared_hinge", "--solver", "sgd", "--max-iter", "150"),
}
CHECKPOINT = ("--checkpoint", "run.checkpoint", "--checkpoint-seconds", "0.02", "--resume")


def write_data(classes, rows=20_000, columns=100):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    scores = X @ rng.normal(size=(columns, classes)) + 3.0 * rng.normal(size=(rows, classes))
    bmrm.write(f"data{classes}.npz", X, scores.argmax(axis=1).astype(float))


def command(name, *more):
    data = "data4.npz" if "classes" in name else "data2.npz"
    fixed = ("--tol", "1e-8", "--threads", "1", "--quiet", "--model", "model.bmrm")
    return [sys.executable, "-m", "bmrm", "train", data, *fixed, *SETTINGS[name], *more]


def weights():
    model = bmrm.load("model.bmrm")
    return model.coef.tobytes() + model.intercept.tobytes()


def written():
    path = Path("run.checkpoint")
    return path.stat().st_mtime_ns if path.exists() else None


def killed(name, seconds, at_work):
    """Start or resume a run and kill it some seconds later, or after its first checkpoint; say whether it still ran."""
    before = written()
    child = subprocess.Popen(command(name, *CHECKPOINT))
    while at_work and child.poll() is None and written() == before:
        time.sleep(0.002)
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
    return child.wait() == -signal.SIGKILL


def trial(name, whole, seconds, rng, kills, at_work):
    for path in ("run.checkpoint", "model.bmrm"):
        Path(path).unlink(missing_ok=True)
    killings = sum(killed(name, rng.uniform(0.0, seconds), at_work) for _ in range(kills))
    subprocess.run(command(name, *CHECKPOINT), check=False)
    litter = [file for file in os.listdir() if file.endswith(".tmp")]
    return weights() == whole and not litter, killings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="the number of trials")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng, same, killings = random.Random(arguments.seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for classes in (2, 4):
            write_data(classes)
        known = {}
        for number in range(arguments.kills):
            name = list(SETTINGS)[number % len(SETTINGS)]
            if name not in known:
                subprocess.run(command(name), check=False)
                known[name] = weights(), bmrm.load("model.bmrm").history["seconds"]
            right, kills = trial(name, *known[name], rng, 1 + number % 2, number % 3 < 2)
            same, killings = same + right, killings + kills
            print(f"{number + 1:3d} {name} ({known[name][1]:.1f} s), kills: {kills}: {'same' if right else 'OTHER'}")
        os.chdir(os.path.dirname(folder))
    print(f"{same} of {arguments.kills} runs ended with the same weights, bit for bit, and without leftovers;")
    print(f"they were killed {killings} times in all")
    sys.exit(0 if same == arguments.kills else 1)


if __name__ == "__main__":
    main()
