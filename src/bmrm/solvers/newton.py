"""Newton's method with a line search, for smooth losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from bmrm import _core, linesearch
from bmrm._traits import Trait
from bmrm.bundle.master import Master, lower_bound, master_for
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array
from bmrm.risks.columns import ColumnModel
from bmrm.risks.curvature import RowCurvature
from bmrm.risks.kept_gram import KeptGram
from bmrm.risks.linear import LinearLine, LinearPoint, LinearRisk
from bmrm.solvers.base import Solver, Start, Step, new_bundle
from bmrm.solvers.bounds import FEW_FREE, FlatBound, bound_with
from bmrm.solvers.lbfgs import tightened
from bmrm.solvers.newton_matrix import Formed, StepMatrix
from bmrm.solvers.newton_system import FINE_RIDGE, MOST_COLUMNS, RIDGE, NewtonSystem
from bmrm.solvers.newton_wide import WideRun

_REFRESH = 20
_FLAT = 0.1  # of the slope before a step: where no more is left of it, its length is right
# Of the gradient, left by conjugate gradients for a matrix that is not formed: a better step takes as many products as
# the next one. There a search costs little beside the step (reuters, squared_hinge, 1e-6, to 1e-3: 90 ms, without 136).
_ROUGH = 0.1
_CLEARLY = 1e-6  # of J: rounding is far less
_MASTER_HELPS = 3.0  # by so much, at most, a mixture of planes is better than the last one


@dataclass(frozen=True)
class Newton(Solver, name="newton"):
    """Newton's method for smooth and piecewise quadratic losses: a handful of steps at any lam.

    Losses with k scores for each row (`softmax` and its like) always take conjugate gradients: see `WideRun`.

    The loop::

        repeat
            H = lam S + X' diag(p_i l''(f_i)) X                 rows with l'' = 0 are not read
            d = -H^-1 gradient of J                             Cholesky; if columns are many that of the rows with
                                                                l'' > 0, if these are few, else conjugate gradients,
                                                                as with many and long rows, then with a sample of H
            w = w + d if J is flat there, else argmin of J along w + t d          from cached scores
            lower = the best bound from the last planes

    H need not be exact: far from the minimum, and where few steps are left to the gap asked for, that of a quarter of
    the rows takes its place if they are many; and the step that is to close the gap has the H of the step before.

    A step of length 1 is not taken for granted: where the loss overflows or its curvature vanishes the
    search finds the right length. The bound of the newest plane is J(w) - |gradient|^2 / (2 lam), so it closes as
    fast as Newton's method converges. Coordinates that are not penalized get a second plane on the other side of
    their minimum, so that both together have no slope in that direction.

    Parameters
    ----------
    planes : int
        Number of planes kept for the bound.
    most_columns : int
        Up to so many columns H is formed and factored; above, its products with vectors have to do.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Logistic())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "newton", tol=1e-9).converged
    True

    References
    ----------
    C.-J. Lin, R. C. Weng, S. S. Keerthi, Trust region Newton method for large-scale logistic regression, 2008.
    """

    planes: int = 12
    most_columns: int = MOST_COLUMNS

    needs = frozenset({Trait.SMOOTH_RISK, Trait.CURVED_ROWS, Trait.QUADRATIC})
    refuses = frozenset({Trait.BOUNDS, Trait.UNBOUNDED_RISK})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each Newton step; end when neither J nor its gradient gets smaller."""
        run = _Run(problem, start, self) if Trait.ROWS in problem.traits else WideRun(problem, start, self.planes)
        if start.memory is None:
            yield run.step()
        while run.advance():
            yield run.step()
        yield replace(run.last_step(), ended=True)

    def after_cut(self, problem: Problem, memory: Any) -> Any:
        """Return the memory: a step changes nothing in it."""
        return memory


