"""Sparse matrices of SciPy, imported when the first one is needed: that takes longer than the rest of the package.

SciPy trusts the indices of a matrix: a wrong one ends the process. So indices are checked before SciPy or the core
reads a matrix of a user.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from bmrm import _core

if TYPE_CHECKING:
    from scipy.sparse import coo_array, csr_array, vstack

__all__ = ["coo_array", "csr_array", "issparse", "rows_of", "vstack"]


def issparse(x: Any) -> bool:
    """Whether x is a sparse matrix or array; there are none before SciPy's module is imported."""
    return "scipy.sparse" in sys.modules and bool(sys.modules["scipy.sparse"].issparse(x))


def rows_of(X: Any, name: str = "X") -> Any:
    """Return a sparse matrix as compressed rows, of the same type of container, with indices within its shape.

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> from bmrm._sparse import rows_of
    >>> X = csc_array([[1.0, 0.0], [0.0, 1.0]])
    >>> X.indices[1] = 7
    >>> rows_of(X)
    Traceback (most recent call last):
    ValueError: X has row index 7 in column 1; it must lie between 0 and 1
    """
    if len(X.shape) != 2:
        raise ValueError(f"{name} must have two dimensions (rows, columns), got shape {X.shape}")
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X, name)
    elif X.format == "coo":
        for axis, indices in zip(("row", "column"), (X.row, X.col)):
            size = X.shape[axis == "column"]
            wrong = indices[(indices < 0) | (indices >= size)]
            if wrong.size:
                raise ValueError(f"{name} has {axis} index {wrong[0]}; it must lie between 0 and {size - 1}")
    rows = X.tocsr()
    if X.format in ("lil", "dok"):
        _check_compressed(rows, name)
    return rows


def _check_compressed(X: Any, name: str) -> None:
    """Raise ValueError unless pointers and indices fit the shape of a matrix of compressed rows, columns or blocks."""
    height, width = getattr(X, "blocksize", (1, 1))
    (major, m), (minor, n) = ("row", X.shape[0] // height), ("column", X.shape[1] // width)
    if X.format == "csc":
        (major, m), (minor, n) = (minor, n), (major, m)
    pointers, indices = np.ascontiguousarray(X.indptr, np.int64), np.ascontiguousarray(X.indices)
    if pointers.size != m + 1:
        raise ValueError(f"{name} has {pointers.size} pointers (indptr); expected {m + 1}, one more than {major}s")
    if len(X.data) != indices.size:
        raise ValueError(f"{name} has {len(X.data)} values and {indices.size} indices; expected as many")
    if indices.dtype not in (np.int32, np.int64):
        indices = indices.astype(np.int64)
    try:
        _, at, wrong = _core.check_indices(pointers, indices, n)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if at >= 0:
        raise ValueError(f"{name} has {minor} index {wrong} in {major} {at}; it must lie between 0 and {n - 1}")


def __getattr__(name: str) -> Any:
    """Return what scipy.sparse has under that name."""
    if name in __all__:
        return getattr(import_module("scipy.sparse"), name)
    raise AttributeError(f"module 'bmrm._sparse' has no attribute {name!r}")
