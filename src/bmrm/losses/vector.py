"""Losses of several scores for each row: what they share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm._limits import check_length
from bmrm.losses.base import Array, Loss, Targets, finite_targets
from bmrm.losses.bend import Bend
from bmrm.losses.growth import rise

Costs: TypeAlias = tuple[tuple[float, ...], ...]
Ids: TypeAlias = npt.NDArray[np.int32]


class CompiledRows(Protocol):
    """The compiled counterpart of a vector loss with its targets (`_core.VectorRows`, or a wrapper around one)."""

    def evaluate(self, scores: Array, weight: Array | None, scale: float, slopes: Array, n_threads: int = 1) -> float:
        """Return the weighted sum, write its slopes."""

    def extreme(self, scores: Array, along: Array, weight: Array | None, scale: float, slopes: Array) -> None:
        """Write the slopes that are steepest in the direction `along`."""

    def line(self, f: Array, g: Array, weight: Array | None, scale: float) -> Any:
        """Return the sum on a line through f in direction g."""


@dataclass(frozen=True, eq=False)
class Classes:
    """One class for each row, as a number from 0 to k - 1."""

    ids: Ids
    k: int

    def __len__(self) -> int:
        return self.ids.size


class VectorLoss(Loss):
    """A loss of k scores for each row: `evaluate` takes and returns arrays of shape (m, k).

    `LinearRisk` then has a (d, k) matrix of weights, kept in one buffer row by row: ``w.reshape(-1, k)``. How many
    scores there are, the targets say. A user's own loss needs `evaluate`, `encode` and `n_scores`; one with
    `compiled` rows also gets exact line searches, one with a `bend` and the trait CURVED_ROWS Newton's method.
    """

    @abstractmethod
    def n_scores(self, targets: Targets) -> int:
        """Return k, the number of scores for each row."""

    def compiled(self, targets: Targets) -> CompiledRows | None:
        """Return the compiled counterpart, or None if the loss is evaluated in Python."""
        return None

    def redundant(self, targets: Targets) -> npt.NDArray[np.int64]:
        """Return scores that can be 0 in all rows at no loss, because the others can take their part.

        Where the loss does not change when all scores of a row grow alike, that is one of them.
        """
        return np.empty(0, np.int64)

    def free_constants(self, targets: Targets) -> npt.NDArray[np.int64]:
        """Return the scores whose constants a model with an intercept leaves free of penalty: all but the redundant.

        A penalty on those changes no minimum, and without it the constants are known up to a shift only. Nor is the
        constant of a class without rows free where the loss falls without end with it.
        """
        return np.setdiff1d(np.arange(self.n_scores(targets)), self.redundant(targets))

    def bend(self, scores: Array, weight: Array, n_threads: int = 1) -> Bend | None:
        """Return the second derivatives at the scores, times the weights; None if there are none."""
        return None

    def adverse(self, scores: Array, targets: Targets, e: float) -> Array | None:
        """Return scores moved by e, each the way in which the loss never falls; None where that is not known."""
        return None

    def growth(self, scores: Array, targets: Targets, weight: Array, e: float) -> float:
        """Return what the loss grows by at most where no score moves by more than e.

        Without a worst direction all of them count: the k scores of a row move within a simplex with the corners
        -e and -e + 2 k e along one score, and a convex function is largest at a corner. That costs k + 1 evaluations.
        """
        moved = self.adverse(scores, targets, 1.25 * e)  # a sum with e is rounded
        if moved is not None:
            return rise(self.evaluate(scores, targets, weight)[0], self.evaluate(moved, targets, weight)[0])
        largest, k = np.zeros(len(scores)), scores.shape[1]
        for c in range(-1, k):
            step = np.full(k, -1.25 * e)
            step[c] += 2.5 * k * e * (c >= 0)
            slopes = self.evaluate(scores + step, targets, weight)[1]
            np.maximum(largest, slopes @ step, out=largest)
        return float(largest.sum())

    def evaluate(self, scores: Array, targets: Targets, weight: Array) -> tuple[float, Array]:
        """Return the weighted sum of the loss and its slopes, of the shape of the scores."""
        rows = self.compiled(targets)
        if rows is None:
            raise NotImplementedError(f"{type(self).__name__} needs an evaluate of its own")
        slopes = np.empty_like(scores)
        return rows.evaluate(scores, weight, 1.0, slopes), slopes


MOST_CLASSES = 2**31 - 1  # they are numbered in 32 bits


class ClassLoss(VectorLoss):
    """A vector loss whose targets are classes 0, 1, ..., k - 1; estimators take labels of any kind."""

    task: ClassVar[Literal["classification"]] = "classification"
    n_classes: int | None = None

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Classes:
        """Return the classes; k is the number asked for, or one more than the largest."""
        self.refuse_groups(groups)
        values = finite_targets(y)
        bad = np.flatnonzero((values < 0.0) | (values != np.round(values)) | (values >= MOST_CLASSES))
        if bad.size:
            raise ValueError(
                f"target of row {bad[0]} is {values[bad[0]]:g}, but loss '{self.name}' takes classes 0, 1, 2, ... "
                f"({bad.size} of {values.size} targets are outside)"
            )
        largest = int(values.max(initial=0.0))
        k = self._n_classes() or max(2, largest + 1)
        if largest >= k:
            row = int(np.argmax(values))
            raise ValueError(f"target of row {row} is {largest}, but loss '{self.name}' has classes 0 to {k - 1}")
        check_length(k * values.size, f"loss '{self.name}' of {values.size} rows with classes 0 to {k - 1}")
        return Classes(values.astype(np.int32), k)

    def _n_classes(self) -> int | None:
        return self.n_classes

    def redundant(self, targets: Classes) -> npt.NDArray[np.int64]:
        """Return the last score: classes are compared with each other."""
        return np.array([targets.k - 1])

    def largest_slopes(self, targets: Classes, weight: Array) -> float:
        """Return the norm of the slopes where each row prefers another class."""
        return float(np.sqrt(2.0) * np.linalg.norm(weight))

    def adverse(self, scores: Array, targets: Classes, e: float) -> Array:
        """Return the scores with the true class moved down, the others up."""
        moved = scores + e
        rows = np.arange(len(scores))
        moved[rows, targets.ids] = scores[rows, targets.ids] - e
        return moved

    def n_scores(self, targets: Classes) -> int:
        """Return the number of classes."""
        return targets.k

    def decide(self, scores: Array) -> Any:
        """Return the class with the largest score in each row, the first of equal ones."""
        return np.argmax(scores, axis=1)

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Any, None]:
        """Draw random classes, all present."""
        k = self._n_classes() or 3
        y = rng.integers(k, size=m)
        y[: min(m, k)] = np.arange(k)[:m]
        return y, None


def checked_classes(n_classes: int | None, loss: str) -> None:
    """Raise unless the number of classes is None or a whole number of at least 2."""
    if n_classes is None:
        return
    if not isinstance(n_classes, (int, np.integer)) or isinstance(n_classes, bool) or n_classes < 2:
        raise ValueError(
            f"parameter 'n_classes' of loss '{loss}' must be a whole number of at least 2, got {n_classes!r}"
        )


def checked_costs(delta: Any, loss: str) -> Costs:
    """Return a matrix of costs as tuples: square, finite, at least 0, with 0 on the diagonal."""
    try:
        matrix = np.asarray(delta, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"parameter 'delta' of loss '{loss}' must be a matrix of numbers: {error}") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(
            f"parameter 'delta' of loss '{loss}' must be a square matrix with a row for each of at least two classes, "
            f"got shape {matrix.shape}"
        )
    wrong = ~np.isfinite(matrix) | (matrix < 0.0)
    wrong |= np.eye(len(matrix), dtype=bool) & (matrix != 0.0)
    if wrong.any():
        a, b = np.argwhere(wrong)[0]
        raise ValueError(
            f"parameter 'delta' of loss '{loss}': the cost of class {b} where {a} is true is {matrix[a, b]:g}; "
            "costs are finite and at least 0, and being right costs 0"
        )
    return tuple(map(tuple, matrix.tolist()))


def probabilities(scores: Array) -> Array:
    """Return exp(f_c) / sum exp(f_c) for each row."""
    shares: Array = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares
