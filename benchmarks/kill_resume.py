"""Kills `bmrm train` with SIGKILL at random moments, resumes it, and compares the weights with those of a whole run.

    python benchmarks/kill_resume.py [--kills 20] [--seed 0]

Each trial takes the next of a few settings, kills the run at a moment drawn from the last 60 % of the time that the run
takes by itself (before that it mostly starts and reads), and goes on with --resume; every other trial kills it a second
time. Written are the number of trials with the same weights, bit for bit, and of kills after the first checkpoint.
"""

import argparse
import os
import random
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


def killed(name, seconds):
    """Start or resume a run and kill it after some seconds; say whether it was at work."""
    child = subprocess.Popen(command(name, *CHECKPOINT))
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return Path("run.checkpoint").exists()
    return False


def trial(name, whole, seconds, rng, kills):
    for path in ("run.checkpoint", "model.bmrm"):
        Path(path).unlink(missing_ok=True)
    at_work = sum(killed(name, rng.uniform(0.4 * seconds, seconds)) for _ in range(kills))
    subprocess.run(command(name, *CHECKPOINT), check=False)
    litter = [file for file in os.listdir() if file.endswith(".tmp")]
    return weights() == whole and not litter, at_work


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="the number of trials")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng, same, total, at_work = random.Random(arguments.seed), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for classes in (2, 4):
            write_data(classes)
        known = {}
        for number in range(arguments.kills):
            name = list(SETTINGS)[number % len(SETTINGS)]
            if name not in known:
                began = time.perf_counter()
                subprocess.run(command(name), check=False)
                known[name] = weights(), time.perf_counter() - began
            kills = 1 + number % 2
            right, hits = trial(name, *known[name], rng, kills)
            same, total, at_work = same + right, total + kills, at_work + hits
            print(f"{number + 1:3d} {name} ({known[name][1]:.1f} s), kills: {kills}: {'same' if right else 'OTHER'}")
        os.chdir(os.path.dirname(folder))
    print(f"{same} of {arguments.kills} runs ended with the same weights, bit for bit, and without leftovers;")
    print(f"{total} kills, {at_work} of them after the first checkpoint")
    sys.exit(0 if same == arguments.kills else 1)


if __name__ == "__main__":
    main()
