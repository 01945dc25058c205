"""Multiclass losses against other packages: `python benchmarks/multiclass.py`, data from the folder BMRM_DATA names.

Wall time to a relative suboptimality of 1e-3 and 1e-6 of the true objective J(W) = lam/2 |W|^2 + 1/m sum_i l_i, without
constants. `bmrm.solve(..., "auto")` stops by its own certificate. The others climb a ladder of tolerances, each fit in
a process of its own that is stopped at the cap (10 times our time, but at least 1 s and at most 20 s, or 1.5 times our
time if that is more) or when another one was clearly faster; the first tolerance that meets the target counts, and the
fastest solver of all. Short cells are measured again, in turns, and medians count. snapml trains one class against the
rest, which is another objective.
"""

import argparse
import json
import lzma
import multiprocessing
import os
import time
import warnings
from pathlib import Path
from statistics import median

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

import bmrm

DATA = Path(os.environ.get("BMRM_DATA", "data"))
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "multiclass.md"
CACHE = ROOT / "build" / "multiclass.json"  # the optima
ROWS = ROOT / "build" / "multiclass_rows.json"  # of the table: what is there is not measured again
FILES = {"letter": "letter/letter.scale.xz", "usps": "usps/usps.xz", "news20": "news20/news20.xz"}
SETS = ("letter", "usps", "news20", "mnist")
LOSSES = ("multiclass_hinge", "softmax")
LAMS = (1e-2, 1e-3, 1e-4)
TARGETS = (1e-3, 1e-6)
SURE = 4e-8  # the relative gap of the optimum
LADDER = tuple(10.0 ** -np.arange(0.0, 9.0))
SKLEARN = ("lbfgs", "newton-cholesky", "newton-cg", "saga", "sag")
MOST_CHOLESKY = 3000  # columns times classes: beyond, its matrix takes minutes, or all memory
CAP, LEAST, MOST, PATIENT = 10.0, 1.0, 20.0, 1.5
PRUNED = 1.3  # a fit that takes so much longer than the fastest rival is stopped
CONTEXT = multiprocessing.get_context("fork")


def bytes_of(name, header):
    """Return the bytes of a file after its header."""
    with lzma.open(DATA / name) as file:
        return np.frombuffer(file.read()[header:], np.uint8)


def load(name):
    """Return X, sparse or dense as it is stored, and the classes 0, 1, ..."""
    if name == "mnist":
        X = bytes_of("mnist/train-images.idx3-ubyte.xz", 16).reshape(-1, 784) / 255.0
        return sparse.csr_matrix(X), bytes_of("mnist/train-labels.idx1-ubyte.xz", 8).astype(int)
    with lzma.open(DATA / FILES[name]) as text:
        X, y = load_svmlight_file(text)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # some rivals take no others
    dense = X.nnz > 0.5 * X.shape[0] * X.shape[1]
    return (np.ascontiguousarray(X.toarray()) if dense else X), np.unique(y, return_inverse=True)[1]


class Case:
    """One objective: its value at any weights, and its optimum."""

    def __init__(self, name, X, y, loss, lam):
        self.name, self.X, self.y, self.loss, self.lam = name, X, y, loss, lam
        self.risk = bmrm.LinearRisk(X, y, loss)
        self.optimum, self.gap = self._optimum()

    def objective(self, W):
        """Return J(W), W of shape (d, k)."""
        return self.risk.at(np.ascontiguousarray(W).reshape(-1)).value + 0.5 * self.lam * float(np.sum(W * W))

    def _optimum(self):
        known = json.loads(CACHE.read_text()) if CACHE.exists() else {}
        key = f"{self.name}/{self.loss}/{self.lam:g}"
        if key not in known:
            problem = bmrm.Problem(self.risk, "l2", self.lam)
            found = bmrm.solve(problem, "auto", tol=SURE, max_seconds=120).certificate
            known[key] = (found.upper, found.relative_gap)
            CACHE.parent.mkdir(parents=True, exist_ok=True)
            CACHE.write_text(json.dumps(known, indent=1))
        return known[key]


def ours(case, target):
    """Return our time, and whether the certificate was reached."""
    start = time.perf_counter()
    problem = bmrm.Problem(bmrm.LinearRisk(case.X, case.y, case.loss), "l2", case.lam)
    converged = bmrm.solve(problem, "auto", tol=target, max_seconds=60).converged
    return time.perf_counter() - start, converged


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


def scikit_learn(solver):
    """Return a function of case and tolerance for one of its solvers."""

    def fit(case, tol):
        C = 1.0 / (case.lam * len(case.y))
        model = LogisticRegression(C=C, fit_intercept=False, solver=solver, tol=tol, max_iter=1_000_000)
        start = time.perf_counter()
        model.fit(case.X, case.y)
        return time.perf_counter() - start, model.coef_.T

    return fit


def rivals(case):
    """Return the packages that have the loss, and take it in bearable time."""
    if case.loss == "multiclass_hinge":
        return {"LIBLINEAR": liblinear}
    names = [s for s in SKLEARN if s != "newton-cholesky" or case.risk.dim <= MOST_CHOLESKY]
    return {name: scikit_learn(name) for name in names}


def _serve(connection, fit, case, tol):
    warnings.simplefilter("ignore")
    connection.send(fit(case, tol))


