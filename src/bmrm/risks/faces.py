"""The minimum of a quadratic model plus absolute values on a face: the signs of the coordinates are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from bmrm.risks.base import Array

Factored: TypeAlias = Callable[[Array, float], Callable[[Array], Array]]
Parts: TypeAlias = tuple[Array, Array, Array, Array]

_RIDGE = 1e-9  # of a matrix with diagonal 1: keeps steps short in the directions that columns alike leave open
_REFINEMENTS = 3  # what the ridge has changed is made good where it matters
_TURNS = 6


def to_face(H: Array, slope: Array, parts: Parts, z: Array, factored: Factored) -> Array:
    """Return z moved toward argmin of <slope, p> + p'Hp/2 + sum_j u_j |z_j + p_j| + v_j (z_j + p_j)^2 / 2.

    A coordinate that would change its sign becomes 0 and stays there; the objective falls, or z stays.

    Parameters
    ----------
    H : array (k, k)
    slope : array (k,)
        The gradient of the quadratic at z.
    parts : tuple of arrays (k,)
        u, v and the bounds.
    z : array (k,)
        Where the model is expanded.
    factored : callable
        Returns a function that solves with a matrix and a ridge.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.risks.faces import to_face
    >>> from bmrm.solvers.cholesky import factored
    >>> parts = np.ones(2), np.zeros(2), np.full(2, -np.inf), np.full(2, np.inf)
    >>> to_face(np.eye(2), np.array([-1.5, 3.0]), parts, np.array([1.0, 0.5]), factored).round(6)
    array([1.5, 0. ])
    """
    z, slope, active = z.copy(), slope.copy(), np.arange(z.size)
    for _ in range(_TURNS):
        if not active.size:
            break
        some = tuple(part[active] for part in parts)
        block = H[np.ix_(active, active)] if active.size < z.size else H
        delta = _step(block, slope[active], some, z[active], factored)  # type: ignore[arg-type]
        if not delta.any():
            break
        z[active] += delta
        slope += H[:, active] @ delta if active.size < z.size else H @ delta
        left = active[(z[active] != 0.0) | (some[0] == 0.0)]
        if left.size == active.size:
            break
        active = left
    return z


def _step(H: Array, slope: Array, parts: Parts, z: Array, factored: Factored) -> Array:
    u, v, lower, upper = parts
    p = _newton(H, slope + v * z + u * np.sign(z), v, factored)
    crossing = (u > 0.0) & ((z + p) * z < 0.0)
    first = float(np.min(-z[crossing] / p[crossing], initial=1.0))
    for t in (1.0, 0.5, 0.25, first):
        to = np.clip(z + t * p, lower, upper)
        to[(u > 0.0) & ((to * z < 0.0) | (np.abs(to) <= 1e-15 * np.abs(z)))] = 0.0
        delta = to - z
        gain = delta @ (slope + 0.5 * (H @ delta) + 0.5 * v * (z + to)) + u @ (np.abs(to) - np.abs(z))
        if gain < 0.0:
            return delta
    return np.zeros_like(z)


def _newton(H: Array, gradient: Array, v: Array, factored: Factored) -> Array:
    """Return -(H + diag v)^-1 gradient, in units in which the diagonal is 1."""
    diagonal = H.diagonal() + v
    c = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    M = H * c[:, None]
    M *= c
    M[np.diag_indices_from(M)] += c * v * c
    right, solve = -c * gradient, factored(M, _RIDGE)
    p = solve(right)
    for _ in range(_REFINEMENTS):
        x = c * p
        p += solve(right - c * (H @ x + v * x))
    return c * p
