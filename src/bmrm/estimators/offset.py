"""The constant of a linear model where an interval of constants is optimal: its middle.

With a piecewise linear loss and an unpenalized constant b, J often has the same smallest value on an interval of b.
Which of these a solver ends at depends on rounding; the middle depends on the problem alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from bmrm import _core
from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.regularizers import Separable
from bmrm.risks import LinearRisk
from bmrm.risks.base import Array

FLAT = 1e-9  # a slope that counts as 0; the weights of the rows add up to 1
_PRECISION = 1e-13
_TRIALS = 200

Slopes: TypeAlias = Callable[[float], tuple[float, float, float]]


def centered(problem: Problem, w: Array, upper: float) -> tuple[Array, float]:
    """Return w with its constant in the middle of the optimal interval, and J there.

    Parameters
    ----------
    problem : Problem
    w : array
        The other coordinates stay as they are.
    upper : float
        At least J(w), rounding included; so is what is returned.

    Returns
    -------
    tuple of array and float
        w and upper themselves, if the constant is penalized, bounded, unique by the kind of the loss, or if the
        middle would be worse by more than rounding.

    Examples
    --------
    Any b between -1 and 1 separates these two rows without loss:

    >>> import numpy as np, bmrm
    >>> from bmrm.estimators.offset import centered
    >>> risk = bmrm.LinearRisk([[2.0], [-2.0]], [1, -1], bmrm.losses.Hinge(), intercept=True)
    >>> problem = bmrm.Problem(risk, "l2", lam=0.5)
    >>> w, objective = centered(problem, np.array([1.0, 0.75]), upper=0.25)
    >>> w.round(9), round(objective, 9)
    (array([1., 0.]), 0.25)
    """
    risk = problem.risk
    if not (isinstance(risk, LinearRisk) and risk.kernel is not None and _is_free(problem)):
        return w, upper
    scores = risk.scores(w)
    slopes = _along_constant(risk, w, scores)
    lower_end, upper_end = _leftmost(slopes), -_leftmost(_mirrored(slopes))
    if not np.isfinite(lower_end + upper_end):
        return w, upper
    shift = 0.5 * (lower_end + upper_end)
    moved = w.copy()
    moved[-1] += shift
    known = risk.at(w).remembered
    objective = problem.at_most(moved, known + shift if isinstance(known, np.ndarray) else None)
    return (moved, objective) if objective <= upper + 1e-14 * max(1.0, abs(upper)) else (w, upper)


def _is_free(problem: Problem) -> bool:
    """Whether w ends in an unpenalized, unbounded constant that a piecewise loss may leave undecided."""
    regularizer, risk = problem.regularizer, problem.risk
    if Trait.PIECEWISE not in problem.traits or not isinstance(regularizer, Separable):
        return False
    last = risk.dim - 1
    ends = [np.broadcast_to(end, (risk.dim,))[last] for end in (regularizer.lower, regularizer.upper)]
    return risk.unpenalized == (last,) and last in regularizer.free and not np.isfinite(ends).any()


def _along_constant(risk: LinearRisk, w: Array, scores: Array) -> Slopes:
    """Return t -> (R, left slope, right slope) for the constant moved by t from w with these scores."""
    line = _core.line(risk.kernel, scores, np.ones_like(scores), risk.targets, risk.weight, risk.scale)
    tilt, constant = risk.loss.tilt, float(w[-1])

    def slopes(t: float) -> tuple[float, float, float]:
        value, left, right = line.evaluate(t, risk.n_threads)
        return value + tilt * (constant + t), left + tilt, right + tilt

    return slopes


def _mirrored(slopes: Slopes) -> Slopes:
    def mirrored(t: float) -> tuple[float, float, float]:
        value, left, right = slopes(-t)
        return value, -right, -left

    return mirrored


def _leftmost(slopes: Slopes) -> float:
    """Return the smallest t whose right slope is not below 0, within FLAT; -inf or inf if there is none.

    Where the pieces are straight, the tangents of both ends of a bracket meet at the kink between them; halving
    in turn with them keeps the bracket shrinking where there are many kinks.
    """
    bracket = _bracket(slopes)
    if not np.isfinite(bracket[0] + bracket[1]):
        return bracket[0] if bracket[0] == -np.inf else np.inf
    a, b = bracket
    at_a, at_b = slopes(a), slopes(b)
    for trial in range(_TRIALS):
        if b - a <= _PRECISION * max(1.0, abs(a), abs(b)) or at_b[1] < -FLAT:
            break
        t = 0.5 * (a + b) if trial % 2 else _meeting(a, at_a, b, at_b)
        at_t = slopes(t)
        if at_t[2] < -FLAT:
            a, at_a = t, at_t
        else:
            b, at_b = t, at_t
    return b


def _bracket(slopes: Slopes) -> tuple[float, float]:
    """Return a < b with the right slope below -FLAT at a and not at b; an end is infinite if none is found."""
    sign = 1.0 if slopes(0.0)[2] < -FLAT else -1.0
    near, far = 0.0, sign
    for _ in range(60):
        if (slopes(far)[2] < -FLAT) != (sign > 0.0):
            return (near, far) if sign > 0.0 else (far, near)
        near, far = far, 4.0 * far
    return (near, np.inf) if sign > 0.0 else (-np.inf, near)


def _meeting(a: float, at_a: tuple[float, float, float], b: float, at_b: tuple[float, float, float]) -> float:
    """Return where the right tangent at a and the left tangent at b meet, kept inside the bracket."""
    slope_a, slope_b = at_a[2], at_b[1]
    middle = 0.5 * (a + b)
    if not slope_b > slope_a or not np.isfinite(at_a[0] + at_b[0]):
        return middle
    step = (at_b[0] - at_a[0] - slope_b * (b - a)) / (slope_a - slope_b)
    return a + step if 0.0 < step < b - a else middle
