"""The dual of a linear risk with a quadratic regularizer, one coordinate for each row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._states import kept
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk
from bmrm.risks.normal_error import norm_of

_EPS = float(np.finfo(np.float64).eps)
_WIDE = 1e12  # the q with which slopes come out next to 0
_ROUNDINGS = 12.0  # of a term of a plane's offset: 3 when it is computed, 8 in a sum by halves, 1 for those sums
_SIGNS = np.array([1.0, -1.0])
_FLAT = 1e-9  # of the loss, above its floor: there a slope of 0 is as good


@kept
@dataclass
class DualPoint:
    """For each row a slope s_i and b_i, so that b_i + s_i f lies below the loss of a score f; and their w.

    Attributes
    ----------
    w : array
        center - S^-1 X'(p s) / lam, kept up to date by each change of a slope, with rounding errors.
    s, b : array
        Where a row has k scores, s holds k numbers theta for each row and b is empty: see `ClassDual`.
    active : array of int
        A permutation of the rows; the first ``n_active`` are visited, the others are settled.
    length, error : float
        Bounds of w and of the rounding error in it, in the norm of S, beside that of the product it was computed by.
    steepness : float
        What the error of that product grows with: see `NormalError`.
    pace : array
        Where two blocks of rows work side by side: how many times each takes its own changes of w, and the least that
        may be: see `DualBlocks` in dual.hpp.
    """

    w: Array
    s: Array
    b: Array
    active: npt.NDArray[np.int64]
    n_active: int
    length: float = 0.0
    error: float = 0.0
    steepness: float = 0.0
    pace: Array = field(default_factory=lambda: np.ones(2))


@dataclass(frozen=True)
class Epoch:
    """What one visit to the active rows has found: see `_core.dual_epoch`."""

    estimate: float
    movement: float
    changed: int
    entries: int


@dataclass(frozen=True)
class Check:
    """Sums over all rows: the risk, the gap of (w, s), sum p b, how much of it may be rounding; w and its scores."""

    value: float
    gap: float
    offset: float
    rounding: float
    w: Array
    scores: Array


@dataclass(frozen=True)
class LevelPlane:
    """A plane <a, w> + b of the risk, rounding charged to b, and the weighted slopes that it comes from."""

    a: Array
    b: float
    slopes: Array


class Dual(ABC):
    """The dual of a linear risk with a quadratic regularizer, and its points: what one and several scores share.

    Parameters
    ----------
    risk : LinearRisk
    weights : array
        The diagonal of S, above 0, or the one number on it.
    lam : float
    """

    def __init__(self, risk: LinearRisk, weights: Array, lam: float) -> None:
        self.risk, self.weights, self.lam = risk, weights, lam
        self._plain = bool(np.all(weights == 1.0))
        self.n_entries = risk.design.matrix.n_entries
        self._work = 0.0
        self._count(1.0)

    @abstractmethod
    def flat(self) -> DualPoint:
        """Return the point with slopes 0, or next to 0, and w = 0."""

    @abstractmethod
    def near(self, scores: Array) -> DualPoint:
        """Return the point with the slopes of the loss at the scores: one product."""

    @abstractmethod
    def offset(self, point: DualPoint) -> float:
        """Return the offset of the point's plane."""

    def levelled(self, point: DualPoint) -> LevelPlane | None:
        """Return a plane near that of the point, but without a slope in the constants; None if it takes a bundle."""
        return None

    def hold(self, free: npt.NDArray[np.intp], weights: Array) -> bool:
        """Change the weights of free constants, if they may change; the caller changes w."""
        return False

    @abstractmethod
    def _slopes(self, point: DualPoint) -> Array:
        """Return the slopes times the weights of their rows."""

    @abstractmethod
    def _visit(self, point: DualPoint, key: int, reach: float) -> tuple[float, float, float, int, int, int]:
        """Visit each active row once."""

    @abstractmethod
    def _look(self, point: DualPoint, scores: Array, reach: float) -> tuple[float, float, float, float, int]:
        """Look at all rows with their scores."""

    def value(self, point: DualPoint) -> float:
        """Return the dual value, if w is that of the slopes."""
        return self.offset(point) - 0.5 * self.lam * self.norm(point.w) ** 2

    def renew(self, point: DualPoint, center: Array) -> Array:
        """Compute w from the slopes alone and return X'(p s), the normal of their plane: one product."""
        slopes = self._slopes(point)
        a = self.risk.pull_back(slopes, float(np.sum(slopes)))
        point.steepness = norm_of(slopes)
        point.w[:] = center - a / (self.lam * self.weights)
        point.length = self.norm(point.w)
        point.error = 4.0 * _EPS * (point.length + self.norm(center))
        return a

    def product_error(self, point: DualPoint, room: float) -> float:
        """Return a bound of the error in w that comes from the product in `renew`, in the norm of S.

        The bound is rough if the dual value is wrong by less than room thereby: it needs no norms of columns then.
        """
        error, least = self.risk.normal_error, float(np.min(self.weights))
        assert error is not None
        steepness = point.steepness / self.lam
        rough = steepness * error.norm(1) / np.sqrt(least)
        if self.lam * rough * (point.length + rough) <= room:
            return float(rough)
        return float(min(rough, steepness * np.sqrt(np.sum(error.each(1) ** 2 / self.weights))))

    def norm(self, w: Array) -> float:
        """Return the norm of w that belongs to S."""
        return float(np.sqrt(_core.inner(w if self._plain else self.weights * w, w)))

    def epoch(self, point: DualPoint, key: int, reach: float) -> Epoch:
        """Visit each active row once, in an order drawn from the key: about two products with those rows."""
        estimate, movement, way, changed, n_active, entries = self._visit(point, key, reach)
        point.n_active = n_active
        point.length += way
        point.error += 2.0 * _EPS * changed * point.length  # each change rounds w anew
        self._count(2.0 * entries / max(self.n_entries, 1))
        return Epoch(estimate, movement, changed, entries)

    def check(self, point: DualPoint, reach: float) -> Check:
        """Look at all rows with their true scores, and sort the settled ones out: one product."""
        w = point.w.copy()
        scores = self.risk.scores(w, new=True)
        value, gap, offset, size, n_active = self._look(point, scores, reach)
        point.n_active, point.length = n_active, self.norm(point.w)
        # A kink may lie between two numbers: what the loss is there has the rounding of what it adds to scores.
        kinks = 4.0 * _EPS * norm_of(self.risk.full_weight) * self.risk.shift_size
        return Check(value, gap, offset, _ROUNDINGS * _EPS * size + kinks, w, scores)

    def _count(self, products: float) -> None:
        """Count products with parts of the data; their sum is rounded up."""
        before, self._work = np.ceil(self._work), self._work + products
        self.risk.products += int(np.ceil(self._work) - before)


