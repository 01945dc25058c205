"""A direction of descent at a kink: Algorithm 2 of Y10, shared by the subgradient quasi-Newton methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmrm._traits import Trait
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.risks.base import Array, Line, Point

SMOOTH = frozenset({Trait.SMOOTH_RISK, Trait.SMOOTH_REGULARIZER})


@dataclass(frozen=True)
class Descent:
    """A direction of descent.

    Attributes
    ----------
    p : array
    slope : float
        The largest <g, p> over the subgradients g nearby: below 0.
    line : Line
        From the point to point + p, whose product with the data is paid for.
    """

    p: Array
    slope: float
    line: Line


def descent_direction(
    problem: Problem,
    point: Point,
    g: Array,
    apply: Callable[[Array], Array],
    bundle: Bundle,
    *,
    nearby: float,
    eps: float,
    k_max: int,
) -> Descent | None:
    """Return a direction along which J falls, or None if none was found (Y10 Algorithm 2).

    Minimizes M(p) = 1/2 p' B^-1 p + sup over the subgradients of <g, p> (eq. 11)::

        p = -B g
        repeat                                                             lines 6-13
            g' = argsup over the subgradients of <g', p>
            stop if <g', p> < 0 and M's duality gap eps_i <= eps |M|       eq. 20, relative
            mu = min(1, <gbar - g', B gbar> / <gbar - g', B (gbar - g')>)  line 7
            gbar, p = (1 - mu) gbar + mu g', (1 - mu) p - mu B g'          lines 8 and 9
        return the p with the least M(p), if it descends                   lines 14-19

    The slope <g', p> is read off the line from w to w + p, whose product with the data the line search needs
    anyway; g' itself is computed only where p is not good enough. Kinks count as present if the line meets them
    within `nearby`: rounding puts no point on a kink exactly. So g' is a subgradient at a point that near, whose
    plane goes into the bundle: it is exactly valid there.

    Parameters
    ----------
    g : array
        A subgradient of J at the point.
    apply : callable
        v -> B v, B positive definite.
    bundle : Bundle
        Receives a plane of the risk for each g'.
    nearby : float
        Length of the step at which slopes are taken, relative to max(1, |w|).
    eps : float
        How far from the best direction is good enough, relative to the decrease of the model.
    k_max : int
        The most directions tried.
    """
    p, aggregate = -apply(g), g
    least, best = np.inf, None
    smooth = problem.traits >= SMOOTH
    for i in range(k_max):
        dual = 0.5 * float(p @ aggregate)  # -1/2 gbar' B gbar
        if not (np.isfinite(dual) and dual < 0.0):
            break
        line = point.toward(point.w + p)
        tau = 0.0 if smooth else nearby * max(1.0, float(np.abs(point.w).max())) / float(np.abs(p).max())
        slope = slope_at(problem, line, tau)
        model = slope - dual  # M(p), as p = -B gbar
        if model < least:
            least, best = model, Descent(p, slope, line)
        gap = least - dual
        if (best.slope < 0.0 and gap <= eps * abs(dual)) or gap <= 0.0 or i + 1 == k_max:
            break
        extreme = subgradient_ahead(problem, line, tau, bundle)
        q, away = apply(extreme), aggregate - extreme
        bend = -float(away @ (p + q))
        mu = min(1.0, max(0.0, -float(away @ p) / bend)) if bend > 0.0 else 1.0
        if mu == 0.0:
            break
        aggregate, p = (1.0 - mu) * aggregate + mu * extreme, (1.0 - mu) * p - mu * q
    return best if best is not None and best.slope < 0.0 else None


def slope_at(problem: Problem, line: Line, t: float) -> float:
    """Return the slope of J to the right of t: no product with the data."""
    along = problem.regularizer.along(line.start.w, line.direction)
    return problem.lam * along.evaluate(t)[2] + line.evaluate(t)[2]


def subgradient_ahead(problem: Problem, line: Line, t: float, bundle: Bundle) -> Array:
    """Return a subgradient of J at t on the line, the steepest along it; its plane goes into the bundle."""
    ahead = line.at(t)
    bundle.add(ahead.w, ahead.value, ahead.subgradient)
    return problem.lam * problem.regularizer.extreme(ahead.w, line.direction) + ahead.subgradient
