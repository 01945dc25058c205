"""Whether the risk of precision or recall at k still says something about the score, and how to choose k."""

from __future__ import annotations

from bmrm.certificate import Certificate
from bmrm.losses.scores import AtKLoss, number_of
from bmrm.problem import Problem
from bmrm.risks import LinearRisk
from bmrm.risks.base import Array

_ROUNDING = 1e-12  # of J


def meaningless_cause(problem: Problem, w: Array, certificate: Certificate) -> str | None:
    """Return why the objective says nothing about precision or recall at k, as a clause with the cure, or None.

    The risk max over y' of Delta(y') + sum_i f_i (y'_i - y_i) / (2m) bounds the loss of the score because y' = y makes
    it at least 0. The y' have k positives and y has m+: if k is not m+, y is not among them. Then t added to all scores
    adds t (k - m+) / m to the risk, so it falls without end, and the minimum is where lam stops that. A risk below 0
    shows it: no labeling has a loss below 0.

    Parameters
    ----------
    problem : Problem
    w : array
    certificate : Certificate
        Its upper end is J(w).

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.meaningless_objective import meaningless_cause
    >>> X, y = np.arange(1.0, 9.0)[:, None], [-1, -1, 1, 1, 1, 1, 1, 1]
    >>> problem = bmrm.Problem(bmrm.LinearRisk(X, y, bmrm.losses.PrecisionAtK(k=1)), "l2", lam=1e-3)
    >>> result = bmrm.solve(problem)
    >>> meaningless_cause(problem, result.w, result.certificate).split(":")[0]
    'the risk is -9.77e+03, but no labeling has a loss below 0'
    """
    risk = problem.risk
    if not (isinstance(risk, LinearRisk) and isinstance(risk.loss, AtKLoss)) or risk.loss.floor == 0.0:
        return None
    value = certificate.upper - problem.lam * problem.regularizer.value(w)
    if value >= -_ROUNDING * abs(certificate.upper):
        return None
    positives = risk.targets.positives.size
    k = number_of(risk.loss.k, risk.design.n_rows)  # type: ignore[attr-defined]
    way = "up" if k < positives else "down"
    return (
        f"the risk is {value:.3g}, but no labeling has a loss below 0: with k = {k} and {positives} positive rows the "
        f"true labels are not among the labelings that '{risk.loss.name}' compares, so the loss falls as all scores "
        f"move {way}, until lam stops them; choose k = {positives} ('break_even'), or take 'roc_area' and the first "
        f"{k} of its order"
    )
