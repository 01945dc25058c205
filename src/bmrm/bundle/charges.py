"""Lower bounds of min J that allow for the rounding of normals.

The true slopes of a combination of planes lie within c_j - e_j and c_j + e_j. So a bound is the minimum over w of
    lam Omega(w) + <c, w> - sum_j e_j |w_j| + b.
Each coordinate has its own minimum, at c_j moved away from 0 by e_j:
- With a square it is finite.
- With an absolute value only, it is finite where |c_j| + e_j <= lam weight_j. Otherwise a multiple of the plane is
  mixed with the floor, as for any c that is too steep: see `bmrm.bundle.master.lower_bound`.
- Free coordinates are charged |c_j| + e_j for the end of their box, which is proved: see `bmrm.bundle.box`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._traits import Trait
from bmrm.regularizers.base import Regularizer, Separable
from bmrm.risks.normal_error import UNIT, NormalError

Array: TypeAlias = npt.NDArray[np.float64]

_NEGLIGIBLE = 1e-11  # of the bound: a charge that needs no sharper one
_SHARE = 1e-3  # of the gap that is left: the same
_DUAL_BLOCK = 128  # coordinates that the core's dual adds one after the other


@dataclass(frozen=True)
class Errors:
    """How far the slopes of a combination of planes may be from the true ones.

    Attributes
    ----------
    norm : float
        At least their Euclidean norm; cheap.
    constant, n_constants : float, int
        At least that of each of the last columns, which are constant, and how many these are; cheap.
    each : callable
        Returns e_j for each coordinate.
    """

    norm: float
    constant: float
    n_constants: int
    each: Callable[[], Array]

    def at(self, coordinates: npt.NDArray[np.intp], dim: int) -> Array:
        """Return at least e_j for these of dim coordinates, from the cheap bound where all of them are constant."""
        if coordinates.size and dim - int(coordinates.min()) <= self.n_constants:
            return np.full(coordinates.size, self.constant)
        return self.each()[coordinates]

    def cheap(self, dim: int) -> Array:
        """Return at least e_j for each of dim coordinates, without norms of columns."""
        e = np.full(dim, self.norm)
        e[dim - min(self.n_constants, dim) :] = self.constant
        return e

    @classmethod
    def of(cls, error: NormalError, steepness: float, n_planes: int) -> Errors:
        """Return the errors of a combination of that steepness, of at most so many planes."""
        cheap = steepness * error.norm(n_planes), steepness * error.constant(n_planes), error.n_constants
        return cls(*cheap, lambda: steepness * error.each(n_planes))


@dataclass(frozen=True)
class Charged:
    """A lower bound, the normal that it is the dual of, and what was taken off the offset beside.

    Multiples of the normal and the charge give bounds as well.
    """

    bound: float
    c: Array
    charge: float


def charged_dual(
    regularizer: Regularizer,
    lam: float,
    c: Array,
    b: float,
    box: Array | float,
    errors: Errors,
    upper: float,
    floor: float,
) -> Charged:
    """Return a lower bound of min_w lam Omega(w) + <c', w> + b for all c' within the errors of c.

    Parameters
    ----------
    upper : float
        Compared with the bound: a rough charge that is far less than the gap suffices, and needs no norms of columns.
    floor : float
        Of the risk.
    """
    value, w = regularizer.dual(c, lam, box)
    if math.isfinite(value):
        rough = _rough(regularizer, lam, w, box, errors)
        if rough <= worth(b + value, upper):
            return Charged(b + value - rough - _rounding(c, w, value, b), c, rough)
    mixing = _mixing(regularizer, lam, box, errors)
    e = errors.cheap(c.size) if mixing is not None and _suffices(mixing, b, upper, floor) else errors.each()
    if not np.isfinite(e).all():  # slopes of an exponential may be as large as numbers are
        return Charged(-math.inf, c, math.inf)
    if not _is_known(regularizer):
        charge = _charge_of_unknown(regularizer, e, max(upper - floor, 0.0) / lam)
        return Charged(rounded_dual(regularizer, lam, c, b - charge, box), c, charge)
    assert isinstance(regularizer, Separable)
    c, both = _moved(regularizer, c, e)
    charge = 0.0
    if both.any():
        other = regularizer.dual(np.where(both, c - 2.0 * e, 0.0), lam, box)[0]
        charge = max(regularizer.dual(np.zeros_like(c), lam, box)[0] - other, 0.0)
    return Charged(rounded_dual(regularizer, lam, c, b - charge, box), c, charge)


def rounded_dual(regularizer: Regularizer, lam: float, c: Array, b: float, box: Array | float) -> float:
    """Return the minimum over w of lam Omega(w) + <c, w> + b, less what rounding may have added to it."""
    value, w = regularizer.dual(c, lam, box)
    return b + value - _rounding(c, w, value, b) if math.isfinite(value) else b + value


def worth(value: float, upper: float) -> float:
    """Return a charge that does not matter to a bound of this value, where upper is what it is compared with."""
    gap = upper - value if math.isfinite(upper) else 0.0
    return max(_NEGLIGIBLE * abs(value), _SHARE * gap)


def _rounding(c: Array, w: Array, value: float, b: float) -> float:
    """Return how far the dual's value may be off, beside the error of c; and its sum with b."""
    terms = abs(b) + _core.inner_of_sizes(c, w)
    return UNIT * (4.0 * terms + (_DUAL_BLOCK + 4.0 + c.size / _DUAL_BLOCK) * abs(value))


