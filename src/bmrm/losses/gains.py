"""NDCG@k: what a document is worth by its grade, and what its rank leaves of that."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmrm.losses.base import Array, in_domain

_LARGEST_GRADE = 1000.0  # 2^grade is a number


def gains(grades: Array) -> Array:
    """Return 2^grade - 1."""
    return np.asarray(np.exp2(grades) - 1.0)


def discounts(n: int, k: int) -> Array:
    """Return 1 / log2(1 + rank) for the ranks 1 ... n, and 0 beyond k."""
    ranks = np.arange(n)
    return np.where(ranks < k, 1.0 / np.log2(2.0 + ranks), 0.0)


def check_gradable(y: Array, loss: str) -> None:
    """Raise unless all gains are numbers."""
    accepted = f"grades from 0 to {_LARGEST_GRADE:g} ('pairwise_rank' takes any numbers)"
    in_domain(y, (y >= 0.0) & (y <= _LARGEST_GRADE), accepted, loss)


def check_ranks(k: Any, loss: str) -> None:
    """Raise unless k is a number of ranks."""
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise ValueError(f"parameter 'k' of loss '{loss}' must be a whole number of at least 1, got {k!r}")
