"""What to do when the lower bound of a run lies above its objective: rounding, a user's code, or a fault of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bmrm._errors import ContradictionError
from bmrm.problem import Problem
from bmrm.risks.base import Array, OracleRisk

_OURS = 1e-9  # of the objective: what the rounding of values beside the charged one may be
_FOREIGN = 1e-6  # the same where values and subgradients come from a user's code
_OF_START = 1e-9  # of the objective at the start, at most 1: far below it there are no digits


def resolved(problem: Problem, source: str, upper: float, lower: float, w: Array, start: Array, scale: float) -> float:
    """Return an upper bound of min J for a run with lower > upper, or raise an error that says whose fault it is.

    Parameters
    ----------
    source : str
        The solver.
    w : array
        Any point: lower must not exceed J there.
    start : array
        Where the run began.
    scale : float
        Of the objective.
    """
    foreign = is_foreign(problem)
    share, excess = _FOREIGN if foreign else _OURS, lower - upper
    if excess <= share * max(abs(upper), 1e-3 * scale):
        return lower
    at_most = problem.at_most(w)
    if lower <= at_most + share * abs(at_most) or excess <= _OF_START * min(1.0, abs(problem.objective(start))):
        return max(at_most, lower)
    if foreign:
        raise ValueError(
            f"the lower bound {lower:g} exceeds the objective {upper:g}: the risk is not convex, or its "
            f"subgradients are wrong (bmrm.testing.check_loss and check_risk find out)"
        )
    raise ContradictionError(at_most, lower, source)


def is_foreign(problem: Problem) -> bool:
    """Return whether code from outside this library has a part in the objective.

    Examples
    --------
    >>> import bmrm
    >>> from bmrm.contradiction import is_foreign
    >>> is_foreign(bmrm.Problem(bmrm.LinearRisk([[1.0]], [1], "hinge"), "l2", 1.0))
    False
    """
    return any(type(part).__module__.split(".")[0] != "bmrm" for part in _parts(problem))


def _parts(problem: Problem) -> Iterator[Any]:
    yield problem.regularizer
    risk = problem.risk
    yield risk.oracle if isinstance(risk, OracleRisk) else risk
    for name in ("loss", "model"):
        if hasattr(risk, name):
            yield getattr(risk, name)
