"""BFGS and L-BFGS for objectives with kinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.solvers.base import Solver, Start, Step
from bmrm.solvers.lbfgs import Memory
from bmrm.solvers.metric import Dense
from bmrm.solvers.quasi_newton import Rules, quasi_newton_steps


@dataclass(frozen=True)
class SubgradientBFGS(Solver, name="subgradient_bfgs"):
    """BFGS for objectives with kinks, with the d x d matrix B: for few features (Y10 Algorithms 1 to 3).

    The loop::

        repeat
            p = -B gbar, gbar the least subgradient in the norm of B that was found       Algorithm 2
            w = argmin of J along w + t p                                                 Algorithm 3
            B = (I - rho s y') B (I - rho y s') + rho s s'                                eq. 6

    `bmrm.solvers.quasi_newton.quasi_newton_steps` is the loop in full, with the bound: a duality gap from all
    planes found on the way, the stopping rule that Y10 section 9 asks for. Two products with the data for each
    step away from kinks, two more for each further subgradient at a kink and for each plane of the bound.

    Parameters
    ----------
    planes : int
        The most planes kept for the bound.
    eps : float
        Tolerance of the direction finding, relative to the decrease of the model.
    k_max : int
        The most directions tried at a point.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "subgradient_bfgs").converged
    True

    References
    ----------
    Y10 sections 3 and 4.
    """

    planes: int = 100
    eps: float = 0.1
    k_max: int = 30

    refuses = frozenset({Trait.BOUNDS})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each line search; end where no direction of descent is found."""
        rules = Rules(self.planes, self.eps, self.k_max)
        return quasi_newton_steps(problem, start, Dense(problem.risk.dim), rules)


@dataclass(frozen=True)
class SubgradientLBFGS(Solver, name="subgradient_lbfgs"):
    """L-BFGS for objectives with kinks: `subgradient_bfgs` with B kept as its last updates (Y10 section 3.5).

    Falls fast at first and slows down near the optimum, where single kinks decide; `hybrid` takes the bundle
    method from there on.

    Parameters
    ----------
    memory : int
        Number of pairs (s, y) kept.
    planes : int
        The most planes kept for the bound.
    eps : float
        Tolerance of the direction finding, relative to the decrease of the model.
    k_max : int
        The most directions tried at a point.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "subgradient_lbfgs").converged
    True

    References
    ----------
    Y10 sections 3 and 4, 8.2 for the size of the memory.
    """

    memory: int = 15
    planes: int = 100
    eps: float = 0.1
    k_max: int = 30

    refuses = frozenset({Trait.BOUNDS})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each line search; end where no direction of descent is found."""
        rules = Rules(self.planes, self.eps, self.k_max)
        return quasi_newton_steps(problem, start, Memory(self.memory), rules)
