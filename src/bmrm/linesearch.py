"""Search along a line: the minimum of J(w + t d) over t >= 0.

Where the risk keeps its scores, the compiled search is exact and touches no data. Where every trial costs an
evaluation of the risk, a few safeguarded steps on the slope must do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bmrm import _core
from bmrm.problem import Problem
from bmrm.regularizers.base import Along, Separable
from bmrm.risks.base import Array, Line

_BUDGET = 8


def minimize(problem: Problem, line: Line, guess: float = 1.0) -> float:
    """Return the step t >= 0 that minimizes J along the line, within the bounds on w.

    Parameters
    ----------
    problem : Problem
    line : Line
        Of the problem's risk.
    guess : float
        Where the search begins, above 0.
    """
    along = problem.regularizer.along(line.start.w, line.direction)
    longest = _longest_step(problem, line)
    compiled = line.terms()
    t = _exact(problem, along, compiled, guess) if compiled else _by_slope(problem, along, line, min(guess, longest))
    return min(t, longest)


def _exact(problem: Problem, along: Along, compiled: list[Any], guess: float) -> float:
    lam, n_threads = problem.lam, problem.risk.n_threads
    lines = [term for term, _ in compiled]
    p = lam * along.p + sum(slope for _, slope in compiled)
    if along.absolute is not None:
        start, direction, weight = along.absolute
        absolute = _core.scalar_loss("least_absolute")
        lines.append(_core.line(absolute, start, direction, np.zeros_like(start), lam * weight, 1.0))
    t, _, _, _ = _core.minimize_on_line(lines, p, lam * along.q, guess, n_threads)
    return float(t)


def _by_slope(problem: Problem, along: Along, line: Line, guess: float) -> float:
    """Bracket the root of the slope and halve or interpolate, with a budget of evaluations.

    Returns the best point seen; it is a descent step if the direction is one.
    """

    def at(t: float) -> tuple[float, float]:
        omega, risk = along.evaluate(t), line.evaluate(t)
        return problem.lam * omega[0] + risk[0], problem.lam * omega[2] + risk[2]

    best, slope = at(0.0)
    if slope >= 0.0:
        return 0.0
    best_t, lower, lower_slope = 0.0, 0.0, slope
    upper, upper_slope = np.inf, np.inf
    t = guess
    for _ in range(_BUDGET):
        here, slope_here = at(t)
        if here < best:
            best, best_t = here, t
        if abs(slope_here) <= 0.1 * abs(slope) and best_t == t:
            break
        if slope_here < 0.0 and np.isfinite(here):
            lower, lower_slope = t, slope_here
        else:
            upper, upper_slope = t, slope_here
        t = _next_trial(lower, lower_slope, upper, upper_slope)
    return best_t


def _next_trial(lower: float, lower_slope: float, upper: float, upper_slope: float) -> float:
    if not np.isfinite(upper):
        return 4.0 * lower
    middle = 0.5 * (lower + upper)
    if not np.isfinite(upper_slope):
        return middle
    root = lower - lower_slope * (upper - lower) / (upper_slope - lower_slope)
    margin = 0.1 * (upper - lower)
    return float(np.clip(root, lower + margin, upper - margin))


def _longest_step(problem: Problem, line: Line) -> float:
    """Return the largest t for which w + t d respects the bounds."""
    regularizer = problem.regularizer
    if not isinstance(regularizer, Separable) or regularizer.bounds is None:
        return np.inf
    w: Array = line.start.w
    d = line.direction
    room = np.where(d > 0, regularizer.upper - w, regularizer.lower - w)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(d != 0.0, room / d, np.inf)
    return max(1.0, float(np.min(steps, initial=np.inf)) * (1.0 - 1e-12))
