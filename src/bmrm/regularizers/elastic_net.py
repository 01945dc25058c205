"""Absolute values and squares together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm import _core
from bmrm._cached import cached_property
from bmrm._traits import Trait
from bmrm.regularizers.base import Along, Array, Separable


@dataclass(frozen=True, eq=False)
class ElasticNet(Separable, name="elastic_net"):
    """sum_j weights_j (r |w_j| + (1 - r) w_j^2 / 2): sets coordinates to 0, and shares among equal columns.

    r = 1 is `l1` and r = 0 is `l2`, in everything. In between it is strongly convex (but for free coordinates) and
    its master problem is a piecewise quadratic dual on the simplex, solved by quadratic programs. See `Separable`
    for weights and bounds.

    Parameters
    ----------
    weights : array-like, optional
        One number >= 0 for each coordinate; 0 leaves a coordinate unpenalized.
    bounds : pair, optional
        (lower, upper) for w.
    r : float
        The share of the absolute values, between 0 and 1.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.regularizers.ElasticNet(r=0.5).value(np.array([3.0, -4.0]))
    9.75

    References
    ----------
    Zou and Hastie, Regularization and variable selection via the elastic net, 2005.
    """

    r: float = 0.5

    def __post_init__(self) -> None:
        try:
            r = float(self.r)
        except (TypeError, ValueError):
            r = np.nan
        if not 0.0 <= r <= 1.0:
            raise ValueError(f"parameter 'r' of regularizer 'elastic_net' must lie between 0 and 1, got {self.r!r}")
        super().__post_init__()

    def _traits(self) -> frozenset[Trait]:
        found = {Trait.ELASTIC}
        if self.r in (0.0, 1.0):
            found |= {Trait.PURE}
        if self.r < 1.0:
            found |= {Trait.STRONGLY_CONVEX}
        if self.r == 0.0:
            found |= {Trait.SMOOTH_REGULARIZER, Trait.QUADRATIC}
        return super()._traits() | found

    @cached_property
    def parts(self) -> tuple[Array, Array]:
        """Weights of the absolute values and of the halved squares."""
        return self.r * self.s, (1.0 - self.r) * self.s

    def value(self, w: Array) -> float:
        """Return Omega(w); +inf outside the bounds."""
        absolute, square = self.parts
        return float(np.sum((absolute + 0.5 * square * np.abs(w)) * np.abs(w))) if self.inside(w) else np.inf

    def subgradient(self, w: Array) -> Array:
        """Return weights * (r sign(w) + (1 - r) w)."""
        absolute, square = self.parts
        return absolute * np.sign(w) + square * w

    def extreme(self, w: Array, d: Array) -> Array:
        """Return the subgradient with the sign of d where w is 0."""
        absolute, square = self.parts
        return absolute * np.where(w == 0.0, np.sign(d), np.sign(w)) + square * w

    def along(self, w: Array, d: Array) -> Along:
        """Return t -> Omega(w + t d): a parabola and absolute values."""
        absolute, square = self.parts
        sd = square * d
        parabola = 0.5 * float(np.sum(square * w * w)), _core.inner(sd, w), _core.inner(sd, d)
        if self.r == 0.0:
            return Along(*parabola)
        weight = np.ascontiguousarray(np.broadcast_to(absolute, w.shape), dtype=np.float64)
        return Along(*parabola, absolute=(w, d, weight))

    def prox(self, v: Array, step: float) -> Array:
        """Return the soft threshold of v, divided by 1 + step * (the squares' weights), within the bounds."""
        absolute, square = self.parts
        return self.clip(_soft(v, step * absolute) / (1.0 + step * square))

    def dual(self, c: Array, lam: float, box: Array | float = np.inf) -> tuple[float, Array]:
        """Return min lam Omega(w) + <c, w>, at the soft threshold of -c within the bounds."""
        return self._elastic_dual(c, lam, box)

    def reach(self, a: Array, level: float) -> float:
        """Return the largest <a, w>: at w = soft(a, mu r s) / (mu (1 - r) s) for the multiplier mu of the level.

        Any mu > 0 gives a bound, mu level + sum (|a| - mu r s)_+^2 / (2 mu (1 - r) s); the least is exact.
        """
        absolute, square = (np.broadcast_to(part, a.shape)[np.broadcast_to(self.s, a.shape) > 0] for part in self.parts)
        size = np.abs(a[np.broadcast_to(self.s, a.shape) > 0])
        if not (size.any() and level > 0.0):
            return 0.0
        if self.r == 1.0:
            return level * float(np.max(size / absolute))

        def bound(mu: float) -> float:
            return mu * level + float(np.sum(np.maximum(size - mu * absolute, 0.0) ** 2 / square)) / (2.0 * mu)

        # At this mu the absolute values are left out: the true one lies below it.
        low, high = -60.0, float(np.log(np.sqrt(np.sum(size**2 / square) / (2.0 * level)) * (1.0 + 1e-9)))
        low = high + low
        for _ in range(200):
            first, second = low + (high - low) / 3.0, high - (high - low) / 3.0
            low, high = (low, second) if bound(float(np.exp(first))) <= bound(float(np.exp(second))) else (first, high)
        return bound(float(np.exp(0.5 * (low + high)))) * (1.0 + 1e-12)

    def largest_multiple(self, c: Array, lam: float) -> float:
        """Return 1, unless there are no squares: then as for `l1`."""
        if self.r < 1.0:
            return 1.0
        s = np.broadcast_to(self.s, c.shape)
        violated = (s > 0) & (np.abs(c) > lam * s) & ~np.isfinite(np.where(c > 0, self.lower, self.upper))
        return float(np.min(lam * s[violated] / np.abs(c[violated]), initial=1.0)) * (1.0 - 1e-15 * violated.any())


def _soft(v: Array, threshold: Array) -> Array:
    """Return v moved toward 0 by the threshold, at most to 0."""
    moved: Array = np.sign(v) * np.maximum(0.0, np.abs(v) - threshold)
    return moved
