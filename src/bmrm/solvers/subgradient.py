"""Steepest descent for objectives with kinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.solvers.base import Solver, Start, Step
from bmrm.solvers.metric import Identity
from bmrm.solvers.quasi_newton import Rules, quasi_newton_steps


@dataclass(frozen=True)
class Subgradient(Solver, name="subgradient"):
    """Steepest descent with exact line search: GD, and subGD where J has kinks (Y10 section 2.2).

    The loop of `subgradient_bfgs` with B = I: p = -gbar, gbar the shortest subgradient found. For comparison:
    it is slow on badly scaled problems, and as Y10 appendix E.2 shows, the shortest subgradient at the point
    itself may lead to a point that is not optimal. That is why the search for it looks at kinks nearby as well
    and widens its view where progress is small. With ``steepest=False`` it is plain gradient descent, which any
    kink may stop: the run then ends with ``Status.STALLED``.

    Parameters
    ----------
    steepest : bool
        Whether to look for the shortest subgradient, or to take any.
    planes : int
        The most planes kept for the bound.
    eps : float
        Tolerance of the direction finding, relative to the decrease of the model.
    k_max : int
        The most directions tried at a point; 1 with ``steepest=False``.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Logistic())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "subgradient").converged
    True

    References
    ----------
    Y10 section 2.2 and appendix E.
    """

    steepest: bool = True
    planes: int = 100
    eps: float = 0.1
    k_max: int = 30

    refuses = frozenset({Trait.BOUNDS})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each line search; end where no direction of descent is found."""
        rules = Rules(self.planes, self.eps, self.k_max if self.steepest else 1)
        return quasi_newton_steps(problem, start, Identity(), rules)
