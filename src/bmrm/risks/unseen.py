"""Coordinates without a penalty that a loss does not see, so that they may stay 0.

A loss that compares scores does not change with a constant in all of them, in a query, or in all scores of one row.
The slopes of planes in such a direction are rounding errors, 1e-17 and not 0, and a master that follows them leads to
w = 1e16, where scores have no digits left. Nothing is lost where w is 0 there: the minimum of J is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bmrm.losses import VectorLoss

if TYPE_CHECKING:
    from bmrm.risks.linear import LinearRisk

Index = npt.NDArray[np.intp]

_FLAT = 1e-12  # of |l| |X_j|, X_j'l for random slopes l: a column that the loss may not see
_MOST = 100  # columns that are compared row by row, a product each; the others stay as they are
_ENTRIES = 2_000_000  # of columns whose combinations are looked at: some milliseconds
_WHOLE = 2.0**20  # whole numbers up to here are multiplied and added without rounding


def unseen(risk: LinearRisk, free: Index) -> Index:
    """Return those of the free coordinates that can be 0 at no loss.

    Of a loss of k scores, for each column that is free for all of them, the scores that `VectorLoss.redundant` names;
    of a loss of differences of scores, the columns that are constant, in each query if it looks at queries, and one of
    those of whole numbers that add up to such a column, as indicators of categories do. Columns that depend on each
    other but for rounding are no such columns: the minimum may be where they differ.
    """
    if isinstance(risk.loss, VectorLoss):
        k = risk.n_outputs
        columns = np.flatnonzero(np.bincount(free // k, minlength=risk.dim // k) == k)
        return (columns[:, None] * k + risk.loss.redundant(risk.targets)).reshape(-1)
    if risk.loss.shift_slope(risk.targets) != 0.0:
        return free[:0]
    constant: Index = free[free == risk.design.n_cols]  # the intercept
    columns = free[free < risk.design.n_cols]
    if not columns.size:
        return constant
    same = _constant(risk, columns)
    held: Index = np.sort(np.concatenate([constant, same, _dependent(risk, np.setdiff1d(columns, same))]))
    return held


def _constant(risk: LinearRisk, columns: Index) -> Index:
    """Return the columns that are the same in all rows of each set of rows that the loss compares."""
    m, design = risk.design.n_rows, risk.design
    rows, starts = _sets(risk)
    slopes = np.zeros(m)
    slopes[rows] = np.random.default_rng(0).normal(size=rows.size)
    sizes = np.diff(starts)
    slopes[rows] -= np.repeat(np.add.reduceat(slopes[rows], starts[:-1]) / sizes, sizes)
    products = np.abs(design.tdot(slopes, 0.0))[columns]
    norms = risk.norms[columns]
    flat = columns[(products <= _FLAT * float(np.linalg.norm(slopes)) * norms) & (norms > 0.0)]
    found = [j for j in flat[:_MOST] if _same(_column(risk, j)[rows], starts)]
    return np.array(found, dtype=np.intp)


def _dependent(risk: LinearRisk, columns: Index) -> Index:
    """Return columns of whole numbers that are sums of others, times whole numbers, and a column that is not seen."""
    if not (1 < columns.size <= _MOST and columns.size * risk.design.n_rows <= _ENTRIES):
        return columns[:0]
    rows, starts = _sets(risk)
    X = np.column_stack([_column(risk, j)[rows] for j in columns])
    whole = ((np.rint(X) == X) & (np.abs(X) <= _WHOLE)).all(axis=0)
    X, columns = X[:, whole], columns[whole]
    means = np.add.reduceat(X, starts[:-1], axis=0) / np.diff(starts)[:, None]
    centered = X - np.repeat(means, np.diff(starts), axis=0)
    base: list[int] = []
    found = []
    for k in range(columns.size):
        times = np.rint(np.linalg.lstsq(centered[:, base], centered[:, k], rcond=None)[0])
        exact = bool(np.abs(times).sum() <= _WHOLE)
        if exact and _same(X[:, k] - X[:, base] @ times, starts):
            found.append(columns[k])
        else:
            base.append(k)
    return np.array(found, dtype=np.intp)


def _column(risk: LinearRisk, j: int) -> npt.NDArray[np.float64]:
    unit = np.zeros(risk.design.dim)
    unit[j] = 1.0
    return risk.design.dot(unit)


def _same(values: npt.NDArray[np.float64], starts: npt.NDArray[np.int64]) -> bool:
    """Whether the values are the same in each set."""
    return np.array_equal(np.maximum.reduceat(values, starts[:-1]), np.minimum.reduceat(values, starts[:-1]))


def _sets(risk: LinearRisk) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows, set by set, and where sets begin; all rows are one set unless the loss looks at queries."""
    if risk.loss.couples == "group":
        return risk.targets.rows, risk.targets.starts
    return np.arange(risk.design.n_rows), np.array([0, risk.design.n_rows])
