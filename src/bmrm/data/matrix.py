"""Design: the data matrix as the rest of the house sees it, dense or sparse, with or without a constant column."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._cached import cached_property
from bmrm._limits import check_length
from bmrm._sparse import rows_of
from bmrm.data.elsewhere import Elsewhere
from bmrm.data.threads import checked_threads, default_threads

Array: TypeAlias = npt.NDArray[np.float64]

__all__ = ["Design", "WideDesign", "checked_threads", "default_threads"]


class Design:
    """An m x d matrix X of float32 or float64, C-ordered or of compressed rows, used in place.

    Other types and layouts are converted once, on entry. A constant column, if asked for, comes last and is
    never stored.

    Parameters
    ----------
    X : array or scipy sparse matrix of shape (m, d), Store or Shards
        Of a store, the rows stay on disk; of shards, where they are.
    intercept : bool
        Whether w has one more coordinate, the coefficient of a column of ones.
    n_threads : int, optional
        Threads for products; all cores by default. Results do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.data import Design
    >>> Design(np.eye(2), intercept=True).dot(np.array([1.0, 2.0, 10.0]))
    array([11., 12.])
    """

    def __init__(self, X: Any, intercept: bool = False, n_threads: int | None = None) -> None:
        self.n_threads = checked_threads(n_threads)
        self.intercept = bool(intercept)
        self._indices: tuple[Any, Any] | None = None
        if isinstance(X, Elsewhere):
            check_length(X.shape[1], f"X of shape {X.shape}")
            self.matrix = cast(_core.Matrix, X.matrix)  # what it lacks, single rows, no solver asks of it
            return
        if _is_sparse(X):
            check_length(X.shape[-1], f"X of shape {X.shape}")
            self.matrix, self._indices = _sparse_matrix(X, self.n_threads)
        else:
            self.matrix = _dense_matrix(X)
        bad = self.matrix.first_nonfinite(self.n_threads)
        if bad is not None:
            raise ValueError(
                f"X has a value that is not finite in row {bad[0]}, column {bad[1]}: NaN and infinity are not accepted"
            )

    def check_again(self) -> None:
        """Raise ValueError if indices of a sparse matrix left its shape since they were checked.

        The arrays are those of the caller, who may have written to them. A run checks them as it begins, which takes
        less than a pass over the data. Whoever writes to them during a run may end the process.
        """
        if self._indices is not None:
            _check_indices(*self._indices, self.n_cols, self.n_threads)

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return self.matrix.n_rows

    @property
    def n_cols(self) -> int:
        """Number of columns d, without the constant one."""
        return self.matrix.n_cols

    @property
    def dim(self) -> int:
        """Length of w: d, plus 1 for the constant column."""
        return self.n_cols + self.intercept

    @property
    def n_scores(self) -> int:
        """Length of X w."""
        return self.n_rows

    @property
    def streamed(self) -> bool:
        """Whether rows are not in memory here, and cannot be taken one at a time."""
        return not isinstance(self.matrix, _core.Matrix)

    @property
    def plane_bytes(self) -> int | None:
        """How many bytes of planes a limit of memory leaves room for; None without such a limit."""
        matrix: Any = self.matrix
        return matrix.room_for_planes(self.n_scores, self.dim) if self.streamed else None

    def with_constant(self) -> Design:
        """Return the same data with a constant column."""
        design = copy(self)
        design.intercept = True
        return design

    def widened(self, k: int) -> WideDesign:
        """Return the same data with k scores for each row."""
        return WideDesign(self, k)

    def split(self, w: Array) -> tuple[Array, float]:
        """Return the coefficients of the columns and of the constant."""
        return (w[:-1], float(w[-1])) if self.intercept else (w, 0.0)

    def join(self, g: Array, constant: float) -> Array:
        """Return a vector like w from its two parts."""
        if not self.intercept:
            return g
        joined = np.empty(g.size + 1)
        joined[:-1], joined[-1] = g, constant
        return joined

    def dot(self, w: Array) -> Array:
        """Return X w."""
        columns, constant = self.split(w)
        scores = np.empty(self.n_rows)
        if not columns.any():
            scores.fill(constant)
            return scores
        self.matrix.dot(columns, scores, self.n_threads)
        if constant:
            scores += constant
        return scores

    def tdot(self, slopes: Array, total: float) -> Array:
        """Return X' slopes; total is the sum of the slopes, which is the constant column's entry."""
        g = np.empty(self.dim)
        if self.intercept:
            g[-1] = total
        self.matrix.tdot(slopes, g[: self.n_cols], self.n_threads)
        return g

    @cached_property
    def columns(self) -> _core.Columns:
        """A copy of X by columns, made on first use and kept: it takes as much memory as X."""
        return _core.columns(self.matrix)

    def column_sizes(self) -> tuple[Array, npt.NDArray[np.int64]]:
        """Return the sum of squares of each column and the number of its entries that are not 0."""
        matrix: Any = self.matrix
        if self.streamed:
            return matrix.column_sizes()  # type: ignore[no-any-return]
        squares, counts = np.zeros(self.n_cols), np.zeros(self.n_cols, np.int64)
        _core.column_sizes(matrix, None, squares, counts, self.n_threads)
        return squares, counts

    def row_norms(self) -> Array:
        """Return the squared Euclidean norm of every row, the constant column included."""
        squared = np.empty(self.n_rows)
        self.matrix.row_norms(squared, self.n_threads)
        return squared + 1.0 if self.intercept else squared


class WideDesign(Design):
    """The same data for k scores of each row: w is a matrix (d, k) row by row, the constants last; so are the scores.

    Parameters
    ----------
    design : Design
        Its matrix is shared.
    k : int

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.data import Design
    >>> Design(np.eye(2)).widened(2).dot(np.array([1.0, 2.0, 3.0, 4.0]))
    array([1., 2., 3., 4.])
    """

    def __init__(self, design: Design, k: int) -> None:
        self.n_threads, self.intercept, self.matrix, self.k = design.n_threads, design.intercept, design.matrix, k
        self._indices = design._indices

    @property
    def dim(self) -> int:
        """Length of w."""
        return (self.n_cols + self.intercept) * self.k

    @property
    def n_scores(self) -> int:
        """Length of the scores, k for each row."""
        return self.n_rows * self.k

    def parts(self, w: Array) -> tuple[Array, Array]:
        """Return the coefficients (d, k) of the columns and (k,) of the constant, views of w."""
        W = w.reshape(-1, self.k)
        return (W[:-1], W[-1]) if self.intercept else (W, np.zeros(self.k))

    def join(self, g: Array, constant: float) -> Array:
        """Return a vector like w that has a number for each column, and for the constant, k times."""
        return np.repeat(super().join(g, constant), self.k)

    def dot(self, w: Array) -> Array:
        """Return X W, flat."""
        columns, constant = self.parts(np.ascontiguousarray(w))
        scores = np.empty((self.n_rows, self.k))
        self.matrix.dot_wide(columns, scores, self.n_threads)
        if constant.any():
            scores += constant
        return scores.reshape(-1)

    def tdot(self, slopes: Array, total: float) -> Array:
        """Return X' L, flat; the entries of the constants are the sums of the columns of L."""
        L = slopes.reshape(-1, self.k)
        G = np.empty((self.n_cols + self.intercept, self.k))
        if self.intercept:
            G[-1] = L.sum(axis=0)
        self.matrix.tdot_wide(L, G[: self.n_cols], self.n_threads)
        return G.reshape(-1)


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def _dense_matrix(X: Any) -> _core.Matrix:
    try:
        array = np.asarray(X)
    except ValueError:
        raise ValueError("X must be a matrix: its rows have different lengths") from None
    if array.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows, columns), got an array of shape {array.shape}")
    return _core.dense(np.ascontiguousarray(_as_float(array)))


