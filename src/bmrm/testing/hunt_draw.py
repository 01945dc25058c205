"""Problems at random: all registered losses, regularizers and models, with data that are hard to compute with."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from bmrm.losses import LOSSES, STRUCTURED_LOSSES, Loss, VectorLoss
from bmrm.problem import Problem
from bmrm.regularizers import REGULARIZERS, Regularizer, Separable
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk
from bmrm.risks.structured import StructuredRisk
from bmrm.structured.base import MODELS, StructuredModel

_STRUCTURED = 0.04  # of all problems
_SHAPES = {  # rows and columns, least and most, and how often
    "tiny": (1, 8, 1, 6, 0.3), "usual": (10, 80, 2, 20, 0.37), "tall": (100, 400, 1, 5, 0.15),
    "wide": (3, 15, 20, 80, 0.15), "large": (1000, 3000, 50, 200, 0.02), "very wide": (20, 60, 500, 2000, 0.01),
}  # fmt: skip
_MOST_ROWS = {"group": 40, "all": 60}  # where the formulas compare rows with each other
_DOCUMENTS = 5  # of a query at most: all their orders are tried
_LAYOUTS = ["dense64", "dense32", "fortran", "csr32", "csr64", "csr of float32"]
_TOLS = [0.0, 1e-12, 1e-9, 1e-6, 1e-6, 1e-3, 1e-3, 0.1]
_SECONDS = [0.1, 0.3, 0.3, 1.0]


@dataclass(frozen=True)
class Base:
    """What every drawn problem has."""

    lam: float
    regularizer: Any
    options: dict[str, Any]  # of `solve`: tol, max_seconds and perhaps max_iter
    start: str  # "zero", "drawn", or "other lam": a result of a run with another lam
    n_threads: int
    traits: list[str] = field(default_factory=list)  # what is special about it, in words
    weight: Array | None = None

    def risk(self) -> Any:
        """Return the risk, made anew."""
        raise NotImplementedError

    def problem(self, lam: float | None = None) -> Problem:
        """Return the problem, made anew: no solve has an influence on another."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of queries without an order, by design
            return Problem(self.risk(), self.regularizer, self.lam if lam is None else lam)


@dataclass(frozen=True)
class Case(Base):
    """A problem of rows."""

    loss: Any = None
    X: Any = None  # dense, in double precision, with the very numbers of the layout
    y: Any = None
    groups: Any = None
    offset: Array | None = None
    intercept: bool = False
    layout: str = "dense64"

    def risk(self) -> LinearRisk:
        """Return the risk, made anew."""
        return LinearRisk(
            laid_out(self.X, self.layout), self.y, self.loss, self.weight, self.groups, self.intercept, self.offset,
            n_threads=self.n_threads,
        )  # fmt: skip

    def __str__(self) -> str:
        m, d = self.X.shape
        return f"{self.loss}, {m} x {d} {self.layout}, {_words(self)}"


@dataclass(frozen=True)
class StructuredCase(Base):
    """A problem of structured outputs."""

    loss: Any = None
    X: Any = None
    Y: Any = None

    def risk(self) -> StructuredRisk:
        """Return the risk, made anew."""
        return StructuredRisk(self.X, self.Y, self.loss, self.weight, n_threads=self.n_threads)

    def __str__(self) -> str:
        return f"{self.loss.name} of {type(self.loss.model).__name__}, {len(self.X)} examples, {_words(self)}"


def _words(case: Base) -> str:
    regularizer = case.regularizer
    r = f"({regularizer.r:g})" if hasattr(regularizer, "r") else ""
    return ", ".join([f"{regularizer.name}{r}", f"lam {case.lam:.3g}", *case.traits, f"start: {case.start}"])


def laid_out(X: Array, layout: str) -> Any:
    """Return X as an array or a sparse matrix."""
    if layout == "dense32":
        return X.astype(np.float32)
    if layout == "fortran":
        return np.asfortranarray(X)
    if not layout.startswith("csr"):
        return X
    csr = sparse.csr_array(X.astype(np.float32) if layout == "csr of float32" else X)
    if layout == "csr64":
        csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


