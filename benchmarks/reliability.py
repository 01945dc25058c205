"""Figures of docs/reliability.md that have no benchmark of their own: Ctrl-C, forks, checkpoints that somebody changed.

python benchmarks/reliability.py --runs 8
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import bmrm
from bmrm import Checkpoint, solve
from bmrm._errors import ContradictionError, DataError, FloorError
from bmrm.checkpoint import _write
from bmrm.problem import missing
from bmrm.solvers import SOLVERS

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
ENDLESS = {"tol": 0.0, "max_iter": 10**6}
MODELS = {
    "hinge, auto": lambda: bmrm.LinearClassifier(loss="hinge", lam=1e-7, **ENDLESS),
    "hinge, bmrm": lambda: bmrm.LinearClassifier(loss="hinge", lam=1e-7, solver="bmrm", **ENDLESS),
    "logistic, auto": lambda: bmrm.LinearClassifier(loss="logistic", lam=1e-9, **ENDLESS),
    "least absolute, auto": lambda: bmrm.LinearRegressor(loss="least_absolute", lam=1e-7, **ENDLESS),
}


def seconds_after_the_signal(make, X, y, delay):
    """Return how long fit goes on after Ctrl-C; None if it ended before."""
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(delay, send)
    timer.start()
    try:
        make().fit(X, y)
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    timer.cancel()
    return None


def interrupts(runs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250_000, 80))
    y = np.sign(X @ rng.normal(size=80) + 5.0 * rng.normal(size=len(X)))
    for name, make in MODELS.items():
        found = [seconds_after_the_signal(make, X, y, 0.6 + 0.25 * k) for k in range(runs)]
        found = [seconds for seconds in found if seconds is not None]
        print(f"| Ctrl-C, 250 000 x 80, {name} | {len(found)} | {np.median(found):.3f} s | {max(found):.3f} s |")


def forks(runs):
    """Fork while other threads fit; count children that do not end within 20 seconds of a fit of their own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    y = np.sign(X[:, 0] + rng.normal(size=len(X)))
    stop = threading.Event()

    def fit():
        while not stop.is_set():
            bmrm.LinearClassifier(loss="logistic", lam=1e-4, n_threads=1).fit(X, y)

    threads = [threading.Thread(target=fit) for _ in range(3)]
    for thread in threads:
        thread.start()
    hung = 0
    for _ in range(runs):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            bmrm.LinearClassifier(loss="logistic", lam=1e-4, n_threads=1).fit(X, y)
            os._exit(0)
        hung += os.waitpid(child, 0)[1] != 0
        time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    print(f"| children forked while three threads fit | {runs} | {hung} hung | |")


def crafted(runs):
    from test_crafted_checkpoints import changed, problem, read

    counts = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for solver in SOLVERS:
            for loss in ("hinge", "logistic"):
                made = problem(loss)
                if missing(SOLVERS[solver](), made):
                    continue
                best = solve(made, tol=1e-10).certificate.upper
                path, rng = Path(folder) / f"{solver}-{loss}", np.random.default_rng(11)
                solve(made, solver, tol=1e-9, max_iter=3, checkpoint=path)
                sections = read(path)
                names = [name for name in sections if not name.endswith("about")]
                for _ in range(runs):
                    name = names[rng.integers(len(names))]
                    _write(path, sections | {name: changed(sections[name], rng)})
                    counts[outcome(made, solver, path, best)] += 1
    print(f"| checkpoints with a valid checksum and one change | {counts.total()} | {dict(counts)} | |")


def outcome(made, solver, path, best):
    try:
        again = Checkpoint(path, resume=True)
        certificate = solve(made, solver, tol=1e-4, max_iter=6, max_seconds=5.0, checkpoint=again).certificate
    except (DataError, ContradictionError, FloorError):
        return "refused"
    except Exception as error:
        return f"untyped: {type(error).__name__}"
    right = certificate.lower <= best * (1.0 + 1e-8) and certificate.upper >= best * (1.0 - 1e-8)
    return "right" if right else "wrong"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=8, help="interrupts of each model")
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore")
    print("| what | times | result | at most |\n|---|--:|--:|--:|")
    interrupts(runs)
    forks(6 * runs)
    crafted(15 * runs)
