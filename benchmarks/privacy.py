"""What privacy costs: accuracy over epsilon, against the same training without noise.

    python benchmarks/privacy.py [--rows 100000] [--runs 5] [--epsilons 0.1 0.5 1 2 4 8] [--answers 100]

One owner with all rows of a9a, then of covtype (class 2 against the rest, columns divided by their largest value); a
fifth of covtype is kept for testing. Columns: share of test rows that are right, objective over the optimum, and the
relative gap that the certificate states, as means over runs. Data are read from the folder that BMRM_DATA names.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from scipy import sparse

import bmrm
from bmrm.owners.privacy import clipped

DATA = Path(os.environ.get("BMRM_DATA", Path(__file__).parents[2] / "shared" / "data"))
DELTA = 1e-6


def a9a(rows):
    train = bmrm.read(DATA / "a9a" / "a9a.xz")
    test = bmrm.read(DATA / "a9a" / "a9a.t.xz", n_features=train.X.shape[1])
    return train.X[:rows], train.y[:rows], test.X, test.y


def covtype(rows):
    data = bmrm.read(DATA / "covtype" / "covtype.xz")
    X = sparse.csr_array(data.X).toarray()
    X, y = X / np.abs(X).max(axis=0), np.where(data.y == 2, 1.0, -1.0)
    order = np.random.default_rng(0).permutation(len(y))
    tested, trained = order[: len(y) // 5], order[len(y) // 5 :][:rows]
    return X[trained], y[trained], X[tested], y[tested]


def with_constant(X):
    one = np.ones((X.shape[0], 1))
    return sparse.csr_array(sparse.hstack([X, one])) if sparse.issparse(X) else np.hstack([X, one])


def private(X, y, loss, lam, settings):
    with bmrm.OwnersRisk([bmrm.Owner((X, y), privacy=settings)], loss, lam=lam, intercept=True) as risk:
        return bmrm.solve(risk.problem)


def measured(name, data, loss, lam, norm, args):
    X, y, tested, truth = data
    problem = bmrm.Problem(bmrm.LinearRisk(with_constant(clipped(X, norm)), y, loss), "l2", lam)
    rows = with_constant(clipped(tested, norm))
    best = bmrm.solve(problem, tol=1e-4)

    def right(w):
        return float(np.mean(np.where(rows @ w >= 0.0, 1.0, -1.0) == truth))

    label = f"| {name}, {X.shape[0]} rows | {loss} | {lam:g} | {norm:g}"
    print(f"{label} | none | {100.0 * right(best.w):.2f} | 0.000 | {best.certificate.relative_gap:.1e} |", flush=True)
    for epsilon in args.epsilons:
        settings = bmrm.Privacy(epsilon, DELTA, norm, answers=args.answers)
        found = [private(X, y, loss, lam, settings) for _ in range(args.runs)]
        share = 100.0 * np.array([right(each.w) for each in found])
        above = np.mean([problem.objective(each.w) for each in found]) - best.certificate.upper
        gap = np.mean([each.certificate.relative_gap for each in found])
        print(f"{label} | {epsilon:g} | {share.mean():.2f} ± {share.std():.2f} | {above:.3f} | {gap:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--answers", type=int)
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--lams", nargs="*", type=float, default=[1e-2, 1e-4])
    parser.add_argument("--losses", nargs="*", default=["logistic", "hinge"])
    parser.add_argument("--data", nargs="*", default=["a9a", "covtype"])
    args = parser.parse_args()
    print("| data | loss | lam | row norm | epsilon | right, % | objective above the optimum | relative gap stated |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for name, load in (("a9a", a9a), ("covtype", covtype)):
        if name not in args.data or not (DATA / name).exists():
            continue
        data = load(args.rows)
        for loss in args.losses:
            for lam in args.lams:
                measured(name, data, loss, lam, 2.0, args)


if __name__ == "__main__":
    main()
