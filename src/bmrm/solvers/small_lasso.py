"""A quadratic model plus absolute values, minimized by an interior-point method: few coordinates, any condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from bmrm.risks.base import Array
from bmrm.solvers.barrier import Barrier, Direction
from bmrm.solvers.cholesky import factored

Solve: TypeAlias = Callable[[Array], Array]

MOST_COORDINATES = 500
_STEPS = 60
_RIDGE = 1e-14
_TOWARD_END = 0.995


def minimize(H: Array, g: Array, w: Array, u: Array, v: Array) -> Array:
    """Return argmin over z of <g, z - w> + (z - w)'H(z - w)/2 + sum_j u_j |z_j| + v_j z_j^2/2.

    Coordinate descent needs as many epochs as H has condition; this needs about 20 factorizations. It works in
    units in which the diagonal is 1. Coordinates that end next to 0, with their multiplier inside its range, are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.solvers.small_lasso import minimize
    >>> minimize(np.eye(2), np.array([-3.0, 0.5]), np.zeros(2), np.ones(2), np.zeros(2)).round(6)
    array([2., 0.])
    """
    diagonal = np.diag(H) + v
    c = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    program = _Program(c[:, None] * H * c + np.diag(c * v * c), c * (g + v * w), w / c, c * u)
    for _ in range(_STEPS):
        if not program.advance():
            break
    return c * program.rounded()


class _Program:
    """<g, z - w> + (z - w)'H(z - w)/2 + sum u |z|, where H holds all squares."""

    def __init__(self, H: Array, g: Array, w: Array, u: Array) -> None:
        self.H, self.u, self.signed = H, u, np.flatnonzero(u)
        self.right = H @ w - g  # the gradient is H z - right
        self.scale = float(np.abs(self.right).max(initial=0.0)) + float(u.max(initial=0.0)) or 1.0
        self.z = w.copy()
        jump = 2.0 * u[self.signed]
        a = self.z[self.signed]
        size = max(float(np.abs(a).mean()) if a.size else 0.0, self.scale)
        share = 0.5 * (1.0 + a / (np.abs(a) + size))
        self.barrier = Barrier(a, jump, np.zeros_like(jump), share, 0.25 * size * jump)

    def advance(self) -> bool:
        """Take a predictor and a corrector step; False when the minimum is reached."""
        barrier = self.barrier
        mu = float(np.sum(barrier.products())) / max(barrier.pairs, 1)
        if mu <= 1e-15 * self.scale**2 and self._residual() <= 1e-12 * self.scale:
            return False
        stiff = barrier.stiffness()
        M = self.H.copy()
        M[self.signed, self.signed] += stiff
        solve = factored(M, _RIDGE)
        affine = self._direction(solve, stiff, 0.0, None)
        t = min(1.0, barrier.longest(affine[1]))
        after = float(np.sum(barrier.products_after(t, affine[1]))) / max(barrier.pairs, 1)
        target = min(1.0, max(0.0, after / mu)) ** 3 * mu if mu > 0.0 else 0.0
        dz, both = self._direction(solve, stiff, target, affine[1])
        t = min(1.0, _TOWARD_END * barrier.longest(both))
        if not (t > 1e-10 and np.isfinite(dz).all()):
            return False
        self.z = self.z + t * dz
        barrier.move(t, both)
        return mu > 0.0 or t < 1.0

    def rounded(self) -> Array:
        """Return z with 0 for the coordinates whose multiplier is inside its range rather than at an end."""
        barrier, z = self.barrier, self.z.copy()
        inside = np.minimum(barrier.theta, barrier.eta) > 1e3 * np.maximum(barrier.u, barrier.v)
        z[self.signed[inside]] = 0.0
        return z

    def _residual(self) -> float:
        return float(np.abs(self._gradient()).max(initial=0.0))

    def _gradient(self) -> Array:
        gradient = self.H @ self.z - self.right
        gradient[self.signed] += self.barrier.theta - self.u[self.signed]
        return gradient

    def _direction(self, solve: Solve, stiff: Array, mu: float, affine: Direction | None) -> tuple[Array, Direction]:
        pushed = self.barrier.push(self.z[self.signed], mu, affine)
        gradient = self._gradient()
        gradient[self.signed] += stiff * pushed[2]
        dz = -solve(gradient)
        return dz, self.barrier.direction(dz[self.signed], pushed, stiff)
