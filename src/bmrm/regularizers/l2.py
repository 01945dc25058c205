"""Half the squared Euclidean norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm import _core
from bmrm._cached import cached_property
from bmrm._traits import Trait
from bmrm.regularizers.base import Along, Array, Separable


@dataclass(frozen=True, eq=False)
class L2(Separable, name="l2"):
    """1/2 sum_j weights_j w_j^2: ridge, the support vector machine's margin.

    Smooth and strongly convex (but for free coordinates); its master problem is a quadratic program on the
    simplex. See `Separable` for weights and bounds.

    Parameters
    ----------
    weights : array-like, optional
        One number >= 0 for each coordinate; 0 leaves a coordinate unpenalized.
    bounds : pair, optional
        (lower, upper) for w.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.regularizers.L2().value(np.array([3.0, 4.0]))
    12.5

    References
    ----------
    S08 corollary 3, T07 eq. 12.
    """

    traits = frozenset({Trait.ELASTIC, Trait.PURE, Trait.SMOOTH_REGULARIZER, Trait.QUADRATIC, Trait.STRONGLY_CONVEX})

    @cached_property
    def parts(self) -> tuple[Array, Array]:
        """Weights of the absolute values and of the halved squares."""
        return np.zeros_like(self.s), self.s

    def value(self, w: Array) -> float:
        """Return Omega(w); +inf outside the bounds."""
        return 0.5 * self._square(w) if self.inside(w) else np.inf

    def _square(self, w: Array) -> float:
        if self.s.size == 1:  # no vector as long as w is made on the way
            return float(self.s.item()) * _core.inner(w, w)
        return _core.inner(self.s * w, w)

    def subgradient(self, w: Array) -> Array:
        """Return the gradient weights * w."""
        return self.s * w

    def extreme(self, w: Array, d: Array) -> Array:
        """Return the gradient: there is only one."""
        return self.s * w

    def along(self, w: Array, d: Array) -> Along:
        """Return the parabola t -> Omega(w + t d)."""
        sd = self.s * d
        return Along(0.5 * self._square(w), _core.inner(sd, w), _core.inner(sd, d))

    def prox(self, v: Array, step: float) -> Array:
        """Return v / (1 + step * weights), within the bounds."""
        return self.clip(v / (1.0 + step * self.s))

    def dual(self, c: Array, lam: float, box: Array | float = np.inf) -> tuple[float, Array]:
        """Return min lam Omega(w) + <c, w> and its minimizer clip(-c / (lam weights))."""
        if self.bounds is None and Trait.FREE_COORDINATES not in self.traits and np.ndim(box) == 0 and np.isinf(box):
            w = c / (-lam * self.s)
            return 0.5 * _core.inner(c, w), w
        return self._elastic_dual(c, lam, box)

    def rescaled(self, c: Array) -> Separable:
        """Return the weights times c^2."""
        return self._in_units(c, self.s * c * c)

    def reach(self, a: Array, level: float) -> float:
        """Return sqrt(2 level) times the dual norm of a."""
        s = np.broadcast_to(self.s, a.shape)
        return float(np.sqrt(2.0 * max(level, 0.0) * np.sum(a[s > 0] ** 2 / s[s > 0])))
