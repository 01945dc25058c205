"""Comparisons that explain themselves when they fail."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]


def require(holds: bool | np.bool_, sentence: str) -> None:
    """Raise an AssertionError with that sentence unless the condition holds."""
    if not holds:
        raise AssertionError(sentence)


def require_at_most(smaller: npt.ArrayLike, larger: npt.ArrayLike, slack: npt.ArrayLike, sentence: str) -> None:
    """Raise unless smaller <= larger + slack everywhere; the sentence is completed by the worst violation."""
    excess = np.atleast_1d(np.asarray(smaller, dtype=np.float64) - np.asarray(larger, dtype=np.float64))
    beyond = excess - np.asarray(slack)
    bad = ~(beyond <= 0.0)  # NaN counts as a violation
    if not bad.any():
        return
    worst = np.unravel_index(np.argmax(np.where(np.isnan(beyond), np.inf, beyond)), excess.shape)
    where = f" (row {', '.join(map(str, worst))})" if excess.size > 1 else ""
    raise AssertionError(f"{sentence}: violated by {excess[worst]:.3g}{where}")


def require_close(got: npt.ArrayLike, expected: npt.ArrayLike, slack: npt.ArrayLike, sentence: str) -> None:
    """Raise unless both agree to the slack, or are the same infinity."""
    got, expected = np.asarray(got, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    require(got.shape == expected.shape, f"{sentence}: shape {got.shape} instead of {expected.shape}")
    with np.errstate(invalid="ignore"):
        distance = np.where(got == expected, 0.0, np.abs(got - expected))
    require_at_most(distance, 0.0, slack, sentence)


def require_unchanged(before: Any, after: Any, what: str) -> None:
    """Raise if an array is no longer what it was; anything but arrays is passed over."""
    if isinstance(before, np.ndarray):
        require(np.array_equal(before, after, equal_nan=True), f"{what} was modified in place")


def magnitude(*terms: npt.ArrayLike) -> Any:
    """Return 1 plus the sizes of the terms: what rounding errors are compared with."""
    return 1.0 + sum(np.abs(np.asarray(term, dtype=np.float64)) for term in terms)
