"""The bundle method with an exact search along the line to the master's solution (OCAS)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm import _core, linesearch
from bmrm.bundle.master import master_for
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.risks.base import Array, Line, Point
from bmrm.solvers.base import Solver, Start, Step, bundle_for, solve_master

_REFRESH = 50
_LONG = 1e8  # steps in a coordinate: beyond, scores are computed anew, for a combination of them loses its digits
# Evaluations of a step where each trial costs one; with 1 it takes as many of them and twice as many masters (digits,
# structured_hinge, 1e-2 to 1e-6), with 3 no fewer.
_TRIALS = 2


@dataclass(frozen=True)
class LsBMRM(Solver, name="ls_bmrm"):
    """Cutting planes around the best point so far, found by exact line search (OCAS for the hinge).

    The loop::

        repeat
            w_t = argmin of the master
            w_b = argmin of J on the line from w_b to w_t              never worse than before
            cut at w_c = (1 - mu) w_b + mu w_t

    One product X w and one product X' g for each iteration: w_b, w_t and w_c lie on one line, whose scores are
    combined. Two more where planes are kept by their slopes, for data much wider than long. Fewer iterations than
    `bmrm`, above all for small lam. Where every trial costs an evaluation of the risk (structured losses, a user's own
    oracle) there are at most two of them, w_t and one nearer to w_b, and both leave a plane.

    Parameters
    ----------
    mu : float
        Where between the best point and the master's solution the next plane touches.
    max_cuts : int, optional
        The most planes kept; by default what fits into 1 GiB.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "ls_bmrm").converged
    True

    References
    ----------
    M09 (OCAS), Y10 section 8.5.
    """

    mu: float = 0.1
    max_cuts: int | None = None

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each plane."""
        regularizer, lam = problem.regularizer, problem.lam
        bundle, master = bundle_for(problem, start, self.max_cuts, by_slopes=True), master_for(regularizer)
        target, t, iteration, scores = start.memory or (None, 1.0, 0, None)
        best = problem.risk.at(start.w, scores)
        upper = lam * regularizer.value(best.w) + best.value
        if target is None:
            bundle.add_point(best)
        while True:
            if target is None:
                solution = solve_master(problem, master, bundle, upper, best.w)
                target = solution.w
                yield Step(best.w, upper, solution.lower, bundle, (target, t, iteration, best.remembered))
            iteration += 1
            if iteration % _REFRESH == 0:  # scores combined many times have lost some digits
                best = problem.risk.at(best.w)
                upper = lam * regularizer.value(best.w) + best.value
            best, upper, t = advance(problem, bundle, best, upper, target, t, self.mu)
            target = None

    def after_cut(self, problem: Problem, memory: Any) -> Any:
        """Return the memory: a step changes nothing in it."""
        return memory


def advance(
    problem: Problem, bundle: Bundle, best: Point, upper: float, target: Array, t: float, mu: float
) -> tuple[Point, float, float]:
    """Minimize J from the best point toward the target and cut between the two.

    Returns the best point, its J and the step taken; one product for the line, one for the plane. The t given is
    the last step: where the search begins.
    """
    if not problem.risk.cheap_lines:
        return _advance_by_trials(problem, bundle, best, upper, target)
    regularizer, lam = problem.regularizer, problem.lam
    line = best.toward(target)
    t = linesearch.minimize(problem, line, guess=float(np.clip(2.0 * t, 1e-3, 1.0)))
    candidate = _within_bounds(problem, _at(problem, line, t))
    objective = lam * regularizer.value(candidate.w) + candidate.value
    if objective + candidate.rounding < upper + best.rounding:  # else w would wander off where J is mere rounding
        best, upper = candidate, objective
    else:
        t = 0.0
    _, cut = _not_far_up(problem, line, t + mu * (1.0 - t), upper, t)
    if t == 0.0 and not _cuts_off(cut, target, bundle):
        cut = _at(problem, line, 1.0)
    bundle.add_point(cut)
    return best, upper, t


def _advance_by_trials(
    problem: Problem, bundle: Bundle, best: Point, upper: float, target: Array
) -> tuple[Point, float, float]:
    """Try the target, then points nearer to the best one, until J falls: each costs an evaluation and leaves a plane.

    The next trial is where the tangent of the last one meets that of the best point.
    """
    lam, line, t = problem.lam, best.toward(target), 1.0
    slope = _core.inner(best.subgradient, line.direction)
    for _ in range(_TRIALS):
        t, point = _not_far_up(problem, line, t, upper)
        point = _within_bounds(problem, point)
        bundle.add_point(point)
        objective = lam * problem.regularizer.value(point.w) + point.value
        if objective + point.rounding < upper + best.rounding:
            return point, objective, t
        rise = point.value - best.value - slope * t
        steeper = _core.inner(point.subgradient, line.direction) - slope
        t *= 1.0 - float(np.clip(rise / (steeper * t), 0.1, 0.9)) if 0.0 <= rise < steeper * t else 0.5
    return best, upper, 0.0


def _not_far_up(problem: Problem, line: Line, t: float, upper: float, nearest: float = 0.0) -> tuple[float, Point]:
    """Return t and its point, or one nearer where R is huge: planes from up there spoil the master's numbers."""
    point = _at(problem, line, t)
    while t != nearest and not (np.isfinite(point.value) and point.value <= 1e6 * (1.0 + abs(upper))):
        t = nearest + 0.5 * (t - nearest)
        point = _at(problem, line, t)
    return t, point


def _at(problem: Problem, line: Line, t: float) -> Point:
    """Return the point at t of the line, by a product of its own where that is far away."""
    point = line.at(t)
    return problem.risk.at(point.w) if t * float(np.abs(line.direction).max(initial=0.0)) > _LONG else point


def _within_bounds(problem: Problem, point: Point) -> Point:
    """Return the point with its w moved by the last digit, where rounding has put it outside the bounds."""
    point.w = problem.regularizer.clip(point.w)
    return point


def _cuts_off(cut: Point, w: Array, bundle: Bundle) -> bool:
    """Whether the plane at the cut raises the model at w; where the best point stays it may be known already."""
    raised = cut.value + _core.inner(cut.subgradient, w - cut.w)
    return raised > bundle.value(w) + 1e-12 * (1.0 + abs(cut.value))
