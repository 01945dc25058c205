"""Values by name: those that fit a parameter's name, and those that fit nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

import bmrm
from bmrm.certificate import Certificate
from bmrm.data.template import Template
from fuzz.targets.files import X, Y

_K = np.array([0, 1, 2, 1])


def _problem(loss: str = "logistic") -> Any:
    return bmrm.Problem(bmrm.LinearRisk(X, Y, loss), "l2", lam=0.1)


def _csr() -> Any:
    return sparse.csr_array(X)


def _unsorted() -> Any:
    return sparse.csr_matrix((np.ones(4), np.array([2, 0, 1, 1]), np.array([0, 2, 4, 4, 4])), shape=(4, 3))


def _dataset() -> Any:
    return bmrm.Dataset(X=X, y=Y, groups=np.array([0, 0, 1, 1]))


def _file() -> str:
    bmrm.write("data.svm", X, y=Y)
    return "data.svm"


def _store() -> str:
    bmrm.convert(_dataset(), "data.store")
    return "data.store"


_FITTING: dict[str, Callable[[], Any]] = {
    "dense": X.copy,
    "single": lambda: X.astype("f4"),
    "columns": lambda: np.asfortranarray(X),
    "csr": _csr,
    "unsorted": _unsorted,
    "csc": lambda: sparse.csc_array(X),
    "wide": lambda: sparse.csr_array((np.ones(1), (np.array([3]), np.array([2**40]))), shape=(4, 2**40 + 1)),
    "signs": Y.copy,
    "classes": _K.copy,
    "words": lambda: np.array(["a", "b", "c", "a"]),
    "real": lambda: np.array([0.5, -1.0, 2.0, 0.0]),
    "sets": lambda: [(0,), (), (0, 1), (1,)],
    "table": lambda: np.array([[0, 1], [1, 0], [1, 1], [0, 0]]),
    "groups": lambda: np.array([0, 0, 1, 1]),
    "weights": lambda: np.array([1.0, 2.0, 0.0, 0.5]),
    "w": lambda: np.ones(3),
    "w4": lambda: np.ones(4),
    "dataset": _dataset,
    "file": _file,
    "store": _store,
    "new": lambda: "new.npz",
    "sequences": lambda: [[["w=the"], ["w=cat", "s=at"]], [{"w=dogs": 2.0}]],
    "labels": lambda: [["D", "N"], ["N"]],
    "tokens": lambda: [X, X[:2]],
    "token labels": lambda: [[0, 1, 1, 0], [0, 1]],
    "rna": lambda: ["GCAAAGC", "GGGAAACCC"],
    "chain": lambda: bmrm.ChainModel(2, 3),
    "segments": lambda: bmrm.SemiMarkovModel(2, 3, 2),
    "folding": lambda: bmrm.FoldingModel(),
    "hinge": lambda: "hinge",
    "squared": lambda: "squared_error",
    "softmax": bmrm.losses.Softmax,
    "logistic": bmrm.losses.Logistic,
    "l2": lambda: "l2",
    "l1": lambda: "l1",
    "auto": lambda: "auto",
    "bmrm": lambda: "bmrm",
    "lbfgs": lambda: "lbfgs",
    "problem": _problem,
    "kinked": lambda: _problem("hinge"),
    "risk": lambda: bmrm.LinearRisk(X, Y, "hinge"),
    "result": lambda: bmrm.solve(_problem(), "lbfgs", max_iter=3),
    "certificate": lambda: Certificate.of(1.0, 0.5, "bmrm"),
    "template": lambda: Template.parse(["U:%x[0,0]"]),
    "small": lambda: 1e-3,
    "half": lambda: 0.5,
    "one": lambda: 1.0,
    "two": lambda: 2,
    "three": lambda: 3,
    "yes": lambda: True,
    "no": lambda: False,
    "random": lambda: np.random.default_rng(0),
}
_FOREIGN: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "zero": lambda: 0,
    "minus one": lambda: -1,
    "2^31": lambda: 2**31,
    "2^62": lambda: 2**62,
    "2^63": lambda: 2**63,
    "2^70": lambda: 2**70,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "1e308": lambda: 1e308,
    "1e-320": lambda: 1e-320,
    "empty text": str,
    "text": lambda: "x",
    "NUL": lambda: "a\0b",
    "bytes": lambda: b"\xff\xfe",
    "empty list": list,
    "empty dict": dict,
    "nested": lambda: [[[0]], [1, [2]]],
    "ragged": lambda: [[1, 2], [3]],
    "object": object,
    "function": lambda: len,
    "class": lambda: int,
    "empty array": lambda: np.empty(0),
    "no columns": lambda: np.empty((4, 0)),
    "no rows": lambda: np.empty((0, 3)),
    "scalar array": lambda: np.array(2.0),
    "cube": lambda: np.zeros((2, 2, 2)),
    "nans": lambda: np.full((4, 3), np.nan),
    "huge": lambda: np.full((4, 3), 1e308),
    "objects": lambda: np.array([None, "a", 1.0, []], dtype=object),
    "complex": lambda: np.ones((4, 3), complex),
    "dates": lambda: np.array(["2020-01-01"] * 4, "datetime64[D]"),
    "far labels": lambda: np.array([0, 2**31, -(2**31), 2**62]),
    "unsigned": lambda: np.array([0, 2**64 - 1, 1, 2], np.uint64),
    "strided": lambda: np.zeros((8, 6))[::2, ::2],
    "read-only": lambda: np.broadcast_to(1.0, (4, 3)),
    "swapped": lambda: X.astype(">f8"),
    "no entries": lambda: sparse.csr_array((4, 1000)),
    "far segments": lambda: [[(0, 2**31, 0)], [(0, 1, 2**31)]],
    "far segment": lambda: [(0, 2**31, 2**31)],
    "folder": lambda: ".",
    "missing": lambda: "no/such/file.svm",
}
VALUES: dict[str, Callable[[], Any]] = _FITTING | _FOREIGN
HOSTILE = [*_FOREIGN, "dense", "signs", "w", "chain", "problem"]

_DATA, _TARGETS = (
    ["dense", "csr", "single", "columns", "csc", "unsorted", "sequences", "tokens", "dataset", "wide"],
    ["signs"],
)
_TARGETS += ["classes", "words", "real", "sets", "table", "labels", "token labels"]
_LOSSES, _COUNTS = ["hinge", "squared", "softmax", "logistic"], ["two", "three"]
PLAUSIBLE: dict[str, list[str]] = {
    "X": _DATA, "x": ["dense", "csr", "sequences", "rna"], "y": _TARGETS, "Y": _TARGETS, "groups": ["groups"],
    "data": ["dense", "csr", "dataset", "file"], "loss": _LOSSES, "losses": _LOSSES, "w": ["w", "w4"],
    "regularizer": ["l2", "l1"], "solver": ["auto", "bmrm", "lbfgs"], "lam": ["small", "half"], "tol": ["small"],
    "path": ["file", "store", "new"], "source": ["file", "dataset"], "target": ["new"],
    "problem": ["problem", "kinked"],
    "risk": ["risk"], "model": ["chain", "segments", "folding"], "template": ["template"], "weight": ["weights"],
    "sample_weight": ["weights"], "offset": ["real"], "start": ["w"], "result": ["result"], "rng": ["random"],
    "certificate": ["certificate"], "max_iter": _COUNTS, "max_seconds": ["one"], "n": _COUNTS, "k": _COUNTS,
    "n_labels": _COUNTS, "n_attributes": _COUNTS, "n_classes": _COUNTS, "max_length": _COUNTS, "n_threads": _COUNTS,
    "scores": ["real", "dense", "table"], "f": ["real", "dense"], "targets": ["signs", "classes", "real"],
    "c": ["w"], "a": ["w"], "g": ["w"], "coef": ["dense"], "intercept": ["yes", "real"], "tokens": ["dense", "csr"],
    "other": ["classes", "token labels"], "sequences": ["sequences", "tokens"], "classes": ["classes", "words"],
    "u": ["one"], "v": ["one"], "l1_ratio": ["half"], "tau": ["half"], "memory": ["two"], "verbose": ["no"],
}  # fmt: skip
