"""Any number of labels for each row, those with the largest of k scores."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._fields import ByFields
from bmrm._limits import check_length
from bmrm._sparse import rows_of
from bmrm._traits import Trait
from bmrm.losses.base import Array, Loss, positive
from bmrm.losses.vector import MOST_CLASSES, CompiledRows, Costs, Ids, VectorLoss, checked_classes, checked_costs


@dataclass(frozen=True, eq=False)
class LabelSets:
    """The labels of row i, increasing: ``labels[indptr[i]:indptr[i + 1]]``, numbers from 0 to k - 1."""

    indptr: npt.NDArray[np.int64]
    labels: Ids
    k: int

    def __len__(self) -> int:
        return self.indptr.size - 1

    def indicator(self) -> npt.NDArray[np.bool_]:
        """Return the matrix (m, k) that says which row has which label."""
        matrix = np.zeros((len(self), self.k), dtype=bool)
        matrix[np.repeat(np.arange(len(self)), np.diff(self.indptr)), self.labels] = True
        return matrix


@dataclass(frozen=True)
class MultilabelHinge(ByFields, VectorLoss, name="multilabel_hinge"):
    """max(0, Delta(z, z') + f_z' - f_z) over true z and other z': every true label above every other one.

    Piecewise linear. With Delta = margin everywhere it is max(0, margin + max f_z' - min f_z). A row with no label, or
    with all of them, orders nothing and has no loss.

    Targets are sets of labels 0, 1, ..., k - 1, one for each row, or a matrix (m, k) of zeros and ones, dense or
    sparse.

    Parameters
    ----------
    margin : float
        Above 0; the cost of every pair, unless delta is given.
    delta : matrix (k, k), optional
        ``delta[z][z']``, the cost of putting z' before the true label z.
    n_classes : int, optional
        k, if it is not the size of delta or one more than the largest label.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.MultilabelHinge(n_classes=3)
    >>> value, slopes = loss.evaluate(np.array([[1.0, 0.5, 0.0]]), loss.encode([{0, 1}]), np.ones(1))
    >>> value, slopes
    (0.5, array([[ 0., -1.,  1.]]))

    References
    ----------
    Y10 eq. 54 and 55.
    """

    margin: float = 1.0
    delta: Costs | None = None
    n_classes: int | None = None

    task: ClassVar[Literal["multilabel"]] = "multilabel"
    traits = frozenset({Trait.PIECEWISE, Trait.DUAL_ROWS})
    floor = 0.0

    def __post_init__(self) -> None:
        positive(self.margin, "margin", self.name)
        checked_classes(self.n_classes, self.name)
        if self.delta is not None:
            object.__setattr__(self, "traits", frozenset({Trait.PIECEWISE}))  # pairs do not come apart
            object.__setattr__(self, "delta", checked_costs(self.delta, self.name))

    def encode(self, y: Any, groups: npt.ArrayLike | None = None) -> LabelSets:
        """Return the label sets."""
        self.refuse_groups(groups)
        k = self.n_classes if self.delta is None else len(self.delta)
        if hasattr(y, "tocsr") or (isinstance(y, np.ndarray) and y.ndim == 2):
            return _of_indicator(y, k, self.name)
        return _of_sets(y, k, self.name)

    def redundant(self, targets: LabelSets) -> npt.NDArray[np.int64]:
        """Return the last score: labels are compared with each other."""
        return np.array([targets.k - 1])

    def largest_slopes(self, targets: LabelSets, weight: Array) -> float:
        """Return the norm of the slopes where each row has a pair in the wrong order."""
        return float(np.sqrt(2.0) * np.linalg.norm(weight))

    def adverse(self, scores: Array, targets: LabelSets, e: float) -> Array:
        """Return the scores with true labels moved down, the others up."""
        moved = scores + e
        rows = np.repeat(np.arange(len(targets)), np.diff(targets.indptr))
        moved[rows, targets.labels] = scores[rows, targets.labels] - e
        return moved

    def n_scores(self, targets: LabelSets) -> int:
        """Return the number of labels."""
        return targets.k

    def compiled(self, targets: LabelSets) -> CompiledRows:
        """Return the compiled rows."""
        delta = None if self.delta is None else np.array(self.delta)
        return cast(CompiledRows, _core.multilabel(targets.indptr, targets.labels, targets.k, self.margin, delta))

    def decide(self, scores: Array) -> Any:
        """Return the labels with scores above 0, as a matrix of zeros and ones."""
        return (scores > 0.0).astype(np.float64)

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return the plain one and one with costs."""
        return [cls(n_classes=3), cls(delta=((0.0, 1.0, 2.0), (0.5, 0.0, 1.0), (3.0, 1.0, 0.0)))]

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Any, None]:
        """Draw an indicator matrix for three labels, with an empty row and a full one."""
        y = (rng.random((m, 3)) < 0.5).astype(np.float64)
        y[: min(m, 2)] = np.array([[0.0] * 3, [1.0] * 3])[: min(m, 2)]
        return y, None


def check_order(targets: LabelSets) -> None:
    """Warn of rows with no label or all of them, which order nothing; raise if there are no others."""
    n_labels = np.diff(targets.indptr)
    idle = (n_labels == 0) | (n_labels == targets.k)
    if idle.all():
        raise ValueError(f"no row orders the labels: all {len(idle)} have no label, or all of them")
    if idle.any():
        warnings.warn(
            f"{np.count_nonzero(n_labels == 0)} of {len(idle)} rows have no label and "
            f"{np.count_nonzero(idle & (n_labels > 0))} have all of them: they order nothing and add no loss",
            UserWarning,
            stacklevel=3,
        )


def _of_indicator(y: Any, k: int | None, loss: str) -> LabelSets:
    matrix = rows_of(y, "y").toarray() if hasattr(y, "tocsr") else np.asarray(y)
    if matrix.dtype.kind not in "biuf" or not np.isin(matrix, (0, 1)).all():
        bad = np.argwhere(~np.isin(matrix, (0, 1)))[0]
        raise ValueError(
            f"the indicator of label {bad[1]} in row {bad[0]} is {matrix[tuple(bad)]}, but loss '{loss}' takes 0 and 1"
        )
    if k is not None and matrix.shape[1] != k:
        raise ValueError(f"the indicator matrix has {matrix.shape[1]} columns, but loss '{loss}' is for {k} labels")
    rows, labels = np.nonzero(matrix)
    indptr = np.searchsorted(rows, np.arange(len(matrix) + 1)).astype(np.int64)
    return LabelSets(indptr, labels.astype(np.int32), matrix.shape[1])


def _of_sets(y: Any, k: int | None, loss: str) -> LabelSets:
    sets = []
    for row, labels in enumerate(y):
        try:
            found = sorted(set(labels))
        except TypeError:
            raise ValueError(
                f"the target of row {row} is {labels!r}, but loss '{loss}' takes a set of labels for each row, or a "
                "matrix of zeros and ones"
            ) from None
        wrong = [label for label in found if not isinstance(label, (int, np.integer)) or not 0 <= label < MOST_CLASSES]
        if wrong or (k is not None and found and found[-1] >= k):
            raise ValueError(
                f"row {row} has label {(wrong or found[-1:])[0]!r}, but loss '{loss}' takes labels "
                f"{'0, 1, 2, ...' if k is None else f'0 to {k - 1}'}"
            )
        sets.append(found)
    labels = np.array([label for found in sets for label in found], dtype=np.int32)
    indptr = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    k = k or max(2, int(labels.max(initial=0)) + 1)
    check_length(k * len(sets), f"loss '{loss}' of {len(sets)} rows with labels 0 to {k - 1}")
    return LabelSets(indptr, labels, k)
