"""Multiclass losses against other packages: `python benchmarks/multiclass.py`, data from the folder BMRM_DATA names.

Wall time to a relative suboptimality of 1e-3 and 1e-6 of the true objective J(W) = lam/2 |W|^2 + 1/m sum_i l_i, without
constants. `bmrm.solve(..., "auto")` stops by its own certificate; the others get the first tolerance of a ladder that
meets the target, and the fastest solver of scikit-learn counts. Writes docs/benchmarks/multiclass.md.
"""

import os

THREADS = "2"
for name in ["OMP", "OPENBLAS", "MKL"]:
    os.environ.setdefault(f"{name}_NUM_THREADS", THREADS)

import argparse
import lzma
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

import bmrm

DATA = Path(os.environ.get("BMRM_DATA", "data"))
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "multiclass.md"
FILES = {"letter": "letter/letter.scale.xz", "usps": "usps/usps.xz", "news20": "news20/news20.xz"}
LAMS = (1e-2, 1e-3, 1e-4, 1e-5)
TARGETS = (1e-3, 1e-6)
LADDER = tuple(10.0 ** -np.arange(0.0, 9.0))
SKLEARN = ("lbfgs", "newton-cg", "newton-cholesky", "saga")
CAP = 10.0  # times ours: a rival that takes longer is stopped there
LEAST = 2.0  # seconds that a rival always gets


def load(name):
    """Return X, sparse or dense as it is stored, and the classes 0, 1, ..."""
    if name == "mnist":
        images = lzma.open(DATA / "mnist/train-images.idx3-ubyte.xz").read()[16:]
        labels = lzma.open(DATA / "mnist/train-labels.idx1-ubyte.xz").read()[8:]
        X = np.frombuffer(images, np.uint8).reshape(-1, 784) / 255.0
        return sparse.csr_matrix(X), np.frombuffer(labels, np.uint8).astype(int)
    with lzma.open(DATA / FILES[name]) as text:
        X, y = load_svmlight_file(text)
    dense = X.nnz > 0.5 * X.shape[0] * X.shape[1]
    return (np.ascontiguousarray(X.toarray()) if dense else X), np.unique(y, return_inverse=True)[1]


class Case:
    """One objective: its value at any weights, and the best value that anybody has found."""

    def __init__(self, X, y, loss, lam):
        self.X, self.y, self.loss, self.lam = X, y, loss, lam
        self.risk = bmrm.LinearRisk(X, y, loss)

    def objective(self, W):
        """Return J(W), W of shape (d, k)."""
        return self.risk.at(np.ascontiguousarray(W).reshape(-1)).value + 0.5 * self.lam * float(np.sum(W * W))


def ours(case, target):
    """Return the time and the weights of auto, which stops by its certificate."""
    start = time.perf_counter()
    problem = bmrm.Problem(bmrm.LinearRisk(case.X, case.y, case.loss), "l2", case.lam)
    result = bmrm.solve(problem, "auto", tol=target, max_seconds=300)
    return time.perf_counter() - start, result


def liblinear(case, tol):
    """Return the time and the weights of LIBLINEAR's method of Crammer and Singer."""
    from liblinear.liblinearutil import parameter, problem, train

    start = time.perf_counter()
    X = case.X if sparse.issparse(case.X) else sparse.csr_matrix(case.X)
    model = train(problem(case.y, X), parameter(f"-s 4 -q -e {tol:g} -c {1.0 / (case.lam * len(case.y)):.17g}"))
    spent = time.perf_counter() - start
    k = model.nr_class
    W = np.ctypeslib.as_array(model.w, (model.nr_feature, k)).copy()
    return spent, W[:, np.argsort(model.get_labels())]


def scikit_learn(solver, iterations):
    """Return a function of case and tolerance for one of its solvers."""

    def fit(case, tol):
        start = time.perf_counter()
        C = 1.0 / (case.lam * len(case.y))
        model = LogisticRegression(C=C, fit_intercept=False, solver=solver, tol=tol, max_iter=iterations)
        model.fit(case.X, case.y)
        return time.perf_counter() - start, model.coef_.T

    return fit


