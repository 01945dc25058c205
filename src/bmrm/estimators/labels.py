"""Labels of any kind: which classes there are, what each row counts, and what mistakes cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from bmrm.estimators.minimizer import checked_weight
from bmrm.risks.base import Array

_BLOCK = 65536  # rows


def two_classes(y: npt.NDArray[Any], weight: Array | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """Return what `classes_of` does without sorting, where the labels are two whole numbers; else None."""
    if y.dtype.kind not in "biuf" or not y.size:
        return None
    other = y != y[0]
    labels = np.array([y[0], y[np.argmax(other)]])
    whole = np.isfinite(labels).all() and (labels == np.floor(labels)).all()
    if not (whole and other.any()) or _third_label(y, labels[1], other):
        return None
    if weight is not None and not (weight[other].any() and weight[~other].any()):
        return None
    codes = other if labels[0] < labels[1] else np.logical_not(other, out=other)
    return np.sort(labels), codes.view(np.int8)


def _third_label(y: npt.NDArray[Any], label: Any, other: npt.NDArray[np.bool_]) -> bool:
    """Whether not all of the other rows have this label; by blocks, for new pages cost more than reading."""
    blocks = (slice(k, k + _BLOCK) for k in range(0, y.size, _BLOCK))
    return any(np.count_nonzero(y[rows] == label) != np.count_nonzero(other[rows]) for rows in blocks)


def classes_of(y: npt.NDArray[Any], weight: Array | None) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Return the classes that count, and the code of each row; -1 where the class does not count."""
    check_classification_targets(y)
    labels, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes, weights=weight, minlength=len(labels)) > 0.0
    if counts.sum() < 2:
        raise ValueError(
            f"y has one class only, {labels[counts].tolist()[0]!r} (rows of weight 0 do not count); "
            f"a classifier needs at least two classes"
        )
    renumbered = np.where(counts, np.cumsum(counts) - 1, -1)
    return labels[counts], renumbered[codes]


def against_the_rest(codes: npt.NDArray[Any], k: int) -> Array:
    """Return 1.0 for the rows of class k and -1.0 for all others, by way of small numbers: large ones take pages."""
    signs: npt.NDArray[np.int8] = (codes == k).view(np.int8)
    signs *= 2
    signs -= 1
    return signs.astype(np.float64)


def codes_of(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the place of each label among the classes."""
    unknown = np.setdiff1d(y, classes)
    if unknown.size:
        raise ValueError(f"y has the label {unknown.tolist()[0]!r}, which is not among the classes {classes.tolist()}")
    return np.asarray(np.searchsorted(classes, y))


def with_class_weight(
    class_weight: dict[Any, float] | str | None,
    classes: npt.NDArray[Any],
    codes: npt.NDArray[np.intp],
    weight: Array | None,
) -> Array | None:
    """Return the sample weights times the factors of the classes."""
    if class_weight is None:
        return weight
    rows = np.ones(len(codes)) if weight is None else np.where(codes >= 0, weight, 0.0)
    if isinstance(class_weight, dict):
        factors = compute_class_weight(class_weight, classes=classes, y=classes)
    elif class_weight == "balanced":
        totals = np.bincount(codes + 1, weights=rows, minlength=len(classes) + 1)[1:]
        factors = totals.sum() / (len(classes) * totals)
    else:
        raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}")
    return checked_weight(rows * factors[codes], len(codes))


def cost_matrix(costs: Any, classes: npt.NDArray[Any]) -> Any:
    """Return costs[true][predicted] as a matrix in the order of the classes; the loss checks its numbers."""
    k = len(classes)
    if not isinstance(costs, Mapping):
        try:
            matrix = np.asarray(costs, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"costs must be a matrix of numbers or a dict of dicts: {error}") from None
        if matrix.shape != (k, k):
            raise ValueError(f"costs must be a {k} x {k} matrix, one row for each class, got shape {matrix.shape}")
        return matrix
    place = {label: i for i, label in enumerate(classes.tolist())}
    matrix = 1.0 - np.eye(k)
    for true, row in costs.items():
        if not isinstance(row, Mapping):
            raise ValueError(f"costs of the class {true!r} must be a dict by predicted class, got {row!r}")
        for predicted, cost in row.items():
            unknown = [label for label in (true, predicted) if label not in place]
            if unknown:
                raise ValueError(f"costs name the class {unknown[0]!r}, which is not among {classes.tolist()}")
            matrix[place[true], place[predicted]] = cost
    return matrix
