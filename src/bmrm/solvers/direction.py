"""A direction of descent at a kink: Algorithm 2 of Y10, shared by the subgradient quasi-Newton methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmrm import _core
from bmrm._cached import cached_property
from bmrm._traits import Trait
from bmrm.bundle.master import on_simplex
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
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
            gbar = argmin of <g, B g> over the hull of all g' so far       eq. 19
            p = -B gbar                                                    line 9
        return the p with the least M(p), if it descends                   lines 14-19

    Y10 takes gbar between the last gbar and g' (line 7), to save the quadratic program (19). Here each g' costs
    two products with the data, against which a program of at most k_max variables is nothing, and it needs far
    fewer of them.

    The slope <g', p> is read off the line from w to w + p, whose product with the data the line search needs
    anyway; g' itself is computed only where p is not good enough, and costs nothing where only the regularizer
    has kinks. Kinks count as present if the line meets them
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
    Bg = apply(g)
    if not 0.0 <= float(g @ Bg) < np.inf:  # B has lost its definiteness to rounding, or squares overflow
        return None
    hull = _Hull(g, Bg)
    least, best = np.inf, None
    smooth = problem.traits >= SMOOTH
    for i in range(k_max):
        dual, p = hull.nearest()
        if not (np.isfinite(dual) and dual < 0.0):
            break
        ahead = _Ahead(problem, point, p, 0.0 if smooth else step_nearby(point.w, p, nearby))
        model = ahead.slope - dual  # M(p), as p = -B gbar
        if model < least:
            least, best = model, ahead
        gap = least - dual
        if (best is not None and best.slope < 0.0 and gap <= eps * abs(dual)) or gap <= 0.0 or i + 1 == k_max:
            break
        extreme = ahead.subgradient(bundle)
        moved = apply(extreme)
        if not 0.0 <= float(extreme @ moved) < np.inf:
            break
        hull.add(extreme, moved)
    if best is None or best.slope >= 0.0:
        return None
    return Descent(best.p, best.slope, best.line)


class _Ahead:
    """J a short step along p: its slope there, and the subgradient that has it.

    A differentiable risk has one gradient: then only the regularizer looks ahead, at no cost.
    """

    def __init__(self, problem: Problem, point: Point, p: Array, tau: float) -> None:
        self.problem, self.point, self.p, self.tau = problem, point, p, tau
        self.smooth = Trait.SMOOTH_RISK in problem.traits
        along = problem.lam * problem.regularizer.along(point.w, p).evaluate(tau)[2]
        self.slope = along + (float(point.subgradient @ p) if self.smooth else self.line.evaluate(tau)[2])

    @cached_property
    def line(self) -> Line:
        return self.point.toward(self.point.w + self.p)

    def subgradient(self, bundle: Bundle) -> Array:
        if not self.smooth:
            return subgradient_ahead(self.problem, self.line, self.tau, bundle)
        regularizer, w = self.problem.regularizer, self.point.w + self.tau * self.p
        return self.problem.lam * regularizer.extreme(w, self.p) + self.point.subgradient


class _Hull:
    """Subgradients g_i, and the point gbar of their convex hull with the least <gbar, B gbar>."""

    def __init__(self, g: Array, Bg: Array) -> None:
        self._g, self._Bg = [g], [Bg]
        self._program = _core.ActiveSetQp(np.ones(1))
        self._program.add(np.array([g @ Bg]), np.ones(1))
        self._program.set_start(np.ones(1))

    def add(self, g: Array, Bg: Array) -> None:
        self._g.append(g)
        self._Bg.append(Bg)
        self._program.add(np.array([other @ Bg for other in self._g]), np.ones(1))

    def nearest(self) -> tuple[float, Array]:
        """Return -1/2 <gbar, B gbar>, the dual value, and p = -B gbar."""
        alpha = on_simplex(self._program.solve(np.zeros(len(self._g))))
        aggregate = sum(a * g for a, g in zip(alpha, self._g))
        p = -sum(a * Bg for a, Bg in zip(alpha, self._Bg))
        return 0.5 * float(p @ aggregate), p


def step_nearby(w: Array, p: Array, nearby: float) -> float:
    """Return the step along p that is `nearby` long, relative to max(1, |w|), in the largest coordinate."""
    return nearby * max(1.0, float(np.abs(w).max())) / float(np.abs(p).max())


def subgradient_ahead(problem: Problem, line: Line, t: float, bundle: Bundle) -> Array:
    """Return a subgradient of J at t on the line, the steepest along it; its plane goes into the bundle."""
    ahead = line.at(t)
    bundle.add_point(ahead)
    return problem.lam * problem.regularizer.extreme(ahead.w, line.direction) + ahead.subgradient


def shortest_subgradient(problem: Problem, w: Array, a: Array, nearby: float = 0.0) -> Array:
    """Return the shortest subgradient of J at w, given the part a of the risk.

    Where the regularizer has absolute values that are 0, or nearly so, their slopes cancel as much of the rest as
    they can (the pseudo-gradient of OWL-QN).
    """
    regularizer, lam = problem.regularizer, problem.lam
    if Trait.ELASTIC not in problem.traits or not isinstance(regularizer, Separable):
        return lam * regularizer.subgradient(w) + a
    absolute, square = (lam * np.broadcast_to(part, w.shape) for part in regularizer.parts)
    rest = a + square * w
    at_zero = np.abs(w) <= nearby * max(1.0, float(np.abs(w).max(initial=0.0)))
    return rest + np.where(at_zero, np.clip(-rest, -absolute, absolute), absolute * np.sign(w))