def drawn(seed: int, number: int) -> Case | StructuredCase:
    """Return problem `number` of a seed: always the same with the same version of the library and its plug-ins."""
    rng = np.random.default_rng([seed, number])
    if STRUCTURED_LOSSES and MODELS and rng.random() < _STRUCTURED:
        return _structured(rng)
    cls = list(LOSSES.values())[rng.integers(len(LOSSES))]
    examples = cls.examples()
    return _of_rows(examples[rng.integers(len(examples))], rng)


def _of_rows(loss: Loss, rng: np.random.Generator) -> Case:
    traits: list[str] = []
    X = _matrix(loss, rng, traits)
    layout = str(rng.choice(_LAYOUTS))
    if layout.endswith("32"):
        X = X.astype(np.float32).astype(np.float64)
    y, groups = _targets(loss, X, rng, traits)
    scalar = not isinstance(loss, VectorLoss)
    offset = rng.normal(size=len(X)) * _size(rng, traits, "offsets") if scalar and rng.random() < 0.15 else None
    case = Case(
        **_common(rng, traits), loss=loss, X=X, y=y, groups=groups, layout=layout, offset=offset,
        weight=_weights(loss, groups, len(X), rng, traits), intercept=bool(rng.random() < 0.4), regularizer=None,
    )  # fmt: skip
    case, dim = _with_risk(case)
    return replace(case, regularizer=_regularizer(dim, rng, traits))


def _with_risk(case: Case) -> tuple[Case, int]:
    """Return the case as the loss takes it, without weights or an intercept where it refuses them, and its dim."""
    refused: Exception | None = None
    plain: dict[str, Any] = {"weight": None, "intercept": False}
    for names in ((), ("weight",), ("intercept",), ("weight", "intercept")):
        changed = replace(case, **{name: plain[name] for name in names})
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                dim = changed.risk().dim
        except ValueError as error:
            refused = error
            continue
        case.traits.extend(["with an intercept"] * changed.intercept)
        return changed, dim
    assert refused is not None
    raise refused


def _common(rng: np.random.Generator, traits: list[str]) -> dict[str, Any]:
    moderate = rng.random() < 0.6
    options = {"tol": float(rng.choice(_TOLS)), "max_seconds": float(rng.choice(_SECONDS))}
    if rng.random() < 0.1:
        options["max_iter"] = int(rng.integers(1, 10))
    return {
        "lam": float(10.0 ** (rng.uniform(-6, 1) if moderate else rng.uniform(-18, 6))),
        "options": options,
        "start": str(rng.choice(["zero", "zero", "zero", "drawn", "other lam"])),
        "n_threads": int(rng.choice([1, 1, 2])),
        "traits": traits,
    }


def _size(rng: np.random.Generator, traits: list[str], what: str) -> float:
    """Return 1, or a power of ten that is noted."""
    if rng.random() < 0.7:
        return 1.0
    size = float(10.0 ** rng.uniform(-8, 8))
    traits.append(f"{what} of size {size:.2g}")
    return size


def _matrix(loss: Loss, rng: np.random.Generator, traits: list[str]) -> Array:
    shares = [share for *_, share in _SHAPES.values()]
    least_m, most_m, least_d, most_d, _ = _SHAPES[str(rng.choice(list(_SHAPES), p=shares))]
    m, d = int(rng.integers(least_m, most_m + 1)), int(rng.integers(least_d, most_d + 1))
    if loss.couples != "row":  # which have something to compare
        m = int(np.clip(m, 4, _MOST_ROWS[loss.couples]))
    kind = str(rng.choice(["normal", "normal", "whole", "binary", "sparse"]))
    X: Array = rng.normal(size=(m, d))
    if kind == "whole":
        X = np.round(2.0 * X)
    elif kind == "binary":
        X = (X > 0.5).astype(np.float64)
    elif kind == "sparse":
        X *= rng.random((m, d)) < 0.2
    for special, share in _SPECIAL.items():
        if rng.random() < share:
            X = special(X, rng, traits)
    return X


def _dependent(X: Array, rng: np.random.Generator, traits: list[str]) -> Array:
    """Columns that are one column but for a small part."""
    part = float(10.0 ** rng.uniform(-14, -2))
    traits.append(f"columns equal but for {part:.1g}")
    k = int(rng.integers(1, X.shape[1] + 1))
    X[:, :k] = X[:, :1] + part * rng.normal(size=(len(X), k))
    return X


