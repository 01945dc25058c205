"""The solver that picks a solver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bmrm.problem import Problem, missing
from bmrm.solvers.base import Solver, Start, Step
from bmrm.solvers.lbfgs import LBFGS
from bmrm.solvers.ls_bmrm import LsBMRM


@dataclass(frozen=True)
class Auto(Solver, name="auto"):
    """Picks by the problem's traits: `lbfgs` for smooth risks and regularizers, `ls_bmrm` for everything else.

    When L-BFGS can go no further before the gap is closed, the bundle method takes over from its point: that one
    makes progress on every convex problem.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5)).converged
    True
    """

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield the steps of the solver chosen."""
        if not missing(LBFGS, problem):
            last = None
            for last in LBFGS().steps(problem, start):
                yield last
            if last is not None:
                start = Start(last.w)
        yield from LsBMRM().steps(problem, start)
