"""What models ask of their inputs: errors that name the example, and token attributes as arrays of one kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from bmrm import _sparse as sparse

T = TypeVar("T")


def each(X: Sequence[Any], checked: Callable[[Any], T]) -> list[T]:
    """Return checked(x) for all x; an error says which example it is about."""
    found = []
    for i, x in enumerate(X):
        try:
            found.append(checked(x))
        except ValueError as error:
            raise ValueError(f"example {i}: {error}") from None
    return found


def attributes(x: Any, n_attributes: int) -> Any:
    """Return one row of finite numbers for each token, as a C-ordered array or as compressed rows."""
    is_sparse = sparse.issparse(x)
    if is_sparse:
        rows: Any = sparse.csr_array(sparse.rows_of(x, "x"), dtype=np.float64)
    else:
        rows = np.ascontiguousarray(x, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != n_attributes:
        raise ValueError(f"x has shape {rows.shape}, expected (tokens, {n_attributes})")
    if rows.shape[0] == 0:
        raise ValueError("x has no tokens")
    if not np.isfinite(rows.data if is_sparse else rows).all():
        dense = rows.toarray() if is_sparse else rows
        raise ValueError(f"x is not finite at token {int(np.flatnonzero(~np.isfinite(dense).all(axis=1))[0])}")
    return rows
