"""The bundle method with a proximal term whose weight is found on the way, D09 Algorithm 4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bmrm._states import kept
from bmrm._traits import Trait
from bmrm.bundle.master import master_for
from bmrm.bundle.planes import Bundle
from bmrm.bundle.qp import L2Master
from bmrm.problem import Problem
from bmrm.regularizers.l2 import L2
from bmrm.risks.base import Array, Point
from bmrm.solvers.base import Solver, Start, Step, bundle_for, solve_master
from bmrm.solvers.ls_bmrm import advance

_REFRESH = 50


@kept
@dataclass(frozen=True)
class Balance:
    """The weights tau_i of the proximal terms so far, by the balancing heuristic with the optimistic R.

    Norms are those of the regularizer's weights. Attributes: the number t of terms in this phase, tau_{1:t},
    sum_i tau_i w_i, and R.
    """

    t: int
    tau: float
    points: Array
    R: float

    @classmethod
    def first(cls, lam: float, w: Array, value: float, slope: float) -> Balance:
        """Return the state before the first term: R = min(1, 1 / sqrt(lam)) where J(w) and the slope there are 1.

        In other units R is the distance after which a risk with that slope would be 0, at most the norm at which the
        regularizer alone is as large as J(w).
        """
        R = min(value / slope, np.sqrt(value / lam)) if value > 0.0 and slope > 0.0 else 1.0
        return cls(0, 0.0, np.zeros_like(w), float(R) if 0.0 < R < np.inf else 1.0)

    def after(self, lam: float, w: Array, norm: float, slope: float) -> Balance:
        """Return the weights with one more term, at w; where its norm reaches R, a new phase with a larger R.

        norm is that of w, slope the dual norm A_t of the plane there.
        """
        state = self
        if norm >= self.R:
            R = self.R
            while R <= norm < np.inf:  # at most 4200 trips: from the smallest number to the largest
                R *= np.sqrt(2.0)
            state = Balance(0, 0.0, np.zeros_like(w), float(R))
        t = state.t + 1
        before = lam * t + state.tau
        tau = 0.5 * (float(np.hypot(before, (lam * state.R + slope) / state.R)) - before)
        return replace(state, t=t, tau=state.tau + tau, points=state.points + tau * w)

    @property
    def kappa(self) -> float:
        """The weight of all terms together, beside one P_t."""
        return self.tau / self.t

    @property
    def center(self) -> Array:
        """Where the sum of the terms is least."""
        return self.points / self.tau if self.tau > 0.0 else self.points


@dataclass(frozen=True)
class ProximalBundle(Solver, name="proximal_bundle"):
    """Cutting planes with a proximal term: steps stay short where lam is too small to keep them so.

    The loop (D09 Algorithm 4, P_t the model lam Omega(w) + largest plane)::

        repeat
            a, b  = a plane that touches R near w
            tau_t = 1/2 (sqrt((lam t + tau_{1:t-1})^2 + (lam + |a| / R)^2) - lam t - tau_{1:t-1})
            w     = argmin t P_t(w) + sum_i tau_i/2 |w - w_i|^2
            if |w| >= R:  R = sqrt(2) R, and the tau are counted anew     (D09 section 3.4)

    With a line search (the default) the terms are drawn together at the best point so far, and planes touch near
    the line to it, as in `ls_bmrm`; without, the method is that of the paper. The dual value of the problem with
    the terms bounds nothing; lower comes from the same program without them, which shares its factor.

    Parameters
    ----------
    line_search : bool
        Whether to search the line from the best point to w.
    mu : float
        Where on that line the next plane touches.
    max_cuts : int, optional
        The most planes kept; by default what fits into 1 GiB.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "proximal_bundle").converged
    True

    References
    ----------
    D09 section 4 (w_{t+1} minimizes P'_t, not P_t), sections 3.2 and 3.4.
    """

    line_search: bool = True
    mu: float = 0.1
    max_cuts: int | None = None

    needs = frozenset({Trait.QUADRATIC})
    refuses = frozenset({Trait.BOUNDS})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each plane."""
        bundle, lam = bundle_for(problem, start, self.max_cuts, by_slopes=True), problem.lam
        master = master_for(problem.regularizer)
        assert isinstance(master, L2Master)
        regularizer = master.regularizer  # the elastic net without absolute values is l2
        best = problem.risk.at(start.w, start.memory and start.memory[3])
        upper = lam * regularizer.value(best.w) + best.value
        touched: Array | None = None
        if start.memory is None:
            bundle.add_point(best)
            w, t, iteration = best.w, 1.0, 0
            touched = w
            balance = Balance.first(lam, w, upper - problem.risk.floor, _dual_norm(regularizer, bundle))
        else:
            w, t, iteration, _, balance = start.memory
        while True:  # the driver ends it, here and in the other solvers
            if touched is None:
                iteration += 1
                if iteration % _REFRESH == 0:  # scores combined many times have lost some digits
                    best = problem.risk.at(best.w)
                    upper = lam * regularizer.value(best.w) + best.value
                if self.line_search:
                    best, upper, t = advance(problem, bundle, best, upper, w, t, self.mu)
                    touched = best.w
                else:
                    best, upper, touched = _touch(problem, bundle, best, upper, w)
            balance = balance.after(lam, touched, _norm(regularizer, w), _dual_norm(regularizer, bundle))
            plain = solve_master(problem, master, bundle, upper, best.w)
            center = best.w if self.line_search else balance.center
            near = master.solve_near(bundle, lam, upper, center, balance.kappa)
            w, touched, lower = near.w, None, max(plain.lower, near.lower)
            yield Step(best.w, upper, lower, bundle, (w, t, iteration, best.remembered, balance))

    def after_cut(self, problem: Problem, memory: Any) -> Any:
        """Return the memory: a step changes nothing in it."""
        return memory


def _touch(problem: Problem, bundle: Bundle, best: Point, upper: float, w: Array) -> tuple[Point, float, Array]:
    """Add the plane at w, or nearer to the best point where the risk overflows; return the best, its J and where."""
    line, t = best.toward(w), 1.0
    point = line.at(t)
    while t > 0.0 and not (np.isfinite(point.value) and point.value <= 1e6 * (1.0 + abs(upper))):
        t *= 0.5
        point = line.at(t)
    bundle.add_point(point)
    objective = problem.lam * problem.regularizer.value(point.w) + point.value
    return (point, objective, point.w) if objective < upper else (best, upper, point.w)


def _norm(regularizer: L2, w: Array) -> float:
    return float(np.sqrt(2.0 * regularizer.value(w)))


def _dual_norm(regularizer: L2, bundle: Bundle) -> float:
    """Return the norm of the newest plane."""
    return regularizer.reach(bundle.normal(-1), 0.5)
