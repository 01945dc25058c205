"""Proximal projected subgradient descent with an optimistic guess of the size of the minimizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.risks.rows import Course, Order, RowVisits
from bmrm.solvers.stochastic import Stochastic, checked_batch, into_ball, radius_of

_SMALLEST = 1e-100  # a ball of radius 0 would make the steps 0 / 0


@dataclass(frozen=True)
class ProximalOnline(Stochastic, name="proximal_online"):
    """D09 Algorithms 2 and 3: f_t(w) + tau_t / 2 |w - w_t|^2 takes the place of f_t (3), and R grows when needed.

    The loop, with f_t = lam / 2 |w|^2 + the mean loss of k rows, r the radius of the ball of
    `Pegasos`, and epsilon = 0 as in D09's experiments::

        R = min(1, r)
        for t = 1, 2, ...
            tau_t = (-c + sqrt(c^2 + G^2 / R^2)) / 2,   c = lam t + tau_1 + ... + tau_(t-1)
            eta = 1 / (lam t + tau_1 + ... + tau_t)
            w = the nearest point in the ball to w - eta g_t,   g_t a subgradient of f_t at w
            if |w| >= R and R < r:  R = min(sqrt(2) R, r);  begin again with t = 1 and no tau

    G is lam r and the largest subgradient of a row's loss met so far: for the hinge loss, where r = 1 / sqrt(lam), that
    is the longest row plus sqrt(lam), as in Algorithm 3.

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
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "proximal_online", tol=1e-2).converged
    True

    References
    ----------
    D09 Algorithms 2 and 3.
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
        course.reach = max(min(1.0, radius), _SMALLEST)
        return {"radius": radius}

    def epoch(
        self, problem: Problem, visits: RowVisits, course: Course, order: Order, settings: dict[str, float]
    ) -> None:
        """Visit the rows in this order."""
        visits.descend(course, order, "proximal", lam=problem.lam, radius=settings["radius"], batch=self.batch)
