"""A lower bound from one second-order model at a point that any method has found."""

from __future__ import annotations

from itertools import islice

import numpy as np

from bmrm.problem import Problem, missing
from bmrm.risks.base import Array
from bmrm.solvers.base import Solver, Start, is_turn
from bmrm.solvers.coordinate import Coordinate
from bmrm.solvers.newton import Newton
from bmrm.solvers.newton_system import MOST_COLUMNS
from bmrm.solvers.semismooth_newton import SemismoothNewton

# The most steps, the start included, and the first step of a run at which they are worth their cost.
_METHODS: list[tuple[type[Solver], int, int]] = [(Newton, 3, 1), (Coordinate, 3, 1), (SemismoothNewton, 10, 12)]
_ENOUGH = 0.1  # of the gap: an error of the bound that no longer matters


def model_bound(problem: Problem, w: Array, upper: float, step: int) -> float:
    """Return the bound that a second-order method proves within a few steps from w; -inf where none fits, or not now.

    At a distance of r from the optimum the plane at w bounds min J with an error of order r, and so do the planes
    of the last few points, which lie in few directions. The slopes that a Newton step from w leads to are in error by
    r^2 only: `newton` (l2) and `coordinate` (l1) need a step or two. Where rows have kinks, `semismooth_newton` has to
    find out first which rows lie on them. The steps are for the proof: w does not move.

    Parameters
    ----------
    w : array
    upper : float
        J(w): the search ends when a better point would gain more than a better bound.
    step : int
        Of the run: see `is_turn`.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.solvers.model_bound import model_bound
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Logistic())
    >>> round(model_bound(bmrm.Problem(risk, "l2", lam=0.5), np.array([0.5]), upper=0.55, step=1), 6)
    0.525457
    """
    for solver, steps, first in _METHODS:
        if not (missing(solver, problem) or (solver is not Coordinate and problem.risk.dim > MOST_COLUMNS)):
            return _bound_by(solver(), problem, w, upper, steps) if step >= first and is_turn(step) else -np.inf
    return -np.inf


def _bound_by(solver: Solver, problem: Problem, w: Array, upper: float, steps: int) -> float:
    lower = -np.inf
    for step in islice(solver.steps(problem, Start(w)), steps):
        lower = max(lower, step.lower)
        if step.upper - lower <= _ENOUGH * (upper - lower):
            break
    return lower
