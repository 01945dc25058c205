"""A proven box for the coordinates that nothing penalizes.

A combination of planes bounds J only if its slope in every free direction is 0. In floating point it is merely
tiny, and a tiny slope in a free direction proves nothing, unless the minimizer is known to lie in a box: then
slope times box is all that is lost. The planes themselves give the box: wherever J(w) <= upper,
    <a_i, w> + b_i <= R(w) <= upper - lam Omega(w)
and the penalized part of w is bounded because lam Omega(w) is, so each plane is an inequality for the free part.
"""

from __future__ import annotations

import numpy as np

from bmrm.bundle.planes import Array, Bundle
from bmrm.regularizers.base import Separable


class FreeBox:
    """Remembers the box of one problem's free coordinates: once proved it stays valid, and is only made smaller.

    Parameters
    ----------
    regularizer : Separable
        Bound to the problem's length.
    """

    def __init__(self, regularizer: Separable) -> None:
        self.free = regularizer.free
        self._inside: Array = np.empty(0)
        if self.free.size:
            sides = (regularizer.lower, regularizer.upper)
            ends = [np.abs(np.broadcast_to(side, regularizer.s.shape))[self.free] for side in sides]
            self._inside = np.maximum(*ends)
        self._box = self._inside.copy()
        self._problem: tuple[float, float] = (0.0, 0.0)

    def around(self, bundle: Bundle, lam: float, upper: float, reach: Array, slopes: Array) -> Array:
        """Return a bound of |w_j| at the minimizer of J for every coordinate, infinite for the penalized ones.

        Parameters
        ----------
        upper : float
            An upper bound of min J.
        reach : array (k,)
            For each plane, a bound of |<a_i, w>| over the penalized coordinates of the minimizer.
        slopes : array
            What will be charged against the box: a better box is sought only if the charge matters.
        """
        if lam != self._problem[0]:
            self._box = self._inside.copy()
        sloped = slopes != 0.0
        charge = float(np.abs(slopes[sloped]) @ self._box[sloped])
        if not charge <= 1e-13 * abs(upper):
            self._box = np.minimum(self._box, self._from_planes(bundle, upper, reach))
        self._problem = (lam, upper)
        box = np.full(bundle.dim, np.inf)
        box[self.free] = self._box
        return box

    def _from_planes(self, bundle: Bundle, upper: float, reach: Array) -> Array:
        if not (np.isfinite(upper) and np.isfinite(reach).all()):
            return self._box
        E, room = bundle.normals[:, self.free], upper - bundle.offsets + reach
        return _interval(E[:, 0], room) if self.free.size == 1 else _polytope(E, room)


def _interval(slopes: Array, room: Array) -> Array:
    """One free coordinate v: slopes_i v <= room_i for all i."""
    ends = [float(np.min(room[side] / np.abs(slopes[side]), initial=np.inf)) for side in (slopes > 0, slopes < 0)]
    return np.array([max(0.0, *ends)])


def _polytope(E: Array, room: Array) -> Array:
    """Several: the largest |v_j| over the polytope E v <= room, by two small linear programs for each j."""
    directions = np.concatenate([np.eye(E.shape[1]), -np.eye(E.shape[1])])
    ends = np.array([_extent(E, room, c) for c in directions])
    box: Array = 1.01 * np.maximum(ends[: E.shape[1]], ends[E.shape[1] :])
    return box


def _extent(E: Array, room: Array, c: Array) -> float:
    from scipy.optimize import linprog

    answer = linprog(-c, A_ub=E, b_ub=room, bounds=(None, None), method="highs")
    return np.inf if answer.fun is None or answer.status != 0 else abs(float(answer.fun))