def _uneven(X: Array, rng: np.random.Generator, traits: list[str]) -> Array:
    """Columns of sizes from 1e-8 to 1e8."""
    traits.append("columns of uneven size")
    X *= 10.0 ** rng.uniform(-8, 8, size=X.shape[1])
    return X


def _large_or_small(X: Array, rng: np.random.Generator, traits: list[str]) -> Array:
    """All columns large, or all small."""
    size = float(10.0 ** rng.uniform(-8, 8))
    traits.append(f"columns of size {size:.2g}")
    return X * size


def _duplicates(X: Array, rng: np.random.Generator, traits: list[str]) -> Array:
    """Columns and rows that occur more than once."""
    traits.append("columns and rows twice")
    X = X[:, rng.integers(X.shape[1], size=X.shape[1])]
    return X[rng.integers(len(X), size=len(X))]


def _constants(X: Array, rng: np.random.Generator, traits: list[str]) -> Array:
    """A column of one number, perhaps 0."""
    number = float(rng.choice([0.0, 1.0, 1.0, 1e5, -1e-5]))
    traits.append(f"a column of {number:g}")
    X[:, rng.integers(X.shape[1])] = number
    return X


def _outlier(X: Array, rng: np.random.Generator, traits: list[str]) -> Array:
    """A row that is much larger than the others."""
    traits.append("an outlier")
    X[rng.integers(len(X))] *= 10.0 ** rng.uniform(1, 7)
    return X


_SPECIAL = {
    _dependent: 0.15, _uneven: 0.2, _large_or_small: 0.1, _duplicates: 0.1, _constants: 0.15, _outlier: 0.1,
}  # fmt: skip


def _targets(loss: Loss, X: Array, rng: np.random.Generator, traits: list[str]) -> tuple[Any, Any]:
    """Return targets of the loss's own kind, half of them such that some w explains them."""
    m = len(X)
    y, groups = loss.draw(rng, m)
    if loss.couples == "group":
        groups = np.arange(m) // int(rng.integers(2, _DOCUMENTS + 1))
        y = np.asarray(y)[rng.permutation(m)]
        y[:2] = [0.0, 2.0][:m]  # one query has an order
    if not loss.needs_targets:
        return None, groups
    explained = _explained(loss, X, y, rng, traits) if rng.random() < 0.6 else y
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            loss.encode(explained, groups)
    except ValueError:
        return y, groups
    return explained, groups


def _explained(loss: Loss, X: Array, y: Any, rng: np.random.Generator, traits: list[str]) -> Any:
    sizes = np.maximum(np.abs(X).max(axis=0), 1e-300)
    k = y.shape[1] if np.ndim(y) == 2 else int(np.max(y, initial=1)) + 1
    F = (X / sizes) @ rng.normal(size=(X.shape[1], max(k, 2)))
    f = F[:, 0]
    if loss.task == "regression":
        size = _size(rng, traits, "targets")
        return size * (f + 0.1 * rng.normal() * rng.normal(size=len(X)) + float(rng.choice([0.0, 0.0, 100.0])))
    if loss.task == "multivariate":
        return _size(rng, traits, "targets") * F[:, :k]
    traits.append("separable")
    if loss.task == "classification" and set(np.unique(y)) <= {-1.0, 1.0}:
        return np.where(f >= float(rng.choice([0.0, np.median(f), f.min()])), 1.0, -1.0)
    if loss.task == "classification":
        return np.argmax(F[:, :k], axis=1)
    if loss.task == "multilabel":
        return (F[:, :k] > 0.0).astype(np.float64)
    if loss.task in ("ordinal", "ranking"):
        return np.clip(np.round(f + 1.0), 0.0, 4.0)
    return y


def _weights(loss: Loss, groups: Any, m: int, rng: np.random.Generator, traits: list[str]) -> Array | None:
    if rng.random() < 0.6:
        return None
    kind = str(rng.choice(["uneven", "whole numbers", "with zeros", "extreme"]))
    weight: Array = rng.uniform(0.2, 2.0, size=m)
    if kind == "whole numbers":
        weight = rng.integers(1, 5, size=m).astype(np.float64)
    elif kind == "with zeros":
        weight *= rng.random(m) < 0.7
        weight[0] = 1.0
    elif kind == "extreme":
        weight = 10.0 ** rng.uniform(-12, 12, size=m)
    if loss.weighted_by == "group" and groups is not None:
        weight = weight[np.unique(groups, return_inverse=True)[1]]
    elif loss.weighted_by == "none":
        return None
    traits.append(f"weights: {kind}")
    return weight


