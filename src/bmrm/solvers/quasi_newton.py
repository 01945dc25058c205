"""The loop of the subgradient quasi-Newton methods: Algorithm 1 of Y10, with a duality gap from its own planes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bmrm import _core, linesearch
from bmrm._states import kept
from bmrm._traits import Trait
from bmrm.bundle.master import Master, master_for
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.risks.base import Array, Point
from bmrm.solvers.base import Start, Step, bundle_for, solve_master
from bmrm.solvers.direction import Descent, descent_direction, shortest_subgradient, step_nearby
from bmrm.solvers.lbfgs import tightened
from bmrm.solvers.metric import Metric
from bmrm.solvers.model_bound import model_bound

_REFRESH = 20
_NEAREST, _FIRST, _FARTHEST = 1e-13, 1e-10, 1e-2
_CLOSES = 0.7  # of the gap may be left by a plane that is worth another one
_LEAST_CURVATURE = 1e-8  # h of Y10
_LARGEST = 1e60  # of y'y: beyond, a loss that nearly overflows says nothing of curvature elsewhere


@dataclass(frozen=True)
class Rules:
    """Settings of the loop.

    Attributes
    ----------
    planes : int, optional
        The most planes kept for the bound; by default what fits into 1 GiB.
    eps : float
        Tolerance of the direction finding, relative to the model's decrease.
    k_max : int
        The most directions tried at a point.
    cut : float
        Where a step lowers J by less than this share of the gap, the bound gets planes of its own.
    """

    planes: int | None = 100
    eps: float = 0.1
    k_max: int = 30
    cut: float = 0.02


@kept
@dataclass
class _State:
    """What the loop remembers from one step to the next."""

    metric: Metric
    g: Array
    nearby: float = _FIRST
    iteration: int = 0
    t: float = 1.0
    lower: float = -np.inf


def quasi_newton_steps(problem: Problem, start: Start, metric: Metric, rules: Rules) -> Iterator[Step]:
    """Yield the steps of Y10 Algorithm 1 with any metric B.

    The loop::

        repeat
            p = descent_direction(g, B)                   Algorithm 2; if it fails, again with B = I
            w = argmin of J along w + t p                 exact: satisfies eqs. 23 and 24
            g = a subgradient just ahead of w on that line: s'y > 0, y = g - g before       lines 12 and 13
            B = update(s + max(0, h - s'y / y'y) y, y)    lines 14 and 15, eq. 6
            lower = the master's bound from the planes of all subgradients seen

    Two rules are not in Y10. *Nearby kinks*: where kinks cut the steps short, the direction finding looks further
    ahead, so that it descends along all kinks nearby and not only along those met exactly; where it fails, it
    looks less far; if it fails at the point itself, that is as far as the method goes. *Planes for the bound*:
    the planes of a method that moves along kinks lie in few directions and bound J late. Where J falls by
    little compared with the gap, planes between w and the master's minimizer are added. Each costs a pass, and
    w does not move there.
    """
    risk, bundle, master = problem.risk, bundle_for(problem, start, rules.planes), master_for(problem.regularizer)
    state, remembered = start.memory or (None, None)
    point = risk.at(start.w, remembered)
    upper = objective(problem, point)
    if state is None:
        bundle.add_point(point)
        state = _State(metric, shortest_subgradient(problem, point.w, point.subgradient))
        state.lower = solve_master(problem, master, bundle, upper, point.w).lower
        yield Step(point.w, upper, state.lower, bundle, (state, point.remembered))
    while upper > -np.inf:
        state.iteration += 1
        if state.iteration % _REFRESH == 0:  # scores combined many times have lost some digits
            point = risk.at(point.w)
            upper = objective(problem, point)
        moved, fallen = _advance(problem, point, upper, state, bundle, rules), 0.0
        if moved is not None:
            fallen = upper - objective(problem, moved)
            point, upper = moved, upper - fallen
        lower = bound(problem, master, bundle, upper, point, fallen, rules.cut, state.iteration)
        risen = lower > state.lower
        state.lower = max(state.lower, lower)
        if not (_look_around(state, fallen, upper - state.lower) or risen):
            state.lower = max(state.lower, tightened(problem, master, bundle, upper, point))
            yield Step(point.w, upper, state.lower, bundle, ended=True)
            return
        yield Step(point.w, upper, state.lower, bundle, (state, point.remembered))


def objective(problem: Problem, point: Point) -> float:
    """Return J at a point."""
    return problem.lam * problem.regularizer.value(point.w) + point.value


def _advance(problem: Problem, point: Point, upper: float, state: _State, bundle: Bundle, rules: Rules) -> Point | None:
    """Return the minimum along a direction of descent; None if there is none, even with B = I."""
    while True:  # twice at most: the second time the metric is empty
        descent = descent_direction(
            problem, point, state.g, state.metric.apply, bundle, nearby=state.nearby, eps=rules.eps, k_max=rules.k_max
        )
        if descent is not None:
            t = linesearch.minimize(problem, descent.line, guess=float(np.clip(2.0 * state.t, 1e-3, 1.0)))
            moved = descent.line.at(t)
            if objective(problem, moved) < upper:
                state.t = t
                _learn(problem, point, moved, descent, state, bundle)
                return moved
        if not len(state.metric):
            return None
        state.metric.clear()


def _learn(problem: Problem, point: Point, moved: Point, descent: Descent, state: _State, bundle: Bundle) -> None:
    """Choose the next subgradient just ahead, where s'y > 0 (line 12), and update B."""
    smooth = Trait.SMOOTH_RISK in problem.traits
    ahead = moved if smooth else descent.line.at(state.t + step_nearby(moved.w, descent.p, _FIRST))
    bundle.add_point(ahead)
    g = shortest_subgradient(problem, moved.w, ahead.subgradient, _FIRST)
    s, y = moved.w - point.w, g - state.g
    yy = _core.inner(y, y)
    if 0.0 < yy < _LARGEST:
        state.metric.push(s + max(0.0, _LEAST_CURVATURE - _core.inner(s, y) / yy) * y, y)
    state.g = g


