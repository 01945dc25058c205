"""Subgradient L-BFGS first, the bundle method to finish."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.solvers.base import Solver, Start, Step
from bmrm.solvers.lbfgs import Memory
from bmrm.solvers.ls_bmrm import LsBMRM
from bmrm.solvers.quasi_newton import Rules, quasi_newton_steps


@dataclass(frozen=True)
class Hybrid(Solver, name="hybrid"):
    """`subgradient_lbfgs` while it makes progress, then `ls_bmrm` with all its planes: what Y10 section 9 proposes.

    The quasi-Newton method falls fast while many kinks look like a curve; the bundle method is the better one
    where single kinks decide. The switch: J fell by less than `share` of the gap during the last `window` steps,
    so the quasi-Newton method would need many more windows, be it that it is slow or that its planes bound J
    poorly. The bundle method then starts from its point and all planes found so far.

    Parameters
    ----------
    memory : int
        Number of pairs (s, y) kept.
    window : int
        Number of steps over which progress is measured.
    share : float
        The least progress, relative to the gap.
    max_cuts : int, optional
        The most planes kept; by default what fits into 1 GiB.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "hybrid").converged
    True

    References
    ----------
    Y10 section 9.
    """

    memory: int = 15
    window: int = 5
    share: float = 0.1
    max_cuts: int | None = None

    refuses = frozenset({Trait.BOUNDS})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield the steps of the first method, then those of the second."""
        uppers, memory = start.memory or ([], None)
        if uppers is not None:
            first = quasi_newton_steps(
                problem, replace(start, memory=memory), Memory(self.memory), Rules(self.max_cuts)
            )
            for step in first:
                uppers = [*uppers[-self.window :], step.upper]
                stalled = len(uppers) > self.window and uppers[0] - uppers[-1] < self.share * (step.upper - step.lower)
                over = stalled or step.ended
                yield replace(step, memory=(None, None) if over else (uppers, step.memory), ended=False)
                start, memory = Start(step.w, step.bundle, start.seed, tol=start.tol), None
                if over:
                    break
        for step in LsBMRM(max_cuts=self.max_cuts).steps(problem, replace(start, memory=memory)):
            yield replace(step, memory=(None, step.memory))