def best_rival(case, fits, targets, optimum, limits):
    """Return for each target the least time, and whose it was; infinite if nobody got there in time."""
    found = [(np.inf, "none")] * len(targets)
    for name, fit in fits.items():
        reached = 0
        for tol in LADDER:
            spent, W = fit(case, tol)
            gap = case.objective(W) / optimum - 1.0
            while reached < len(targets) and gap <= targets[reached]:
                found[reached] = min(found[reached], (spent, name))
                reached += 1
            if reached == len(targets) or spent > limits[reached]:
                break
    return found


def rivals(loss):
    """Return the packages that have the loss."""
    if loss == "multiclass_hinge":
        return {"LIBLINEAR": liblinear}
    return {name: scikit_learn(name, 10000) for name in SKLEARN}


def measure(name, loss, lam, X, y):
    """Return a row of the table for each target."""
    case = Case(X, y, loss, lam)
    runs = [ours(case, target) for target in TARGETS]
    optimum = max(result.certificate.lower for _, result in runs)
    limits = [max(LEAST, CAP * spent) for spent, _ in runs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = rivals(loss)
        if X.shape[1] * (y.max() + 1) > 3000:
            fits.pop("newton-cholesky", None)  # its matrix would take minutes, or all memory
        found = best_rival(case, fits, TARGETS, optimum, limits)
    rows = []
    for target, (spent, result), (theirs, who) in zip(TARGETS, runs, found):
        rows.append((name, loss, lam, target, spent, theirs, who, result.converged))
        print(*rows[-1], flush=True)
    return rows


def page(rows):
    """Return the table and its means as Markdown."""
    lines = ["# Multiclass losses against other packages", "", " ".join(__doc__.split("\n\n")[1].split()), ""]
    lines += [
        f"bmrm {bmrm.__version__}, {THREADS} threads; ratio = rival / bmrm, above 1 is faster than the rival.",
        "",
    ]
    lines += [
        "| data | loss | lam | accuracy | bmrm s | rival s | rival | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, loss, lam, target, spent, theirs, who, converged in rows:
        seconds = f"{spent:.3f}" if converged else f"not in {spent:.0f}"
        other = f"{theirs:.3f}" if np.isfinite(theirs) else f"> {max(LEAST, CAP * spent):.1f}"
        ratio = f"{theirs / spent:.2f}" if np.isfinite(theirs) else f"> {max(LEAST, CAP * spent) / spent:.1f}"
        lines.append(f"| {name} | {loss} | {lam:g} | {target:g} | {seconds} | {other} | {who} | {ratio} |")
    lines.append("")
    for loss in dict.fromkeys(row[1] for row in rows):
        logs = {}
        for name, of, _, _, spent, theirs, _, _ in rows:
            if of == loss:
                logs.setdefault(name, []).append(np.log(min(theirs, max(LEAST, CAP * spent)) / spent))
        means = ", ".join(f"{name} {np.exp(np.mean(values)):.2f}" for name, values in logs.items())
        total = np.exp(np.mean([value for values in logs.values() for value in values]))
        lines.append(f"- {loss}: geometric mean {total:.2f}; by data: {means}.")
    return "\n".join(lines) + "\n"


def main():
    """Measure what is asked for and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=["letter", "usps", "news20", "mnist"])
    parser.add_argument("--loss", nargs="*", default=["multiclass_hinge", "softmax"])
    parser.add_argument("--lam", nargs="*", type=float, default=LAMS)
    parser.add_argument("--output", type=Path, default=PAGE)
    options = parser.parse_args()
    rows = []
    for name in options.data:
        X, y = load(name)
        for loss in options.loss:
            for lam in options.lam:
                rows += measure(name, loss, lam, X, y)
                options.output.write_text(page(rows))


if __name__ == "__main__":
    main()
