"""What every regularizer must satisfy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bmrm.regularizers.base import Regularizer
from bmrm.testing._assertions import Array, magnitude, require, require_at_most, require_close

_ROUNDING = 1e-9
_STEPS = (-0.5, 0.0, 0.25, 1.0, 2.0)


def check_regularizer(regularizer: Regularizer, dim: int, rng: np.random.Generator | None = None) -> None:
    """Check that a regularizer is convex and that its other methods agree with its value.

    Parameters
    ----------
    regularizer : Regularizer
    dim : int
        Length of w; the regularizer is bound to it.
    rng : numpy.random.Generator, optional
        For the points w; always the same by default.

    Raises
    ------
    AssertionError
        With a sentence that says what is violated and by how much.

    Examples
    --------
    >>> import bmrm
    >>> bmrm.testing.check_regularizer(bmrm.regularizers.L1(weights=[1.0, 2.0]), dim=2)
    """
    rng = np.random.default_rng(0) if rng is None else rng
    bound = regularizer.bind(dim)
    name = f"regularizer '{bound.name or type(bound).__name__}'"
    points = _points(bound, dim, rng)
    _check_convex(bound, points, name)
    _check_along(bound, points, name)
    _check_prox(bound, points, rng, name)
    for lam in (1e-3, 1.0, 30.0):
        _check_dual(bound, lam, points, rng, name)
        _check_plane_bound(bound, lam, points, rng, name)
    _check_reach(bound, points, rng, name)


def _points(regularizer: Regularizer, dim: int, rng: np.random.Generator) -> list[Array]:
    """Return points of finite value: random ones taken there by the proximal map, some coordinates 0."""
    drawn = [np.zeros(dim), *rng.normal(size=(4, dim)), *(0.1 * rng.normal(size=(2, dim)))]
    drawn[1][::2] = 0.0
    return [regularizer.prox(v, 1e-9) for v in drawn]


def _check_convex(regularizer: Regularizer, points: list[Array], name: str) -> None:
    for w in points:
        value, g = regularizer.value(w), regularizer.subgradient(w)
        require(np.isfinite(value), f"the value of {name} is {value} at a point of its own proximal map")
        for v in points:
            other = regularizer.value(v)
            middle = regularizer.value(0.5 * (w + v))
            slack = _ROUNDING * magnitude(value, other)
            require_at_most(middle, 0.5 * (value + other), slack, f"{name} is not convex")
            for plane in (g, regularizer.extreme(w, v - w)):
                sentence = f"a subgradient of {name} is none: Omega(v) >= Omega(w) + <g, v - w>"
                require_at_most(value + float(plane @ (v - w)), other, slack, sentence)
            _check_extreme(regularizer, w, v - w, name)


def _check_extreme(regularizer: Regularizer, w: Array, d: Array, name: str) -> None:
    """The largest <g, d> is the slope to the right."""
    largest = float(regularizer.extreme(w, d) @ d)
    right = regularizer.along(w, d).evaluate(0.0)[2]
    slack = _ROUNDING * magnitude(right)
    require_close(largest, right, slack, f"extreme of {name} is not the right slope of along")
    difference = (regularizer.value(w + 1e-7 * d) - regularizer.value(w)) / 1e-7
    slack = 1e-5 * magnitude(right, d @ d)
    require_close(largest, difference, slack, f"extreme of {name} is not the slope in its direction")


def _check_along(regularizer: Regularizer, points: list[Array], name: str) -> None:
    for w, v in pairwise(points):
        along = regularizer.along(w, v - w)
        before = -np.inf
        for t in _STEPS:
            value, left, right = along.evaluate(t)
            expected = regularizer.value(w + t * (v - w))
            slack = _ROUNDING * magnitude(value)
            if np.isfinite(expected):
                require_close(value, expected, slack, f"along of {name} differs from its value at t = {t:g}")
            slack = _ROUNDING * magnitude(left, right)
            require_at_most(before, left, slack, f"the slope of along of {name} falls before t = {t:g}")
            require_at_most(left, right, slack, f"the left slope of {name} exceeds the right one at {t:g}")
            before = right


def _check_prox(regularizer: Regularizer, points: list[Array], rng: np.random.Generator, name: str) -> None:
    """p is the proximal point exactly if the strongly convex objective grows by 1/2 |q - p|^2 at least."""
    for v in 2.0 * rng.normal(size=(4, points[0].size)):
        for step in (1e-3, 0.5, 10.0):
            p = regularizer.prox(v, step)
            least = step * regularizer.value(p) + 0.5 * float((p - v) @ (p - v))
            for q in [*points, *_neighbors(regularizer, p, rng)]:
                value = step * regularizer.value(q) + 0.5 * float((q - v) @ (q - v))
                grown = least + 0.5 * float((q - p) @ (q - p))
                slack = 1e-12 * magnitude(least)
                require_at_most(grown, value, slack, f"prox of {name} with step {step:g} is not optimal")


def _neighbors(regularizer: Regularizer, p: Array, rng: np.random.Generator) -> list[Array]:
    moves = [size * move for size in (1e-4, 1e-2, 1.0) for move in (*np.eye(p.size), rng.normal(size=p.size))]
    moved = [p + sign * move for move in moves for sign in (-1.0, 1.0)]
    return [q for q in moved if np.isfinite(regularizer.value(q))]


def _check_dual(regularizer: Regularizer, lam: float, points: list[Array], rng: np.random.Generator, name: str) -> None:
    """The dual is the least of lam Omega(w) + <c, w> over the box, and its w attains it."""
    for c in [*(size * rng.normal(size=points[0].size) for size in (1e-4, 0.1, 3.0)), np.zeros(points[0].size)]:
        for box in (np.inf, 10.0):
            least, w = regularizer.dual(c, lam, box)
            where = f"of {name} for lam = {lam:g} and box {box:g}"
            inside = [p for p in points if np.all(np.abs(p) <= box)]
            if np.isfinite(least):
                attained = lam * regularizer.value(w) + float(c @ w)
                scale = magnitude(least, lam * regularizer.value(w), c @ w)
                require_close(attained, least, 1e-12 * scale, f"the dual {where} is not attained at its w")
                inside += [q for q in _neighbors(regularizer, w, rng) if np.all(np.abs(q) <= box)]
            else:
                require(np.isinf(box) and least < 0.0, f"the dual {where} is {least}")
            for q in inside:
                value = lam * regularizer.value(q) + float(c @ q)
                slack = 1e-12 * magnitude(value, c @ q)
                require_at_most(least, value, slack, f"the dual {where} is not the least value")


def _check_plane_bound(
    regularizer: Regularizer, lam: float, points: list[Array], rng: np.random.Generator, name: str
) -> None:
    for floor in (0.0, -1.0, -np.inf):
        a, b = rng.normal(size=points[0].size), float(rng.normal())
        bound = regularizer.plane_bound(lam, a, b, floor)
        for w in [*points, *_neighbors(regularizer, points[0], rng), regularizer.prox(-a / lam, 1e-9)]:
            objective = lam * regularizer.value(w) + max(floor, float(a @ w) + b)
            slack = _ROUNDING * magnitude(objective)
            require_at_most(bound, objective, slack, f"plane_bound of {name} exceeds an objective")


def _check_reach(regularizer: Regularizer, points: list[Array], rng: np.random.Generator, name: str) -> None:
    """No w with Omega(w) <= level has a larger <a, w> over the penalized coordinates."""
    free = getattr(regularizer, "free", np.zeros(0, np.intp))
    for w in points:
        a, level = rng.normal(size=w.size), regularizer.value(w)
        penalized = w.copy()
        penalized[free] = 0.0
        reach = regularizer.reach(a, level)
        slack = _ROUNDING * magnitude(reach)
        require_at_most(float(a @ penalized), reach, slack, f"reach of {name} is too small")
