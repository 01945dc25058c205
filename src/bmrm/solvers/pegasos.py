"""Pegasos: steps 1 / (lam t) and a projection onto a ball that holds the minimizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.risks.rows import Course, Order, RowVisits
from bmrm.solvers.stochastic import Stochastic, checked_batch, into_ball, radius_of


@dataclass(frozen=True)
class Pegasos(Stochastic, name="pegasos"):
    """Primal estimated subgradient solver (M09, D09 Algorithm 1): k rows for each step.

    The loop (the mean is over A, not over the rows with a loss as M09 prints)::

        for t = 1, 2, ...
            draw a set A of k rows
            w = (1 - 1/t) w - 1 / (lam t k) sum over i in A of l'(<x_i, w>) x_i
            w = the nearest point with |w| <= sqrt((R(0) - floor) / lam)

    For the hinge loss the ball is Pegasos' own, of radius 1 / sqrt(lam), because R(0) = 1; for other losses it is the
    ball that the same argument gives. No setting depends on the data; for small lam the first steps are very long.

    Parameters
    ----------
    batch : int
        k, the rows for each step.
    average : bool
        Whether to return the average of the points, with weights 1, 2, 3, ...
    max_cuts : int
        The most planes kept for the bound.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "pegasos", tol=1e-2).converged
    True

    References
    ----------
    M09 (Pegasos, Shalev-Shwartz et al. 2007), D09 Algorithm 1 and section 3.3.
    """

    batch: int = 1

    needs = Stochastic.needs | {Trait.QUADRATIC}
    refuses = frozenset({Trait.BOUNDS, Trait.FREE_COORDINATES, Trait.UNBOUNDED_RISK})

    def __post_init__(self) -> None:
        checked_batch(self.batch, self.name)

    def begin(self, problem: Problem, visits: RowVisits, course: Course, rng: np.random.Generator) -> dict[str, float]:
        """Return the radius of the ball."""
        radius = radius_of(problem)
        into_ball(problem, course, radius)
        return {"radius": radius}

    def epoch(
        self, problem: Problem, visits: RowVisits, course: Course, order: Order, settings: dict[str, float]
    ) -> None:
        """Visit the rows in this order."""
        visits.descend(course, order, "pegasos", lam=problem.lam, radius=settings["radius"], batch=self.batch)
