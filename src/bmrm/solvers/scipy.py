"""An off-the-shelf optimizer behind the same interface: scipy's L-BFGS-B."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm._traits import Trait
from bmrm.bundle.master import master_for
from bmrm.problem import Problem
from bmrm.risks.base import Array
from bmrm.solvers.base import Solver, Start, Step, new_bundle, solve_master


@dataclass(frozen=True)
class SciPy(Solver, name="scipy"):
    """scipy.optimize.minimize(method="L-BFGS-B") with a duality gap from the planes it pays for (T07 section 4.2).

    The optimizer runs for a number of its own iterations at a time; every evaluation contributes a plane. Shows
    that any optimizer of values and gradients plugs in. It forgets its memory between two steps; `lbfgs` is
    the solver to prefer.

    Parameters
    ----------
    inner : int
        Iterations of the optimizer for each step.
    planes : int
        Number of planes kept for the bound.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Logistic())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "scipy").converged
    True
    """

    inner: int = 10
    planes: int = 30

    needs = frozenset({Trait.SMOOTH_RISK, Trait.SMOOTH_REGULARIZER})
    refuses = frozenset({Trait.BOUNDS})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each call of the optimizer; end when it makes no progress."""
        from scipy.optimize import minimize

        risk, regularizer, lam = problem.risk, problem.regularizer, problem.lam
        bundle = start.bundle or new_bundle(problem, self.planes)
        master = master_for(regularizer)
        best, upper = start.w, np.inf if start.memory is None else start.memory

        def objective(w: Array) -> tuple[float, Array]:
            nonlocal best, upper
            if not np.isfinite(w).all():  # it has divided by squares that are 0
                return np.inf, np.zeros_like(w)
            point = risk.touch(w.copy())
            total = lam * regularizer.value(w) + point.value
            if np.isfinite(total):
                bundle.add_point(point)
                if len(bundle) >= bundle.max_cuts:
                    master.solve(bundle, lam, min(upper, total))
            if total < upper:
                best, upper = point.w, total
            return total, lam * regularizer.subgradient(w) + point.subgradient

        while True:
            before = upper
            options: Any = {"maxiter": self.inner, "ftol": 0.0, "gtol": 0.0, "maxls": 40}
            minimize(objective, best, jac=True, method="L-BFGS-B", options=options)
            lower, ended = solve_master(problem, master, bundle, upper, best).lower, not upper < before
            yield Step(best, upper, lower, bundle, upper, ended)
            if ended:
                return
