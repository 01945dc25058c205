"""Risk, Point and Line: the only things a solver sees of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._deadline import look
from bmrm._traits import Trait

if TYPE_CHECKING:
    from bmrm.risks.noise import Noise
    from bmrm.risks.normal_error import NormalError
    from bmrm.risks.space import RowSpace

Array: TypeAlias = npt.NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


class Risk(ABC):
    """R(w), convex: an oracle for values and subgradients.

    A user's own risk needs only ``dim`` and ``evaluate``. It never knows lam or the regularizer, therefore a
    plane found for one lam is valid for every other.

    Attributes
    ----------
    dim : int
        Length of w.
    floor : float
        A lower bound of R; -inf, the default, where none is known. ``floor = 0.0`` says that R is never negative.
    traits : frozenset of Trait
    unpenalized : tuple of int
        Coordinates that a regularizer without weights of its own leaves free (the constant column).
    products : int
        Products with the data so far; two of them make a pass.
    n_threads : int
        Threads for vectors as long as w.
    cheap_lines : bool
        Whether a trial on a line costs less than an evaluation, because points keep their scores.
    noise : float
        How much values may be off beside rounding, because sums are told in fixed steps.
    planes_noise : Noise or None
        The noise of values and subgradients, where their owners add some to keep rows private.
    plane_bytes : int or None
        How many bytes of planes there is room for, where memory is limited.
    """

    dim: int
    floor: float = -np.inf
    traits: frozenset[Trait] = frozenset()
    unpenalized: tuple[int, ...] = ()
    products: int = 0
    n_threads: int = 1
    cheap_lines: bool = False
    noise: float = 0.0
    planes_noise: Noise | None = None
    plane_bytes: int | None = None
    _last: Any = None

    @property
    def busy(self) -> tuple[float, ...]:
        """How many seconds each shard has computed so far; nothing where there are no shards."""
        return ()

    @abstractmethod
    def evaluate(self, w: Array) -> tuple[float, Array]:
        """Return the value and one subgradient at w, as a fresh array; w is left alone."""

    def at(self, w: Array, remembered: Any = None) -> Point:
        """Return w together with what was computed there, or with what a point at the same w has remembered."""
        return Point(self, w)

    def touch(self, w: Array) -> Point:
        """Return w with value and subgradient, both of which will be asked for."""
        return self.at(w)

    def space(self) -> RowSpace | None:
        """Return the space of the rows, where subgradients are X' times slopes; None if there is none."""
        return None

    @property
    def normal_error(self) -> NormalError | None:
        """How far normals of planes may be from the true ones; None if all that is known of it are the normals."""
        return None

    def sizes(self) -> Array | None:
        """Return how large the data are in each coordinate of w, None if that is not known."""
        return None

    def unseen(self, free: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return those of the coordinates without a penalty that can be 0 at no loss, whatever the others are."""
        return free[:0]

    def known_plane(self, w: Array) -> tuple[Array, float] | None:
        """Return a plane below R, high at w, that costs no evaluation: by answers of earlier ones; None if none is."""
        return None

    @property
    def memory(self) -> Any:
        """What a run that goes on later needs of the evaluations so far, beside the planes; None if nothing."""
        return None

    def inexact(self, w: Array) -> float:
        """Return how much what is told of w, a value or a plane, may be off beside its rounding error; 0 as a rule."""
        return 0.0

    def forget(self, memory: Any = None) -> None:
        """Forget all evaluations but those of the memory: a run is the same whatever was computed before it."""
        self._last = None

    def bracket(self) -> list[Array]:
        """Return points whose planes together bound a risk without a floor; none are needed otherwise."""
        return []


class Point:
    """w with its value and, on demand, a subgradient. The plain form evaluates the risk once."""

    def __init__(self, risk: Risk, w: Array) -> None:
        self.risk, self.w = risk, w
        self._pair: tuple[float, Array] | None = None

    def _evaluated(self) -> tuple[float, Array]:
        if self._pair is None:
            look()  # an oracle of the user's does not
            self._pair = self.risk.evaluate(self.w)
        return self._pair

    @property
    def value(self) -> float:
        """R(w)."""
        return self._evaluated()[0]

    @property
    def subgradient(self) -> Array:
        """One subgradient of R at w."""
        return self._evaluated()[1]

    @property
    def plane(self) -> tuple[Array, float]:
        """The normal a and the offset b = R(w) - <a, w>, less the rounding in it, of the plane that touches R at w."""
        a = self.subgradient
        rounding = 4.0 * _EPS * (abs(self.value) + _core.inner_of_sizes(a, self.w))
        return a, self.value - _core.inner(a, self.w) - rounding

    @property
    def steepness(self) -> float:
        """What the error of the plane's normal grows with: see `NormalError`."""
        return 1.0

    @property
    def rounding(self) -> float:
        """How much larger than the value computed R(w) may be."""
        return 4.0 * _EPS * abs(self.value)

    def toward(self, w: Array) -> Line:
        """Return the line from here (t = 0) to w (t = 1)."""
        return Line(self, w)

    @property
    def remembered(self) -> Any:
        """What `Risk.at` needs to make the same point again, to the last digit and without a product."""
        return None

    @property
    def factors(self) -> tuple[Array, Array] | None:
        """The slopes l and X w, where the risk has a space: R(v) >= R(w) + <l, X v - X w>."""
        return None


class Line:
    """t -> R(w + t (w2 - w)). The plain form costs one evaluation for each t.

    Attributes
    ----------
    fine : bool
        Whether trials cost so little that a search goes on to the end, though it is not compiled, and less if several
        are made at once.
    """

    fine: bool = False

    def __init__(self, start: Point, end: Array) -> None:
        self.start = start
        self.direction: Array = end - start.w
        self._points: dict[float, Point] = {0.0: start}

    def at(self, t: float) -> Point:
        """Return the point at t."""
        if t not in self._points:
            self._points[t] = self.start.risk.at(self.start.w + t * self.direction)
        return self._points[t]

    def evaluate(self, t: float) -> tuple[float, float, float]:
        """Return the value, the left slope and the right slope at t (equal, where only one is known)."""
        point = self.at(t)
        slope = _core.inner(point.subgradient, self.direction)
        return point.value, slope, slope

    def evaluate_all(self, ts: Sequence[float]) -> list[tuple[float, float, float]]:
        """Return the same at several t."""
        return [self.evaluate(t) for t in ts]

    @property
    def known(self) -> list[Point]:
        """The start and the points that are kept, those of the latest trials last."""
        return list(self._points.values())

    def forget_trials(self, most: int) -> None:
        """Forget trials but for the last ones; they are made again when they are asked for."""
        for t in [t for t in self._points if t != 0.0][: -most or None]:
            del self._points[t]

    def terms(self) -> list[Any]:
        """Return compiled line terms for the exact search; none if there are none."""
        return []


class OracleRisk(Risk):
    """Anything with ``dim`` and ``evaluate(w)`` as a risk; what it returns is checked.

    Parameters
    ----------
    oracle : object
        ``floor``, ``traits`` and ``unpenalized`` are taken from it where it has them.
    """

    def __init__(self, oracle: Any) -> None:
        for needed in ("dim", "evaluate"):
            if not hasattr(oracle, needed):
                raise TypeError(f"a risk needs 'dim' and 'evaluate(w)'; {type(oracle).__name__} has no '{needed}'")
        self.oracle = oracle
        self.dim = int(oracle.dim)
        self.floor = float(getattr(oracle, "floor", -np.inf))
        self.traits = frozenset(getattr(oracle, "traits", ()))
        self.unpenalized = tuple(getattr(oracle, "unpenalized", ()))

    def evaluate(self, w: Array) -> tuple[float, Array]:
        """Ask the oracle and check the shapes of its answer."""
        self.products += 2
        value, subgradient = self.oracle.evaluate(w.copy())
        subgradient = np.array(subgradient, dtype=np.float64)
        if subgradient.shape != (self.dim,):
            raise ValueError(f"evaluate(w) returned a subgradient of shape {subgradient.shape}, expected ({self.dim},)")
        return float(value), subgradient


def as_risk(risk: Any) -> Risk:
    """Return a Risk: the object itself, or an oracle wrapped."""
    return risk if isinstance(risk, Risk) else OracleRisk(risk)
