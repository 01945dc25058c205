"""Lower bounds of min J that allow for the rounding of normals.

The true slopes of a combination of planes lie within c_j - e_j and c_j + e_j. So a bound is the minimum over w of
    lam Omega(w) + <c, w> - sum_j e_j |w_j| + b.
A coordinate with a square has its own minimum, at c_j moved away from 0 by e_j. The others are charged e_j for their
value at 10 w_j, w the larger of the solver's best point and the master's, or at the end of their box if that is nearer:
without a square, nothing else says how far the minimizer is. See also `FlatBound`.
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
_FAR = 10.0  # how many times farther than a good point a minimizer may be where Omega has no squares
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
    near: Array,
) -> Charged:
    """Return a lower bound of min_w lam Omega(w) + <c', w> + b for all c' within the errors of c.

    Parameters
    ----------
    upper : float
        What the bound will be compared with: a rough charge that is far less than the gap will do, and needs no norms
        of columns.
    near : array
        A point near the minimizer.
    """
    value, w = regularizer.dual(c, lam, box)
    if math.isfinite(value):
        rough = _rough(regularizer, lam, w, errors, near)
        if rough <= worth(b + value, upper):
            return Charged(b + value - rough - _rounding(c, w, value, b), c, rough)
    e = errors.each()
    if not np.isfinite(e).all():  # slopes of an exponential may be as large as numbers are
        return Charged(-math.inf, c, math.inf)
    squares = _squares(regularizer, c.size)
    charge = _of_the_rest(squares, np.broadcast_to(box, c.shape), c, e, _FAR * np.abs(near))
    if squares.any() and isinstance(regularizer, Separable):
        e = np.where(squares > 0.0, e, 0.0)
        c, both = _moved(regularizer, c, e)
        if both.any():
            other = regularizer.dual(np.where(both, c - 2.0 * e, 0.0), lam, box)[0]
            charge += max(regularizer.dual(np.zeros_like(c), lam, box)[0] - other, 0.0)
    return Charged(rounded_dual(regularizer, lam, c, b - charge, box), c, charge)


def _of_the_rest(squares: Array, box: Array, c: Array, e: Array, far: Array) -> float:
    """Return the charge of the coordinates without a square: at the end of the box, or far away if that is nearer.

    A box of length 0 says that nothing is known but a slope as small as rounding errors: it is charged far away, too.
    """
    slopes = np.where(box == 0.0, np.abs(c) + e, e)
    return float(np.where(squares > 0.0, 0.0, slopes) @ np.where(box == 0.0, far, np.minimum(box, far)))


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


def _squares(regularizer: Regularizer, d: int) -> Array:
    """Return the weights of the squares, 0 where there are none or nothing is known of them."""
    elastic = isinstance(regularizer, Separable) and Trait.ELASTIC in regularizer.traits
    return np.broadcast_to(regularizer.parts[1] if elastic else 0.0, (d,))  # type: ignore[attr-defined]


def _rough(regularizer: Regularizer, lam: float, w: Array, errors: Errors, near: Array) -> float:
    """Return |e| |w| + |e|^2 / (2 lam s) with the least weight s of the squares, and what free constants are charged.

    Without any squares 10 |e| |near|; inf where only some coordinates have one.
    """
    if isinstance(regularizer, Separable) and Trait.QUADRATIC in regularizer.traits and regularizer.weights is None:
        return errors.norm * (math.sqrt(_core.inner(w, w)) + errors.norm / (2.0 * lam * float(regularizer.parts[1][0])))
    squares = _squares(regularizer, w.size)
    free = regularizer.free.size if isinstance(regularizer, Separable) else 0
    n = w.size - free if free <= errors.n_constants and not squares[w.size - free :].any() else w.size
    least = float(np.min(squares[:n], initial=math.inf))
    constants = errors.constant * _FAR * float(np.sum(np.abs(near[n:])))
    if least > 0.0:
        return errors.norm * math.sqrt(_core.inner(w[:n], w[:n])) + errors.norm**2 / (2.0 * lam * least) + constants
    return math.inf if squares.any() else _FAR * errors.norm * math.sqrt(_core.inner(near[:n], near[:n])) + constants


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
