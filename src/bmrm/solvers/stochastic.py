"""What the stochastic solvers share: epochs, averages, and a certificate from the rows' tangents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm._deadline import look
from bmrm._states import kept
from bmrm._traits import Trait
from bmrm.bundle.master import master_for
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk
from bmrm.risks.rows import Course, Order, RowVisits
from bmrm.solvers.base import Solver, Start, Step, bundle_for, solve_master, touch_near
from bmrm.solvers.model_bound import model_bound

_SLOW = 0.5  # J falls by less than this share of the gap in an epoch: the bound is what is missing


@kept
@dataclass
class Progress:
    """The memory of a stochastic run: where it is, its settings, and the best point."""

    course: Course
    settings: dict[str, float]
    randomness: Any
    best: Array
    upper: float
    lower: float = -np.inf
    epochs: int = 0
    target: Array | None = None  # the minimizer of the last master


@dataclass
class Carried:
    """What a stochastic method takes along from one batch of rows to the next: all of its course but the rows."""

    w: Array
    average: Array | None
    clock: Array
    curvature: Array | None
    settings: dict[str, float]

    @property
    def point(self) -> Array:
        """The average, or the current point where there is none."""
        return self.w if self.average is None else self.average


@dataclass(frozen=True)
class Stochastic(Solver):
    """A method that visits one row, or a few, for each step; one epoch for each `Step` of the run.

    The certificate comes from tangents of the rows' losses. Taken at whatever points, with slopes s_i and offsets
    b_i, they add up to a plane below the risk, which is a point of the dual problem::

        a = X'(p s),   b = sum_i p_i b_i,   lower = b + min over w of lam Omega(w) + <a, w>

    With l2 the minimizer u is at hand, and whenever a row is visited its tangent at u is mixed into (s_i, b_i) with the
    weight that raises the bound most (a Frank-Wolfe step on the block of that row): the row is in the cache anyway.
    Otherwise the tangents of the last visits are kept. The epoch's plane and one more go into a small bundle, whose
    master gives the bound and also serves coordinates that are not penalized: with l2 that at the point evaluated,
    otherwise that at the master's minimizer, as in `BMRM`.

    Parameters
    ----------
    average : bool
        Whether to return the average of the points, with weights 1, 2, 3, ..., instead of the last one. It is taken
        every so many rows that it costs no more than the steps.
    max_cuts : int
        The most planes kept for the bound.
    """

    average: bool = True
    max_cuts: int = 30

    needs = frozenset({Trait.ROWS, Trait.PURE})
    refuses = frozenset({Trait.BOUNDS})

    @abstractmethod
    def begin(self, problem: Problem, visits: RowVisits, course: Course, rng: np.random.Generator) -> dict[str, float]:
        """Prepare the course and return the settings that stay the same for the whole run."""

    @abstractmethod
    def epoch(
        self, problem: Problem, visits: RowVisits, course: Course, order: Order, settings: dict[str, float]
    ) -> None:
        """Visit the rows in this order."""

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each epoch."""
        visits = visits_of(problem)
        bundle, master = bundle_for(problem, start, self.max_cuts), master_for(problem.regularizer)
        rng = np.random.Generator(np.random.PCG64(start.seed))
        progress: Progress = start.memory or self._started(problem, visits, bundle, start, rng)
        rng.bit_generator.state = progress.randomness
        while True:
            order = visits.draw(rng)
            course = progress.course.copy()  # an interrupted epoch leaves no trace
            self.epoch(problem, visits, course, order, progress.settings)
            look()
            plane = visits.plane(course, problem.lam)
            point = problem.risk.at(course.point)
            progress.course, progress.randomness = course, rng.bit_generator.state
            objective, before = problem.lam * problem.regularizer.value(point.w) + point.value, progress.upper
            if objective < progress.upper:
                progress.best, progress.upper = point.w.copy(), objective
            bundle.add_plane(*plane)
            if course.normal is not None:
                bundle.add_point(point)
            elif progress.target is not None:
                limit = 1e6 * (1.0 + abs(progress.upper))
                bundle.add_point(touch_near(problem, progress.target, progress.best, limit))
            if Trait.FREE_COORDINATES in problem.traits:  # far from balance, the bound depends on where a master was
                master = master_for(problem.regularizer)
            solution = solve_master(problem, master, bundle, progress.upper, progress.best)
            progress.target, progress.lower = solution.w, max(progress.lower, solution.lower)
            progress.epochs += 1
            slow = before - progress.upper < _SLOW * (progress.upper - progress.lower)
            if slow:
                found = model_bound(problem, progress.best, progress.upper, progress.epochs)
                progress.lower = max(progress.lower, found)
            yield Step(progress.best, progress.upper, progress.lower, bundle, progress)

    def after_cut(self, problem: Problem, memory: Progress) -> Progress:
        """Return the memory: the epoch that was cut has left no trace."""
        return memory

    def carry_on(self, problem: Problem, w: Array, carried: Carried | None, rng: np.random.Generator) -> Carried:
        """Run one epoch on a batch of rows, without a certificate.

        Parameters
        ----------
        problem : Problem
            Of the batch.
        w : array
            Where to start if nothing was carried along.
        carried : Carried, optional
            What the last batch left: steps go on from there.
        rng : Generator
            Draws the order of the rows.
        """
        visits = visits_of(problem)
        if carried is None:
            course = visits.begin(w, self.average, mixed=False)
            settings = self.begin(problem, visits, course, rng)
        else:
            course = visits.begin(carried.w, self.average, mixed=False)
            course.average, course.clock, course.curvature = carried.average, carried.clock, carried.curvature
            settings = carried.settings
        course = course.copy()
        self.epoch(problem, visits, course, visits.draw(rng), settings)
        average = None if course.average is None else course.point
        return Carried(course.w, average, course.clock, course.curvature, settings)

    def _started(
        self, problem: Problem, visits: RowVisits, bundle: Bundle, start: Start, rng: np.random.Generator
    ) -> Progress:
        point = problem.risk.touch(start.w)
        bundle.add_point(point)
        upper = problem.lam * problem.regularizer.value(start.w) + point.value
        course = visits.begin(start.w, self.average, Trait.QUADRATIC in problem.traits)
        settings = self.begin(problem, visits, course, rng)
        return Progress(course, settings, rng.bit_generator.state, start.w.copy(), upper)


