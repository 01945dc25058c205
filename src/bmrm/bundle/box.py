"""A proven box for the coordinates that nothing penalizes.

A combination of planes bounds J only if its slope in every free direction is 0. In floating point it is merely
tiny, and a tiny slope in a free direction proves nothing, unless the minimizer is known to lie in a box: then
slope times box is all that is lost. The planes themselves give the box: wherever J(w) <= upper,
    <a_i, w> + b_i <= R(w) <= upper - lam Omega(w)
and the penalized part of w is bounded because lam Omega(w) is, so each plane is an inequality for the free part.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._deadline import look, seconds_left
from bmrm._states import kept
from bmrm.bundle.charges import Errors
from bmrm.bundle.planes import Array, Bundle
from bmrm.regularizers.base import Separable

_NONE = np.empty(0, np.intp)
_EPS = float(np.finfo(np.float64).eps)


def quadratic_level(
    bundle: Bundle,
    lam: float,
    upper: float,
    norms: Array,
    combined: tuple[Array, Array, Array, float],
    free: npt.NDArray[np.intp],
    errors: Errors,
) -> float:
    """Return a bound of Omega = 1/2 |w|^2 at the minimizer of J, given J(w) <= upper.

    With a floor, lam Omega(w) <= upper - floor. Without one, a combination of the planes takes its place:
    lam/2 z^2 - c z + b - e'|v| <= upper for z = |w|, c and e its slopes in the penalized and the free part, and
    |v| <= k0 + k1 z by the planes; the largest z that satisfies this is the root of a quadratic.

    Parameters
    ----------
    norms : array (k,)
        Norms of the penalized parts of the planes.
    combined : (alpha, c, inverse weights, b)
        The multipliers, the combination's slopes, the weights that make their norm, and its offset.
    free : array of int
        The free coordinates.
    errors : Errors
        Of the combination's slopes.
    """
    if bundle.floor > -np.inf:
        return max(upper - bundle.floor, 0.0) / lam
    alpha, slopes, inverse, b = combined
    widest = float(np.sqrt(np.max(inverse)))
    c = float(np.sqrt(np.sum(slopes * slopes * inverse))) + errors.norm * widest
    e, rest = np.abs(slopes[free]) + errors.at(free, slopes.size), upper - b
    if e.any():
        k0, k1 = _growth(bundle, upper, norms + bundle.error_norms * widest, free, alpha)
        c, rest = c + float(e @ k1), rest + float(e @ k0)
    if not (np.isfinite(rest) and np.isfinite(c)):
        return np.inf
    z = (c + float(np.sqrt(c * c + 2.0 * lam * max(rest, 0.0)))) / lam
    return 0.5 * z * z


def quadratic_reach(bundle: Bundle, norms: Array, inverse: Array, level: float) -> Array:
    """Return a bound of |<a_i, w>| over the penalized part of w for each plane, given Omega(w) = 1/2 |w|^2 <= level.

    Parameters
    ----------
    norms : array (k,)
        Norms of the penalized parts of the planes.
    inverse : array
        1 / weights of the squares, 0 for free coordinates.
    """
    return reach_of(norms + bundle.error_norms * float(np.sqrt(np.max(inverse))), math.sqrt(2.0 * level))


def farthest(regularizer: Separable, level: float) -> float:
    """Return a bound of the Euclidean norm of the penalized part of w, given Omega(w) <= level."""
    absolute, squares = (part[regularizer.s > 0.0] for part in regularizer.parts)
    if squares.any():
        return math.sqrt(2.0 * level / float(np.min(squares)))
    return level / float(np.min(absolute)) if absolute.size else 0.0


def reach_of(norms: Array, far: float) -> Array:
    """Return norms times the distance; 0 where the norm is 0, however far."""
    return np.multiply(norms, far, out=np.zeros_like(norms), where=norms > 0.0)


def _growth(
    bundle: Bundle, upper: float, norms: Array, free: npt.NDArray[np.intp], alpha: Array
) -> tuple[Array, Array]:
    """Return k0, k1 with |v| <= k0 + k1 |w| for the free coordinates v; inf if the planes leave one open."""
    E, errors = bundle.normals.take(free, axis=1), bundle.free_errors(free)
    room = upper - bundle.offsets
    room = room + 1e-12 * (abs(upper) + np.abs(bundle.offsets))
    if free.size > 1:  # a bound grows with the room no faster than in proportion
        return _spanned(E, errors, room, alpha), _spanned(E, errors, norms, alpha)
    slopes = _nearer_to_0(E[:, 0], errors[:, 0])
    pairs = []
    for side in (slopes > 0, slopes < 0):
        if not side.any():
            return np.full(1, np.inf), np.full(1, np.inf)
        ratios = room[side] / np.abs(slopes[side])
        best = int(np.argmin(ratios))
        pairs.append((max(0.0, float(ratios[best])), float(norms[side][best] / np.abs(slopes[side][best]))))
    return np.array([max(p[0] for p in pairs)]), np.array([max(p[1] for p in pairs)])


def _nearer_to_0(slopes: Array, errors: Array) -> Array:
    """Return slopes that the true ones exceed in size: a plane's inequality with them is the weaker one."""
    nearer: Array = np.copysign(np.maximum(np.abs(slopes) - errors, 0.0), slopes)
    return nearer


