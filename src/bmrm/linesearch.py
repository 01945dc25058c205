"""Search along a line: the minimum of J(w + t d) over t >= 0.

Where the risk keeps its scores, the compiled search is exact and touches no data. Where the scores are on workers, it
asks for values and slopes at several steps in each round trip. Where every trial costs an evaluation of the risk, a few
safeguarded steps on the slope must do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bmrm import _core
from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.regularizers.base import Along, Separable
from bmrm.risks.base import Array, Line

_BUDGET = 8
_ROUNDS = 40  # round trips of one search
_SPREAD = (0.0, 1.0 / 64.0, 0.125, 0.5, 1.0, 2.0, 8.0)  # of the guess, in the first round
_EVEN = np.arange(1.0, 7.0) / 7.0  # of the bracket, in later ones
_FINE = 1e-7  # of the way down: what may be left of it where a search in rounds ends
_ENOUGH = 0.1  # a slope so much flatter than at the start ends a search by slope
_EPS = float(np.finfo(np.float64).eps)
_FARTHEST = 1e140  # how far steps lead at most: scores have squares too
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
        The same where every trial costs an evaluation of the risk.
    """
    along = problem.regularizer.along(line.start.w, line.direction)
    longest = _longest_step(problem, line)
    compiled = line.terms()
    if compiled:
        return _with_numbers(min(_exact(problem, along, compiled, guess, accuracy), longest), line)
    trials = _Trials(problem, along, line)
    if line.fine:
        return min(_in_rounds(trials, min(guess, longest)), longest)
    return min(_by_slope(trials, min(guess, longest), enough), longest)


def _with_numbers(t: float, line: Line) -> float:
    """Return t, or less where w + t d would have no squares in floating point: on lines that fall without end."""
    longest = float(np.abs(line.direction).max(initial=0.0))
    return t if t * longest <= _FARTHEST else _FARTHEST / longest


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

    @property
    def is_bottom(self) -> bool:
        """Whether the slope changes its sign here."""
        return self.left <= 0.0 <= self.slope


class _Trials:
    """J at steps on a line."""

    def __init__(self, problem: Problem, along: Along, line: Line) -> None:
        self.problem, self.along, self.line = problem, along, line
        self.smooth = {Trait.SMOOTH_RISK, Trait.SMOOTH_REGULARIZER} <= problem.traits
        self.endless = problem.risk.floor == -np.inf
        self.noise, self.farthest = problem.risk.noise, _farthest(problem, along, line)

    def at(self, t: float) -> _Trial:
        return self.all_at([t])[0]

    def all_at(self, ts: Sequence[float]) -> list[_Trial]:
        found = []
        for t, risk in zip(ts, self.line.evaluate_all(ts)):
            value, left, right = (self.problem.lam * o + r for o, r in zip(self.along.evaluate(t), risk))
            found.append(_Trial(t, value, right, left))
        return found


def _in_rounds(trials: _Trials, guess: float) -> float:
    """Narrow the bracket of the minimum by several trials at a time, which together cost one round trip.

    The tangents at its ends meet below the minimum: that tells how much of the way down is left.
    """
    seen = trials.all_at(sorted({min(share * guess, trials.farthest) for share in _SPREAD}))
    start = seen[0]
    if start.slope >= 0.0:
        return 0.0
    lower, upper = start, None
    for _ in range(_ROUNDS):
        bottom = next((here for here in seen if here.is_bottom), None)
        if bottom is not None:
            return bottom.t
        for here in seen:
            if here.falls and here.t > lower.t:
                lower = here
            elif not here.falls and (upper is None or here.t < upper.t):
                upper = here
        best = lower if upper is None or lower.value <= upper.value else upper
        ts = _next_round(lower, upper, trials.farthest)
        if not ts or _is_near(start, best, lower, upper, trials.noise):
            break
        seen = trials.all_at(ts)
    return _down(trials.at, lower).t if upper is None and trials.endless else best.t


def _is_near(start: _Trial, best: _Trial, lower: _Trial, upper: _Trial | None, noise: float) -> bool:
    """Whether next to nothing is left of the way down, by where the tangents at the ends of the bracket meet."""
    if upper is None or not np.isfinite(upper.value):
        return False
    meet = _next_trial(lower, upper, smooth=False)
    bound = max(lower.value + lower.slope * (meet - lower.t), upper.value + upper.left * (meet - upper.t))
    return best.value - bound <= _FINE * (start.value - best.value) + 4.0 * _EPS * abs(best.value) + noise


def _next_round(lower: _Trial, upper: _Trial | None, farthest: float) -> list[float]:
    """Return steps inside the bracket: even ones, and where a straight and a curved line would have their minimum."""
    if upper is None:
        return sorted({t for k in range(1, 7) if (t := min(4.0**k * lower.t, farthest)) > lower.t})
    ts = [lower.t + share * (upper.t - lower.t) for share in _EVEN]
    ts += [_next_trial(lower, upper, smooth) for smooth in (False, True)]
    return sorted({t for t in ts if lower.t < t < upper.t})


def _by_slope(trials: _Trials, guess: float, enough: float) -> float:
    """Bracket the root of the slope, then interpolate, with a budget of evaluations.

    Returns the best point seen; it is a descent step if the direction is one.
    """
    start = best = lower = trials.at(0.0)
    if start.slope >= 0.0:
        return 0.0
    upper, t = None, guess
    for _ in range(_BUDGET):
        here = trials.at(min(t, trials.farthest))
        if here.value < best.value:
            best = here
        if abs(here.slope) <= enough * abs(start.slope) and best is here:
            break
        lower, upper = (here, upper) if here.falls else (lower, here)
        t = _next_trial(lower, upper, trials.smooth)
        if not lower.t < t < (np.inf if upper is None else upper.t):
            break
    if upper is None and best is lower and trials.endless:  # else a flat place ended the search
        best = _down(trials.at, lower)
    return best.t


def _down(at: Callable[[float], _Trial], lower: _Trial) -> _Trial:
    """Follow a line on which nothing has risen yet, with ever longer steps, until it rises or has no end."""
    while lower.value > _BOTTOM:  # steps overflow after 256 trips, and a value there is no lower one
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


def _farthest(problem: Problem, along: Along, line: Line) -> float:
    """Return a step beyond which no J is below that of the start: lam Omega + floor alone is above it.

    Nothing is lost by trying no longer steps, and owners of data need not answer at a w that no run has any use for.
    """
    value, floor = line.start.value, problem.risk.floor
    if not (np.isfinite(floor) and np.isfinite(value)):
        return np.inf
    level = along.evaluate(0.0)[0] + (1.0 + 1e-9) * max(value - floor, 0.0) / problem.lam
    ends = [np.inf]
    if along.q > 0.0:
        rest = max(level - along.constant, 0.0)
        ends.append((np.sqrt(along.p * along.p + 2.0 * along.q * rest) - along.p) / along.q)
    if along.absolute is not None:
        start, direction, weight = along.absolute
        speed = float(np.sum(weight * np.abs(direction)))
        ends += [(level + float(np.sum(weight * np.abs(start)))) / speed] if speed > 0.0 else []
    return float(min(ends))


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
