"""The data of the papers, or the nearest kind at hand: real files where they are present, generated ones elsewhere."""

import lzma
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import bmrm
from papers import generated

QUICK_ROWS = 120
STAND_IN = "**generated stand-in**"


@dataclass(frozen=True)
class Data:
    """Rows to train on and to test on, and a sentence on where they come from."""

    name: str
    origin: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    real: bool  # the published data, not a stand-in

    def head(self, n):
        """The first n rows; rows are in random order or in the order of the published file."""
        return self.X[:n], self.y[:n]


def default_folder():
    """The folder that BMRM_DATA names, or ../shared/data, if it is there."""
    folder = Path(os.environ.get("BMRM_DATA", Path(__file__).parents[3] / "shared" / "data"))
    return folder if folder.is_dir() else None


class Shelf:
    """Loads each set once.

    Parameters
    ----------
    folder : path, optional
        Where the files are; None for generated data only.
    quick : bool
        A few hundred rows, two values instead of many, and almost no time for each run: to test the machinery.
    """

    def __init__(self, folder=None, quick=False):
        self.folder, self.quick = folder, quick
        self.get = cache(self._get)

    def _get(self, name):
        X, y, X_test, y_test, origin = self._read(name)
        if self.quick:
            X, y, X_test, y_test = X[:QUICK_ROWS], y[:QUICK_ROWS], X_test[:QUICK_ROWS], y_test[:QUICK_ROWS]
        return Data(name, origin, X, y, X_test, y_test, real=not origin.startswith(STAND_IN))

    def _read(self, name):
        try:
            return (*READERS[name](self.folder), FILES[name]) if self.folder else generate(name, self.quick)
        except FileNotFoundError:
            return generate(name, self.quick)

    def few(self, values):
        """All values, or the first and the last of them in a quick run."""
        return list(values) if not self.quick else [values[0], values[-1]]

    def seconds(self, limit):
        """The limit for a run."""
        return 0.01 if self.quick else limit


def generate(name, quick):
    """A generated stand-in for a set; the last fifth is for testing."""
    kind, origin = generated.KINDS[name]
    X, y = kind(np.random.default_rng(sum(map(ord, name))), 2 * QUICK_ROWS if quick else None)
    cut = X.shape[0] // 2 if quick else 4 * X.shape[0] // 5
    return X[:cut], y[:cut], X[cut:], y[cut:], f"{STAND_IN}, {origin}"


def _shuffled(X, y, share=0.8):
    order = np.random.default_rng(0).permutation(X.shape[0])
    cut = round(share * X.shape[0])
    return X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]


def _unit(X):
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_array(sp.diags_array(1.0 / np.maximum(lengths, 1e-300)) @ X)


def adult(folder):
    train = bmrm.read(folder / "a9a" / "a9a.xz", n_features=123)
    test = bmrm.read(folder / "a9a" / "a9a.t.xz", n_features=123)
    return train.X, train.y, test.X, test.y


def covertype(folder):
    data = bmrm.read(folder / "covtype" / "covtype.xz")
    top = np.asarray(abs(data.X).max(axis=0).todense()).ravel()
    X = sp.csr_array(data.X @ sp.diags_array(1.0 / np.maximum(top, 1e-300)))
    return _shuffled(X, np.where(data.y == 2, 1.0, -1.0))


def ijcnn1(folder):
    train = bmrm.read(folder / "ijcnn1" / "ijcnn1.xz", n_features=22)
    test = bmrm.read(folder / "ijcnn1" / "ijcnn1.t.xz", n_features=22)
    return train.X[:35000], train.y[:35000], test.X, test.y


def _idx(path, header):
    with lzma.open(path) as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=header)


def ten_digits(folder):
    parts = []
    for part in ("train", "t10k"):
        pixels = _idx(folder / "mnist" / f"{part}-images.idx3-ubyte.xz", 16).reshape(-1, 784)
        parts += [sp.csr_array(pixels / 255.0), _idx(folder / "mnist" / f"{part}-labels.idx1-ubyte.xz", 8)]
    return tuple(parts)