def _regularizer(dim: int, rng: np.random.Generator, traits: list[str]) -> Regularizer:
    """Return one of the registered regularizers, with weights and bounds of all sizes."""
    cls = list(REGULARIZERS.values())[rng.integers(len(REGULARIZERS))]
    fields = getattr(cls, "__dataclass_fields__", {})
    parameters: dict[str, Any] = {}
    if "r" in fields:
        parameters["r"] = float(rng.choice([0.0, 1.0, 0.5, 1e-6, 1.0 - 1e-6, rng.random()]))
    if not issubclass(cls, Separable):
        examples = cls.examples(dim)
        return examples[rng.integers(len(examples))]
    if cls.name != "zero" and rng.random() < 0.4:
        parameters["weights"] = _coordinate_weights(dim, rng, traits)
    if rng.random() < 0.3:
        parameters["bounds"] = _bounds(dim, rng, traits)
    return cls(**parameters)


def _coordinate_weights(dim: int, rng: np.random.Generator, traits: list[str]) -> Array:
    kind = str(rng.choice(["moderate", "extreme", "some free", "one free"]))
    weights: Array = 10.0 ** (rng.uniform(-5, 5, size=dim) if kind == "extreme" else rng.uniform(-1, 1, size=dim))
    if kind == "some free":
        weights *= rng.random(dim) < 0.6
    elif kind == "one free":
        weights[rng.integers(dim)] = 0.0
    traits.append(f"coordinates: {kind}")
    return weights


def _bounds(dim: int, rng: np.random.Generator, traits: list[str]) -> tuple[Any, Any]:
    kind = str(rng.choice(["w >= 0", "a box", "a box beside 0", "some", "equal"]))
    traits.append(f"bounds: {kind}")
    size = float(10.0 ** rng.uniform(-6, 3))
    if kind == "w >= 0":
        return 0.0, np.inf
    if kind == "a box":
        return -size, 2.0 * size
    if kind == "a box beside 0":
        return size, 3.0 * size
    if kind == "equal":
        return 0.5 * size, 0.5 * size
    lower = np.where(rng.random(dim) < 0.5, -np.inf, -size)
    return lower, np.where(rng.random(dim) < 0.5, np.inf, size)


def _structured(rng: np.random.Generator) -> StructuredCase:
    traits: list[str] = []
    model = _model(rng)
    X, Y = model.draw(rng, int(rng.integers(1, 9)))
    X, common = [_short(x) for x in X], _common(rng, traits)
    losses: list[Any] = []
    for cls in STRUCTURED_LOSSES.values():
        losses.append(lambda cls=cls: cls(model))
        if "scaling" in cls.__dataclass_fields__:
            losses.append(lambda cls=cls: cls(model, "slack"))
    for place in rng.permutation(len(losses)):
        try:
            loss = losses[place]()
            StructuredRisk(X, Y, loss, n_threads=1).evaluate(np.zeros(model.dim))
        except (ValueError, TypeError):  # the model has no such oracle
            continue
        weight = rng.uniform(0.2, 2.0, size=len(X)) if rng.random() < 0.3 else None
        regularizer = _regularizer(model.dim, rng, traits)
        return StructuredCase(**common, regularizer=regularizer, weight=weight, loss=loss, X=X, Y=Y)
    raise ValueError(f"{type(model).__name__} has no oracle for any structured loss")


def _model(rng: np.random.Generator) -> StructuredModel:
    classes = [cls for cls in MODELS.values() if cls.examples()]
    examples = classes[rng.integers(len(classes))].examples()
    return examples[rng.integers(len(examples))]


def _short(x: Any) -> Any:
    """Return x with numbers of single precision, so that sums of a few of them are exact."""
    if isinstance(x, tuple):
        return tuple(map(_short, x))
    if getattr(x, "dtype", None) == np.float64:
        return x.astype(np.float32).astype(np.float64)
    return x
