"""What a regularizer is: a convex function of w that is cheap to evaluate and to minimize together with a plane."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._cached import cached_property
from bmrm._fields import ByFields
from bmrm._limits import check_length
from bmrm._registry import Registry
from bmrm._traits import Trait

Array: TypeAlias = npt.NDArray[np.float64]

REGULARIZERS: Registry[Regularizer] = Registry("regularizer")

_NO_BOX = np.array([np.inf])
VECTORS = 4  # as long as w that a run needs at least: w, a gradient, a plane, a step


@dataclass(frozen=True)
class Along:
    """A regularizer on a line: constant + p t + q t^2 / 2 + sum_j weight_j |start_j + t direction_j|."""

    constant: float
    p: float
    q: float
    absolute: tuple[Array, Array, Array] | None = None  # start, direction, weight

    def evaluate(self, t: float) -> tuple[float, float, float]:
        """Return the value, the left slope and the right slope at t."""
        value = self.constant + self.p * t + 0.5 * self.q * t * t
        left = right = self.p + self.q * t
        if self.absolute is not None:
            start, direction, weight = self.absolute
            point = start + t * direction
            value += float(np.sum(weight * np.abs(point)))
            slope = float(np.sum(weight * np.sign(point) * direction))
            at_kinks = float(np.sum(weight * np.abs(direction) * (point == 0.0)))
            left, right = left + slope - at_kinks, right + slope + at_kinks
        return value, left, right


class Regularizer(ABC):
    """Omega(w), convex. Class statements with ``name=`` register themselves in ``REGULARIZERS``.

    Everything a bundle method needs of Omega is `dual`: the minimum of lam Omega(w) + <c, w>.
    """

    name: ClassVar[str] = ""
    traits: frozenset[Trait] = frozenset()

    def __init_subclass__(cls, name: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name:
            cls.name = name
            REGULARIZERS[name] = cls

    @abstractmethod
    def bind(self, dim: int, unpenalized: Sequence[int] = ()) -> Regularizer:
        """Return the same regularizer for vectors of length dim, with some coordinates free."""

    @abstractmethod
    def value(self, w: Array) -> float:
        """Return Omega(w); +inf outside the bounds."""

    @abstractmethod
    def subgradient(self, w: Array) -> Array:
        """Return one subgradient of Omega at w."""

    @abstractmethod
    def extreme(self, w: Array, d: Array) -> Array:
        """Return the subgradient of Omega at w that is largest in direction d."""

    @abstractmethod
    def along(self, w: Array, d: Array) -> Along:
        """Return t -> Omega(w + t d)."""

    @abstractmethod
    def prox(self, v: Array, step: float) -> Array:
        """Return the minimizer over w of ``step Omega(w) + 1/2 |w - v|^2``."""

    def clip(self, w: Array) -> Array:
        """Return the nearest vector within the bounds, if there are any."""
        return w

    @abstractmethod
    def dual(self, c: Array, lam: float, box: Array | float = np.inf) -> tuple[float, Array]:
        """Return min_w lam Omega(w) + <c, w> over |w_j| <= box, and a minimizer (-inf if there is none)."""

    @abstractmethod
    def reach(self, a: Array, level: float) -> float:
        """Return the largest <a, w> over the penalized coordinates with Omega(w) <= level."""

    def largest_multiple(self, c: Array, lam: float) -> float:
        """Return the largest theta in [0, 1] for which dual(theta c) is finite on the penalized coordinates."""
        return 1.0

    def plane_bound(self, lam: float, a: Array, b: float, floor: float) -> float:
        """Return a lower bound of min_w lam Omega(w) + max(floor, <a, w> + b).

        The bound is theta b + (1 - theta) floor + dual(theta a) for the best theta found; any theta gives a
        valid one, so the search may be rough.
        """
        if not np.isfinite(floor):
            return b + self.dual(a, lam)[0]
        best = floor + self.dual(np.zeros_like(a), lam)[0]
        lower, upper = 0.0, self.largest_multiple(a, lam)
        for _ in range(60):
            thetas = lower + (upper - lower) * np.array([1.0 / 3.0, 2.0 / 3.0])
            values = [float(th * b + (1 - th) * floor + self.dual(th * a, lam)[0]) for th in (*thetas, upper)]
            best = max(best, *values)
            lower, upper = (lower, thetas[1]) if values[0] >= values[1] else (thetas[0], upper)
        return best

    def rescaled(self, c: Array) -> Regularizer | None:
        """Return v -> Omega(c v), c > 0 in every coordinate; None where that is no regularizer of this kind."""
        return None

    @classmethod
    def examples(cls, dim: int) -> list[Regularizer]:
        """Return instances for vectors of that length, worth testing and showing."""
        return [cls().bind(dim)]


@dataclass(frozen=True, eq=False)
class Separable(ByFields, Regularizer):
    """sum_j weights_j omega(w_j) with lower_j <= w_j <= upper_j.

    Parameters
    ----------
    weights : array-like of numbers >= 0, optional
        One for each coordinate, 1 by default. Weight 0 means: this coordinate is not penalized.
    bounds : pair of numbers or array-likes, optional
        (lower, upper); infinities are allowed. No bounds by default.
    """

    weights: npt.ArrayLike | None = None
    bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None
    held: npt.NDArray[np.intp] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.weights is not None:
            object.__setattr__(self, "weights", _checked_weights(self.weights))
        if self.bounds is not None:
            object.__setattr__(self, "bounds", _checked_bounds(self.bounds))
        object.__setattr__(self, "traits", self._traits())

    def _traits(self) -> frozenset[Trait]:
        found = set(type(self).traits)
        if self.weights is not None and np.any(self.s == 0.0):
            found.add(Trait.FREE_COORDINATES)
        if self.bounds is not None:
            found.add(Trait.BOUNDS)
        return frozenset(found)

    def bind(self, dim: int, unpenalized: Sequence[int] = ()) -> Separable:
        """Return the regularizer with one weight and one pair of bounds for each of dim coordinates.

        Weights and bounds may leave out the unpenalized coordinates at the end: those get weight 0 and no bounds.
        Where no weights are given at all, the unpenalized coordinates get weight 0 and the others 1.
        """
        check_length(dim, f"dim={dim}", VECTORS)
        weights, bounds = self.weights, self.bounds
        if weights is None and unpenalized:
            weights = np.ones(dim)
            weights[list(unpenalized)] = 0.0
        elif weights is not None:
            weights = _fitted(np.asarray(weights), dim, unpenalized, 0.0, "weights")
        if bounds is not None:
            bounds = (
                _fitted(np.asarray(bounds[0]), dim, unpenalized, -np.inf, "lower bounds"),
                _fitted(np.asarray(bounds[1]), dim, unpenalized, np.inf, "upper bounds"),
            )
        return replace(self, weights=weights, bounds=bounds)

    def holding(self, held: npt.NDArray[np.intp] | None) -> Separable:
        """Return the regularizer with coordinates that stay 0, though a w with others is worth what it was.

        Masters and bounds then look at w with 0 there only. That is for the risk to allow: see `Risk.unseen`.
        """
        other = replace(self)
        object.__setattr__(other, "held", held)
        return other

    @cached_property
    def s(self) -> Array:
        """The weights as an array; a single 1 if all are 1."""
        return np.ones(1) if self.weights is None else np.asarray(self.weights)

    @cached_property
    def free(self) -> npt.NDArray[np.intp]:
        """The coordinates with weight 0 that are not held at 0."""
        free = np.zeros(0, np.intp) if self.weights is None else np.flatnonzero(self.s == 0.0)
        return free if self.held is None else np.setdiff1d(free, self.held)

    @cached_property
    def lower(self) -> Array | float:
        """The lower bounds."""
        return self._end(-np.inf if self.bounds is None else self.bounds[0])

    @cached_property
    def upper(self) -> Array | float:
        """The upper bounds."""
        return self._end(np.inf if self.bounds is None else self.bounds[1])

    def _end(self, given: npt.ArrayLike) -> Array | float:
        if self.held is None:
            return given if isinstance(given, float) else np.asarray(given)
        end = np.array(np.broadcast_to(given, self.s.shape), dtype=np.float64)
        end[self.held] = 0.0
        return end

    @cached_property
    def parts(self) -> tuple[Array, Array]:
        """Weights u and v of a regularizer sum_j u_j |w_j| + v_j w_j^2 / 2, where it is one (trait ELASTIC)."""
        raise NotImplementedError(f"regularizer '{self.name}' is more than absolute values and squares")

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """The bounds as arrays, of one entry where all are the same."""
        return np.atleast_1d(np.float64(self.lower)), np.atleast_1d(np.float64(self.upper))

    def _elastic_dual(self, c: Array, lam: float, box: Array | float) -> tuple[float, Array]:
        """Return `dual` for absolute values and squares: each coordinate at its soft threshold within the bounds."""
        within = _NO_BOX if isinstance(box, float) and box == np.inf else np.atleast_1d(np.float64(box))
        return _core.elastic_dual(c, lam, *self.parts, *self._ends, within)

    def clip(self, w: Array) -> Array:
        """Return the nearest vector within the bounds."""
        return w if self.bounds is None else np.clip(w, self.lower, self.upper)

    def _in_units(self, c: Array, weights: Array) -> Separable:
        """Return the regularizer with other weights, and the bounds divided by c."""
        bounds = None if self.bounds is None else (np.asarray(self.lower) / c, np.asarray(self.upper) / c)
        return replace(self, weights=weights, bounds=bounds).holding(self.held)

    def inside(self, w: Array) -> bool:
        """Return whether w respects the bounds."""
        return self.bounds is None or bool(np.all((w >= self.lower) & (w <= self.upper)))

    @classmethod
    def examples(cls, dim: int) -> list[Regularizer]:
        """Plain, weighted with a free coordinate, and bounded."""
        weights = np.linspace(0.5, 2.0, dim)
        weights[-1] = 0.0
        bounded = cls(bounds=(np.full(dim, -0.05), np.full(dim, 0.2)))
        return [cls().bind(dim), cls(weights=weights).bind(dim), bounded.bind(dim)]


def _checked_weights(weights: npt.ArrayLike) -> Array:
    s = np.array(weights, dtype=np.float64).reshape(-1)
    bad = np.flatnonzero(~(np.isfinite(s) & (s >= 0.0)))
    if bad.size:
        raise ValueError(f"regularizer weight {bad[0]} is {s[bad[0]]}; weights must be finite and at least 0")
    return s


def _checked_bounds(bounds: tuple[npt.ArrayLike, npt.ArrayLike]) -> tuple[Array, Array]:
    try:
        lower, upper = (np.array(side, dtype=np.float64) for side in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be a pair (lower, upper) of numbers or arrays, got {bounds!r}") from None
    if lower.ndim and upper.ndim and lower.shape != upper.shape:
        raise ValueError(f"bounds must have as many lower as upper ends, got shapes {lower.shape} and {upper.shape}")
    lower, upper = (side.copy() for side in np.broadcast_arrays(lower, upper))
    if np.isnan(lower).any() or np.isnan(upper).any() or np.any(lower > upper):
        raise ValueError("bounds must satisfy lower <= upper in every coordinate")
    return lower, upper


def _fitted(values: Array, dim: int, unpenalized: Sequence[int], fill: float, what: str) -> Array:
    if values.ndim == 0:
        values = np.full(dim - len(unpenalized), float(values))
    if values.size == dim:
        return values
    short = dim - values.size
    if 0 < short <= len(unpenalized) and set(range(values.size, dim)) <= set(unpenalized):
        return np.concatenate([values, np.full(short, fill)])
    least = dim
    while least - 1 in unpenalized:
        least -= 1
    constants = f" (or {dim}, with the {dim - least} unpenalized at the end)" if least < dim else ""
    raise ValueError(f"the regularizer has {values.size} {what}, expected {least}, one for each coefficient{constants}")
