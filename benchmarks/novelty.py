"""How well are anomalies told from normal rows? ``python benchmarks/novelty.py [--rows 20000]`` prints two tables.

ROC AUC of detectors that are fitted and measured on all rows of a set, without labels. The sets are those of ADBench in
the folder that BMRM_DATA names, or ../shared/data; ``--nu`` prints the means for several nu instead.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

import bmrm

FOLDER = Path(os.environ.get("BMRM_DATA", Path(__file__).parents[2] / "shared" / "data")) / "adbench"
SEEDS = (0, 1, 2)
NUS = (0.05, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)


def sets(most):
    """Name, rows and labels of each set, at most so many rows drawn of it."""
    for path in sorted(FOLDER.glob("*.npz")):
        with np.load(path, allow_pickle=False) as file:
            X, y = file["X"].astype(float), file["y"].ravel().astype(int)
        if len(X) > most:
            rows = np.random.default_rng(0).permutation(len(X))[:most]
            X, y = X[rows], y[rows]
        yield path.stem, X, y


def novelty(X, y, **parameters):
    """The AUC of a detector; one that draws rows is fitted for several seeds, and their mean is returned."""
    seeds = (0,) if parameters.get("features") == "linear" else SEEDS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bmrm.ConstantModelWarning)
        models = [bmrm.NoveltyDetector(random_state=seed, **parameters).fit(X) for seed in seeds]
    return float(np.mean([roc_auc_score(y, -model.score_samples(X)) for model in models]))


def distance(X, y):
    """The AUC of the distance from the mean."""
    return float(roc_auc_score(y, np.linalg.norm(X - X.mean(axis=0), axis=1)))


def table(most):
    columns = "distance from mean | linear | kernel"
    print(f"| set | rows | novel | raw: {columns} | standardized: {columns} |\n|---|---|---|{'---|' * 6}")
    found = []
    for name, X, y in sets(most):
        row = []
        for rows in (X, StandardScaler().fit_transform(X)):
            row += [distance(rows, y), novelty(rows, y, features="linear"), novelty(rows, y)]
        found.append(row)
        print(f"| {name} | {len(y)} | {y.mean():.1%} | {' | '.join(f'{auc:.3f}' for auc in row)} |", flush=True)
    better = [row[2] > row[0] for row in found] + [row[5] > row[3] for row in found]
    print(f"| mean | | | {' | '.join(f'{auc:.3f}' for auc in np.mean(found, axis=0))} |")
    print(f"\nkernel above distance: {sum(better)} of {len(better)}")


def shares(most):
    print("| nu | mean AUC | least AUC less that of the distance |\n|---|---|---|")
    data = [(X, y, distance(StandardScaler().fit_transform(X), y)) for _, X, y in sets(most)]
    for nu in NUS:
        aucs = np.array([novelty(X, y, loss_params={"nu": nu}) for X, y, _ in data])
        print(f"| {nu:g} | {aucs.mean():.3f} | {np.min(aucs - [known for *_, known in data]):.3f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="at most, of each set")
    parser.add_argument("--nu", action="store_true")
    options = parser.parse_args()
    began = time.perf_counter()
    (shares if options.nu else table)(options.rows)
    print(f"\n{time.perf_counter() - began:.0f} s")
