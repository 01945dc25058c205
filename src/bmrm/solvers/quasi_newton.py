"""The loop of the subgradient quasi-Newton methods: Algorithm 1 of Y10, with a duality gap from its own planes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bmrm import linesearch
from bmrm.bundle.master import master_for
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.risks.base import Array, Point
from bmrm.solvers.base import Start, Step, bundle_for, solve_master
from bmrm.solvers.direction import SMOOTH, Descent, descent_direction, subgradient_ahead

_REFRESH = 20
_NEAREST, _FIRST, _FARTHEST = 1e-13, 1e-10, 1e-2
_LEAST_CURVATURE = 1e-8  # h of Y10


class Metric(Protocol):
    """B, an estimate of the inverse Hessian."""

    def __len__(self) -> int: ...
    def push(self, s: Array, y: Array) -> None: ...
    def clear(self) -> None: ...
    def apply(self, g: Array) -> Array: ...


class Dense:
    """The matrix B itself, d x d, kept by the update (6).

    Before the first pair B is the identity; the first pair scales it by s'y / y'y.

    Parameters
    ----------
    dim : int
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.clear()

    def __len__(self) -> int:
        return self._pairs

    def clear(self) -> None:
        """Return to the identity."""
        self.B, self._pairs = np.eye(self.dim), 0

    def push(self, s: Array, y: Array) -> None:
        """Update B = (I - rho s y') B (I - rho y s') + rho s s', if the curvature is safely positive."""
        sy, yy = float(s @ y), float(y @ y)
        if not sy > 1e-12 * float(np.sqrt((s @ s) * yy)):
            return
        if not self._pairs:
            self.B *= sy / yy
        rho, By = 1.0 / sy, self.B @ y
        self.B -= rho * (np.outer(s, By) + np.outer(By, s))
        self.B += (rho * rho * float(y @ By) + rho) * np.outer(s, s)
        self._pairs += 1

    def apply(self, g: Array) -> Array:
        """Return B g."""
        return self.B @ g


@dataclass
class _State:
    """What the loop remembers from one step to the next."""

    metric: Metric
    g: Array
    nearby: float = _FIRST
    iteration: int = 0
    t: float = 1.0
    lower: float = -np.inf


def quasi_newton_steps(
    problem: Problem, start: Start, metric: Metric, planes: int, eps: float, k_max: int
) -> Iterator[Step]:
    """Yield the steps of Y10 Algorithm 1 with any metric B."""
    risk, bundle, master = problem.risk, bundle_for(problem, start, planes), master_for(problem.regularizer)
    state, remembered = start.memory or (None, None)
    point = risk.at(start.w, remembered)
    upper = objective(problem, point)
    if state is None:
        bundle.add(point.w, point.value, point.subgradient)
        state = _State(metric, problem.lam * problem.regularizer.subgradient(point.w) + point.subgradient)
        state.lower = solve_master(problem, master, bundle, upper, point.w).lower
        yield Step(point.w, upper, state.lower, bundle, (state, point.remembered))
    while True:
        state.iteration += 1
        if state.iteration % _REFRESH == 0:
            point = risk.at(point.w)
            upper = objective(problem, point)
        found = _advance(problem, point, upper, state, bundle, eps, k_max)
        if found is None:
            if state.nearby <= _NEAREST:
                return
            state.nearby *= 0.1
        else:
            moved, descent = found
            fallen = upper - objective(problem, moved)
            _learn(problem, point, moved, descent, state, bundle)
            point, upper = moved, objective(problem, moved)
            if fallen < 1e-3 * (upper - state.lower):
                state.nearby = min(4.0 * state.nearby, _FARTHEST)
        state.lower = max(state.lower, solve_master(problem, master, bundle, upper, point.w).lower)
        yield Step(point.w, upper, state.lower, bundle, (state, point.remembered))


def objective(problem: Problem, point: Point) -> float:
    """Return J at a point."""
    return problem.lam * problem.regularizer.value(point.w) + point.value


def _advance(
    problem: Problem, point: Point, upper: float, state: _State, bundle: Bundle, eps: float, k_max: int
) -> tuple[Point, Descent] | None:
    """Return the minimum along a direction of descent; None if there is none, even with B = I."""
    while True:
        descent = descent_direction(
            problem, point, state.g, state.metric.apply, bundle, nearby=state.nearby, eps=eps, k_max=k_max
        )
        if descent is not None:
            state.t = linesearch.minimize(problem, descent.line, guess=float(np.clip(2.0 * state.t, 1e-3, 1.0)))
            moved = descent.line.at(state.t)
            if objective(problem, moved) < upper:
                return moved, descent
        if not len(state.metric):
            return None
        state.metric.clear()


def _learn(problem: Problem, point: Point, moved: Point, descent: Descent, state: _State, bundle: Bundle) -> None:
    """Choose the next subgradient just ahead, where it satisfies s'y > 0 (line 12), and update B."""
    if problem.traits >= SMOOTH:
        ahead = state.t
    else:
        ahead = state.t + 1e-10 * max(1.0, float(np.abs(moved.w).max())) / float(np.abs(descent.p).max())
    g = subgradient_ahead(problem, descent.line, ahead, bundle)
    s, y = moved.w - point.w, g - state.g
    yy = float(y @ y)
    if yy > 0.0:
        state.metric.push(s + max(0.0, _LEAST_CURVATURE - float(s @ y) / yy) * y, y)  # line 14
    state.g = g