def within(fit, case, tol, seconds):
    """Return time and objective of a fit in a new process; None if it takes longer than so many seconds."""
    connection, other = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_serve, args=(other, fit, case, tol), daemon=True)
    process.start()
    other.close()
    try:
        spent, W = connection.recv() if connection.poll(seconds + 0.2) else (np.inf, None)
    except EOFError:
        spent = np.inf
    process.kill()
    process.join()
    return (spent, case.objective(W)) if spent <= seconds else None


def climb(case, fit, limits):
    """Return for each target reached the time and the tolerance; a limit for each target."""
    found = {}
    for tol in LADDER:
        unmet = [t for t in TARGETS if t not in found]
        one = within(fit, case, tol, max(limits[t] for t in unmet))
        if one is None:
            break
        for target in unmet:
            if one[1] <= case.optimum + target * abs(case.optimum) and one[0] <= limits[target]:
                found[target] = (one[0], tol)
        if len(found) == len(TARGETS):
            break
    return found


def race(case, times):
    """Return for each target the least time, whose it was, and the tolerance; infinite if nobody got there."""
    caps = {t: min(max(LEAST, CAP * times[t]), max(MOST, PATIENT * times[t])) for t in TARGETS}
    best = dict.fromkeys(TARGETS, (np.inf, "none", None))
    for name, fit in rivals(case).items():
        limits = {t: min(caps[t], PRUNED * best[t][0] + 0.02) for t in TARGETS}
        for target, (spent, tol) in climb(case, fit, limits).items():
            best[target] = min(best[target], (spent, name, tol), key=lambda one: one[0])
    return best, caps


def measure(case):
    """Return a row of the table for each target."""
    first = {t: ours(case, t) for t in TARGETS}
    best, caps = race(case, {t: first[t][0] for t in TARGETS})
    rows = []
    for target in TARGETS:
        (spent, converged), (theirs, who, tol) = first[target], best[target]
        rounds = 9 if spent < 0.1 else 5 if spent < 0.5 else 3 if spent < 2.0 else 1
        mine, other = [spent], [theirs]
        for _ in range(rounds - 1):
            mine.append(ours(case, target)[0])
            if tol is not None:
                again = within(rivals(case)[who], case, tol, 2.0 * caps[target])
                other.append(np.inf if again is None else again[0])
        rows.append((case.name, case.loss, case.lam, target, median(mine), median(other), who, converged, caps[target]))
        print(*rows[-1], flush=True)
    return rows


def line_of(row):
    """Return a row of the table as Markdown."""
    name, loss, lam, target, spent, theirs, who, converged, cap = row
    seconds = f"{spent:.3f}" if converged else f"not in {spent:.0f}"
    other, sign = (f"{theirs:.3f}", "") if np.isfinite(theirs) else (f"> {cap:.1f}", "> ")
    ratio = f"{sign}{min(theirs, cap) / spent:.2f}"
    return f"| {name} | {loss} | {lam:g} | {target:g} | {seconds} | {other} | {who} | {ratio} |"


def page(rows):
    """Return the table and its means as Markdown."""
    lines = ["# Multiclass losses against other packages", "", " ".join(__doc__.split("\n\n")[1].split()), ""]
    lines += [
        f"bmrm {bmrm.__version__}, {os.cpu_count()} cores; the ratio is rival / bmrm: above 1 bmrm is faster. Measured "
        f"{len(rows) // len(TARGETS)} of {len(SETS) * len(LOSSES) * len(LAMS)} cells; the same command goes on.",
        "",
        "| data | loss | lam | accuracy | bmrm s | rival s | rival | ratio |",
        "|---|---|---|---|---|---|---|---|",
        *map(line_of, rows),
        "",
    ]
    for loss in dict.fromkeys(row[1] for row in rows):
        logs = {}
        for name, of, _, _, spent, theirs, _, _, cap in rows:
            if of == loss:
                logs.setdefault(name, []).append(np.log(min(theirs, cap) / spent))
        means = ", ".join(f"{name} {np.exp(np.mean(values)):.2f}" for name, values in logs.items())
        all_logs = [value for values in logs.values() for value in values]
        lines.append(
            f"- {loss}: geometric mean {np.exp(np.mean(all_logs)):.2f}, worst cell {np.exp(min(all_logs)):.2f}; by "
            f"data: {means}."
        )
    return "\n".join(lines) + "\n"


def main():
    """Measure what is asked for and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=SETS)
    parser.add_argument("--loss", nargs="*", default=LOSSES)
    parser.add_argument("--lam", nargs="*", type=float, default=LAMS)
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    options = parser.parse_args()
    rows = json.loads(ROWS.read_text()) if ROWS.exists() and not options.fresh else []
    tiny = sparse.csr_matrix(np.eye(3))
    liblinear(Case("tiny", tiny, np.arange(3), "multiclass_hinge", 1.0), 1.0)  # compiles its conversion
    for name in options.data:
        X, y = load(name)
        for loss in options.loss:
            for lam in options.lam:
                if [name, loss, lam] not in [list(row[:3]) for row in rows]:
                    rows += measure(Case(name, X, y, loss, lam))
                    ROWS.write_text(json.dumps(rows))
    rows.sort(key=lambda row: (SETS.index(row[0]), LOSSES.index(row[1]), -row[2], -row[3]))
    options.output.write_text(page(rows))


if __name__ == "__main__":
    main()
