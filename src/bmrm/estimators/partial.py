"""partial_fit: one epoch of a stochastic solver for each batch of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmrm import solvers
from bmrm._traits import Trait
from bmrm.estimators.base import LinearModel, Sample
from bmrm.estimators.minimizer import Task, seed_of
from bmrm.problem import Problem, missing
from bmrm.risks.base import Array
from bmrm.solvers.stochastic import Carried, Stochastic

_OF_A_FIT = (
    "certificate_",
    "objective_",
    "lower_bound_",
    "gap_",
    "relative_gap_",
    "converged_",
    "_status",
    "history_",
)


class PartialModel(LinearModel):
    """A linear model that can also learn from one batch of rows after the other."""

    _carried: list[Carried]
    _rng: np.random.Generator

    def _minimize(self, sample: Task, targets: Callable[[int], Any], n_problems: int = 1, resume: bool = True) -> None:
        """Solve the problems anew; a later partial_fit begins where they ended."""
        self.__dict__.pop("_carried", None)
        super()._minimize(sample, targets, n_problems, resume)

    def _carry_on(self, sample: Sample, targets: Callable[[int], Array], n_problems: int = 1) -> None:
        """Run one epoch on the batch for each problem and set the coefficients."""
        problems = [self._problem(sample, targets(k)) for k in range(n_problems)]
        solver = self._stochastic(problems[0])
        starts = self._starts(sample, n_problems)
        points = np.zeros((n_problems, sample.dim)) if starts is None else starts
        before: list[Carried] | None = getattr(self, "_carried", None)
        if before is None:
            self._rng = np.random.Generator(np.random.PCG64(seed_of(self.random_state)))
        carried = [
            solver.carry_on(problem, points[k], None if before is None else before[k], self._rng)
            for k, problem in enumerate(problems)
        ]
        calls = getattr(self, "n_iter_", 0) if before is not None else 0
        for name in _OF_A_FIT:
            self.__dict__.pop(name, None)
        self.loss_, self._carried, self.n_iter_ = sample.loss, carried, calls + 1
        self.__dict__.update(self._coefficients(np.array([one.point for one in carried])))

    def _stochastic(self, problem: Problem) -> Stochastic:
        """Return the estimator's solver if it is stochastic, else the default for the regularizer."""
        chosen = solvers.get(self.solver)
        if not isinstance(chosen, Stochastic):
            chosen = solvers.SGD() if Trait.QUADRATIC in problem.traits else solvers.Folos()
        absent = missing(chosen, problem)
        if absent:
            reason = " and ".join(absent)
            raise ValueError(f"partial_fit by solver '{chosen.name}' does not fit this problem: it {reason}")
        return chosen