def digits(folder):
    X, y, X_test, y_test = ten_digits(folder)
    return X, np.where(y % 2 == 0, 1.0, -1.0), X_test, np.where(y_test % 2 == 0, 1.0, -1.0)


def news(folder):
    data = bmrm.read(folder / "news20" / "news20.xz")
    positive = np.isin(data.y, (2, 3, 4, 5, 6, 7, 12, 13, 14, 15))
    return _shuffled(_unit(data.X), np.where(positive, 1.0, -1.0))


def reuters(folder):
    train = bmrm.read(folder / "reuters_lasvm" / "reuters.xz", n_features=8315)
    test = bmrm.read(folder / "reuters_lasvm" / "reuters.t.xz", n_features=8315)
    return train.X, train.y, test.X, test.y


def as_label(y):
    """A class, or a set of labels as numbers 0, 1, ..."""
    return tuple(map(int, y)) if isinstance(y, tuple) else y


def _parts(name, file, d, **options):
    """The published training and test parts, their rows in random order, dense where most entries are not 0."""

    def read(folder):
        parts = []
        for end in ("", ".t"):
            data = bmrm.read(folder / name / f"{file}{end}.xz", n_features=d, **options)
            dense = data.X.nnz > 0.5 * data.X.shape[0] * d
            order = np.random.default_rng(0).permutation(len(data.y))
            parts += [(np.asarray(data.X.todense()) if dense else data.X)[order], [as_label(data.y[i]) for i in order]]
        return tuple(parts)

    return read


def newsgroups(folder):
    data = bmrm.read(folder / "news20" / "news20.xz")
    return _shuffled(_unit(data.X), data.y)


def _regression(name):
    def read(folder):
        data = bmrm.read(folder / f"regression_{name}" / f"{name}.xz")
        return _shuffled(np.asarray(data.X.todense()), data.y)

    return read


READERS = {
    "adult": adult,
    "covertype": covertype,
    "ijcnn1": ijcnn1,
    "digits": digits,
    "news": news,
    "reuters": reuters,
    "letter": _parts("letter", "letter.scale", 16),
    "usps": _parts("usps", "usps", 256),
    "dna": _parts("dna", "dna.scale", 180),
    "ten digits": ten_digits,
    "newsgroups": newsgroups,
    "scene": _parts("scene", "scene", 294, multilabel=True),
    "reports": _parts("tmc2007-500", "tmc2007-500", 500, multilabel=True),
    "mails": _parts("enron", "enron", 1001, multilabel=True),
    "friedman": _regression("fried"),
    "planes": _regression("2dplanes"),
    "mv": _regression("mv"),
    "pole": _regression("pol"),
}
FILES = {
    "adult": "a9a, the published training and test parts",
    "covertype": "covtype, class 2 against the rest, columns divided by their largest value, 80 % drawn for training",
    "ijcnn1": "the first 35,000 rows of the published training part, and the published test part",
    "digits": "MNIST, even against odd digits, pixels divided by 255",
    "news": "20 newsgroups (15,935 documents, 62,061 words), comp.*, sci.* and misc.forsale against the rest, "
    "rows of length 1, 80 % drawn for training",
    "reuters": "Reuters-21578 ModApte, one topic against the rest (7,770 documents, 8,315 words), rows of length 1",
    "letter": "letter, 26 classes, columns scaled to [-1, 1]",
    "usps": "usps, 10 classes",
    "dna": "dna, 3 classes",
    "ten digits": "MNIST, 10 classes, pixels divided by 255",
    "newsgroups": "20 newsgroups (15,935 documents, 62,061 words), 20 classes, rows of length 1, 80 % drawn for "
    "training",
    "scene": "scene, sets of 6 labels",
    "reports": "tmc2007 with its 500 best words, sets of 22 labels",
    "mails": "enron, words of mails, sets of 53 labels",
    "friedman": "fried, 80 % drawn for training",
    "planes": "2dplanes, 80 % drawn for training",
    "mv": "mv, 80 % drawn for training",
    "pole": "pol, 80 % drawn for training",
}