def _is_known(regularizer: Regularizer) -> bool:
    """Whether Omega is a sum of absolute values and squares of coordinates."""
    if not isinstance(regularizer, Separable):
        return False
    return Trait.ELASTIC in regularizer.traits or not regularizer.s.any()


def _charge_of_unknown(regularizer: Regularizer, e: Array, level: float) -> float:
    """Return a bound of sum_j e_j |w_j| where Omega(w) <= level, if nothing else is known of Omega."""
    if not math.isfinite(level):
        return math.inf
    charge, unit = 0.0, np.zeros_like(e)
    for j, size in enumerate(e.tolist()):
        for sign in (-1.0, 1.0):
            unit[j] = sign
            charge += size * max(regularizer.reach(unit, level), 0.0)
        unit[j] = 0.0
    return charge


def _n_penalized(regularizer: Separable, dim: int, errors: Errors) -> int:
    """Return how many coordinates come before the free ones, if those are the constant columns at the end; else dim."""
    free = regularizer.free.size
    at_end = free <= errors.n_constants and not regularizer.s[regularizer.s.size - free :].any()
    return dim - free if at_end else dim


def _rough(regularizer: Regularizer, lam: float, w: Array, box: Array | float, errors: Errors) -> float:
    """Return |e| |w| + |e|^2 / (2 lam s) with the least weight s of the squares, and the charge of free constants.

    inf where a coordinate has no square.
    """
    if not isinstance(regularizer, Separable) or not {Trait.ELASTIC, Trait.STRONGLY_CONVEX} <= regularizer.traits:
        return math.inf
    squares = regularizer.parts[1]
    if regularizer.weights is None:
        return errors.norm * (math.sqrt(_core.inner(w, w)) + errors.norm / (2.0 * lam * float(squares[0])))
    n = _n_penalized(regularizer, w.size, errors)
    least = float(np.min(np.broadcast_to(squares, w.shape)[:n], initial=math.inf))
    if not least > 0.0:
        return math.inf
    rough = errors.norm * math.sqrt(_core.inner(w[:n], w[:n])) + errors.norm**2 / (2.0 * lam * least)
    return rough + _of_constants(box, n, w.size, errors)


def _of_constants(box: Array | float, n: int, dim: int, errors: Errors) -> float:
    """Return the charge of the coordinates from n on, which are constant columns, at the ends of their box."""
    return errors.constant * float(np.sum(np.broadcast_to(box, (dim,))[n:])) if n < dim else 0.0


def _mixing(regularizer: Regularizer, lam: float, box: Array | float, errors: Errors) -> tuple[float, float] | None:
    """Return the share of the floor that rough errors cost at most, and the charge of constants; None with squares.

    The largest multiple of the plane, min_j lam weight_j / |c_j|, falls by at most e_j / (lam weight_j).
    """
    if not isinstance(regularizer, Separable) or Trait.ELASTIC not in regularizer.traits:
        return None
    absolute, squares = regularizer.parts
    if squares.any() or regularizer.bounds is not None:
        return None
    dim = absolute.size if regularizer.weights is not None else 0
    n = _n_penalized(regularizer, dim, errors)
    least = float(np.min(absolute[:n] if dim else absolute, initial=math.inf))
    return (errors.norm / (lam * least), _of_constants(box, n, dim, errors)) if least > 0.0 else None


def _suffices(mixing: tuple[float, float], b: float, upper: float, floor: float) -> bool:
    """Return whether rough errors change the bound by less than it is worth."""
    share, charge = mixing
    return share * max(b - floor, 0.0) + charge <= worth(b, upper)


def _moved(regularizer: Separable, c: Array, e: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return c moved by e to where the minimum is lower, and for which coordinates both directions count.

    Within bounds on one side of 0 the sign of w is known. Elsewhere w has the sign of -c where |c| > e; for the others,
    within bounds, the two minima are added: each is at most 0.
    """
    side = np.where(c < 0.0, -1.0, 1.0)
    if regularizer.bounds is None:
        return c + side * e, np.zeros(c.shape, bool)
    low, high = np.asarray(regularizer.lower), np.asarray(regularizer.upper)
    both = (low < 0.0) & (high > 0.0) & (np.abs(c) <= e) & (e > 0.0)
    side = np.where(low >= 0.0, -1.0, np.where((high <= 0.0) | both, 1.0, side))
    return c + side * e, both
