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
from bmrm.bundle.planes import Array, Bundle
from bmrm.regularizers.base import Separable

_NONE = np.empty(0, np.intp)


def quadratic_level(
    bundle: Bundle,
    lam: float,
    upper: float,
    norms: Array,
    combined: tuple[Array, Array, float],
    free: npt.NDArray[np.intp],
) -> float:
    """Return a bound of Omega = 1/2 |w|^2 at the minimizer of J, given J(w) <= upper.

    With a floor, lam Omega(w) <= upper - floor. Without one, a combination of the planes takes its place:
    lam/2 z^2 - c z + b - e |v| <= upper for z = |w|, c and e its slopes in the penalized and the free part, and
    |v| <= k0 + k1 z by the planes; the largest z that satisfies this is the root of a quadratic.

    Parameters
    ----------
    norms : array (k,)
        Norms of the penalized parts of the planes.
    combined : (c, inverse weights, b)
        The combination's slopes, the weights that make their norm, and its offset.
    free : array of int
        The free coordinates.
    """
    if bundle.floor > -np.inf:
        return max(upper - bundle.floor, 0.0) / lam
    slopes, inverse, b = combined
    c, e = float(np.sqrt(np.sum(slopes * slopes * inverse))), float(np.abs(slopes[free]).sum())
    k0, k1 = _growth(bundle, upper, norms, free) if e > 0.0 else (0.0, 0.0)
    if not (np.isfinite(upper) and np.isfinite(k0)):
        return np.inf
    c, rest = c + e * k1, upper - b + e * k0
    z = (c + float(np.sqrt(c * c + 2.0 * lam * max(rest, 0.0)))) / lam
    return 0.5 * z * z


def reach_of(norms: Array, level: float) -> Array:
    """Return a bound of |<a, w>| for planes with these norms, given Omega(w) = 1/2 |w|^2 <= level."""
    if level < np.inf:
        return norms * math.sqrt(2.0 * level)
    return np.where(norms > 0.0, np.inf, 0.0)


def _growth(bundle: Bundle, upper: float, norms: Array, free: npt.NDArray[np.intp]) -> tuple[float, float]:
    """Return k0, k1 with |v| <= k0 + k1 |w| for a single free coordinate v (inf if the planes leave it open)."""
    if free.size != 1 or not len(bundle):
        return np.inf, np.inf
    slopes = bundle.normals[:, free[0]]
    pairs = []
    for side in (slopes > 0, slopes < 0):
        if not side.any():
            return np.inf, np.inf
        room = (upper - bundle.offsets[side]) / np.abs(slopes[side])
        best = int(np.argmin(room))
        pairs.append((max(0.0, float(room[best])), float(norms[side][best] / np.abs(slopes[side][best]))))
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


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
        self.open: npt.NDArray[np.intp] = _NONE  # coordinates whose charge spoils the bound

    def around(
        self, bundle: Bundle, lam: float, upper: float, reach: Callable[[], Array], alpha: Array, slopes: Array
    ) -> Array:
        """Return a bound of |w_j| at the minimizer of J for every coordinate, infinite for the penalized ones.

        Where the planes leave a coordinate open and its slope is not larger than the rounding errors of the planes
        themselves, the slope counts as 0 (and the bound returned is 0, so that nothing is charged).

        Parameters
        ----------
        upper : float
            An upper bound of min J.
        reach : callable
            Returns for each plane a bound of |<a_i, w>| over the penalized coordinates of the minimizer; asked only
            if a better box is sought.
        alpha : array (k,)
            The multipliers that combine the planes.
        slopes : array
            The combination's slopes in the free directions, which are charged against the box: a better box is
            sought only if the charge matters.
        """
        if lam != self._problem[0]:
            self._box = self._inside.copy()
        sizes = np.abs(slopes).tolist()
        charges = self._charges(sizes)
        if not sum(charges) <= 1e-13 * abs(upper):
            self._box = np.minimum(self._box, self._from_planes(bundle, upper, reach()))
            charges = self._charges(sizes)
        self._problem = (lam, upper)
        box = np.full(bundle.dim, np.inf)
        box[self.free] = self._box
        spoiled = [charge > 1e-10 * abs(upper) for charge in charges]
        if np.inf in self._box.tolist():
            noise = 1e-15 * (alpha @ np.abs(bundle.normals[:, self.free]))
            rounding = (self._box == np.inf) & (sizes <= noise)
            box[self.free[rounding]] = 0.0
            spoiled = [one and not other for one, other in zip(spoiled, rounding)]
        self.open = self.free[spoiled] if any(spoiled) else _NONE
        return box

    def _charges(self, sizes: list[float]) -> list[float]:
        """Return what slopes of these sizes cost in the box; nothing where there is no slope, whatever the box."""
        return [size * end if size else 0.0 for size, end in zip(sizes, self._box.tolist())]

    def _from_planes(self, bundle: Bundle, upper: float, reach: Array) -> Array:
        if not (math.isfinite(upper) and np.isfinite(reach).all()):
            return self._box
        E = bundle.normals.take(self.free, axis=1)
        if self.free.size == 1:
            return np.array([1.01 * _core.widest(E.reshape(-1), bundle.offsets, reach, upper)])
        room = upper - bundle.offsets + reach
        room = room + 1e-12 * (abs(upper) + np.abs(bundle.offsets) + reach)  # what it is made of is rounded
        return _polytope(E, room)


def _polytope(E: Array, room: Array) -> Array:
    """Several: bounds of |v_j| over the polytope E v <= room, from the multipliers of two small programs for each j.

    For any y >= 0, c'v <= y'room + (c - E'y)'v: what a program's multipliers miss of c is charged against the box
    itself, so the bounds hold however inexact the programs are.
    """
    r = E.shape[1]
    columns = np.maximum(np.abs(E).max(axis=0), 1e-300)
    sizes = np.abs(E / columns).max(axis=1)
    keep = sizes > 1e-12  # the others say nothing of v
    if not keep.any():
        return np.full(r, np.inf)
    scaled, right = E[keep] / columns / sizes[keep, None], room[keep] / sizes[keep]
    base, missed = np.empty(2 * r), np.empty(2 * r)
    for k, c in enumerate(np.concatenate([np.eye(r), -np.eye(r)])):
        y = _multipliers(scaled, right, c)
        if y is None:
            return np.full(r, np.inf)
        base[k], missed[k] = float(y @ right), float(np.abs(c - y @ scaled).sum())
    if missed.max() > 0.5:
        return np.full(r, np.inf)
    widest = base.max() / (1.0 - missed.max())
    box: Array = 1.01 * np.maximum(base + missed * widest, 0.0)
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
