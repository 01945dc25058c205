"""The bundle method without a quadratic program, S08 section 5."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bmrm._traits import Trait
from bmrm.bundle.master import lower_bound
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.solvers.base import Solver, Start, Step, new_bundle, touch_near


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
        combined, r, steepness = _aggregate(problem, start)
        best, upper, limit = start.w, np.inf, np.inf
        if start.memory is not None:
            combined, r, steepness, best, upper, limit = start.memory
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
            slope = float(a @ w) + b - r + 2.0 * lam * regularizer.value(w)  # of the dual, = gamma
            direction = lam * s * w + a
            curvature = float(np.sum(direction**2 / s))
            eta = float(np.clip(lam * slope / curvature, 0.0, 1.0)) if curvature > 0.0 else 0.0
            combined = (1.0 - eta) * combined + eta * a
            steepness = (1.0 - eta) * steepness + eta * point.steepness
            w, r = -combined / (lam * s), (1.0 - eta) * r + eta * b
            bundle = new_bundle(problem, None)
            bundle.add_plane(combined, r, steepness)
            if len(bundle) < 2:  # numbers overflow
                yield Step(best, upper, -np.inf, ended=True)
                return
            bundle.multipliers = np.array([0.0, 1.0])
            errors = bundle.errors(bundle.multipliers)
            lower = lower_bound(regularizer, lam, bundle, combined, r, np.inf, errors, upper, w)
            yield Step(best, upper, lower, bundle, (combined, r, steepness, best, upper, limit))


def _aggregate(problem: Problem, start: Start) -> tuple[np.ndarray, float, float]:
    """Return the aggregated plane of the start's bundle and its steepness, or the floor."""
    bundle = start.bundle
    if bundle is None or not len(bundle):
        return np.zeros(problem.risk.dim), problem.risk.floor, 0.0
    alpha = bundle.multipliers
    return bundle.combine(alpha), float(alpha @ bundle.offsets), float(alpha @ bundle.steepness)
