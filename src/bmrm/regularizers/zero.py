"""No regularizer at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bmrm._limits import check_length
from bmrm._traits import Trait
from bmrm.regularizers.base import VECTORS, Along, Array, Regularizer, Separable


@dataclass(frozen=True, eq=False)
class Zero(Separable, name="zero"):
    """sum_j 0 w_j: no penalty, only bounds if there are any; J is the risk itself and lam counts for nothing.

    For reference problems and for risks that need no regularizer. Every coordinate is free: planes prove a bound
    only where a combination of them is flat. If the risk has no lower bound, solvers that search along lines
    find out and end with ``Status.UNBOUNDED``.

    Parameters
    ----------
    weights : None
        There is nothing to weigh: other weights than 0 are refused.
    bounds : pair, optional
        (lower, upper) for w.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.regularizers.Zero().value(np.array([3.0, -4.0]))
    0.0

    References
    ----------
    Y10 appendix E.
    """

    traits = frozenset({Trait.SMOOTH_REGULARIZER})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is not None and np.any(self.s != 0.0):
            raise ValueError("the regularizer 'zero' has no weights; 'l2' and 'l1' have")

    def bind(self, dim: int, unpenalized: Sequence[int] = ()) -> Separable:
        """Return the regularizer with weight 0 for each of dim coordinates."""
        check_length(dim, f"dim={dim}", VECTORS)
        return Separable.bind(replace(self, weights=np.zeros(dim)), dim, unpenalized)

    def value(self, w: Array) -> float:
        """Return 0; +inf outside the bounds."""
        return 0.0 if self.inside(w) else np.inf

    def subgradient(self, w: Array) -> Array:
        """Return 0."""
        return np.zeros_like(w)

    def extreme(self, w: Array, d: Array) -> Array:
        """Return 0."""
        return np.zeros_like(w)

    def along(self, w: Array, d: Array) -> Along:
        """Return the constant 0."""
        return Along(0.0, 0.0, 0.0)

    def prox(self, v: Array, step: float) -> Array:
        """Return v, within the bounds."""
        return self.clip(v)

    def dual(self, c: Array, lam: float, box: Array | float = np.inf) -> tuple[float, Array]:
        """Return min <c, w> over the bounds and the box: -inf unless c is 0 wherever both are open."""
        lower, upper = np.maximum(self.lower, -np.asarray(box)), np.minimum(self.upper, box)
        w = np.clip(np.where(c > 0.0, lower, np.where(c < 0.0, upper, 0.0)), lower, upper)
        return float(np.sum(np.where(c == 0.0, 0.0, c) * np.where(c == 0.0, 0.0, w))), w

    def rescaled(self, c: Array) -> Separable:
        """Return the bounds divided by c."""
        return self._in_units(c, np.zeros(c.shape))

    def reach(self, a: Array, level: float) -> float:
        """Return 0: no coordinate is penalized."""
        return 0.0

    @classmethod
    def examples(cls, dim: int) -> list[Regularizer]:
        """Plain and bounded."""
        return [cls().bind(dim), cls(bounds=(np.full(dim, -0.05), np.full(dim, 0.2))).bind(dim)]