class DualRows(Dual):
    """max over s of sum_i p_i b_i(s_i) - |X'(p s)|^2 / (2 lam), the norm that of S^-1.

    Parameters
    ----------
    risk : LinearRisk
        With a compiled loss.
    weights : array
        The diagonal of S, above 0, or the one number on it.
    lam : float

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.risks.dual import DualRows
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> rows = DualRows(risk, np.ones(1), lam=0.5)
    >>> point = rows.flat()
    >>> rows.epoch(point, key=1, reach=np.inf).changed, point.w.round(6)
    (1, array([1.]))
    """

    def __init__(self, risk: LinearRisk, weights: Array, lam: float) -> None:
        super().__init__(risk, weights, lam)
        self._inverse = None if self._plain else np.ascontiguousarray(np.broadcast_to(1.0 / weights, (risk.dim,)))
        self._rows = (risk.weight, risk.scale)
        design = risk.design
        self._q = np.empty(design.n_rows)
        self._scratch = np.empty(2 * risk.dim)
        _core.dual_steps(design.matrix, *self._rows, self._inverse, lam, design.intercept, self._q, risk.n_threads)
        self._problem = (
            design.matrix, risk.kernel, risk.targets, *self._rows, risk.offset, self._q, self._inverse, lam,
            design.intercept,
        )  # fmt: skip

    def flat(self) -> DualPoint:
        """Return the point with slopes 0 and w = 0; slopes next to 0 where the loss has no minimum at its floor."""
        y, floor = self.risk.targets, self.risk.floor
        two = _core.all_signs(y)
        s, b = self._planes(np.zeros(2 if two else y.size), _SIGNS if two else y, _WIDE)  # z = -q s there
        if np.isfinite(floor) and np.all(b - _WIDE * s**2 <= floor + _FLAT):
            return self._point(np.zeros(y.size), np.full(y.size, floor))
        if two:
            s, b = np.where(y > 0.0, s[0], s[1]), np.where(y > 0.0, b[0], b[1])
        point = self._point(s, b)
        self.renew(point, point.w)
        return point

    def near(self, scores: Array) -> DualPoint:
        """Return the point with the slopes of the loss at the scores: one product."""
        point = self._point(*self._planes(scores, self.risk.targets, 0.0))
        self.renew(point, np.zeros_like(point.w))
        return point

    def _planes(self, v: Array, y: Array, q: float) -> tuple[Array, Array]:
        """Return slopes and offsets of the planes that touch l(., y) at the proximal points of v."""
        s, b = np.empty(v.size), np.empty(v.size)
        _core.dual_start(self.risk.kernel, v, y, q, s, b, self.risk.n_threads)
        return s, b

    def _point(self, s: Array, b: Array) -> DualPoint:
        return DualPoint(np.zeros(self.risk.dim), s, b, np.arange(s.size), s.size)

    def offset(self, point: DualPoint) -> float:
        """Return sum p b; known shifts of the scores do not count."""
        return _core.inner(self.risk.full_weight, point.b)

    def _slopes(self, point: DualPoint) -> Array:
        return self.risk.full_weight * point.s

    def _visit(self, point: DualPoint, key: int, reach: float) -> tuple[float, float, float, int, int, int]:
        active = point.active[: point.n_active]
        estimate, movement, way, changed, n_active, entries, merges = _core.dual_epoch(
            *self._problem, point.w, point.s, point.b, active, key, reach, point.pace, self._scratch,
            self.risk.n_threads,
        )  # fmt: skip
        point.error += 8.0 * _EPS * merges * (point.length + way)  # each merge rounds w a few times
        return estimate, movement, way, changed, n_active, entries

    def _look(self, point: DualPoint, scores: Array, reach: float) -> tuple[float, float, float, float, int]:
        risk = self.risk
        return _core.dual_check(
            risk.kernel, scores, risk.targets, *self._rows, risk.offset, point.s, point.b, reach,
            point.active, risk.n_threads,
        )  # fmt: skip
