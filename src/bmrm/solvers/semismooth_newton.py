"""Semismooth Newton steps inside a proximal point method on the dual: small lam, high accuracy, any row loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from bmrm import _core
from bmrm._traits import Trait
from bmrm.bundle.master import Master, lower_bound, master_for
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array
from bmrm.risks.curvature import RowCurvature
from bmrm.risks.envelope import Envelope, Smoothed, plane
from bmrm.risks.kept_gram import KeptGram
from bmrm.risks.linear import LinearLine, LinearPoint, LinearRisk
from bmrm.solvers.base import Solver, Start, Step, is_turn, new_bundle
from bmrm.solvers.bounds import bound_of
from bmrm.solvers.elastic_system import ElasticSystem
from bmrm.solvers.newton_system import MOST_COLUMNS, NewtonSystem

_REFRESH = 20
_MOST_INNER = 30
_FEW, _SHORT = 8, 0.1  # steps that together lead less far, 1 being a full step: sigma is too large
_TRIALS = 40
_ROWS_PER_COLUMN = 8.0
_SHORTEST = 1e-10  # step: below, slopes are rounding
_LEVENBERG = 1e-6
_LEAST_SHARE = 0.1  # of the objective, in the first width
_LEAST_SIGMA = 1e-300  # the envelope is 1 / sigma wide: with targets of 1e308 that would overflow
_TINY = float(np.finfo(np.float64).tiny)
_FLAT = 0.3  # of the first slope on a line: there the search ends
_ENOUGH = 0.1  # of the excess: with that error an inner problem is solved


@dataclass(frozen=True)
class SemismoothNewton(Solver, name="semismooth_newton"):
    """Augmented Lagrangian on the dual, its inner problems solved by Newton's method (any loss of rows).

    The loop, s one slope for each row (a point of the dual) and q = 1/sigma::

        repeat
            w = argmin lam Omega(w) + sum_i p_i M_i(<x_i, w>),   M_i(f) = min_z l_i(z) + s_i (f - z) + (f - z)^2/2q
                by Newton steps d = -(lam S + X' diag(p_i M_i'') X)^-1 gradient        M_i'' = 0 but on a kink
                with absolute values in Omega, d leads to the minimum of their sum with the quadratic model
            s_i = M_i'(<x_i, w>)                                 the multiplier step
            sigma = 25 sigma if that took few Newton steps, less if it took many

    The first s are half the slopes at the start or, if another solver has found some, its own, which are near those
    of the solution where w may not be.

    M_i is smooth, and M_i'' differs from 0 only in rows that lie on a kink or on a curved piece: few, near the
    solution, and only these are read for the Newton matrix. The slopes of every iterate are a feasible point of the
    dual, that is, a plane below R. An inner problem is solved as soon as its error is below what separates its
    slopes from those of J.

    Parameters
    ----------
    planes : int
        Number of planes kept for the bound.
    most_columns : int
        Up to so many columns the Newton matrix is formed and factored; above, conjugate gradients have to do.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=1e-6), "semismooth_newton", tol=1e-6).converged
    True

    References
    ----------
    X. Li, D. Sun, K.-C. Toh, A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
    problems, 2018.
    """

    planes: int = 12
    most_columns: int = MOST_COLUMNS

    needs = frozenset({Trait.ROWS, Trait.ELASTIC})
    refuses = frozenset({Trait.BOUNDS, Trait.UNBOUNDED_RISK})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each Newton step."""
        run = _Run(problem, start, self)
        if start.memory is None:
            yield run.step()
        while True:
            run.advance()
            yield run.step()

    def after_cut(self, problem: Problem, memory: Any) -> Any:
        """Return the memory: a step changes nothing in it."""
        return memory


