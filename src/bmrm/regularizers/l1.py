"""The sum of absolute values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm._cached import cached_property
from bmrm._traits import Trait
from bmrm.regularizers.base import Along, Array, Separable


@dataclass(frozen=True, eq=False)
class L1(Separable, name="l1"):
    """sum_j weights_j |w_j|: the lasso's regularizer, which sets coordinates to 0.

    Its master problem is a linear program. See `Separable` for weights and bounds.

    Parameters
    ----------
    weights : array-like, optional
        One number >= 0 for each coordinate; 0 leaves a coordinate unpenalized.
    bounds : pair, optional
        (lower, upper) for w.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.regularizers.L1().value(np.array([3.0, -4.0]))
    7.0

    References
    ----------
    T07 eq. 11.
    """

    traits = frozenset({Trait.ELASTIC, Trait.PURE})

    @cached_property
    def parts(self) -> tuple[Array, Array]:
        """Weights of the absolute values and of the halved squares."""
        return self.s, np.zeros_like(self.s)

    def value(self, w: Array) -> float:
        """Return Omega(w); +inf outside the bounds."""
        return float((self.s * np.abs(w)).sum()) if self.inside(w) else np.inf

    def subgradient(self, w: Array) -> Array:
        """Return weights * sign(w)."""
        return self.s * np.sign(w)

    def extreme(self, w: Array, d: Array) -> Array:
        """Return weights * sign(w), with the sign of d where w is 0."""
        return self.s * np.where(w == 0.0, np.sign(d), np.sign(w))

    def along(self, w: Array, d: Array) -> Along:
        """Return the piecewise linear t -> Omega(w + t d)."""
        weight = np.ascontiguousarray(np.broadcast_to(self.s, w.shape), dtype=np.float64)
        return Along(0.0, 0.0, 0.0, absolute=(w, d, weight))

    def prox(self, v: Array, step: float) -> Array:
        """Return the soft threshold of v, within the bounds."""
        return self.clip(np.sign(v) * np.maximum(0.0, np.abs(v) - step * self.s))

    def dual(self, c: Array, lam: float, box: Array | float = np.inf) -> tuple[float, Array]:
        """Return min lam Omega(w) + <c, w>: 0 where |c| <= lam weights, else at a bound."""
        return self._elastic_dual(c, lam, box)

    def rescaled(self, c: Array) -> Separable:
        """Return the weights times c."""
        return self._in_units(c, self.s * c)

    def reach(self, a: Array, level: float) -> float:
        """Return level times the largest |a_j| / weight_j."""
        s = np.broadcast_to(self.s, a.shape)
        return max(level, 0.0) * float(np.max(np.abs(a[s > 0]) / s[s > 0], initial=0.0))

    def largest_multiple(self, c: Array, lam: float) -> float:
        """Return min(1, lam weight_j / |c_j|) over the penalized coordinates that no bound holds."""
        s = np.broadcast_to(self.s, c.shape)
        unbounded = np.where(c > 0, self.lower, self.upper)
        violated = (s > 0) & (np.abs(c) > lam * s) & ~np.isfinite(unbounded)
        if not violated.any():
            return 1.0
        theta = float(np.min(lam * s[violated] / np.abs(c[violated])))
        return theta * (1.0 - 1e-15)
