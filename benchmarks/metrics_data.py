"""The data of ``metrics.py``: (X, y) to train on and (X, y) to test on, from the folder that BMRM_DATA names."""

import json
import lzma
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

import bmrm

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("BMRM_DATA", ROOT.parent / "shared" / "data"))
ORDINAL = ("era", "esl", "lev", "balance_scale", "winequality-white", "car", "nursery")


def svmlight(train, test):
    def load():
        one = bmrm.read(DATA / train)
        other = bmrm.read(DATA / test, n_features=one.X.shape[1])
        return sp.csr_matrix(one.X), one.y, sp.csr_matrix(other.X), other.y

    return load


def dense(load):
    """As arrays, divided by the root of the mean |x|^2, so that lam means about the same everywhere."""

    def loaded():
        X, y, X2, y2 = load()
        X, X2 = (part.toarray() if sp.issparse(part) else part for part in (X, X2))
        size = np.sqrt(np.mean(np.sum(X * X, axis=1)))
        return X / size, y, X2 / size, y2

    return loaded


def imbalanced():
    """One row in 200 is positive. Most positives lie off in one direction, a quarter of them among the negatives."""
    rng = np.random.default_rng(0)
    m = 40000
    y = np.where(rng.random(m) < 1 / 200, 1.0, -1.0)
    X = rng.normal(size=(m, 30))
    shift = np.where(rng.random(m) < 0.75, 2.0, 0.0) * (y > 0)
    X += np.outer(shift, rng.normal(size=30) / np.sqrt(30.0))
    return X[: m // 2], y[: m // 2], X[m // 2 :], y[m // 2 :]


def normalized(X):
    return sp.csr_matrix(sp.diags(1.0 / np.maximum(1e-12, np.sqrt(X.multiply(X).sum(axis=1).A1))) @ X)


def mnist(n_rows=5000):
    def read(name, start, shape):
        with lzma.open(DATA / "mnist" / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=start).reshape(shape)

    X, X2 = (read(f"{part}-images.idx3-ubyte.xz", 16, (-1, 784)) / 255.0 for part in ("train", "t10k"))
    y, y2 = (read(f"{part}-labels.idx1-ubyte.xz", 8, -1).astype(np.int64) for part in ("train", "t10k"))
    return X[:n_rows], y[:n_rows], X2, y2


def news20():
    data = bmrm.read(DATA / "news20" / "news20.xz")
    X = normalized(sp.csr_matrix(data.X))
    train, test = train_test_split(np.arange(len(data.y)), test_size=0.2, random_state=0, stratify=data.y)
    return X[train], data.y[train], X[test], data.y[test]


def grades(name, n_rows=5000):
    """All rows of an ordinal set (a part of the largest), with standardized columns."""
    data = bmrm.read(DATA / "ordinal" / f"{name}.xz")
    X = sp.csr_matrix(data.X).toarray()
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    rows = np.random.default_rng(0).permutation(len(data.y))[:n_rows]
    return X[rows], data.y[rows]


def newsgroups(fewest=5):
    """A tree of two levels, the first part of a group's name and the group; words of at least five training texts."""
    names = {int(k): v["name"] for k, v in json.loads((DATA / "20news" / "classes.json").read_text()).items()}
    paths = {k: f"{name.split('.')[0]}/{name}" for k, name in names.items()}
    X, y, X2, y2 = svmlight("20news/20news_bydate.counts.xz", "20news/20news_bydate.counts.t.xz")()
    frequent = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) >= fewest)

    def scaled(X):
        X = X[:, frequent].copy()
        X.data = np.log1p(X.data)
        return normalized(X)

    return scaled(X), np.array([paths[int(c)] for c in y]), scaled(X2), np.array([paths[int(c)] for c in y2])


def imclef():
    def read(name):
        rows, labels = [], []
        with lzma.open(DATA / "hier_imclef07a" / name, "rt") as file:
            for line in file:
                label, *entries = line.split()
                labels.append(max(label.split("@"), key=len))
                x = np.zeros(80)
                for entry in entries:
                    j, value = entry.split(":")
                    x[int(j) - 1] = float(value)
                rows.append(x)
        return np.array(rows), np.array(labels)

    (X, y), (X2, y2) = read("imclef07a.xz"), read("imclef07a.t.xz")
    center, spread = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
    return (X - center) / spread, y, (X2 - center) / spread, y2


def mq2008():
    """The five folds as lists of features, grades and queries."""
    folds = [bmrm.read(DATA / "MQ2008" / f"fold{k}_test.xz", n_features=46) for k in range(1, 6)]
    return [(sp.csr_matrix(fold.X).toarray(), fold.y, fold.groups) for fold in folds]
