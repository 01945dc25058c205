"""A proven box for the coordinates that nothing penalizes.

A combination of planes bounds J only if its slope in every free direction is 0. In floating point it is merely
tiny, and a tiny slope in a free direction proves nothing, unless the minimizer is known to lie in a box: then
slope times box is all that is lost. The planes themselves give the box: wherever J(w) <= upper,
    <a_i, w> + b_i <= R(w) <= upper - lam Omega(w)
and the penalized part of w is bounded because lam Omega(w) is, so each plane is an inequality for the free part.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bmrm.bundle.planes import Array, Bundle
from bmrm.regularizers.base import Separable


def free_box(regularizer: Separable, bundle: Bundle, upper: float, reach: Array) -> Array:
    """Return, for each free coordinate, a number that bounds its absolute value at the minimizer of J.

    Parameters
    ----------
    regularizer : Separable
        Bound to the problem's length.
    upper : float
        An upper bound of min J.
    reach : array (k,)
        For each plane, a bound of |<a_i, w>| over the penalized coordinates of the minimizer.
    """
    free = regularizer.free
    inside = np.maximum(np.abs(np.broadcast_to(regularizer.lower, bundle.dim)[free]),
                        np.abs(np.broadcast_to(regularizer.upper, bundle.dim)[free]))  # fmt: skip
    if not (np.isfinite(upper) and np.isfinite(reach).all()):
        return inside
    E, room = bundle.normals[:, free], upper - bundle.offsets + reach
    box = _interval(E[:, 0], room) if free.size == 1 else _polytope(E, room)
    return np.minimum(inside, box)


def _interval(slopes: Array, room: Array) -> Array:
    """One free coordinate v: slopes_i v <= room_i for all i."""
    ends = [
        np.min(room[side] / np.abs(slopes[side]), initial=np.inf) for side in (slopes > 0, slopes < 0)
    ]
    return np.array([max(0.0, *ends)])


def _polytope(E: Array, room: Array) -> Array:
    """Several: the largest |v_j| over the polytope E v <= room, by two small linear programs for each j."""
    from scipy.optimize import linprog

    r = E.shape[1]
    box = np.full(r, np.inf)
    for j in range(r):
        ends = [_extent(linprog, E, room, sign * np.eye(r)[j]) for sign in (1.0, -1.0)]
        box[j] = max(ends)
    return box * 1.01


def _extent(linprog: object, E: Array, room: Array, c: npt.NDArray[np.float64]) -> float:
    answer = linprog(-c, A_ub=E, b_ub=room, bounds=(None, None), method="highs")  # type: ignore[operator]
    return float(abs(answer.fun)) if answer.status == 0 else np.inf