class _Run:
    """The inner iterate w, the center s, and the planes of one run."""

    def __init__(self, problem: Problem, start: Start, settings: SemismoothNewton) -> None:
        risk = cast(LinearRisk, problem.risk)
        regularizer = cast(Separable, problem.regularizer)
        self.problem, self.risk, self.p = problem, risk, risk.full_weight
        self.bundle = start.bundle or new_bundle(problem, settings.planes)
        self.master: Master = master_for(regularizer)
        self.regularizer = regularizer
        u, self.r = (problem.lam * np.broadcast_to(part, (risk.dim,)) for part in regularizer.parts)
        self.free = regularizer.free
        self.gram = KeptGram() if start.memory is None else start.memory["gram"]
        self.elastic = ElasticSystem(problem, settings.most_columns, self.gram) if u.any() else None
        curvature = RowCurvature(risk)
        self.system = NewtonSystem(curvature, self.r, settings.most_columns, gram=self.gram)
        self.whole: Array = curvature.diagonal(self.p) if self.free.size else np.zeros(0)
        self.best, self.upper, self.lower = start.w, np.inf, -np.inf
        if start.memory is None:
            self.point = self._better_of(start.w, np.zeros(risk.dim))
            self.inner, self.iteration, self.solved, self.way, self.error = 0, 0, False, 0.0, np.inf
            center, self.sigma = self._first_center()
            center = center if start.slopes is None else start.slopes.copy()
        else:
            self._recall(start.memory)
            center = start.memory["center"]
        self.envelope = Envelope(risk, center, 1.0 / self.sigma)
        self.rows = self.envelope.at(self.point.scores)
        self._look()

    def _better_of(self, w: Array, origin: Array) -> LinearPoint:
        """Return the start, or w = 0 if that is better: slopes far from the solution are a bad center."""
        point = self.risk.at(w)
        if not w.any():
            return point
        zero = self.risk.at(origin)
        return point if self._objective(point) <= self._objective(zero) else zero

    def _objective(self, point: LinearPoint) -> float:
        return self.problem.lam * self.problem.regularizer.value(point.w) + point.value

    def _first_center(self) -> tuple[Array, float]:
        """Return half the slopes at the start, and a width with which most rows count in the first Newton step."""
        value, weighted, _ = self.risk.loss_and_slopes(self.point.scores)
        slopes = np.divide(weighted, self.p, out=np.zeros_like(weighted), where=self.p > 0.0)
        square = _core.inner(weighted, slopes)
        value = max(value, _LEAST_SHARE * self._objective(self.point))  # a start may lie on the kinks
        if not (np.isfinite(value) and value > 0.0 and square > 0.0):
            return 0.5 * slopes, 1.0
        sigma = square / (3.0 * value)
        return 0.5 * slopes, sigma if sigma >= _LEAST_SIGMA else 1.0

    def _recall(self, memory: dict[str, Any]) -> None:
        self.point = self.risk.at(memory["w"], memory["scores"])
        self.inner, self.iteration, self.sigma = memory["inner"], memory["iteration"], memory["sigma"]
        self.upper, self.lower, self.solved = memory["upper"], memory["lower"], memory["solved"]
        self.way, self.error = memory["way"], memory["error"]

    def _look(self) -> None:
        """Take the plane of the envelope's slopes, and what separates the inner problem from J."""
        proven = plane(self.risk, self.rows, self.point.scores)
        self.a, self.b, self.steepness = proven.a, proven.b, proven.steepness
        self.excess = max(0.0, self.point.value - proven.loss - proven.moved)
        objective = self._objective(self.point)
        if objective < self.upper:
            self.best, self.upper = self.point.w, objective

    def step(self) -> Step:
        """Add the plane and return what is known."""
        self._keep_plane()
        if self.free.size > 1 and not self.lower > self.risk.floor and is_turn(self.iteration + 1):
            self._surround()
        self.lower = max(self.lower, self._bound())
        memory = {
            "w": self.point.w,
            "scores": self.point.remembered,
            "center": self.envelope.center,
            "sigma": self.sigma,
            "inner": self.inner,
            "iteration": self.iteration,
            "upper": self.upper,
            "lower": self.lower,
            "solved": self.solved,
            "way": self.way,
            "error": self.error,
            "gram": self.gram,
        }
        return Step(self.best, self.upper, self.lower, self.bundle, memory)

    def _keep_plane(self) -> None:
        """Add the plane; where no master does, note that it is the one in use, so that old planes make room."""
        self.bundle.add_plane(self.a, self.b, self.steepness)
        if len(self.bundle) >= self.bundle.max_cuts and not self.free.size:
            multipliers = np.zeros(len(self.bundle))
            multipliers[-1] = 1.0
            self.bundle.record(multipliers)

    def _surround(self) -> None:
        """Add planes on both sides of every free coordinate: those of the run are flat there and bound none of them."""
        ends = np.sqrt((self.upper - self.risk.floor) / np.maximum(self.whole[self.free], _TINY))
        for j, end in zip(self.free, ends):
            for side in (-end, end):
                w = self.best.copy()
                w[j] += side
                self.bundle.add_point(self.risk.touch(w))

    def _bound(self) -> float:
        """Return the bound of the newest plane, which is the best by far; of all of them where it says too little."""
        if not self.free.size and (self.iteration > 0 or self.elastic is not None):
            errors, upper, near = self.bundle.errors_of(self.steepness), self.upper, self.best
            known = self.bundle, self.a, self.b, np.inf, errors, upper, near
            return lower_bound(self.regularizer, self.problem.lam, *known)
        return bound_of(self.problem, self.master, self.bundle, self.upper, self.best)

    def advance(self) -> None:
        """Take a multiplier step if the inner problem is solved, then a Newton step."""
        self.iteration += 1
        if self.iteration % _REFRESH == 0:  # scores combined many times have lost some digits
            self.point = self.risk.at(self.point.w)
        if self.solved:
            self._recenter(self.rows.slopes, _growth(self.inner, self._spare()))
        elif self.inner >= _MOST_INNER or (self.inner >= _FEW and self.way < _SHORT):
            self._recenter(self.envelope.center, 0.2)
        bends = self.rows.bends
        t = self._newton_step()
        self.inner, self.way = self.inner + 1, self.way + t
        self._look()
        error, before = self._error(), self.error
        # Where the same rows lie on kinks, Newton's model was exact: what is left of the error is rounding.
        in_vain = error > 0.5 * before and (t >= 1.0 or t <= _SHORTEST) and np.array_equal(bends, self.rows.bends)
        self.solved, self.error = in_vain or self._is_solved(error), error

    def _error(self) -> float:
        """Return about how far the inner problem is from solved, in units of the objective."""
        w = self.point.w
        if self.elastic is None:
            violation, diagonal = self.r * w + self.a, self.system.diagonal
        else:
            violation, diagonal = self.elastic.penalty.violation(w, self.a, slice(None)), self.elastic.diagonal
        error = 0.5 * float((violation**2 / np.where(self.r > 0.0, self.r, diagonal)).sum())
        if self.elastic is not None:  # the bound must be good as well: slopes over their threshold are scaled down
            theta = self.regularizer.largest_multiple(self.a, self.problem.lam)
            error = max(error, (1.0 - theta) * (self.b - self.bundle.floor))
        return error

    def _is_solved(self, error: float) -> bool:
        # Far from the solution the excess is large for another reason, therefore the gap.
        return error <= max(_ENOUGH * min(self.excess, self.upper - self.lower), 1e-16 * abs(self.upper))

    def _spare(self) -> float:
        """Return how many times fewer rows on kinks would still be several for each column."""
        return float(np.count_nonzero(self.rows.bends)) / (_ROWS_PER_COLUMN * self.risk.dim)

    def _recenter(self, center: Array, factor: float) -> None:
        self.sigma *= factor
        self.envelope = Envelope(self.risk, center, 1.0 / self.sigma)
        self.rows = self.envelope.at(self.point.scores)
        weighted = self.p * self.rows.slopes
        self.a = self.risk.pull_back(weighted, float(weighted.sum()))
        self.inner, self.way, self.error = 0, 0.0, np.inf

    def _newton_step(self) -> float:
        target = self._target(self.p * self.rows.bends)
        line = self.point.toward(target)
        t, self.rows = self._search(line)
        self.point = line.at(t)
        if t == 1.0:
            self.point.w = target  # with its zeros
        return t

    def _target(self, c: Array) -> Array:
        """Return the minimizer of Newton's model."""
        w = self.point.w
        if self.elastic is not None:
            return self.elastic.minimize(w, self.a, c, self.sigma)
        if self.whole.size:  # a tiny proximal term: rows on a kink may be fewer than free coordinates
            self.system.r = np.where(self.r > 0.0, self.r, _LEVENBERG * self.sigma * self.whole)
        step: Array = self.system.at(c)(self.r * w + self.a, 1e-3)
        return w - step

    def _search(self, line: LinearLine) -> tuple[float, Smoothed]:
        """Return a step at which the inner objective's slope has nearly vanished: Newton steps within a bracket."""
        d, u, lam = line.direction, line.score_direction, self.problem.lam
        omega = self.regularizer.along(self.point.w, d)
        enough = _FLAT * abs(_core.inner(self.a, d) + lam * omega.evaluate(0.0)[2])
        t, low, high, rows = 1.0, 0.0, np.inf, None
        for _ in range(_TRIALS):
            slope, bend, rows = self.envelope.slope_along(self.point.scores, u, t, rows)
            _, left, right = omega.evaluate(t)
            left, right = slope + lam * left, slope + lam * right
            if max(left, -right) <= enough or t <= _SHORTEST:
                break
            low, high = (t, high) if right < 0.0 else (low, t)
            t = _next_trial(t, right if right < 0.0 else left, bend + lam * omega.q, low, high)
        assert rows is not None
        return t, rows


def _next_trial(t: float, slope: float, bend: float, low: float, high: float) -> float:
    """Return the Newton step for the slope's root, or a point of the bracket where that leads outside."""
    trial = t - slope / bend if bend > 0.0 else np.inf
    if low < trial < high and np.isfinite(trial):
        return trial
    if not np.isfinite(high):
        return 4.0 * t
    return 0.5 * (low + high) if low > 0.0 else 0.1 * high


def _growth(newton_steps: int, spare: float) -> float:
    """Return the factor for sigma after an inner problem that took so many steps.

    Rows on kinks grow rarer in proportion: few steps allow as much as leaves enough of them, at least 5 and at most 25.
    """
    for most, factor in ((4, min(max(spare, 5.0), 25.0)), (8, min(max(0.5 * spare, 2.5), 5.0)), (15, 1.4)):
        if newton_steps <= most:
            return factor
    return 0.7
