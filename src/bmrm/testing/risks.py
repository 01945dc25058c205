"""What every risk must satisfy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from bmrm._traits import Trait
from bmrm.risks.base import Line, Risk, as_risk
from bmrm.testing._assertions import (
    Array,
    magnitude,
    require,
    require_at_most,
    require_close,
    require_unchanged,
)

_ROUNDING = 1e-9
_STEP = 1e-6
_STEPS = (0.0, 0.125, 0.5, 1.0, 1.5)


def check_risk(risk: Any, rng: np.random.Generator | None = None, *, scale: float = 1.0) -> None:
    """Check that a risk is convex with valid subgradients, and that its points and lines agree with `evaluate`.

    A risk with the trait CACHED_LINE is also held to its costs: `evaluate` counts two products, `at`,
    `subgradient` and `toward` one each, and moving along a line none.

    Parameters
    ----------
    risk : Risk, or any object with ``dim`` and ``evaluate(w)``
    rng : numpy.random.Generator, optional
        For the points w; always the same by default.
    scale : float
        Size of the points.

    Raises
    ------
    AssertionError
        With a sentence that says what is violated and by how much.

    Examples
    --------
    >>> import bmrm
    >>> bmrm.testing.check_risk(bmrm.LinearRisk([[1.0], [-2.0]], [1, -1], bmrm.losses.Hinge()))
    """
    rng = np.random.default_rng(0) if rng is None else rng
    checked = as_risk(risk)
    points = [np.zeros(checked.dim), *(scale * rng.normal(size=(4, checked.dim)))]
    _check_evaluate(checked, points)
    _check_subgradients(checked, points)
    if Trait.SMOOTH_RISK in checked.traits:
        _check_differences(checked, points)
    _check_points(checked, points)
    for w, w2 in pairwise(points):
        _check_line(checked, w, w2)
    if Trait.CACHED_LINE in checked.traits:
        _check_costs(checked, points[1], points[2])


def _check_evaluate(risk: Risk, points: list[Array]) -> None:
    for w in points:
        given = w.copy()
        value, a = risk.evaluate(given)
        require_unchanged(w, given, "the w given to evaluate")
        require(np.isfinite(value), f"R(w) is {value}")
        require(np.shape(a) == (risk.dim,), f"the subgradient has shape {np.shape(a)}, not ({risk.dim},)")
        require(bool(np.isfinite(a).all()), "the subgradient is not finite")
        again, b = risk.evaluate(given)
        require(value == again and np.array_equal(a, b), "evaluate gives another answer the second time")
        require(a is not b, "evaluate returns the same array twice: it must be a fresh one")
        slack = _ROUNDING * magnitude(value)
        if np.isfinite(risk.floor):
            require_at_most(risk.floor, value, slack, f"R(w) falls below its floor {risk.floor:g}")


def _check_subgradients(risk: Risk, points: list[Array]) -> None:
    """R(v) >= R(w) + <a, v - w>: every plane lies below the risk."""
    for w in points:
        value, a = risk.evaluate(w)
        for v in [*points, *(w + 0.01 * (v - w) for v in points)]:
            other = risk.evaluate(v)[0]
            slack = _ROUNDING * magnitude(value, other, np.abs(a) @ np.abs(v - w))
            sentence = "the plane at w is not below the risk: R(v) >= R(w) + <a, v - w>"
            require_at_most(value + float(a @ (v - w)), other, slack, sentence)


def _check_differences(risk: Risk, points: list[Array]) -> None:
    for w in points:
        gradient = risk.evaluate(w)[1]
        ends = [[risk.evaluate(w + h * unit)[0] for unit in np.eye(risk.dim)] for h in (-_STEP, _STEP)]
        differences = (np.array(ends[1]) - np.array(ends[0])) / (2.0 * _STEP)
        slack = 1e-4 * magnitude(gradient) + 1e-9 * magnitude(ends[0])
        require_close(gradient, differences, slack, "the gradient differs from finite differences")


def _check_points(risk: Risk, points: list[Array]) -> None:
    for w in points:
        value, a = risk.evaluate(w)
        point = risk.at(w)
        slack = 1e-12 * magnitude(value)
        require_close(point.value, value, slack, "the value of at(w) differs from evaluate(w)")
        slack = 1e-12 * magnitude(a)
        require_close(point.subgradient, a, slack, "the subgradient of at(w) differs from evaluate(w)")


def _check_line(risk: Risk, w: Array, w2: Array) -> None:
    line = risk.at(w).toward(w2)
    steepest = -np.inf
    for t in _STEPS:
        steepest = _check_step(risk, line, w, w2, t, steepest)


def _check_step(risk: Risk, line: Line, w: Array, w2: Array, t: float, steepest: float) -> float:
    """Compare the line at t with the risk there; return the right slope."""
    there = w + t * (w2 - w)
    value, a = risk.evaluate(there)
    on_line, left, right = line.evaluate(t)
    point = line.at(t)
    scale = magnitude(value, np.abs(a) @ np.abs(w2 - w))
    where = f"on the line at t = {t:g}"
    require_close(on_line, value, _ROUNDING * scale, f"the value {where} differs from R there")
    require_close(point.value, value, _ROUNDING * scale, f"the value of the point {where} differs from R there")
    require_close(point.w, there, 1e-12 * magnitude(there), f"the point {where} lies elsewhere")
    require_at_most(steepest, left, _ROUNDING * scale, f"the slope falls before t = {t:g}: R is not convex")
    require_at_most(left, right, _ROUNDING * scale, f"the left slope exceeds the right one {where}")
    slope = float(point.subgradient @ (w2 - w))
    what = f"the subgradient's slope {where} is not between the one-sided ones"
    require_at_most(left, slope, 1e-7 * scale, what)
    require_at_most(slope, right, 1e-7 * scale, what)
    return right


def _check_costs(risk: Risk, w: Array, w2: Array) -> None:
    def cost(expected: int, before: int, what: str) -> int:
        spent = risk.products - before
        require(spent == expected, f"{what} costs {spent} products with the data instead of {expected}")
        return risk.products

    before = risk.products
    risk.evaluate(w)
    before = cost(2, before, "evaluate")
    risk.forget()
    point = risk.at(w)
    before = cost(1, before, "at")
    require(np.isfinite(point.value), "the value of a point is not finite")
    before = cost(0, before, "the value of a point")
    for what, expected in (("the subgradient", 1), ("the subgradient asked for again", 0)):
        require(point.subgradient.shape == (risk.dim,), "the subgradient of a point has another shape than w")
        before = cost(expected, before, what)
    line = point.toward(w2)
    before = cost(1, before, "toward")
    for t in _STEPS:
        require(np.isfinite(line.evaluate(t)[0]), f"the line is not finite at t = {t:g}")
        require(np.isfinite(line.at(t).value), f"the point of the line is not finite at t = {t:g}")
    cost(0, before, "moving along a line")
