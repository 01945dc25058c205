"""The solver that picks a solver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from bmrm.problem import Problem, missing
from bmrm.solvers.base import Solver, Start, Step, bundle_for
from bmrm.solvers.lbfgs import LBFGS
from bmrm.solvers.ls_bmrm import LsBMRM

_TRIAL = 40


@dataclass(frozen=True)
class Auto(Solver, name="auto"):
    """Picks by the problem's traits: `ls_bmrm`, after a trial of `lbfgs` where risk and regularizer are smooth.

    On smooth, well-scaled problems L-BFGS closes the gap within a few dozen iterations, up to three times faster
    than the bundle method. Where it has not done so after 40 iterations, or can go no further, the bundle method
    takes over with its point and its planes: that one makes progress on every convex problem and minds neither
    kinks nor badly scaled columns.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5)).converged
    True
    """

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield the steps of the solver chosen."""
        tried, memory = start.memory or (_TRIAL if missing(LBFGS, problem) else 0, None)
        start = Start(start.w, bundle_for(problem, start, None), start.seed, memory)
        if tried < _TRIAL:
            for step in islice(LBFGS().steps(problem, start), _TRIAL - tried):
                tried += 1
                yield replace(step, memory=(tried, step.memory if tried < _TRIAL else None))
                start = Start(step.w, step.bundle, start.seed)
        for step in LsBMRM().steps(problem, start):
            yield replace(step, memory=(_TRIAL, step.memory))
