"""Commands run in this process, and small files of every task for them."""

from __future__ import annotations

import json

import numpy as np
from click.testing import CliRunner

import bmrm
from bmrm.cli import main

ROWS, COLUMNS = 120, 6

# A file of each task, and a measure that `evaluate` prints for it.
FILES = {
    "classification": ("two.svm", "accuracy"),
    "regression": ("count.svm", "rmse"),
    "novelty": ("two.svm", "rejected"),
    "multilabel": ("sets.svm", "hamming_loss"),
    "hierarchy": ("paths.npz", "tree_loss"),
    "multivariate": ("several.npz", "rmse"),
    "ordinal": ("query.svm", "mae"),
    "ranking": ("query.svm", "mrr"),
}
LEAVES = ("animal/cat", "animal/dog", "plant/tree/oak", "plant/tree/elm")


def write_files():
    """Write a file of every task to the current directory."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=COLUMNS)
    scores = X @ w + rng.normal(size=ROWS)
    bmrm.write("two.svm", X, np.where(scores > 0, 1.0, -1.0))
    bmrm.write("real.svm", X, scores)
    bmrm.write("count.svm", X, rng.poisson(np.exp(scores / 5)).astype(float))
    bmrm.write("words.npz", X, np.array(["red", "green", "blue"])[np.argmax(X[:, :3], axis=1)])
    queries, grades = np.arange(ROWS) // 10, np.digitize(scores, [-1.0, 0.0, 1.0])
    bmrm.write("query.svm", X, grades.astype(float), groups=queries)
    bmrm.write("several.npz", X, np.column_stack([scores, X[:, 0] + rng.normal(size=ROWS)]))
    bmrm.write("paths.npz", X, np.array(LEAVES)[np.argmax(X[:, :4] + rng.normal(size=(ROWS, 4)), axis=1)])
    noisy = X[:, :4] + 0.3 * rng.normal(size=(ROWS, 4))
    has = (noisy > np.minimum(0.4, noisy.max(axis=1, keepdims=True) - 1e-9)) & (
        noisy > noisy.min(axis=1, keepdims=True)
    )
    bmrm.write("sets.svm", X, [tuple(10.0 + np.flatnonzero(row)) for row in has])
    bmrm.write("sets.npz", X, has.astype(float))
    bmrm.write("three.svm", X, np.argmax(X[:, :3], axis=1).astype(float))


def run(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


def good(*args, code=0):
    result = run(*args)
    assert result.exit_code == code, result.stderr
    assert not isinstance(result.exception, Exception)
    return result


def bad(*args):
    """Run a command that must fail with one line on standard error, and return that line."""
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]


def evaluated(file, *arguments):
    good("train", file, "--model", "m.bmrm", "--quiet", *arguments)
    found = json.loads(good("evaluate", "m.bmrm", file, "--json").stdout)
    model, data = bmrm.load("m.bmrm"), bmrm.read(file)
    return found, data.y, model.predict(data.X), model.decision_function(data.X)
