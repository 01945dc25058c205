"""The rows of a linear risk, visited one at a time: stochastic epochs and the plane that each leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._states import kept
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk
from bmrm.risks.normal_error import UNIT, norm_of, roundings

Order = npt.NDArray[np.int64]

_SAMPLE = 1000
_SMALLEST = 2.0**-40


@kept
@dataclass
class Course:
    """Where a stochastic method is: everything that it needs to go on.

    Attributes
    ----------
    w : array
        The current point.
    average : array, optional
        The average of the points so far, with weights 1, 2, 3, ...
    slopes, offsets : array
        A tangent ``s <x_i, w> + b`` of each row's loss: of the last visit or, where there is a normal, mixed from all
        visits so that the dual objective is large.
    normal : array, optional
        a = X'(p s), as of the end of the last epoch.
    center : array
        Where the dual holds the coordinates that are not penalized (see `RowVisits.plane`); 0 for the others.
    clock : array
        Steps, points in the average, rows since the last of these; and, for the rules of D09, steps since R was
        changed, the sum of the tau, R, and the largest subgradient of a row seen.
    curvature : array, optional
        For the diagonal quasi-Newton method.
    """

    w: Array
    average: Array | None
    slopes: Array
    offsets: Array
    normal: Array | None
    center: Array
    clock: Array = field(default_factory=lambda: np.zeros(7))
    curvature: Array | None = None

    def copy(self) -> Course:
        """Return a course that can go on by itself."""
        arrays = (self.w, self.average, self.slopes, self.offsets, self.normal, self.center, self.clock, self.curvature)
        return Course(*(None if array is None else array.copy() for array in arrays))  # type: ignore[arg-type]

    @property
    def point(self) -> Array:
        """The average, or the current point where no average has been taken yet or none is wanted."""
        return self.w if self.average is None or self.clock[1] == 0.0 else self.average

    @property
    def reach(self) -> float:
        """R of the rules of D09."""
        return float(self.clock[5])

    @reach.setter
    def reach(self, value: float) -> None:
        self.clock[5] = value


class RowVisits:
    """Draws rows and visits them.

    Rows of weight 0 are never drawn; the others are drawn alike and count p_i times their number.

    Parameters
    ----------
    risk : LinearRisk
        With a compiled loss that is a sum over rows.
    weights : array
        The regularizer's weights, one for each coordinate of w (or a single one for all).

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.risks.rows import RowVisits
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> visits = RowVisits(risk, np.ones(1))
    >>> course = visits.begin(np.zeros(1), average=False, mixed=True)
    >>> visits.descend(course, np.array([0, 1]), "sgd", lam=0.5, t0=3.0)
    >>> course.w, visits.plane(course, lam=0.5)[0]
    (array([0.8]), array([-0.5]))
    """

    def __init__(self, risk: LinearRisk, weights: Array) -> None:
        self.risk = risk
        self.weights: Array = np.ascontiguousarray(np.broadcast_to(weights, (risk.dim,)), dtype=np.float64)
        self.active: Order = np.arange(risk.design.n_rows, dtype=np.int64)
        self.factor: Array | None = None
        if risk.weight is not None:
            self.active = np.flatnonzero(risk.weight > 0.0).astype(np.int64)
            self.factor = self.active.size * risk.weight
        matrix = risk.design.matrix
        self.every = float(max(1, -(-risk.dim * matrix.n_rows // max(1, matrix.n_entries))))
        self._shrinks: Array = (self.weights > 0.0).astype(np.float64)
        self._metric: Array = 1.0 / np.where(self.weights > 0.0, self.weights, 1.0)
        self._plain = bool(np.all(self.weights[: matrix.n_cols] == 1.0))
        self._unpaid = 0.0

    def begin(self, w: Array, average: bool, mixed: bool) -> Course:
        """Return a course that starts at w. Until a row is visited its tangent is the floor of the loss.

        Parameters
        ----------
        w : array
        average : bool
            Whether to average the points.
        mixed : bool
            Whether to mix tangents for the dual of the l2 problem, instead of keeping the last ones.
        """
        m = self.risk.design.n_rows
        mean, normal = w.copy() if average else None, np.zeros(w.size) if mixed else None
        center = np.where(self._shrinks == 0.0, w, 0.0)
        return Course(w.copy(), mean, np.zeros(m), np.full(m, self.risk.floor), normal, center)

    def draw(self, rng: np.random.Generator) -> Order:
        """Return all rows that count, in random order."""
        return self.active[rng.permutation(self.active.size)]

    def descend(
        self,
        course: Course,
        order: Order,
        rule: str,
        *,
        lam: float,
        t0: float = 0.0,
        radius: float = np.inf,
        batch: int = 1,
    ) -> None:
        """Visit the rows with one of the rules for l2: sgd, folos, pegasos, adaptive, proximal.

        Weights of the regularizer are taken into the steps: those of coordinate j are divided by weight j, which is
        the same as a plain penalty on sqrt(weight_j) w_j.
        """
        self._pay(course, order)
        _core.descent_epoch(
            **self._arguments(course, order, lam), rule=rule, t0=t0, radius=radius, batch=batch, every=self.every
        )

    def shrink(
        self,
        course: Course,
        order: Order,
        *,
        lam: float,
        eta0: float,
        t0: float,
        power: float,
        learns: bool = False,
    ) -> None:
        """Visit the rows with soft thresholds (l1) or, if the course has a curvature, with its inverse as metric (l2).

        The steps are ``eta0 (1 + t / t0)^-power``; learns says whether the curvature is learned along the way.
        """
        self._pay(course, order)
        _core.shrinkage_epoch(
            **self._arguments(course, order, lam), weights=self.weights, eta0=eta0, t0=t0, power=power,
            every=self.every, learns=learns, curvature=course.curvature,
        )  # fmt: skip

    def plane(self, course: Course, lam: float) -> tuple[Array, float, float]:
        """Return a plane (a, b) below the risk and its steepness, from the tangents of all rows: one product.

        a = X'(p s) and b = sum_i p_i b_i, less what rounding may have added. Coordinates that are not penalized are
        penalized in the dual, around a center that follows (the method of multipliers), until a is 0 there.
        """
        risk, p = self.risk, self.risk.full_weight
        counted = p * course.slopes
        a = risk.pull_back(counted, float(np.sum(counted)))
        if course.normal is not None:
            course.normal = a
            course.center = np.where(self._shrinks == 0.0, course.center - self._metric * a / lam, 0.0)
        rounding = (32.0 + roundings(p.size)) * UNIT * _core.inner_of_sizes(p, course.offsets)
        return a, _core.inner(p, course.offsets) - rounding, norm_of(counted)

    def tuned(
        self,
        course: Course,
        rng: np.random.Generator,
        first: float,
        trial: Callable[[Course, Order, float], None],
        penalty: Callable[[Array], float],
    ) -> float:
        """Return the step with which one visit of a sample of rows does best on that sample, by a factor of 2.

        Parameters
        ----------
        course : Course
            Left as it is.
        rng : Generator
            Draws the sample of at most 1000 rows.
        first : float
            The first step tried; it is divided by 4 until it is better than none, then doubled or halved as long as
            that helps.
        trial : callable
            ``trial(course, order, eta)`` visits the rows.
        penalty : callable
            ``penalty(w)`` is the regularizer's part of the objective.
        """
        order = self.draw(rng)[:_SAMPLE]

        def objective(eta: float) -> float:
            tried = course.copy()
            tried.average = tried.normal = None
            trial(tried, order, eta)
            value = float(penalty(tried.w)) + self._sample_loss(tried.w, order)
            return value if np.isfinite(value) else np.inf

        bound = self._sample_loss(course.w, order) + float(penalty(course.w))
        eta, best = first, objective(first)
        while not best < bound:  # worse than no step at all: far too long, or there is nothing to gain
            if eta < _SMALLEST * first or not 0.25 * eta > 0.0:  # next to 0 at once where the rows' lengths overflow
                return first
            eta, best = 0.25 * eta, objective(0.25 * eta)
        for factor in (2.0, 0.5):
            value = objective(factor * eta)
            while value < best and _SMALLEST * first < eta < first / _SMALLEST:
                eta, best = factor * eta, value
                value = objective(factor * eta)
        return eta

    def typical_length(self) -> float:
        """Return the mean of |x_i|^2 over a few rows, as a normal number: steps are divided by it."""
        rows, numbers = self.active[:: max(1, self.active.size // _SAMPLE)], np.finfo(np.float64)
        return float(np.clip(np.mean(self.risk.design.row_norms()[rows]), numbers.tiny, numbers.max))

    def _sample_loss(self, w: Array, order: Order) -> float:
        """Return the mean loss of some rows."""
        risk = self.risk
        columns, constant = risk.design.split(w)
        scores, slopes = np.empty(order.size), np.empty(order.size)
        risk.design.matrix.dot_rows(order, columns, scores)
        scores += constant
        if risk.offset is not None:
            scores += risk.offset[order]
        weight = None if self.factor is None else self.factor[order] / order.size
        value, _ = risk.kernel.evaluate(scores, risk.targets[order], weight, 1.0 / order.size, slopes, 1)
        return float(value)

    def _arguments(self, course: Course, order: Order, lam: float) -> dict[str, Any]:
        risk = self.risk
        return {
            "X": risk.design.matrix, "loss": risk.kernel, "order": order, "y": risk.targets, "factor": self.factor,
            "shift": risk.offset, "slopes": course.slopes, "offsets": course.offsets,
            "u": self._dual_point(course, lam), "share": 1.0 / max(1, self.active.size), "metric": self._metric,
            "shrinks": self._shrinks, "plain": self._plain, "lam": lam, "w": course.w, "average": course.average,
            "clock": course.clock,
        }  # fmt: skip

    def _dual_point(self, course: Course, lam: float) -> Array | None:
        """Return the minimizer of lam Omega(w) + <a, w>; coordinates that are not penalized stay near their center."""
        return None if course.normal is None else np.asarray(course.center - self._metric * course.normal / lam)

    def _pay(self, course: Course, order: Order) -> None:
        """Count the products: two for w and two for the dual point, as far as whole passes have come together."""
        self._unpaid += (2.0 if course.normal is None else 4.0) * order.size / max(1, self.active.size)
        whole = int(self._unpaid)
        self._unpaid -= whole
        self.risk.products += whole
