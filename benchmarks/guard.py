"""How many answers honest runs need, and whether the owners' guards let them reach their tolerance.

    python benchmarks/guard.py [--data FOLDER] [--sets a9a ...] [--solvers ls_bmrm ...] [--lams 1e-2 1e-3] [--open]

For each data set and solver, over losses and lam: the most new answers (points that get a plane of their own) and the
most requests of a run, the longest stretch of new answers without progress on an owner's own portion, and how many runs
reach the tolerance. Budget and patience are unlimited here, all else is as by default; ``--open`` takes the guard off.
``--data`` is a folder with svmlight files NAME/NAME.xz; without it only generated data are run. ``--split label`` gives
one owner most of the positive rows.
"""

from __future__ import annotations

import argparse
import lzma
import time
import warnings
from pathlib import Path

import numpy as np
from guard_attacks import OPEN
from scipy import sparse
from sklearn.datasets import load_svmlight_file

import bmrm
from bmrm.owners import GuardSettings
from bmrm.owners import session as sessions
from bmrm.problem import missing

FREE = {"budget": 10**6, "patience": 10**6}
FILES = {
    "german.numer": "german.numer/german.numer_scale.xz", "svmguide1": "svmguide1/svmguide1.xz", "a9a": "a9a/a9a.xz",
    "mushrooms": "mushrooms/mushrooms.xz", "ijcnn1": "ijcnn1/ijcnn1.xz", "reuters": "reuters_lasvm/reuters.xz",
    "covtype": "covtype/covtype.xz", "abalone": "regression_abalone/abalone.xz",
    "cpusmall": "regression_cpusmall/cpusmall.xz",
}  # fmt: skip
REGRESSION = ("abalone", "cpusmall")
SOLVERS = ["auto", "bmrm", "ls_bmrm", "proximal_bundle", "lbfgs", "owlqn", "subgradient_bfgs", "scipy"]
SEEN = {"wait": 0}


class Measuring(sessions.Guard):
    """Notes the longest wait for progress."""

    def after(self, w, value):
        super().after(w, value)
        SEEN["wait"] = max(SEEN["wait"], self.waited)


def generated(name):
    """Return rows of columns of equal size, or of sizes from 1 to 10."""
    rng, d = np.random.default_rng(0), 10
    size = np.logspace(0.0, 1.0, d) if name == "uneven" else np.ones(d)
    X = rng.normal(size=(1000, d)) * size
    return X, np.where(X @ (rng.normal(size=d) / size) + rng.normal(size=1000) > 0.0, 1.0, -1.0)


def loaded(path, name, most):
    """Return rows of a file, drawn, with columns divided by their largest entry."""
    with lzma.open(path) as file:
        X, y = load_svmlight_file(file)
    keep = np.random.default_rng(0).permutation(len(y))[:most]
    X, y = X[keep], y[keep]
    largest = abs(X).max(axis=0).toarray().ravel()
    X = sparse.csr_matrix(X @ sparse.diags(1.0 / np.where(largest > 0.0, largest, 1.0)))
    if name in REGRESSION:
        y = (y - y.mean()) / y.std()
    else:
        y = np.where(y == (2.0 if name == "covtype" else y.max()), 1.0, -1.0)
    return (X if X.shape[1] > 200 else X.toarray()), y


def halves(y, split):
    """Return the rows of two owners."""
    rng = np.random.default_rng(1)
    key = rng.random(len(y)) if split == "random" else y / y.std() + 1.2 * rng.normal(size=len(y))
    order = np.argsort(key)
    return order[: len(y) // 2], order[len(y) // 2 :]


def run(X, y, solver, loss, lam, args):
    """Return new answers, requests, wait and whether the run converged; None where the solver does not fit."""
    guard = GuardSettings(**(OPEN | FREE if args.open else FREE))
    owners = [bmrm.Owner((X[rows], y[rows]), "owner", guard=guard) for rows in halves(y, args.split)]
    SEEN["wait"] = 0
    with bmrm.OwnersRisk(owners, loss, lam=lam, intercept=args.intercept, regularizer=args.regularizer) as risk:
        if missing(bmrm.solvers.get(solver), risk.problem):
            return None
        result = bmrm.solve(risk.problem, solver, tol=args.tol, max_seconds=args.seconds)
    counts = [max(getattr(owner, name) for owner in owners) for name in ("answers", "requests")]
    relative = result.certificate.gap / abs(result.certificate.upper)
    return (*counts, SEEN["wait"], result.converged, 0.0 if result.converged else relative)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="*", default=["gaussian", "uneven", *FILES])
    parser.add_argument("--solvers", nargs="*", default=SOLVERS)
    parser.add_argument("--lams", nargs="*", type=float, default=[1e-2, 1e-3])
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--split", choices=["random", "label"], default="random")
    parser.add_argument("--regularizer", default="l2")
    parser.add_argument("--no-intercept", dest="intercept", action="store_false")
    parser.add_argument("--open", action="store_true", help="without the guard")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    sessions.Guard = Measuring
    print("| data | solver | runs | reach tol | largest gap | new answers | requests | longest wait | s |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for name in args.sets:
        if name in FILES and args.data is None:
            continue
        X, y = loaded(args.data / FILES[name], name, args.rows) if name in FILES else generated(name)
        losses = ("least_squares", "quantile") if name in REGRESSION else ("hinge", "logistic")
        for solver in args.solvers:
            began = time.perf_counter()
            found = [run(X, y, solver, loss, lam, args) for loss in losses for lam in args.lams]
            found = [each for each in found if each is not None]
            if found:
                answers, requests, wait, converged, gaps = zip(*found)
                print(
                    f"| {name} | {solver} | {len(found)} | {sum(converged)} | {max(gaps):.1e} | {max(answers)} | "
                    f"{max(requests)} | {max(wait)} | {time.perf_counter() - began:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