class _Run:
    """The point, its gradient and the planes of one run."""

    def __init__(self, problem: Problem, start: Start, settings: Newton) -> None:
        risk = cast(LinearRisk, problem.risk)
        regularizer = cast(Separable, problem.regularizer)
        self.problem, self.risk = problem, risk
        self.bundle = start.bundle or new_bundle(problem, settings.planes)
        self.master: Master = master_for(regularizer)
        self.r: Array = problem.lam * np.broadcast_to(regularizer.s, (risk.dim,))
        self.free = regularizer.free
        self.curvature = RowCurvature(risk)
        self.flat = FlatBound(problem) if self.free.size > 1 else None
        self.iteration: int
        self.lower: float
        gram = KeptGram() if Trait.PIECEWISE in risk.traits else None
        begun = (start.w, None, 0, None, risk.floor, Formed(), gram)
        w, upper, self.iteration, scores, self.lower, formed, gram = start.memory or begun
        self.system = NewtonSystem(
            self.curvature, self.r, settings.most_columns, RIDGE if self.flat is None else FINE_RIDGE, gram
        )
        self._by_products = not self.system.forms_matrix and self.flat is None
        exact = self._by_products or self.flat is not None
        self.tol, self.matrix = start.tol, StepMatrix(self.system, self.curvature, formed, exact)
        self._move_to(risk.at(w, scores))
        self.best, self.best_upper = self.point.w, self.upper
        if upper is not None:
            self.best, self.best_upper = start.w, upper

    def _move_to(self, point: LinearPoint) -> None:
        self.point = point
        self.upper = self._objective(point)
        self.gradient = self._gradient(point)

    def _objective(self, point: LinearPoint) -> float:
        return self.problem.lam * self.problem.regularizer.value(point.w) + point.value

    def _gradient(self, point: LinearPoint) -> Array:
        return self.r * point.w + point.subgradient

    def step(self, helps: float = _MASTER_HELPS) -> Step:
        """Add the plane at the point and return what is known."""
        problem, point, bundle = self.problem, self.point, self.bundle
        if self.free.size > FEW_FREE:
            bundle.add_point(point)
        else:
            if self.free.size and self.matrix.formed.used:
                self._add_plane_beyond()
            helps = np.inf if self._by_products else helps  # the master costs little beside such a step
            lower = bound_with(problem, self.master, bundle, self.best_upper, point, self.tol, helps)
            self.lower = max(self.lower, lower)
        kept = (self.lower, self.matrix.formed, self.system.gram)
        memory = (point.w, self.best_upper, self.iteration, point.remembered, *kept)
        return Step(self.best, self.best_upper, self.lower, bundle, memory)

    def last_step(self) -> Step:
        """Return what is known with planes close to the point on both sides of each free coordinate."""
        step = self.step(np.inf)
        if not 0 < self.free.size <= FEW_FREE:
            return step
        lower = tightened(self.problem, self.master, self.bundle, self.best_upper, self.point)
        return replace(step, lower=max(lower, step.lower))

    def _add_plane_beyond(self) -> None:
        """Add a plane as far behind the minimum of the free coordinates as the point is before it."""
        w = self.point.w.copy()
        ahead = -2.0 * self.gradient[self.free] / self.system.diagonal[self.free]
        least = 1e-8 * (1.0 + np.abs(w[self.free]))
        w[self.free] += np.copysign(np.maximum(np.abs(ahead), least), ahead)
        self.bundle.add_point(self.risk.touch(w))

    def advance(self) -> bool:
        """Take one Newton step; False if it makes nothing better."""
        self.iteration += 1
        if self.iteration % _REFRESH == 0:  # scores combined many times have lost some digits
            self._move_to(self.risk.at(self.point.w))
        exact = self.matrix.choose(self.point.scores, self.best_upper, self.lower, self.tol)
        if not self._moved():
            self.matrix.choose_exact(self.point.scores)
            if exact or not self._moved():
                return False
        if self.upper < self.best_upper:
            self.best, self.best_upper = self.point.w, self.upper
        return True

    def _moved(self) -> bool:
        """Take a step with the matrix chosen; False if it makes nothing better."""
        accuracy = 1e-2 if self.iteration < 4 else 1e-4 if self.flat is None else 1e-8
        if self._by_products:
            accuracy = _ROUGH
        line = self.point.toward(self.point.w - self.matrix.solve(self.gradient, accuracy))
        if self.flat is not None or (self._by_products and Trait.PIECEWISE in self.risk.traits):
            self.lower = max(self.lower, self._predicted_bound(line))
        t = linesearch.minimize(self.problem, line) if self._by_products else self._length(line)
        self.matrix.note(t)
        moved = line.at(t)
        if self._is_lower(moved):
            self._move_to(moved)
            return True
        return self._polished(line.at(1.0))

    def _length(self, line: LinearLine) -> float:
        """Return 1 or, by the slopes at 0 and 1, the next guess, if J has fallen and is nearly flat there; else search.

        What is computed there is needed anyway.
        """
        before, t, guess = _core.inner(self.gradient, line.direction), 1.0, 1.0
        for _ in range(2):
            end = line.at(t)
            if not self._objective(end) < self.upper:
                break
            after = _core.inner(self.r * end.w, line.direction) + line.slope_at(t)
            if abs(after) <= _FLAT * abs(before):
                return t
            guess, t = t, t * before / (before - after) if after > before else np.inf
            if not 0.1 <= t <= 4.0:
                break
        return linesearch.minimize(self.problem, line, guess, _FLAT)

    def _is_lower(self, moved: LinearPoint) -> bool:
        """Whether J is lower there, by more than rounding where that may matter: it costs as much as the loss twice."""
        objective = self._objective(moved)
        if objective < self.upper - _CLEARLY * abs(self.upper):
            return True
        return objective + moved.rounding < self.upper + self.point.rounding

    def _predicted_bound(self, line: LinearLine) -> float:
        """Return the bound of the slopes that the step leads to by the quadratic model: flat in all free directions.

        Of a piecewise quadratic loss with many columns it is far better than the one at the point: small steps, which
        lam divides by, change the slopes of all rows at once (farm_ads, squared_hinge, 1e-6, after one step: 0.0015
        and 1e-7, where the minimum is 0.00156).
        """
        problem = self.problem
        c = self.curvature.at(self.point.scores)
        plane = ColumnModel(self.risk).plane(self.point, c, line.score_direction, False)
        if self.flat is None:
            known = self.bundle, plane.a, plane.offset(1.0), np.inf, self.bundle.errors_of(plane.steepness)
            return lower_bound(problem.regularizer, problem.lam, *known, self.best_upper, self.best)
        slopes, near = self.risk.full_weight * plane.slopes, self.point.w + line.direction
        return self.flat.of(self.bundle, plane.a, plane.offset(1.0), slopes, near, self.best_upper)

    def _polished(self, moved: LinearPoint) -> bool:
        """Where J falls no longer in the digits it has, move if that makes the gradient much smaller."""
        if not self._objective(moved) <= self.upper + 1e-12 * abs(self.upper):
            return False
        before = float(np.sum(self.gradient**2 / self.system.diagonal))
        after = float(np.sum(self._gradient(moved) ** 2 / self.system.diagonal))
        if after < 0.25 * before:
            self._move_to(moved)
            return True
        return False
