"""Another solver in better units: a diagonal change of variables around it, undone in all it yields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bmrm.problem import Problem
from bmrm.risks.base import Array
from bmrm.solvers.base import Solver, Start, Step


def steps_in_units(solver: Solver, problem: Problem, c: Array, start: Start) -> Iterator[Step]:
    """Yield the solver's steps on the problem in v = w / c, with w put back.

    Both problems have the same minimum, so the bounds hold for either; where c holds powers of two, nothing is
    rounded. The planes stay in the new units (`Bundle.copy` brings them back).
    """
    inside = problem.rescaled(c)
    assert inside is not None
    bundle = None if start.bundle is None else start.bundle.rescaled(c / start.bundle.units)
    for step in solver.steps(inside, replace(start, w=start.w / c, bundle=bundle)):
        if step.bundle is not None:
            step.bundle.units = c
        yield replace(step, w=c * step.w)
