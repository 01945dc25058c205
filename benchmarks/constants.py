"""What free constants cost a joint loss: `python benchmarks/constants.py`, data from the folder BMRM_DATA names.

Processor seconds of `auto` to a certified relative gap of 1e-2 and 1e-3, with and without an intercept, and their
ratio. The losses are those of `MultilabelClassifier` and `HierarchicalClassifier`, with one free constant for each
score but one. There is a run for each gap. Runs with and without take turns and the median of `--repeats` counts,
because others may use the machine. A run ends after `--seconds`; "> 30" in the table means that it did not get there.
"""

import argparse
import lzma
import os
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

import bmrm
from bmrm.losses import HierarchicalHinge, MultilabelHinge, Tree
from bmrm.losses.tree import nodes_of

DATA = Path(os.environ.get("BMRM_DATA", Path(__file__).parents[2] / "shared" / "data"))
MULTILABEL = ("tmc2007-500", "enron", "delicious")
HIERARCHIES = ("hier_imclef07a", "hier_diatoms", "hier_enron_corr", "hier_cellcycle_FUN")
GAPS = (1e-2, 1e-3)
LAMS = (1e-4, 1e-2)  # the default of the estimators, and one that is easy


def multilabel(name):
    """Return X, label sets as a sparse indicator, and the loss; rows without a label are left out."""
    with lzma.open(DATA / name / f"{name}.xz") as text:
        X, y = load_svmlight_file(text, multilabel=True)
    labels = np.unique([label for found in y for label in found])
    numbers = {label: c for c, label in enumerate(labels)}
    sets = [sorted(numbers[label] for label in found) for found in y]
    some = [i for i, found in enumerate(sets) if found]
    return X[some], [sets[i] for i in some], MultilabelHinge(n_classes=len(labels))


def hierarchy(name):
    """Return X with columns scaled to 1, nodes and the loss; the first of the longest paths of a row counts."""
    with lzma.open(DATA / name / f"{name.removeprefix('hier_')}.xz", "rt") as text:
        lines = [line.partition(" ")[::2] for line in text]
    paths = [max(paths.split("@"), key=lambda path: path.count("/")) for paths, _ in lines]
    entries = [[pair.split(":") for pair in values.split()] for _, values in lines]
    indptr = np.cumsum([0, *map(len, entries)])
    columns = np.array([int(j) - 1 for row in entries for j, _ in row])
    values = np.array([float(x) for row in entries for _, x in row])
    tree = Tree.from_paths(paths)
    nodes = nodes_of(tree, np.array(paths))
    inner = not np.isin(nodes, tree.leaves()).all()
    X = sparse.csr_matrix((values, columns, indptr))
    X = X @ sparse.diags(1.0 / np.maximum(abs(X).max(axis=0).toarray().ravel(), 1e-300))
    return X.tocsr(), nodes, HierarchicalHinge(tree, nodes="all" if inner else "leaves")


def generated(m=4880, d=1836, k=159, n_entries=40, n_labels=3):
    """Return wide sparse rows whose labels have words of their own; frequent labels and rare ones."""
    rng = np.random.default_rng(0)
    frequency = 1.0 / np.arange(1.0, k + 1.0)
    words = rng.dirichlet(np.full(d, 0.02), size=k)
    common = rng.dirichlet(np.full(d, 0.3))
    rows, sets = [], []
    for _ in range(m):
        some = rng.choice(k, size=1 + rng.poisson(n_labels - 1), replace=False, p=frequency / frequency.sum())
        drawn = rng.choice(d, size=n_entries, p=0.5 * common + 0.5 * words[some].mean(axis=0))
        columns, counts = np.unique(drawn, return_counts=True)
        rows.append((columns, counts / np.linalg.norm(counts)))
        sets.append(sorted(int(c) for c in some))
    indptr = np.cumsum([0, *(len(columns) for columns, _ in rows)])
    X = sparse.csr_matrix(
        (np.concatenate([x for _, x in rows]), np.concatenate([j for j, _ in rows]), indptr), shape=(m, d)
    )
    return X, sets, MultilabelHinge(n_classes=k)


def data_sets(names):
    """Yield name, X, y, loss of what is there."""
    for name in (*MULTILABEL, *HIERARCHIES):
        if names and name not in names:
            continue
        if not (DATA / name).exists():
            print(f"({name} is not present: left out)")
            continue
        yield name, *(multilabel(name) if name in MULTILABEL else hierarchy(name))
    if not names or "generated" in names:
        yield "generated", *generated()


def run(X, y, loss, lam, gap, intercept, seconds, threads):
    """Return the processor seconds to the gap, inf where the time did not suffice, and the gap at the end."""
    problem = bmrm.Problem(bmrm.LinearRisk(X, y, loss, intercept=intercept, n_threads=threads), "l2", lam)
    before = time.process_time()
    result = bmrm.solve(problem, "auto", tol=gap, max_seconds=seconds)
    return time.process_time() - before if result.converged else np.inf, result.certificate.relative_gap


def compared(name, X, y, loss, lam, gap, options):
    """Print a line of the table."""
    seconds, ends = np.empty((2, options.repeats)), np.empty((2, options.repeats))
    for repeat in range(options.repeats):
        for intercept in (0, 1):
            found = run(X, y, loss, lam, gap, bool(intercept), options.seconds, options.threads)
            seconds[intercept, repeat], ends[intercept, repeat] = found
    without, with_constants = np.median(seconds, axis=1)
    cells = [f"{t:.2f}" if np.isfinite(t) else f"> {options.seconds:g}" for t in (without, with_constants)]
    both = np.isfinite(without) and np.isfinite(with_constants)
    ratio = f"{with_constants / without:.2f}" if both else ""
    end, k = np.median(ends, axis=1), loss.n_scores(loss.encode(y))
    print(
        f"| {name} | {X.shape[0]} x {X.shape[1]}, {k} | {lam:g} | {gap:g} | {cells[0]} | {cells[1]} | {ratio} | "
        f"{end[0]:.1e} / {end[1]:.1e} |",
        flush=True,
    )


def main():
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=[], help="names of sets; all by default")
    parser.add_argument("--lam", nargs="*", type=float, default=LAMS)
    parser.add_argument("--seconds", type=float, default=30.0, help="limit of a run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print("| data | rows x columns, scores | lam | gap | without | with | ratio | gap at the end, without / with |")
    print("|---|---|---|---|---|---|---|---|")
    for name, X, y, loss in data_sets(options.data):
        for lam in options.lam:
            for gap in GAPS:
                compared(name, X, y, loss, lam, gap, options)


if __name__ == "__main__":
    main()
