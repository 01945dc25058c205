"""Search along a line: the minimum of J(w + t d) over t >= 0.

Where the risk keeps its scores, the compiled search is exact and touches no data. Where every trial costs an
evaluation of the risk, a few safeguarded steps on the slope must do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bmrm import _core
from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.regularizers.base import Along, Separable
from bmrm.risks.base import Array, Line

_BUDGET, _FINE_BUDGET = 8, 60
_ENOUGH = 0.1  # a slope so much flatter than at the start ends a search by slope
_BOTTOM = -1e31  # where a search on a line without a minimum ends


def minimize(
    problem: Problem, line: Line, guess: float = 1.0, accuracy: float = 1e-9, enough: float = _ENOUGH
) -> float:
    """Return the step t >= 0 that minimizes J along the line, within the bounds on w.

    Where a risk without a floor falls for ever, the step leads to an objective below -1e30, if it can be found.

    Parameters
    ----------
    problem : Problem
    line : Line
        Of the problem's risk.
    guess : float
        Where the search begins, above 0.
    accuracy : float
        Of the slope at 0: so much may be left of it where the compiled search ends.
    enough : float
        The same where every trial costs an evaluation of the risk (or a round trip, where ``line.fine``: then
        `accuracy` counts, and more trials are made).
    """
    along = problem.regularizer.along(line.start.w, line.direction)
    longest = _longest_step(problem, line)
    compiled = line.terms()
    t = (
        _exact(problem, along, compiled, guess, accuracy)
        if compiled
        else _by_slope(problem, along, line, min(guess, longest), accuracy if line.fine else enough)
    )
    return min(t, longest)


def _exact(problem: Problem, along: Along, compiled: list[Any], guess: float, accuracy: float) -> float:
    lam, n_threads = problem.lam, problem.risk.n_threads
    lines = [term for term, _ in compiled]
    p = lam * along.p + sum(slope for _, slope in compiled)
    if along.absolute is not None:
        start, direction, weight = along.absolute
        absolute = _core.scalar_loss("least_absolute")
        lines.append(_core.line(absolute, start, direction, np.zeros_like(start), lam * weight, 1.0))
    t, slope, _, bounded = _core.minimize_on_line(lines, p, lam * along.q, guess, n_threads, accuracy)
    if not bounded and problem.risk.floor == -np.inf:
        t = max(t, _BOTTOM / slope)
    return float(t)


class _Trial(NamedTuple):
    """J on the line: where, how large, how steep to the right and to the left."""

    t: float
    value: float
    slope: float
    left: float

    @property
    def falls(self) -> bool:
        return self.slope < 0.0 and np.isfinite(self.value)

    def is_bottom(self, slope: float) -> bool:
        """Whether the slope changes its sign here, or is no steeper than that."""
        return self.left <= 0.0 <= self.slope or min(abs(self.slope), abs(self.left)) <= slope


def _by_slope(problem: Problem, along: Along, line: Line, guess: float, enough: float) -> float:
    """Bracket the root of the slope, then interpolate, with a budget of evaluations.

    Returns the best point seen; it is a descent step if the direction is one.
    """

    def at(t: float) -> _Trial:
        omega, risk = along.evaluate(t), line.evaluate(t)
        value, left, right = (problem.lam * o + r for o, r in zip(omega, risk))
        return _Trial(t, value, right, left)

    smooth = {Trait.SMOOTH_RISK, Trait.SMOOTH_REGULARIZER} <= problem.traits
    start = best = lower = at(0.0)
    if start.slope >= 0.0:
        return 0.0
    upper, t, widths = None, guess, [np.inf, np.inf]
    for _ in range(_FINE_BUDGET if line.fine else _BUDGET):
        here = at(t)
        if here.value < best.value:
            best = here
        if here.is_bottom(enough * abs(start.slope)) and (best is here or line.fine):
            return here.t
        lower, upper = (here, upper) if here.falls else (lower, here)
        t = _next_trial(lower, upper, smooth)
        if upper is not None and line.fine:
            widths = [widths[1], upper.t - lower.t]
            if widths[1] > 0.5 * widths[0]:  # one end stays where it is
                t = lower.t + 0.5 * widths[1]
                widths[1] = np.inf
        if not lower.t < t < (np.inf if upper is None else upper.t):
            break
    if upper is None and best is lower and problem.risk.floor == -np.inf:  # else a flat place ended the search
        best = _down(at, lower)
    return best.t


def _down(at: Callable[[float], _Trial], lower: _Trial) -> _Trial:
    """Follow a line on which nothing has risen yet, with ever longer steps, until it rises or has no end."""
    while lower.value > _BOTTOM:
        here = at(16.0 * lower.t)
        if not here.value < lower.value:
            break
        lower = here
    return lower


def _next_trial(lower: _Trial, upper: _Trial | None, smooth: bool) -> float:
    if upper is None:
        return 4.0 * lower.t
    width = upper.t - lower.t
    if not (np.isfinite(upper.left) and np.isfinite(upper.value)):
        return lower.t + 0.5 * width
    if smooth:
        root = lower.t - lower.slope * width / (upper.slope - lower.slope)
        return float(np.clip(root, lower.t + 0.1 * width, upper.t - 0.1 * width))
    # where the two tangents meet: at the kink itself, if there is one between two straight pieces
    drop = lower.value + lower.slope * width - upper.value
    meet = upper.t + drop / (upper.left - lower.slope) if upper.left > lower.slope else lower.t + 0.5 * width
    return float(np.clip(meet, lower.t, upper.t))


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
