"""Orthant-wise L-BFGS for absolute values, and the variant with the direction finding of Y10."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bmrm import _core
from bmrm._traits import Trait
from bmrm.bundle.master import master_for
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array, Point
from bmrm.solvers.base import Solver, Start, Step, bundle_for
from bmrm.solvers.direction import descent_direction, shortest_subgradient
from bmrm.solvers.lbfgs import Memory
from bmrm.solvers.quasi_newton import bound, objective

_SUFFICIENT = 1e-4
_MOST_HALVINGS = 60
_CUT = 0.02


@dataclass(frozen=True)
class OWLQN(Solver, name="owlqn"):
    """Orthant-wise L-BFGS: smooth risks with absolute values, sum_j u_j |w_j| + v_j w_j^2 / 2.

    Within an orthant J is smooth. The loop::

        repeat
            g = the pseudo-gradient: the shortest subgradient of J
            p = -H g, H by the two-loop recursion on the smooth part; 0 where its sign is not that of -g
            w = the projection of w + t p onto the orthant of w, or of -g where w is 0;
                t halved until J falls enough
            lower = the best bound from the last planes

    One product for each trial t (mostly one) and one for the gradient.

    Parameters
    ----------
    memory : int
        Number of pairs kept.
    planes : int
        Number of planes kept for the bound.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Logistic())
    >>> bmrm.solve(bmrm.Problem(risk, "l1", lam=0.1), "owlqn").converged
    True

    References
    ----------
    Andrew and Gao, Scalable training of L1-regularized log-linear models, 2007; Y10 section 8.4.
    """

    memory: int = 10
    planes: int = 100

    needs = frozenset({Trait.SMOOTH_RISK, Trait.ELASTIC})
    refuses = frozenset({Trait.BOUNDS, Trait.UNBOUNDED_RISK})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each search; end when a pseudo-gradient step makes no progress."""
        bundle, master = bundle_for(problem, start, self.planes), master_for(problem.regularizer)
        memory, remembered, iteration, lower = start.memory or (Memory(self.memory), None, 0, -np.inf)
        point = problem.risk.at(start.w, remembered)
        upper = objective(problem, point)
        fallen = np.inf
        if start.memory is None:
            bundle.add_point(point)
            lower = bound(problem, master, bundle, upper, point, np.inf, _CUT, iteration)
            yield Step(point.w, upper, lower, bundle, (memory, point.remembered, iteration, lower))
        while True:
            iteration += 1
            moved = self._advance(problem, point, upper, memory, bundle)
            if moved is not None:
                memory.push(moved.w - point.w, _smooth_gradient(problem, moved) - _smooth_gradient(problem, point))
                fallen = upper - objective(problem, moved)
                point, upper = moved, upper - fallen
                bundle.add_point(point)
            fallen = fallen if moved is not None else 0.0
            found = bound(problem, master, bundle, upper, point, fallen, _CUT, iteration)
            if moved is None and not found > lower:
                yield Step(point.w, upper, found, bundle, ended=True)
                return
            lower = max(lower, found)
            yield Step(point.w, upper, lower, bundle, (memory, point.remembered, iteration, lower))

    def _advance(self, problem: Problem, point: Point, upper: float, memory: Memory, bundle: Bundle) -> Point | None:
        """Return the next point; None if even the pseudo-gradient itself leads nowhere."""
        g = shortest_subgradient(problem, point.w, point.subgradient)
        while True:  # twice at most: the second time the memory is empty
            p = self._direction(problem, point, g, memory, bundle)
            scale = 1.0 if len(memory) else 1.0 / max(float(np.sqrt(_core.inner(g, g))), 1e-300)
            moved = None if p is None else _search(problem, point, upper, g, p, scale)
            if moved is not None or not len(memory):
                return moved
            memory.clear()

    def _direction(self, problem: Problem, point: Point, g: Array, memory: Memory, bundle: Bundle) -> Array | None:
        p = -memory.apply(g)
        absolute = _absolute(problem, p)
        p[(absolute > 0.0) & (p * g >= 0.0)] = 0.0
        return p


@dataclass(frozen=True)
class OWLQNStar(OWLQN, name="owlqn_star"):
    """`owlqn` with the direction finding of Y10 in place of the projection of the direction (section 8.4).

    p = -H gbar with gbar a subgradient for which p descends at the kinks of the absolute values (Algorithm 2),
    started from the pseudo-gradient; the search stays in the orthant as before.

    Parameters
    ----------
    memory : int
        Number of pairs kept.
    planes : int
        Number of planes kept for the bound.
    eps : float
        Tolerance of the direction finding, relative to the decrease of the model.
    k_max : int
        The most directions tried at a point.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Logistic())
    >>> bmrm.solve(bmrm.Problem(risk, "l1", lam=0.1), "owlqn_star").converged
    True

    References
    ----------
    Y10 section 8.4.
    """

    eps: float = 0.1
    k_max: int = 30

    def _direction(self, problem: Problem, point: Point, g: Array, memory: Memory, bundle: Bundle) -> Array | None:
        found = descent_direction(problem, point, g, memory.apply, bundle, nearby=1e-10, eps=self.eps, k_max=self.k_max)
        return None if found is None else found.p


def _parts(problem: Problem, w: Array) -> tuple[Array, Array]:
    """Return lam times the weights of absolute values and of squares, one for each coordinate."""
    assert isinstance(problem.regularizer, Separable)
    absolute, square = (problem.lam * np.broadcast_to(part, w.shape) for part in problem.regularizer.parts)
    return absolute, square


def _absolute(problem: Problem, w: Array) -> Array:
    return _parts(problem, w)[0]


def _smooth_gradient(problem: Problem, point: Point) -> Array:
    """Return the gradient of J without its absolute values."""
    return point.subgradient + _parts(problem, point.w)[1] * point.w


def _search(problem: Problem, point: Point, upper: float, g: Array, p: Array, t: float) -> Point | None:
    """Halve t until J falls enough at the projection of w + t p onto the orthant; None if it never does."""
    w = point.w
    orthant = np.where(w != 0.0, np.sign(w), -np.sign(g))
    kinked = _absolute(problem, w) > 0.0
    for _ in range(_MOST_HALVINGS):
        trial = w + t * p
        trial[kinked & (trial * orthant <= 0.0)] = 0.0
        moved = problem.risk.at(trial)
        value = objective(problem, moved)
        if value < upper and value <= upper + _SUFFICIENT * _core.inner(g, trial - w):
            return moved
        t *= 0.5
    return None
