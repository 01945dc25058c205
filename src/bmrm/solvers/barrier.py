"""What an interior-point method keeps for terms max over 0 <= theta <= J of theta a - c theta^2 / 2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm._states import kept
from bmrm.risks.base import Array

_WELL_INSIDE = 1e-3


@dataclass
class Direction:
    """A step in all variables of a barrier."""

    theta: Array
    u: Array
    v: Array


@kept
class Barrier:
    """Primal and dual variables of many terms, all positive, with u - v + c theta = a, theta + eta = J.

    At the solution theta v = 0 and eta u = 0; on the central path both products are mu. Where J is infinite there
    is no u.

    Parameters
    ----------
    a : array
        The arguments of the terms at the start.
    jump, give : arrays that broadcast against a
        J and c.
    share : array that broadcasts against a
        Where in [0, J] theta begins, as a share of J; it is kept away from both ends.
    mu : float or array
        The products theta v and eta u at the start, for terms with an end and for walls.
    room : array, optional
        The least v at the start of walls, the terms with neither end nor give: a <= 0 is demanded there.
    """

    def __init__(
        self, a: Array, jump: Array, give: Array, share: Array, mu: Array | float, room: Array | float = 1.0
    ) -> None:
        finite = np.broadcast_to(np.isfinite(jump), a.shape)
        self.finite, self.give = finite, np.broadcast_to(give, a.shape)
        share = np.clip(share, 0.05, 0.95)
        J = np.where(finite, jump, 1.0)
        shift = 0.5 * float(np.sum(np.abs(a))) / max(a.size, 1) or 1.0
        wall = ~finite & (self.give == 0.0)
        distance = np.where(wall, np.maximum(-a, room), 1.0)
        ramp = (np.maximum(a, 0.0) + shift) / np.where(self.give > 0.0, self.give, 1.0)
        self.theta = np.where(finite, share * J, np.where(wall, mu / distance, ramp))
        self.eta = np.where(finite, (1.0 - share) * J, 1.0)
        self.u = np.where(finite, mu / self.eta, 0.0)
        self.v = np.where(finite, mu / self.theta, np.where(wall, distance, self.give * self.theta - a))
        self.pairs = self.theta.size + int(np.count_nonzero(finite))

    def products(self) -> Array:
        """Return theta v + eta u."""
        products: Array = self.theta * self.v + self.eta * self.u
        return products

    def stiffness(self) -> Array:
        """Return d theta / d a along the central path: the terms' part of the Newton matrix."""
        with np.errstate(over="ignore"):  # a term at its end has no stiffness left
            stiffness: Array = 1.0 / (self.u / self.eta + self.v / self.theta + self.give)
        return stiffness

    def push(self, a: Array, target: Array | float, affine: Direction | None) -> tuple[Array, Array, Array]:
        """Return the right-hand sides of theta v = target, eta u = target, and what both do to a.

        Parameters
        ----------
        affine : Direction, optional
            The predictor, whose second-order terms are taken into account.
        """
        first, second = target - self.theta * self.v, target - self.eta * self.u
        if affine is not None:
            first, second = first - affine.theta * affine.v, second + affine.u * affine.theta
        second = np.where(self.finite, second, 0.0)
        residual = a - self.give * self.theta - self.u + self.v
        return first, second, residual - second / self.eta + first / self.theta

    def direction(self, da: Array, pushed: tuple[Array, Array, Array], stiffness: Array) -> Direction:
        """Return the step of all variables when the arguments move by da."""
        first, second, push = pushed
        theta = stiffness * (da + push)
        u = np.where(self.finite, (second + self.u * theta) / self.eta, 0.0)
        return Direction(theta, u, (first - self.v * theta) / self.theta)

    def longest(self, d: Direction) -> float:
        """Return the largest step that keeps everything positive."""
        longest = min(_room(self.theta, d.theta), _room(self.v, d.v))
        u, eta = np.where(self.finite, self.u, 1.0), np.where(self.finite, -d.theta, 0.0)
        return min(longest, _room(u, d.u), _room(self.eta, eta))

    def move(self, t: float, d: Direction) -> None:
        """Take the step."""
        self.theta = self.theta + t * d.theta
        self.eta = np.where(self.finite, self.eta - t * d.theta, 1.0)
        self.u, self.v = self.u + t * d.u, self.v + t * d.v

    def products_after(self, t: float, d: Direction) -> Array:
        """Return theta v + eta u after the step."""
        eta = np.where(self.finite, self.eta - t * d.theta, 1.0)
        return (self.theta + t * d.theta) * (self.v + t * d.v) + eta * (self.u + t * d.u)


class CoordinateTerms:
    """Absolute values and bounds of single coordinates as terms of sign (w_j - knot).

    u |w_j| is -u w_j and a kink of 2 u at 0; a bound is a wall, a kink without an end.

    Parameters
    ----------
    absolute : array
        The weights u.
    lower, upper : arrays
        The bounds; where both are equal, there is nothing to decide and no wall.
    """

    def __init__(self, absolute: Array, lower: Array, upper: Array) -> None:
        signed, apart = np.flatnonzero(absolute), lower < upper
        below, above = np.flatnonzero(np.isfinite(lower) & apart), np.flatnonzero(np.isfinite(upper) & apart)
        self.slopes: Array = -absolute
        self.j = np.concatenate([signed, below, above])
        self.sign = np.repeat([1.0, -1.0, 1.0], [signed.size, below.size, above.size])
        self.knot = np.concatenate([np.zeros(signed.size), lower[below], upper[above]])
        self.jump = np.concatenate([2.0 * absolute[signed], np.full(below.size + above.size, np.inf)])
        self.width: Array = upper - lower

    def along(self, w: Array) -> Array:
        """Return sign (w_j - knot) for each term."""
        a: Array = self.sign * (w[self.j] - self.knot)
        return a

    def gathered(self, values: Array, d: int) -> Array:
        """Return the sum of the terms' values for each coordinate."""
        return np.bincount(self.j, values, d).astype(np.float64)

    def settled(self, w: Array, barrier: Barrier) -> Array:
        """Return w with the coordinates at their knot whose multipliers say that they will end there.

        These are kinks with theta well inside [0, J], and walls at which theta has outgrown what v is of w.
        """
        share = barrier.theta / np.where(barrier.finite, self.jump, 1.0)
        kink = barrier.finite & (share > _WELL_INSIDE) & (share < 1.0 - _WELL_INSIDE)
        wall = ~barrier.finite & (barrier.v < 1e-6 * np.abs(w[self.j]))
        at = kink | wall
        w = w.copy()
        w[self.j[at]] = self.knot[at]
        return w

    def barrier(self, w: Array, scale: Array, mu: float) -> Barrier:
        """Return the variables at the start.

        Parameters
        ----------
        scale : array
            How far each coordinate may be expected to move.
        mu : float
            The products theta v and eta u at the start.
        """
        room = np.minimum(0.1 * (np.abs(w) + scale), 0.25 * self.width)[self.j]
        a = self.along(w)
        return Barrier(a, self.jump, np.zeros_like(a), 0.5 * (1.0 + a), mu, room)


def _room(x: Array, dx: Array) -> float:
    """Return the step at which the first x + t dx is 0."""
    fastest = float(np.max(dx / -x, initial=0.0))
    return 1.0 / fastest if fastest > 0.0 else np.inf