def visits_of(problem: Problem) -> RowVisits:
    """Return the rows of the problem's risk."""
    risk = problem.risk
    if not isinstance(risk, LinearRisk):
        raise TypeError(f"rows can be visited of a LinearRisk only, not of a {type(risk).__name__}")
    return RowVisits(risk, getattr(problem.regularizer, "s", np.ones(1)))


def radius_of(problem: Problem) -> float:
    """Return a bound of sqrt(2 Omega(w)) at the minimizer of J for l2: sqrt((R(0) - floor) / lam).

    The minimizer w has a subgradient a of R with lam Omega'(w) = -a, so R(0) >= R(w) - <a, w> = R(w) + 2 lam Omega(w).
    For the hinge loss this is the 1 / sqrt(lam) of Pegasos, because R(0) = 1.
    """
    risk = problem.risk
    value = risk.at(np.zeros(risk.dim)).value
    return float(np.sqrt(max(value - risk.floor, 0.0) / problem.lam))


def into_ball(problem: Problem, course: Course, radius: float) -> None:
    """Move the start of a course to the nearest point with sqrt(2 Omega(w)) <= radius."""
    norm = float(np.sqrt(2.0 * problem.regularizer.value(course.w)))
    if norm > radius:
        course.w *= radius / norm


def tuned_t0(problem: Problem, visits: RowVisits, course: Course, rng: np.random.Generator, rule: str) -> float:
    """Return t0 so that the first step 1 / (lam (1 + t0)) does well on a sample of the rows."""
    lam = problem.lam

    def trial(tried: Course, order: Order, eta: float) -> None:
        visits.descend(tried, order, rule, lam=lam, t0=_steps_before(lam * eta))

    first = min(1.0 / visits.typical_length(), 1.0 / lam)
    eta = visits.tuned(course, rng, first, trial, lambda w: lam * problem.regularizer.value(w))
    return max(_steps_before(lam * eta) - 1.0, 0.0)


def _steps_before(share: float) -> float:
    """Return 1 / share, as large as numbers get where that is 0."""
    return 1.0 / max(share, 1.0 / float(np.finfo(np.float64).max))


def tuned_eta(problem: Problem, visits: RowVisits, course: Course, rng: np.random.Generator) -> float:
    """Return a step that does well on a sample of the rows, for l1 or with the course's curvature as metric."""
    lam = problem.lam

    def trial(tried: Course, order: Order, eta: float) -> None:
        visits.shrink(tried, order, lam=lam, eta0=eta, t0=np.inf, power=1.0)

    first = 1.0 / visits.typical_length() if course.curvature is None else 1.0
    return visits.tuned(course, rng, first, trial, lambda w: lam * problem.regularizer.value(w))


def checked_batch(batch: int, solver: str) -> None:
    """Raise unless the number of rows for each step is a whole number of at least 1."""
    if not isinstance(batch, (int, np.integer)) or isinstance(batch, bool) or batch < 1:
        raise ValueError(f"parameter 'batch' of solver '{solver}' must be a whole number of at least 1, got {batch!r}")