def _look_around(state: _State, fallen: float, gap: float) -> bool:
    """Look further ahead for kinks where they cut the step short, less far where no direction was found."""
    if fallen <= 0.0:
        if state.nearby <= _NEAREST:
            return False
        state.nearby *= 0.1
        return True
    blocked = state.t < 0.1 if len(state.metric) else fallen < 1e-3 * gap  # B makes 1 the natural step
    state.nearby = min(4.0 * state.nearby, _FARTHEST) if blocked else max(0.5 * state.nearby, _FIRST)
    return True


def bound(
    problem: Problem,
    master: Master,
    bundle: Bundle,
    upper: float,
    point: Point,
    fallen: float,
    share: float,
    iteration: int,
) -> float:
    """Return the master's bound; where J fell by less than that share of the gap, with planes of its own.

    Planes are added as long as each of them closes much of the gap; the last one is for the next step. With a smooth
    risk and a regularizer that is not smooth, the bound of a second-order model or one plane has to do.
    """
    solution = solve_master(problem, master, bundle, upper, point.w)
    gap = upper - solution.lower
    if not (share > 0.0 and fallen < share * gap):
        return solution.lower
    if Trait.SMOOTH_REGULARIZER not in problem.traits:
        found = model_bound(problem, point.w, upper, iteration)
        if found > solution.lower:
            return found
    cut_toward(point, solution.w, upper, bundle)
    while Trait.SMOOTH_REGULARIZER in problem.traits:  # the gap shrinks by a factor: until rounding at the latest
        solution = solve_master(problem, master, bundle, upper, point.w)
        if not 0.0 < upper - solution.lower < _CLOSES * gap:
            return solution.lower
        gap = upper - solution.lower
        cut_toward(point, solution.w, upper, bundle)
    return solution.lower


def cut_toward(point: Point, w: Array, upper: float, bundle: Bundle) -> None:
    """Add a plane on the way from the point to w, a tenth of it or as far as the risk stays moderate."""
    share, line = 0.1, point.toward(w)
    cut = line.at(share)
    while share > 0.0 and not (np.isfinite(cut.value) and cut.value <= 1e6 * (1.0 + abs(upper))):
        share *= 0.5
        cut = line.at(share)
    bundle.add_point(cut)
