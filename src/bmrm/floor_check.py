"""Whether a run's values keep to the floor that a user's loss or risk declares.

Every lower bound of J may lean on the floor, so one that is too high makes wrong bounds. It is compared with the
objective of every step, and where a run converges at the floor, with values a few steps farther down.
"""

from __future__ import annotations

import numpy as np

from bmrm import _core
from bmrm._errors import FloorError
from bmrm.problem import Problem
from bmrm.risks.base import Array, Risk
from bmrm.risks.floor import declarer, described, is_declared_by_user

# Of the floor, or of the objective at the start: the sum of a million rows is exact to 1e-10.
_ROUNDING = 1e-9
# R(w) may be so many gaps above the floor: farther up, the floor makes up less than a tenth of the lower bound.
_LEANS = 10.0
# In units of the step at which the tangent meets the floor. The first finds a straight fall, the second a curved one;
# the others find a value that shows more than rounding does.
_FARTHER = (2.0, 2.0**5, 2.0**10, 2.0**15, 2.0**20, 2.0**25)


def check_value(problem: Problem, w: Array, objective: float, scale: float) -> None:
    """Raise FloorError where R(w) lies below the floor by more than rounding.

    Parameters
    ----------
    problem : Problem
    w : array
    objective : float
        J(w). Where it is too small for the floor, R(w) is evaluated before anything is said.
    scale : float
        The objective at the start, or 1 if that is smaller: what its rounding errors are compared with.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.floor_check import check_value
    >>> class Falling(bmrm.Risk):
    ...     __module__, dim, floor = "yours", 1, 0.0
    ...
    ...     def evaluate(self, w):
    ...         return float(w[0]), np.ones(1)
    >>> check_value(bmrm.Problem(Falling(), "l2", 1.0), np.array([-1.0]), -0.5, 1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    bmrm._errors.FloorError: R(w) falls to -1, below the floor 0 that risk 'Falling' declares: ...
    """
    risk = problem.risk
    if not is_declared_by_user(risk):
        return
    least = risk.floor - _slack(risk, scale)
    if not objective - problem.lam * problem.regularizer.value(w) < least:
        return
    point = risk.at(w)
    if point.value + point.rounding < least:
        raise _below(risk, point.value)


def check_below(problem: Problem, w: Array, objective: float, lower: float, scale: float) -> None:
    """Raise FloorError where w seems to be optimal because of the floor, and R falls below that nearby.

    A risk at its floor is at its minimum. So values are looked at along the subgradient, but only where R(w) is within
    a few gaps of the floor: elsewhere the bound does not come from it. It costs two passes over the data
    or, of a risk without lines, one or two evaluations more.
    """
    risk = problem.risk
    if not is_declared_by_user(risk):
        return
    slack = _slack(risk, scale)
    above = objective - problem.lam * problem.regularizer.value(w) - risk.floor
    if not above <= _LEANS * (objective - lower + slack):
        return
    point = risk.at(w)
    a = point.subgradient
    steepness = _core.inner(a, a)
    if not 0.0 < steepness < np.inf:
        return
    line, least = point.toward(w - (max(above, 0.0) + 2.0 * slack) / steepness * a), point.value
    for t in _FARTHER:
        value = line.evaluate(t)[0]
        if not -np.inf < value < least:
            break
        least = value
    if least < risk.floor - slack:
        raise _below(risk, least)


def _slack(risk: Risk, scale: float) -> float:
    return _ROUNDING * max(abs(risk.floor), scale) + risk.noise


def _below(risk: Risk, value: float) -> FloorError:
    return FloorError(
        f"R(w) falls to {value:.6g}, below the floor {risk.floor:g} that {described(risk)} declares: bounds of the "
        f"optimum would be wrong. Set 'floor' in class {type(declarer(risk)).__name__} to a true lower bound, or leave "
        f"it out (bmrm.testing.check_loss and check_risk compare it with values)"
    )
