"""Stochastic gradient descent with a diagonal quasi-Newton metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.risks.rows import Course, Order, RowVisits
from bmrm.solvers.stochastic import Stochastic, tuned_eta

_ROUNDS, _SAMPLE = 3, 5000  # of rows that give an idea of the curvature


@dataclass(frozen=True)
class SGDQN(Stochastic, name="sgd_qn"):
    """SGD-QN (M09; Bordes, Bottou and Gallinari): steps scaled by an estimate of the inverse curvature.

    The loop, with D = diag(1 / (lam + min(h_j, 99 lam)))::

        for t = 1, 2, ...
            draw a row i
            w = w - eta D (l'(<x_i, w>) x_i + lam w)
            now and then:  h_j = running mean of (change of l') / (change of <x_i, w>) x_ij^2

    The penalty is applied every few rows, so that it costs no more than the steps. h is learned on a sample, where it
    is renewed as often, with weights 1, 2, 3, ... Bordes et al. take the ratio of the changes of the row's gradient
    and of w for each coordinate, in which D_j itself appears and falls ever faster; and rows that come to rest on a
    kink look ever more curved. The steps are eta = eta0 (1 + t / m)^(-3/4): D need not be right for the average of the
    points to converge. Weights of the regularizer are taken into D, which needs a penalty on every coordinate.
    Steps on losses with unbounded slopes are bounded as in `SGD`.

    Parameters
    ----------
    eta0 : float, optional
        By default chosen so that the first steps do best on a sample of 1000 rows (by a factor of 2), at most 1.
    average : bool
        Whether to return the average of the points, with weights 1, 2, 3, ...
    max_cuts : int
        The most planes kept for the bound.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "sgd_qn", tol=1e-2).converged
    True

    References
    ----------
    M09 (SGD-QN, Bordes et al. 2009).
    """

    eta0: float | None = None

    needs = Stochastic.needs | {Trait.QUADRATIC}
    refuses = frozenset({Trait.BOUNDS, Trait.FREE_COORDINATES})

    def begin(self, problem: Problem, visits: RowVisits, course: Course, rng: np.random.Generator) -> dict[str, float]:
        """Return t0 and eta0; the course gets the curvature."""
        lam = problem.lam
        course.curvature = np.zeros(course.w.size)
        for _ in range(_ROUNDS):
            eta0 = min(tuned_eta(problem, visits, course, rng), 1.0) if self.eta0 is None else self.eta0
            trial = course.copy()
            trial.average = trial.normal = None
            visits.shrink(trial, visits.draw(rng)[:_SAMPLE], lam=lam, eta0=eta0, t0=np.inf, power=1.0, learns=True)
            course.curvature, course.clock[3] = trial.curvature, trial.clock[3]
        return {"eta0": eta0, "t0": float(visits.active.size)}

    def epoch(
        self, problem: Problem, visits: RowVisits, course: Course, order: Order, settings: dict[str, float]
    ) -> None:
        """Visit the rows in this order."""
        visits.shrink(course, order, lam=problem.lam, power=0.75, eta0=settings["eta0"], t0=settings["t0"])
