"""Digests: a few letters that depend on all entries of a matrix, or on all numbers and texts in a value."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np


def entries_digest(matrix: Any, n_threads: int) -> str:
    """Return a digest of the entries of a matrix; of rows that are elsewhere, of what is known of them there.

    Two products with random vectors change with any change of X, and cost less than reading its arrays through a
    digest; a store has the checksums of its blocks, and shards answer for themselves.
    """
    if hasattr(matrix, "identity"):
        return digest(matrix.identity())
    rng = np.random.default_rng(0)
    scores, sums = np.empty(matrix.n_rows), np.empty(matrix.n_cols)
    matrix.dot(rng.uniform(0.5, 1.5, matrix.n_cols), scores, n_threads)
    matrix.tdot(rng.uniform(0.5, 1.5, matrix.n_rows), sums, n_threads)
    return digest((scores, sums))


def digest(value: Any) -> str:
    """Return a few letters that depend on all numbers and texts in the value; '-' for None."""
    if value is None:
        return "-"
    total = hashlib.sha256()
    _feed(total, value)
    return total.hexdigest()[:16]


def _feed(total: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        total.update(f"{value.dtype.str} {value.shape};".encode())
        total.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.ndarray | list | tuple):
        total.update(f"{len(value)}[".encode())
        for item in value:
            _feed(total, item)
    elif isinstance(value, dict):
        _feed(total, sorted((str(key), item) for key, item in value.items()))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _feed(total, [getattr(value, field.name) for field in dataclasses.fields(value)])
    elif value is None or isinstance(value, bool | int | float | str | np.generic):
        total.update(f"{value!r};".encode())
    else:
        total.update(f"{type(value).__name__};".encode())
