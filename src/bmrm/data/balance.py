"""Equal work: where to cut rows, or other units in a fixed order, into parts that take about as long."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm._sparse import rows_of

Array: TypeAlias = npt.NDArray[np.float64]


def row_work(entries: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Array:
    """Return the work of each row: nnz_i, and log2(n_q) more for a row of a query of n_q rows.

    Products take time by the entries that are not 0; a loss of queries sorts each of them, n log n in all.

    Parameters
    ----------
    entries : array
        The number of entries of each row.
    groups : array, optional
        The query of each row.

    Examples
    --------
    >>> from bmrm.data.balance import row_work
    >>> row_work([2, 0, 1], [7, 7, 8])
    array([3., 1., 1.])
    """
    work = np.asarray(entries, np.float64)
    if groups is None:
        return work
    _, place, counts = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    return work + np.log2(counts)[place]


def cuts(work: npt.ArrayLike, n_parts: int, groups: npt.ArrayLike | None = None) -> list[int]:
    """Return where parts begin and end, n_parts + 1 places at most, between units of about total / n_parts.

    Parameters
    ----------
    work : array
        Of each unit.
    n_parts : int
    groups : array, optional
        A query of each unit; units of one query that are neighbors stay together.

    Examples
    --------
    >>> from bmrm.data.balance import cuts
    >>> cuts([4.0, 1.0, 1.0, 1.0, 1.0], 2)
    [0, 1, 5]
    >>> cuts([1.0, 1.0, 1.0, 1.0], 2, groups=[1, 1, 1, 2])
    [0, 3, 4]
    """
    done = np.cumsum(np.asarray(work, np.float64))
    inner = np.arange(1, len(done))
    if groups is not None:
        of = np.asarray(groups)
        inner = inner[of[1:] != of[:-1]]
    places = np.concatenate([[0], inner, [len(done)]])
    before = np.concatenate([[0.0], done])[places]
    return [int(places[k]) for k in nearest(before, n_parts)]


def nearest(before: Array, n_parts: int) -> list[int]:
    """Return which of some places to cut at, the first and the last included: those nearest to equal shares.

    Parameters
    ----------
    before : array
        The work before each place, from 0 to all of it.
    n_parts : int
    """
    targets = before[-1] * np.arange(1, n_parts) / n_parts
    after = np.clip(np.searchsorted(before, targets), 1, len(before) - 1)
    closer = after - (targets - before[after - 1] <= before[after] - targets)
    return np.unique(np.concatenate([[0], closer, [len(before) - 1]])).tolist()  # type: ignore[no-any-return]


def entries_of(X: Any) -> npt.NDArray[np.int64]:
    """Return the number of entries of each row of an array or a sparse matrix."""
    if hasattr(X, "tocsr"):
        lengths: npt.NDArray[np.int64] = np.diff(rows_of(X).indptr).astype(np.int64)
        return lengths
    return np.full(X.shape[0], X.shape[1], np.int64)
