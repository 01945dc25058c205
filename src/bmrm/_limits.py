"""Limits of a run, checked before any work."""

from __future__ import annotations

import os
from functools import cache

import numpy as np


def check_limits(tol: float, max_iter: int | None, max_seconds: float | None, seed: int = 0) -> None:
    """Raise one clear error if a limit of a run is not a number in its range."""
    if not (_is_number(tol) and np.isfinite(tol) and tol >= 0.0):
        raise ValueError(f"tol must be a number of at least 0, got {tol!r}")
    if max_iter is not None and not (_is_whole(max_iter) and max_iter >= 1):
        raise ValueError(f"max_iter must be a whole number of at least 1, or None, got {max_iter!r}")
    if max_seconds is not None and not (_is_number(max_seconds) and max_seconds > 0.0):
        raise ValueError(f"max_seconds must be a number above 0, or None, got {max_seconds!r}")
    if not (_is_whole(seed) and seed >= 0):
        raise ValueError(f"seed must be a whole number of at least 0, got {seed!r}")


def check_length(n: int, what: str, several: int = 1) -> None:
    """Raise ValueError if several vectors of n float64 numbers would not fit in this machine's memory."""
    most = _memory() // (8 * several)
    if n > most:
        raise ValueError(
            f"{what} asks for vectors of {n} numbers, {8e-9 * n:.3g} GB each, but this machine has "
            f"{1e-9 * _memory():.3g} GB of memory; expected at most {most} numbers"
        )


@cache
def _memory() -> int:
    """Return the bytes of physical memory; where the system does not tell, all that can be addressed."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 47


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
