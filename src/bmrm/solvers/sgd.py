"""Stochastic gradient descent with steps 1 / (lam (t + t0))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.risks.rows import Course, Order, RowVisits
from bmrm.solvers.stochastic import Stochastic, tuned_t0


@dataclass(frozen=True)
class SGD(Stochastic, name="sgd"):
    """SVM-SGD (M09): one row for each step.

    The loop (M09's sign of the loss's part corrected)::

        for t = 1, 2, ...
            draw a row i
            eta = 1 / (lam (t + t0))
            w = (1 - eta lam) w - eta l'(<x_i, w>) x_i

    w is kept as a number times a vector, so that a step costs as much as the row has entries. Coordinates that are not
    penalized are not shrunk. With weights of the regularizer the steps of coordinate j are divided by weight j. Where
    the loss has unbounded slopes, a step moves the score of its row at most to where the tangent reaches 0.

    Parameters
    ----------
    t0 : float, optional
        By default chosen so that the first step does best on a sample of 1000 rows (by a factor of 2).
    average : bool
        Whether to return the average of the points, with weights 1, 2, 3, ...
    max_cuts : int
        The most planes kept for the bound.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "sgd", tol=1e-2).converged
    True

    References
    ----------
    M09 (SVM-SGD, Bottou 2007).
    """

    t0: float | None = None

    needs = Stochastic.needs | {Trait.QUADRATIC}

    def begin(self, problem: Problem, visits: RowVisits, course: Course, rng: np.random.Generator) -> dict[str, float]:
        """Return t0."""
        return {"t0": tuned_t0(problem, visits, course, rng, "sgd") if self.t0 is None else float(self.t0)}

    def epoch(
        self, problem: Problem, visits: RowVisits, course: Course, order: Order, settings: dict[str, float]
    ) -> None:
        """Visit the rows in this order."""
        visits.descend(course, order, "sgd", lam=problem.lam, t0=settings["t0"])
