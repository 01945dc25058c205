"""Forward-backward splitting: a step along the loss of one row, then the minimum of the penalty near it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.risks.rows import Course, Order, RowVisits
from bmrm.solvers.stochastic import Stochastic, tuned_eta, tuned_t0


@dataclass(frozen=True)
class Folos(Stochastic, name="folos"):
    """FOLOS (M09): forward-backward splitting with one row for each step, for l2 and l1.

    The loop::

        for t = 1, 2, ...
            draw a row i
            v = w - eta l'(<x_i, w>) x_i
            w = argmin of 1/2 |w - v|^2 + eta lam Omega(w)       l2: v / (1 + eta lam); l1: soft threshold

    eta = 1 / (lam (t + t0)) for l2, and eta0 / sqrt(1 + t / m) for l1. With l1 the threshold of a coordinate is applied
    when its column is next met: thresholds add up, so nothing is lost and a step costs as much as the row has entries.
    Coordinates that are not penalized are not shrunk. With weights and l2, the steps of coordinate j are divided by
    weight j. Steps on losses with unbounded slopes are bounded as in `SGD`.

    Parameters
    ----------
    t0 : float, optional
        For l2; by default chosen so that the first step does best on a sample of 1000 rows (by a factor of 2).
    eta0 : float, optional
        For l1; by default chosen in the same way.
    average : bool
        Whether to return the average of the points, with weights 1, 2, 3, ...
    max_cuts : int
        The most planes kept for the bound.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l1", lam=0.5), "folos", tol=1e-2).converged
    True

    References
    ----------
    M09 (FOLOS, Duchi and Singer 2009).
    """

    t0: float | None = None
    eta0: float | None = None

    def begin(self, problem: Problem, visits: RowVisits, course: Course, rng: np.random.Generator) -> dict[str, float]:
        """Return t0 and, for l1, eta0."""
        if Trait.QUADRATIC in problem.traits:
            return {"t0": tuned_t0(problem, visits, course, rng, "folos") if self.t0 is None else float(self.t0)}
        m = float(visits.active.size)
        return {"t0": m, "eta0": tuned_eta(problem, visits, course, rng) if self.eta0 is None else self.eta0}

    def epoch(
        self, problem: Problem, visits: RowVisits, course: Course, order: Order, settings: dict[str, float]
    ) -> None:
        """Visit the rows in this order."""
        if Trait.QUADRATIC in problem.traits:
            visits.descend(course, order, "folos", lam=problem.lam, t0=settings["t0"])
        else:
            visits.shrink(course, order, lam=problem.lam, power=0.5, eta0=settings["eta0"], t0=settings["t0"])
