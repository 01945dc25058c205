"""What losses of several rows share: queries, grades and permutations as arrays, and what weights mean to them."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bmrm.losses.base import Array

Index = npt.NDArray[np.int64]


class NoQueries(ValueError):
    """No query has anything to compare: an error, unless these rows are a shard of many."""


class Grades(NamedTuple):
    """Rows by query and, in a query, by increasing grade: the targets of losses of pairs.

    Query q has ``rows[starts[q] : starts[q + 1]]``, in blocks of equal grade; its blocks are numbered from
    ``queries[q]``, and block b begins at place ``blocks[b]``. `turns` names the queries, the largest first.
    """

    rows: Index
    starts: Index
    turns: Index
    blocks: Index
    queries: Index


class Ranking(NamedTuple):
    """Rows by query and, in a query, by decreasing grade: the targets of losses of permutations.

    `margin` is the sequence c of each query, in the order of the rows; `extra` is what else the loss's kernel takes.
    """

    rows: Index
    starts: Index
    turns: Index
    margin: Array
    extra: tuple[npt.NDArray[Any], ...]


def query_codes(groups: Any, m: int, loss: str) -> Index:
    """Return the number of each row's query; ids may be numbers, text or any hashable objects, in any order."""
    if groups is None:
        raise ValueError(f"loss '{loss}' compares the rows of a query: give groups, the query of each row")
    if len(groups) != m:
        raise ValueError(f"there are {m} targets, but {len(groups)} groups")
    if m == 0:
        raise ValueError(f"loss '{loss}' needs rows, but there are none")
    plain = np.asarray(groups) if hasattr(groups, "dtype") else None
    if plain is not None and plain.ndim == 1 and plain.dtype.kind in "biuUS":
        return np.unique(plain, return_inverse=True)[1].astype(np.int64)
    seen: dict[Hashable, int] = {}
    codes = np.empty(m, np.int64)
    for row, group in enumerate(groups):
        try:
            missing = group is None or group != group  # NaN is not equal to itself
            codes[row] = -1 if missing else seen.setdefault(group, len(seen))
        except (TypeError, ValueError):
            raise ValueError(f"the group of row {row} must be a number, text or hashable, got {group!r}") from None
        if codes[row] < 0:
            raise ValueError(f"row {row} has no group (it is {group})")
    return codes


def kept_rows(codes: Index, bad: npt.NDArray[np.bool_], loss: str, reason: str) -> Index:
    """Return the rows of the queries that are not bad, and warn of the others; `bad` is given by query."""
    if not bad.any():
        return np.arange(codes.size)
    if bad.all():
        raise NoQueries(f"loss '{loss}': no query is left, all {bad.size} have {reason}")
    warnings.warn(
        f"loss '{loss}' leaves out {bad.sum()} of {bad.size} queries, which have {reason}", UserWarning, stacklevel=4
    )
    return np.flatnonzero(~bad[codes])


def all_equal(y: Array, codes: Index) -> npt.NDArray[np.bool_]:
    """Return for each query whether its grades are all the same; one document alone is."""
    order = np.argsort(codes, kind="stable")
    starts = _starts(codes[order])[:-1]
    return np.asarray(np.maximum.reduceat(y[order], starts) == np.minimum.reduceat(y[order], starts))


def by_grade(y: Array, codes: Index, rows: Index) -> Grades:
    """Return the rows given, by query and increasing grade."""
    order = rows[np.lexsort((y[rows], codes[rows]))]
    new = np.flatnonzero((np.diff(codes[order]) != 0) | (np.diff(y[order]) != 0)) + 1
    blocks = np.concatenate([[0], new, [order.size]]).astype(np.int64)
    starts = _starts(codes[order])
    return Grades(order, starts, _turns(starts), blocks, np.searchsorted(blocks, starts).astype(np.int64))


def by_decreasing_grade(y: Array, codes: Index, rows: Index) -> tuple[Index, Index, Index]:
    """Return rows, starts and turns; documents of equal grade stay in the order they came in."""
    order = rows[np.lexsort((-y[rows], codes[rows]))]
    starts = _starts(codes[order])
    return order, starts, _turns(starts)


def block_means(values: Array, codes: Index, grades: Array) -> Array:
    """Return the mean of the values of each run of one query and one grade, at every place of the run."""
    new = np.flatnonzero((np.diff(codes) != 0) | (np.diff(grades) != 0)) + 1
    starts = np.concatenate([[0], new]).astype(np.int64)
    sizes = np.diff(np.append(starts, values.size))
    return np.repeat(np.add.reduceat(values, starts) / sizes, sizes)


def _starts(sorted_codes: Index) -> Index:
    return np.concatenate([[0], np.flatnonzero(np.diff(sorted_codes)) + 1, [sorted_codes.size]]).astype(np.int64)


def _turns(starts: Index) -> Index:
    return np.argsort(-np.diff(starts), kind="stable")


def is_uniform(weight: Array) -> bool:
    """Whether all rows weigh the same, up to rounding."""
    return bool(weight.max() - weight.min() <= 1e-12 * weight.max())


def query_shares(rows: Index, starts: Index, weight: Array, loss: str) -> Array:
    """Return what each query counts: the weight of its rows, which must agree, divided by the sum over queries."""
    if is_uniform(weight):
        return np.full(starts.size - 1, 1.0 / (starts.size - 1))
    first = starts[:-1]
    most, least = (extreme.reduceat(weight[rows], first) for extreme in (np.maximum, np.minimum))
    bad = np.flatnonzero(most - least > 1e-12 * most)
    if bad.size:
        query = rows[starts[bad[0]] : starts[bad[0] + 1]]
        one, other = query[np.argmin(weight[query])], query[np.argmax(weight[query])]
        raise ValueError(
            f"loss '{loss}' weighs whole queries, but rows {one} and {other} of one query have different weights"
        )
    if not most.sum() > 0.0:
        raise NoQueries(f"loss '{loss}': every query that counts has the weight 0")
    return np.asarray(most / most.sum())
