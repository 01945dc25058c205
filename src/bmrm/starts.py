"""Where a run begins: a point or a result, checked."""

from __future__ import annotations

import copy

import numpy as np
import numpy.typing as npt

from bmrm.problem import Problem
from bmrm.result import Result
from bmrm.risks.base import Array
from bmrm.solvers import Solver, Start
from bmrm.solvers.base import takes_slopes


def start_for(problem: Problem, solver: Solver, start: Result | npt.ArrayLike | None, seed: int) -> Start:
    """Return where a run begins: at 0, at a point, or with what a result has of the same risk or problem."""
    if start is None:
        return Start(problem.regularizer.clip(np.zeros(problem.risk.dim)), seed=seed)
    if not isinstance(start, Result):
        return Start(problem.regularizer.clip(as_point(problem, start)), seed=seed)
    state, bundle, memory = start.state, None, None
    if state.problem is not None and state.problem.risk is problem.risk and state.bundle is not None:
        bundle = state.bundle.copy()
        if not takes_slopes(problem):
            bundle.keep_in(None)
    if problem.is_same(state.problem) and state.solver == solver:
        memory = copy.deepcopy(state.memory)
    return Start(problem.regularizer.clip(as_point(problem, start.w)), bundle, seed, memory)


def as_point(problem: Problem, w: npt.ArrayLike) -> Array:
    """Return w as a vector that fits the problem; anything else is an error that says why."""
    try:
        point = np.array(w, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"w must be a vector of {problem.risk.dim} numbers, got {w!r}") from None
    if point.shape != (problem.risk.dim,):
        raise ValueError(f"w has shape {point.shape}, expected ({problem.risk.dim},), the constant (if any) last")
    if not np.isfinite(point).all():
        raise ValueError("w has values that are not finite")
    return point
