"""How much a loss of several rows can grow where its scores are a little wrong: what rounding may have hidden.

Slopes at the scores do not tell: a loss that compares scores is flat where they differ by enough, and all of that
difference may be a rounding error. Each loss moves the scores the way that is worst for it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmrm.losses.base import Array
from bmrm.losses.sets import Grades

_EPS = float(np.finfo(np.float64).eps)


def rise(before: float, after: float) -> float:
    """Return after - before, at least 0, with what rounding may have taken off it."""
    return max(0.0, after - before) + 4.0 * _EPS * abs(after)


def largest_pair_slopes(grades: Grades, share: Array, weight: Array | None) -> float:
    """Return a bound of the norm of the slopes of a pair loss: no row loses more than its pairs with one side."""
    p = np.ones(grades.rows.size) if weight is None else weight[grades.rows]
    here = np.add.reduceat(p, grades.blocks[:-1])
    n_blocks, first = np.diff(grades.queries), grades.queries[:-1]
    before = np.cumsum(here) - here
    lower = before - np.repeat(before[first], n_blocks)
    higher = np.repeat(np.add.reduceat(here, first), n_blocks) - lower - here
    pairs = np.add.reduceat(here * lower, first)
    each = np.divide(share, pairs, out=np.zeros_like(share), where=pairs > 0.0)
    most = np.repeat(each, n_blocks) * np.maximum(lower, higher)
    return float(np.linalg.norm(p * np.repeat(most, np.diff(grades.blocks))))


def with_wider_margin(value: Callable[[Array], float], scores: Array, e: float) -> float:
    """Return the sum of max(0, s - (f_i - f_j)) with s = 1 + 3e: that of the margin 1 at scores wrong by e, or more.

    It is s times the loss at f / s. Two scores are wrong by 2e; the rest is for the rounding of f / s.
    """
    s = 1.0 + 3.0 * e
    return s * value(scores / s)
