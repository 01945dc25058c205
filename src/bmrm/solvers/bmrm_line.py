"""The bundle method without a quadratic program, S08 section 5."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bmrm._traits import Trait
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.solvers.base import Solver, Start, Step, touch_near


@dataclass(frozen=True)
class BMRMLine(Solver, name="bmrm_line"):
    """Cutting planes with a line search in the dual instead of a quadratic program (S08 section 5).

    Only one aggregated plane (A alpha, r) is kept, no past gradients::

        gamma = J(w) - (r - lam/2 |w|^2)                        duality gap at w
        eta   = min(1, lam gamma / |lam w + a|^2)               S08 eq. 15
        w     = (1 - eta) w - eta a / lam,   r = (1 - eta) r + eta b

    Norms are those of the regularizer's weights. Slower than `bmrm` in iterations, nearly free in memory.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "bmrm_line").converged
    True

    References
    ----------
    S08 section 5 (with the sign ``w'A alpha = -lam |w|^2``).
    """

    needs = frozenset({Trait.QUADRATIC})
    refuses = frozenset({Trait.FREE_COORDINATES, Trait.BOUNDS, Trait.UNBOUNDED_RISK})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each plane."""
        regularizer, lam = problem.regularizer, problem.lam
        assert isinstance(regularizer, Separable)
        s = regularizer.s
        combined, r = _aggregate(problem, start)
        best, upper, limit = start.w, np.inf, np.inf
        if start.memory is not None:
            combined, r, best, upper, limit = start.memory
        elif start.bundle is not None or start.w.any():
            upper = problem.objective(best)
        w = -combined / (lam * s)
        while True:
            point = touch_near(problem, w, best, limit)
            a, b = point.plane
            objective = lam * regularizer.value(point.w) + point.value
            if objective < upper:
                best, upper = point.w, objective
                limit = 1e6 * (1.0 + abs(upper)) if np.isinf(limit) else limit
            lower = r - lam * regularizer.value(w)
            slope = float(a @ w) + b - r + 2.0 * lam * regularizer.value(w)  # of the dual, = gamma
            direction = lam * s * w + a
            curvature = float(np.sum(direction**2 / s))
            eta = float(np.clip(lam * slope / curvature, 0.0, 1.0)) if curvature > 0.0 else 0.0
            combined = (1.0 - eta) * combined + eta * a
            w, r = -combined / (lam * s), (1.0 - eta) * r + eta * b
            bundle = Bundle(problem.risk.dim, problem.risk.floor)
            bundle.add_plane(combined, r)
            bundle.multipliers = np.array([0.0, 1.0])
            lower = max(lower, r - lam * regularizer.value(w))
            yield Step(best, upper, lower, bundle, (combined, r, best, upper, limit))


def _aggregate(problem: Problem, start: Start) -> tuple[np.ndarray, float]:
    """Return the aggregated plane of the start's bundle, or the floor."""
    bundle = start.bundle
    if bundle is None or not len(bundle):
        return np.zeros(problem.risk.dim), problem.risk.floor
    return bundle.combine(bundle.multipliers), float(bundle.multipliers @ bundle.offsets)
