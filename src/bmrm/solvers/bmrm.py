"""Bundle methods for regularized risk minimization, Algorithm 1 of S08 and T07."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.bundle.master import master_for
from bmrm.problem import Problem
from bmrm.solvers.base import Solver, Start, Step, bundle_for, solve_master, touch_near


@dataclass(frozen=True)
class BMRM(Solver, name="bmrm"):
    """Cutting planes with the exact master of the regularizer (S08 and T07, Algorithm 1).

    The loop::

        repeat
            a, b   = a plane that touches R at w                  (S08 eq. 3)
            w      = argmin lam Omega(w) + largest plane so far    (S08 eq. 5 to 7)
            lower  = the value of that minimum                     (T07 Lemma 1)

    One pass over the data for each iteration, two where planes are kept by their slopes (data much wider than
    long); O(1 / (lam eps)) iterations, O(log 1/eps) for smooth risks.

    Parameters
    ----------
    max_cuts : int, optional
        The most planes kept; by default what fits into 1 GiB.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "bmrm").status.name
    'CONVERGED'

    References
    ----------
    S08 section 3, T07 section 2.
    """

    max_cuts: int | None = None

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each plane."""
        regularizer, lam = problem.regularizer, problem.lam
        bundle, master = bundle_for(problem, start, self.max_cuts, by_slopes=True), master_for(regularizer)
        w, best, upper, limit = start.memory or (start.w, start.w, np.inf, np.inf)
        while True:
            point = touch_near(problem, w, best, limit)
            objective = lam * regularizer.value(point.w) + point.value
            if objective < upper:
                best, upper = point.w, objective
                limit = 1e6 * (1.0 + abs(upper)) if np.isinf(limit) else limit
            bundle.add_point(point)
            solution = solve_master(problem, master, bundle, upper, best)
            w = solution.w
            yield Step(best, upper, solution.lower, bundle, (w, best, upper, limit))

    def after_cut(self, problem: Problem, memory: Any) -> Any:
        """Return the memory: a step changes nothing in it."""
        return memory
