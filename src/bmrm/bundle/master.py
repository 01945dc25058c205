"""Master problems: minimize lam Omega(w) + the largest plane. Each regularizer's master registers on its type."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from bmrm.bundle.charges import Errors, charged_dual, rounded_dual
from bmrm.bundle.planes import Array, Bundle
from bmrm.regularizers.base import Regularizer, Separable


@dataclass(frozen=True)
class MasterSolution:
    """The minimizer of a master problem and what it proves.

    Attributes
    ----------
    w : array
        The minimizer (to the accuracy of the solver; the bound does not depend on it).
    lower : float
        A lower bound of min J, computed from the multipliers after these were made feasible.
    open : array of int
        Free coordinates for which the planes give no box good enough: rounding spoils the bound. Planes from
        both sides of such a coordinate help.
    """

    w: Array
    lower: float
    open: npt.NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))


class Master(Protocol):
    """min_w lam Omega(w) + max_i <a_i, w> + b_i, warm from one call to the next.

    Attributes
    ----------
    plane_copies : int
        Memory taken for each plane, in planes: itself, what the master makes of it, and its copy in the result.
    """

    plane_copies: ClassVar[int]

    def solve(self, bundle: Bundle, lam: float, upper: float) -> MasterSolution:
        """Solve for the bundle's planes; upper is a known upper bound of min J (inf if none)."""
        ...


class Memory:
    """What a master keeps from one call to the next. It lives on the bundle, whose planes it is about.

    So a copy of the bundle, solved by a new master of the same regularizer, gives what the original would have
    given, to the last digit: a resumed run is the same run.
    """

    def __init__(self, regularizer: Separable) -> None:
        self.regularizer = regularizer

    def fits(self, regularizer: Separable) -> bool:
        """Whether this belongs to an equal regularizer."""
        mine = self.regularizer
        if mine is not regularizer:
            names = mine.__dataclass_fields__
            if type(mine) is not type(regularizer) or not all(
                np.array_equal(getattr(mine, name), getattr(regularizer, name)) for name in names
            ):
                return False
            self.regularizer = regularizer
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> Memory:
        other = copy.copy(self)
        for name, value in vars(other).items():
            if name != "regularizer":
                setattr(other, name, copy.deepcopy(value, memo))
        return other


M = TypeVar("M", bound=Memory)


def memory_of(bundle: Bundle, kind: type[M], regularizer: Separable) -> M:
    """Return the memory that lies on the bundle if it is of that kind and fits, else a fresh one, put there."""
    memory = bundle.memory
    if type(memory) is not kind or not memory.fits(regularizer):
        memory = bundle.memory = kind(regularizer)
    return memory


@singledispatch
def master_for(regularizer: Regularizer) -> Master:
    """Return a fresh master for the regularizer's type."""
    raise TypeError(f"no master problem is registered for regularizer '{regularizer.name}'")


def on_simplex(multipliers: Array) -> Array:
    """Return the multipliers with negatives cut off and the sum made 1: the point that bounds are computed from."""
    alpha: Array = np.maximum(multipliers, 0.0)
    alpha /= alpha.sum()
    return alpha


def lower_bound(
    regularizer: Regularizer,
    lam: float,
    bundle: Bundle,
    c: Array,
    b: float,
    box: Array | float,
    errors: Errors,
    upper: float,
    near: Array,
) -> float:
    """Return the bound of min J that a combination (c, b) of the planes proves.

    J(w) >= lam Omega(w) + <c, w> + b for every w, but for the errors of c, and the right side's minimum over w is the
    regularizer's `dual`, charged for these: see `bmrm.bundle.charges`. Free coordinates are charged against the box,
    which must hold a minimizer of J. Where the dual is infinite, the combination is mixed with the floor until it is
    not.

    Parameters
    ----------
    upper : float
        What the bound will be compared with: as long as it is far away, charges may be rough.
    near : array
        A point near the minimizer.
    """
    near = np.maximum(np.abs(near), np.abs(bundle.near))
    charged = charged_dual(regularizer, lam, c, b, box, errors, upper, near)
    best, c, b = charged.bound, charged.c, b - charged.charge
    if math.isfinite(best) and best >= bundle.floor:
        return best
    if math.isfinite(bundle.floor):
        theta = regularizer.largest_multiple(c, lam)
        mixed = rounded_dual(regularizer, lam, theta * c, theta * b + (1.0 - theta) * bundle.floor, box)
        best = max(best, mixed, bundle.floor + regularizer.dual(np.zeros_like(c), lam)[0])
    return best
