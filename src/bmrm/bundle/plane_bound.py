"""The lower bound of min J that a single plane proves, where a solver has one as good as a master's combination."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmrm._states import kept
from bmrm.bundle.box import FreeBox
from bmrm.bundle.charges import charged_dual, rounded_dual
from bmrm.bundle.planes import Array, Bundle
from bmrm.regularizers.base import Separable


@kept
class PlaneBound:
    """min over w of lam Omega(w) + <theta a, w> + b(theta), for the largest theta <= 1 where it is finite.

    What a plane has of a slope in a free direction is charged against a box, which other planes prove.

    Parameters
    ----------
    regularizer : Separable
        Bound to the problem's length.
    """

    def __init__(self, regularizer: Separable) -> None:
        self.regularizer = regularizer
        self._box = FreeBox(regularizer)

    @property
    def open(self) -> list[int]:
        """The free coordinates whose charge spoiled the last bound: planes from both sides of them help."""
        return [int(j) for j in self._box.open]

    def of(
        self,
        bundle: Bundle,
        lam: float,
        upper: float,
        a: Array,
        offset: Callable[[float], float],
        steepness: float,
        near: Array,
    ) -> tuple[float, float]:
        """Return the bound and theta.

        Parameters
        ----------
        bundle : Bundle
            Planes that give the box.
        upper : float
            An upper bound of min J.
        a : array
            The plane's normal.
        offset : callable
            b as a function of theta.
        steepness : float
            Of the plane.
        near : array
            A point near the minimizer.
        """
        most = self.regularizer.largest_multiple(a, lam)
        box = self._around(bundle, lam, upper, most * a)
        errors = bundle.errors_of(steepness)
        b = offset(1.0) if most == 1.0 else -np.inf  # an offset is a sum over the rows: not one that bounds nothing
        charged = charged_dual(self.regularizer, lam, a, b, box, errors, upper, near)
        theta = self.regularizer.largest_multiple(charged.c, lam)
        if theta == 1.0:
            return charged.bound, theta
        b = offset(theta) - theta * charged.charge
        return rounded_dual(self.regularizer, lam, theta * charged.c, b, box), theta

    def _around(self, bundle: Bundle, lam: float, upper: float, c: Array) -> Array | float:
        free = self.regularizer.free
        if not free.size:
            return np.inf
        level = max(upper - bundle.floor, 0.0) / lam

        def reach() -> Array:
            return np.array([self.regularizer.reach(a, level) for a in bundle.normals])

        alpha = np.full(len(bundle), 1.0 / max(1, len(bundle)))
        return self._box.around(bundle, lam, upper, reach, alpha, c[free])
