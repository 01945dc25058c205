"""A lower bound from one second-order model at a point that any method has found."""

from __future__ import annotations

from itertools import islice

import numpy as np

from bmrm.problem import Problem, missing
from bmrm.risks.base import Array
from bmrm.solvers.base import Solver, Start
from bmrm.solvers.coordinate import Coordinate
from bmrm.solvers.newton import Newton
from bmrm.solvers.newton_system import MOST_COLUMNS

_STEPS = 3


def is_turn(step: int) -> bool:
    """Whether a bound that costs as much as a few steps is due: at steps 1, 2, 3, 4, 6, 8, 12, 18, ..., by 1.5.

    So the bounds cost a fixed number of steps each time the run has grown by half, whatever its length.

    Examples
    --------
    >>> from bmrm.solvers.model_bound import is_turn
    >>> [step for step in range(1, 40) if is_turn(step)]
    [1, 2, 3, 4, 6, 8, 12, 18, 26, 39]
    """
    return step == 1 or int(np.log(step) / np.log(1.5)) > int(np.log(step - 1) / np.log(1.5))


def model_bound(problem: Problem, w: Array) -> float:
    """Return the bound that `newton` (l2) or `coordinate` (l1) proves within two steps from w; -inf where neither fits.

    At a distance of r from the optimum the plane at w bounds min J with an error of order r, and so do the planes
    of the last few points, which lie in few directions. The slopes that a Newton step from w leads to are in error by
    r^2 only. The step is for the proof: w does not move.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.solvers.model_bound import model_bound
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Logistic())
    >>> round(model_bound(bmrm.Problem(risk, "l2", lam=0.5), np.array([0.5])), 6)
    0.525457
    """
    solver: Solver = Newton()
    if missing(solver, problem) or problem.risk.dim > MOST_COLUMNS:
        solver = Coordinate()
    if missing(solver, problem):
        return -np.inf
    return max(step.lower for step in islice(solver.steps(problem, Start(w)), _STEPS))
