"""The bound that a few planes prove, the same for a run that was stopped in between."""

from __future__ import annotations

import numpy as np

from bmrm.bundle.master import Master, master_for
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.risks.base import Array
from bmrm.solvers.base import solve_master

_REACHES = (10.0 ** np.arange(1, 16)).tolist()  # the master widens its intervals by 10 where they are too narrow


def bound_of(problem: Problem, master: Master, bundle: Bundle, upper: float, w: Array) -> float:
    """Return the bound of the planes.

    With free coordinates a master is made anew: what it remembers of them decides how good its bound is, and a
    resumed run has a master without a past.
    """
    free = getattr(problem.regularizer, "free", np.empty(0, np.intp))
    if not free.size:
        return solve_master(problem, master, bundle, upper, w).lower
    master, lower = master_for(problem.regularizer), -np.inf
    for reach in _REACHES:
        solution = solve_master(problem, master, bundle, upper, w)
        lower = max(lower, solution.lower)
        if np.abs(solution.w[free]).max() <= 0.9 * reach:
            break
    return lower