@kept
class FreeBox:
    """Remembers the box of one problem's free coordinates: once proved it stays valid, and is only made smaller.

    Parameters
    ----------
    regularizer : Separable
        Bound to the problem's length.
    free : array of int, optional
        The coordinates that need a box; all with weight 0 by default.
    """

    def __init__(self, regularizer: Separable, free: npt.NDArray[np.intp] | None = None) -> None:
        self.free = regularizer.free if free is None else free
        self._inside: Array = np.empty(0)
        if self.free.size:
            sides = (regularizer.lower, regularizer.upper)
            ends = [np.abs(np.broadcast_to(side, regularizer.s.shape))[self.free] for side in sides]
            self._inside = np.maximum(*ends)
        self._box = self._inside.copy()
        self._problem: tuple[float, float] = (0.0, 0.0)
        self._tried = 0  # planes when the box was last sought: the programs are worth their time for more of them
        self.open: npt.NDArray[np.intp] = _NONE  # coordinates whose charge spoils the bound

    def around(
        self,
        bundle: Bundle,
        lam: float,
        upper: float,
        reach: Callable[[], Array],
        alpha: Array,
        slopes: Array,
        errors: Errors,
    ) -> Array:
        """Return a bound of |w_j| at the minimizer of J for every coordinate, infinite for the penalized ones.

        Parameters
        ----------
        upper : float
            An upper bound of min J.
        reach : callable
            Returns for each true plane a bound of |<a_i, w>| over the penalized coordinates of the minimizer; asked
            only if a better box is sought.
        alpha : array (k,)
            The multipliers that combine the planes.
        slopes : array
            The combination's slopes in the free directions, which are charged against the box together with their
            errors: a better box is sought only if the charge matters.
        errors : Errors
            Of the combination's slopes.
        """
        if lam != self._problem[0]:
            self._box, self._tried = self._inside.copy(), 0
        e = errors.at(self.free, bundle.dim)
        left, unknown = np.abs(slopes), self._costs(e)
        matters = not self._costs(left) <= 1e-13 * abs(upper)
        if self.free.size == 1:
            matters = matters or not unknown <= 1e-13 * abs(upper)
        elif not unknown <= 1e-10 * abs(upper):
            matters = matters or len(bundle) > 1.25 * self._tried
        if matters:
            self._tried = len(bundle)
            self._box = np.minimum(self._box, self._from_planes(bundle, upper, reach(), alpha))
        self._problem = (lam, upper)
        box = np.full(bundle.dim, np.inf)
        box[self.free] = self._box
        spoiled = _products(left + e, self._box) > 1e-10 * abs(upper)
        self.open = self.free[spoiled]
        return box

    def _costs(self, sizes: Array) -> float:
        """Return what slopes of these sizes cost in the box; nothing where there is no slope, whatever the box."""
        return float(np.sum(_products(sizes, self._box)))

    def _from_planes(self, bundle: Bundle, upper: float, reach: Array, alpha: Array) -> Array:
        if not (math.isfinite(upper) and np.isfinite(reach).all()):
            return self._box
        E, errors = bundle.normals.take(self.free, axis=1), bundle.free_errors(self.free)
        if self.free.size == 1:
            nearer = _nearer_to_0(E[:, 0], errors[:, 0])
            return np.array([1.01 * _core.widest(nearer, bundle.offsets, reach, upper)])
        room = upper - bundle.offsets + reach
        room = room + 1e-12 * (abs(upper) + np.abs(bundle.offsets) + reach)  # what it is made of is rounded
        box = _spanned(E, errors, room, alpha)
        return box if np.isfinite(box).all() else np.minimum(box, _polytope(E, errors, room))


