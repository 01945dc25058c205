"""Coarse numbers: answers are rounded to a grid that is as coarse as the certificate can stand."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmrm.regularizers import Regularizer, Zero
from bmrm.risks.base import Array


def step_for(regularizer: Regularizer, lam: float, level: float, dim: int, coarse: float) -> float:
    """Return the step q of an owner's grid, a power of two; 0 for exact numbers.

    Rounding costs the lower bound e (1 + rho) with e = q / 2 and rho = max |w|_1 over lam Omega(w) <= level (see
    `OwnerParts`). q is the largest power of two with a cost of at most coarse * level.

    Parameters
    ----------
    regularizer : Regularizer
        Bound to the length of w.
    lam : float
    level : float
        R_s(0) - floor of the owner.
    dim : int
        Length of w.
    coarse : float
        The cost accepted, as a share of the level.

    Examples
    --------
    >>> from bmrm.owners.quantize import step_for
    >>> from bmrm.regularizers import get
    >>> step_for(get("l2").bind(8, ()), 1.0, 1.0, 8, 0.25)  # rho = 4
    0.0625
    """
    if coarse <= 0.0 or level <= 0.0 or isinstance(regularizer, Zero):
        return 0.0
    rho = regularizer.reach(np.ones(dim), level / lam)
    return float(np.exp2(np.floor(np.log2(2.0 * coarse * level / (1.0 + rho)))))


def rounded(x: Any, q: float) -> Any:
    """Return x rounded to the nearest multiple of q; x itself for q = 0."""
    return np.rint(np.asarray(x) / q) * q if q > 0.0 else x


def rounded_down(x: float, q: float) -> float:
    """Return the largest multiple of q that is at most x; x itself for q = 0."""
    return float(np.floor(x / q) * q) if q > 0.0 else x


def rounded_up(x: float, q: float) -> float:
    """Return at least x and q, with three significant bits: the size of an error, not its digits."""
    x = max(x, q)
    if not x > 0.0:
        return 0.0
    unit = 0.25 * float(np.exp2(np.floor(np.log2(x))))
    return float(np.ceil(x / unit) * unit)


def normal(a: Array, q: float, free: tuple[int, ...]) -> Array:
    """Return a subgradient on the grid; free coordinates, the sums of slopes, stay as they are.

    Nothing bounds a free coordinate of w, so nothing could bound what its rounding costs.
    """
    found: Array = rounded(a, q)
    if q > 0.0 and free:
        found[list(free)] = a[list(free)]
    return found