def _as_float(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype in (np.float64, np.float32):
        return array
    if array.dtype.kind not in "biufO":
        raise ValueError(f"X must hold real numbers, got an array of {array.dtype}")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must hold numbers: {error}") from None


def _sparse_matrix(X: Any, n_threads: int) -> tuple[_core.Matrix, tuple[Any, Any]]:
    """Return the matrix, and its row pointers and indices."""
    csr = X if getattr(X, "format", None) == "csr" and len(X.shape) == 2 else rows_of(X)
    indptr = np.ascontiguousarray(csr.indptr, dtype=np.int64)
    indices = np.ascontiguousarray(csr.indices)
    if indptr.size != csr.shape[0] + 1:
        raise ValueError(f"X has {csr.shape[0]} rows and {indptr.size} row pointers (indptr); expected one more")
    in_order = _check_indices(indptr, indices, csr.shape[1], n_threads)
    values = np.ascontiguousarray(_as_float(csr.data))
    if not in_order:
        ordered = np.empty_like(indices), np.empty_like(values)
        if _core.order_rows(indptr, indices, values, *ordered, n_threads):
            indices, values = ordered
        else:
            indptr, indices, values = _without_duplicates(csr)
    return _core.csr(values, indices, indptr, csr.shape[1], checked=True), (indptr, indices)


def _check_indices(indptr: Any, indices: Any, n_cols: int, n_threads: int) -> bool:
    """Return whether the indices of each row increase; raise ValueError if one is outside the matrix."""
    in_order, bad_row, bad_index = _core.check_indices(indptr, indices, n_cols, n_threads)
    if bad_row >= 0:
        raise ValueError(f"X has index {bad_index} in row {bad_row}; indices must lie between 0 and {n_cols - 1}")
    return in_order


def _without_duplicates(csr: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    csr = csr.copy()
    csr.has_sorted_indices = False
    csr.has_canonical_format = False
    csr.sum_duplicates()
    return np.ascontiguousarray(csr.indptr, dtype=np.int64), csr.indices, np.ascontiguousarray(_as_float(csr.data))