def _products(sizes: Array, ends: Array) -> Array:
    products: Array = np.multiply(sizes, ends, out=np.zeros_like(sizes), where=sizes > 0.0)
    return products


def inside_polytope(E: Array, errors: Array, room: Array) -> Array:
    """Return a bound of |v_j| for each v with E' v <= room, all E' within the errors of E; inf where none is found.

    For planes from both sides of each coordinate: nearly always a combination of all of them is flat.
    """
    norms = np.sqrt(np.sum(E * E, axis=1))
    steep = norms > 0.0
    E, errors, room, norms = E[steep], errors[steep], room[steep], norms[steep]
    if not (E.size and np.isfinite(E).all() and np.isfinite(room).all()):
        return np.full(E.shape[1], np.inf)
    N = E / norms[:, None]
    alpha = np.maximum(1.0 - N @ (np.linalg.pinv(N) @ np.ones(norms.size)), 0.0) / norms
    return _spanned(E, errors, room, alpha)


def _spanned(E: Array, errors: Array, room: Array, alpha: Array) -> Array:
    """Return bounds of |v_j| for E v <= room, from a combination alpha of the planes that is nearly flat.

    With a pseudoinverse P of E, P_j + t alpha combines the planes into v_j, and is at least 0 for t large enough if the
    planes with alpha_i > 0 span the free directions.
    """
    r, used = E.shape[1], np.flatnonzero(alpha > 0.0)
    if used.size < r:
        return np.full(r, np.inf)
    E, errors, room, alpha = E[used], errors[used], room[used], alpha[used]
    columns = np.maximum(np.abs(E).max(axis=0), 1e-300)
    sizes = np.sqrt(np.sum((E / columns) ** 2, axis=1))
    P = np.linalg.pinv(E / columns / np.maximum(sizes, 1e-300)[:, None]) / np.maximum(sizes, 1e-300)
    both = np.concatenate([P, -P])
    if not np.isfinite(both).all():
        return np.full(r, np.inf)
    y = np.maximum(both + np.max(-both / alpha, axis=1, initial=0.0)[:, None] * alpha, 0.0)
    return _proved(E, errors, room, columns, y)


def _polytope(E: Array, errors: Array, room: Array) -> Array:
    """The same from the multipliers of two small programs for each j."""
    r = E.shape[1]
    columns = np.maximum(np.abs(E).max(axis=0), 1e-300)
    sizes = np.abs(E / columns).max(axis=1)
    keep = sizes > 1e-12  # the others say nothing of v
    scaled, right = E[keep] / columns / sizes[keep, None], room[keep] / sizes[keep]
    Y = []
    for c in np.concatenate([np.eye(r), -np.eye(r)]):
        y = _multipliers(scaled, right, c)
        if y is None:
            return np.full(r, np.inf)
        Y.append(y / sizes[keep])
    return _proved(E[keep], errors[keep], room[keep], columns, np.array(Y))


def _proved(E: Array, errors: Array, room: Array, columns: Array, Y: Array) -> Array:
    """Return bounds of |v_j| from multipliers y >= 0, one row each for v_j and -v_j in units of the columns.

    For any y >= 0, c'v <= y'room + (c - E'y)'v: what the multipliers miss of c, and the errors of E, are charged
    against the box itself, so the bounds hold however inexact the multipliers are.
    """
    r = E.shape[1]
    wrong = ((errors + 4.0 * _EPS * (len(E) + 1) * np.abs(E)) / columns).sum(axis=1)
    missed = np.abs(np.concatenate([np.eye(r), -np.eye(r)]) - Y @ (E / columns)).sum(axis=1) + Y @ wrong
    if not missed.max() <= 0.5:
        return np.full(r, np.inf)
    base = Y @ room
    box = 1.01 * np.maximum(base + missed * max(base.max(), 0.0) / (1.0 - missed.max()), 0.0)
    both: Array = np.maximum(box[:r], box[r:]) / columns
    return both


def _multipliers(E: Array, room: Array, c: Array) -> Array | None:
    """Return y >= 0 with E'y = c and the least y'room; None if there is none, or the time is over."""
    from scipy.optimize import linprog

    look()
    limit = max(seconds_left(), 1e-3)
    # Not max c'v, whose multipliers y are: where that is unbounded HiGHS may fail, and then prints.
    answer = linprog(room, A_eq=E.T, b_eq=c, bounds=(0.0, None), method="highs", options={"time_limit": limit})
    return None if answer.status != 0 else np.maximum(np.asarray(answer.x), 0.0)
