"""BFGS and L-BFGS for objectives with kinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.solvers.base import Solver, Start, Step
from bmrm.solvers.lbfgs import Memory
from bmrm.solvers.quasi_newton import Dense, quasi_newton_steps


@dataclass(frozen=True)
class SubgradientBFGS(Solver, name="subgradient_bfgs"):
    """BFGS for objectives with kinks, with the d x d matrix (Y10 Algorithms 1 to 3).

    Parameters
    ----------
    planes : int
    eps : float
    k_max : int

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "subgradient_bfgs").converged
    True
    """

    planes: int = 100
    eps: float = 1e-2
    k_max: int = 30

    refuses = frozenset({Trait.BOUNDS})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each line search."""
        return quasi_newton_steps(problem, start, Dense(problem.risk.dim), self.planes, self.eps, self.k_max)


@dataclass(frozen=True)
class SubgradientLBFGS(Solver, name="subgradient_lbfgs"):
    """L-BFGS for objectives with kinks (Y10 Algorithms 1 to 3).

    Parameters
    ----------
    memory : int
    planes : int
    eps : float
    k_max : int

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "subgradient_lbfgs").converged
    True
    """

    memory: int = 15
    planes: int = 100
    eps: float = 1e-2
    k_max: int = 30

    refuses = frozenset({Trait.BOUNDS})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each line search."""
        return quasi_newton_steps(problem, start, Memory(self.memory), self.planes, self.eps, self.k_max)
