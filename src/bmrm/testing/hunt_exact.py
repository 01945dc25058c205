"""J(w) of a drawn problem, recomputed in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from bmrm.problem import Problem
from bmrm.regularizers import Regularizer, Separable
from bmrm.risks.base import Array
from bmrm.risks.structured import StructuredRisk
from bmrm.structured.base import as_pair
from bmrm.testing.hunt_draw import Case, StructuredCase
from bmrm.testing.hunt_formulas import Rows, Values, terms_of
from bmrm.testing.hunt_numbers import (
    ONE,
    ZERO,
    Number,
    Overflow,
    exact_dot,
    fractions,
    integers,
    log_sum_exp,
)

_EPS = Fraction(np.finfo(np.float64).eps)
_ROUNDED = 4 * _EPS  # of J: the weights p_i, 1 / m and lam Omega are rounded once or twice before anything is summed
_SMALLEST = Fraction(1e-300)  # beside the slack: exponentials are not told from each other below 3e-308
_UNKNOWN = Fraction(1e-9)  # of J, where a formula is not known and the loss itself is asked, in floats
_MOST_OUTPUTS = 300  # of one example: beyond, the model itself is asked
_PARTS = {"l2", "l1", "elastic_net", "zero"}


class Objective:
    """J of a case, exactly where the formulas are known."""

    def __init__(self, case: Case | StructuredCase, problem: Problem) -> None:
        self.problem = problem
        self.lam = Fraction(problem.lam)
        self.risk = _Structured(case, problem) if isinstance(case, StructuredCase) else _Linear(case, problem.risk)

    def at(self, w: Array) -> tuple[float | Number, Number]:
        """Return J(w), inf where it is larger than any float, and by how much rounding may excuse a difference."""
        penalty = omega(self.problem.regularizer, w)
        if penalty is None:
            return np.inf, ZERO
        try:
            terms, relative = self.risk.terms(w)
        except Overflow:
            return np.inf, ZERO
        value = self.lam * penalty + sum(terms, ZERO)
        return value, relative * (self.lam * penalty + sum(map(abs, terms), ZERO)) + _SMALLEST


def omega(regularizer: Regularizer, w: Array) -> Number | None:
    """Return Omega(w) exactly, None outside the bounds."""
    if not isinstance(regularizer, Separable) or regularizer.name not in _PARTS:
        value = regularizer.value(w)
        return Fraction(value) if np.isfinite(value) else None
    if regularizer.bounds is not None and not np.all((w >= regularizer.lower) & (w <= regularizer.upper)):
        return None
    s, v = np.broadcast_to(regularizer.s, w.shape), fractions(np.abs(w))
    r = {"l2": ZERO, "zero": ZERO, "l1": ONE}.get(regularizer.name)
    r = Fraction(regularizer.r) if r is None else r  # type: ignore[attr-defined]
    return sum((a * (r * b + (ONE - r) * b * b / 2) for a, b in zip(fractions(s), v) if a), ZERO)


def shares(weight: Any, m: int) -> Values:
    """Return the weights divided by their sum; equal ones if there are none."""
    p = [ONE] * m if weight is None else fractions(weight)
    total = sum(p, ZERO)
    return [share / total for share in p]


class _Linear:
    def __init__(self, case: Case, risk: Any) -> None:
        self.risk = risk
        X: Any = case.X
        if self.risk.design.intercept:
            X = np.column_stack([X, np.ones(len(X))])
        self.X, self.offset = integers(X), None if case.offset is None else fractions(case.offset)
        self.rows = Rows(case.y, case.groups, self.risk.targets, shares(case.weight, len(X)))

    def terms(self, w: Array) -> tuple[Values, Number]:
        F = exact_dot(self.X, w.reshape(self.X[0].shape[1], -1))
        if self.offset is not None:
            F = [[f + shift for f in row] for row, shift in zip(F, self.offset)]
        loss = self.risk.loss
        terms = terms_of(loss, F, self.rows)
        if terms is None:
            scores = np.array([[float(f) for f in row] for row in F])
            value, _ = loss.evaluate(self.risk.by_rows(scores.reshape(-1)), self.rows.targets, self.risk.full_weight)
            if not np.isfinite(value):
                raise Overflow
            return [Fraction(value)], _UNKNOWN
        if loss.tilt:
            terms.append(Fraction(loss.tilt) * Fraction(float(w[-1])))
        return terms, _ROUNDED


class _Structured:
    def __init__(self, case: StructuredCase, problem: Problem) -> None:
        assert isinstance(problem.risk, StructuredRisk)
        self.risk, self.loss = problem.risk, problem.risk.loss
        model = self.loss.model
        self.p = shares(case.weight, len(case.X))
        self.examples: list[tuple[Any, Values, int]] | None = []
        for x, y in zip(case.X, case.Y):
            outputs = list(islice(model.outputs(x), _MOST_OUTPUTS + 1))
            if len(outputs) > _MOST_OUTPUTS:
                self.examples = None
                return
            features = [as_pair(model.joint_feature(x, other), model.dim) for other in [y, *outputs]]
            costs = fractions([model.delta(y, other) for other in [y, *outputs]])
            self.examples.append(([(i, integers(v)) for i, v in features], costs, len(outputs)))

    def terms(self, w: Array) -> tuple[Values, Number]:
        if self.examples is None:
            return [Fraction(self.risk.at(w).value)], _UNKNOWN
        terms = []
        for p, (features, costs, _) in zip(self.p, self.examples):
            scores = [exact_dot((n[None, :], e), w[i][:, None])[0][0] if len(i) else ZERO for i, (n, e) in features]
            terms.append(p * self._loss([score - scores[0] for score in scores[1:]], costs[1:]) if p else ZERO)
        return terms, _ROUNDED

    def _loss(self, leads: Values, costs: Values) -> Number:
        if self.loss.name == "structured_log":
            return log_sum_exp(leads)
        if getattr(self.loss, "scaling", "margin") == "slack":
            return max(cost * (ONE + lead) for cost, lead in zip(costs, leads))
        return max(cost + lead for cost, lead in zip(costs, leads))
