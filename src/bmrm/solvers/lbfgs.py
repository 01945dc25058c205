"""L-BFGS with a duality gap built from its own planes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bmrm import _core, linesearch
from bmrm._states import kept
from bmrm._traits import Trait
from bmrm.bundle.master import Master, master_for
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.risks.base import Array, Point
from bmrm.solvers.base import Solver, Start, Step, new_bundle, solve_master
from bmrm.solvers.bounds import bound_with

_REFRESH = 20
_MASTER_HELPS = 10.0  # by so much, at most, a mixture of planes is better than the last one (text: 1 to 7)
_FLAT = 1e-2  # of the slope at the start: where no more is left of it, a line search ends
# The same where each trial is an evaluation: at 0.1 a CRF takes 3 of them for a step, at 0.9 1.1, and 10 % more steps.
_FLAT_ENOUGH = 0.9
_SMALLEST = 1e-150  # of s'y and y'y: below, products of them underflow
_PLANE_BYTES = 1 << 27  # what planes may take, unless that is fewer than 24: old ones say little about the minimum


@kept
class Memory:
    """The last pairs (s, y) of steps and gradient changes, and the two-loop recursion over them.

    Parameters
    ----------
    size : int
        How many pairs are kept.
    """

    def __init__(self, size: int) -> None:
        self._pairs: deque[tuple[Array, Array, float]] = deque(maxlen=size)

    def __len__(self) -> int:
        return len(self._pairs)

    def push(self, s: Array, y: Array) -> None:
        """Keep a pair, if its curvature is safely positive."""
        sy, yy = _core.inner(s, y), _core.inner(y, y)
        if sy > 1e-12 * float(np.sqrt(_core.inner(s, s)) * np.sqrt(yy)) and min(sy, yy) > _SMALLEST:
            self._pairs.append((s, y, 1.0 / sy))

    def clear(self) -> None:
        """Forget all pairs."""
        self._pairs.clear()

    def apply(self, g: Array) -> Array:
        """Return the inverse Hessian's approximation times g."""
        q, term, alphas = g.copy(), np.empty_like(g), []
        for s, y, rho in reversed(self._pairs):
            alpha = rho * _core.inner(s, q)
            q -= np.multiply(alpha, y, out=term)
            alphas.append(alpha)
        if self._pairs:
            s, y, rho = self._pairs[-1]
            q *= 1.0 / (rho * _core.inner(y, y))
        for (s, y, rho), alpha in zip(self._pairs, reversed(alphas)):
            q += np.multiply(alpha - rho * _core.inner(y, q), s, out=term)
        return q


@dataclass(frozen=True)
class LBFGS(Solver, name="lbfgs"):
    """Limited-memory BFGS for smooth risks, stopped by a duality gap (T07 section 4.2).

    The loop::

        repeat
            d = -(two-loop recursion) gradient of J
            w = argmin of J along w + t d                     to 1 % of the slope, from cached scores
            lower = the best bound from the last planes        T07 Lemma 5 uses only the newest one

    One product X d and one product X' g for each iteration.

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
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "lbfgs").converged
    True

    References
    ----------
    T07 section 4.2 and Lemma 5.
    """

    memory: int = 10
    planes: int = 12

    needs = frozenset({Trait.SMOOTH_RISK, Trait.SMOOTH_REGULARIZER})
    refuses = frozenset({Trait.BOUNDS})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each line search; end when a gradient step makes no progress."""
        risk, regularizer = problem.risk, problem.regularizer
        bundle = start.bundle or new_bundle(problem, self.planes)
        master, resumed = master_for(regularizer), start.memory is not None
        memory, iteration, scores = start.memory or (Memory(self.memory), 0, None)
        point = risk.at(start.w, scores)
        upper, gradient = _objective(problem, point)
        while True:
            if not resumed:
                lower = bound_with(problem, master, bundle, upper, point, start.tol, _MASTER_HELPS)
                if len(bundle) > max(2 * self.planes, _PLANE_BYTES // (8 * risk.dim)):
                    bundle.keep_newest(max(self.planes, _PLANE_BYTES // (16 * risk.dim)))
                yield Step(point.w, upper, lower, bundle, (memory, iteration, point.remembered))
            resumed = False
            iteration += 1
            if iteration % _REFRESH == 0:
                point = risk.at(point.w)
                upper, gradient = _objective(problem, point)
            moved = _descend(problem, point, upper, -memory.apply(gradient))
            if moved is None and len(memory):
                memory.clear()
                moved = _descend(problem, point, upper, -gradient)
            if moved is None:
                lower = tightened(problem, master, bundle, upper, point)
                yield Step(point.w, upper, lower, bundle, ended=True)
                return
            new_upper, new_gradient = _objective(problem, moved)
            memory.push(moved.w - point.w, new_gradient - gradient)
            point, upper, gradient = moved, new_upper, new_gradient


def _objective(problem: Problem, point: Point) -> tuple[float, Array]:
    regularizer, lam = problem.regularizer, problem.lam
    gradient = lam * regularizer.subgradient(point.w) + point.subgradient
    return lam * regularizer.value(point.w) + point.value, gradient


def tightened(problem: Problem, master: Master, bundle: Bundle, upper: float, point: Point) -> float:
    """Return the bound with planes on both sides of the free coordinates, so near that their mixture touches."""
    for j in getattr(problem.regularizer, "free", ()):
        for side in (-1e-6, 1e-6):
            near = point.w.copy()
            near[j] += side * (1.0 + abs(near[j]))
            bundle.add_point(problem.risk.touch(near))
    return solve_master(problem, master, bundle, upper, point.w).lower


def _descend(problem: Problem, point: Point, upper: float, direction: Array) -> Point | None:
    """Return the minimum along the direction, or None if J does not fall."""
    line = point.toward(point.w + direction)
    moved = line.at(linesearch.minimize(problem, line, accuracy=_FLAT, enough=_FLAT_ENOUGH))
    objective = problem.lam * problem.regularizer.value(moved.w) + moved.value
    return moved if objective < upper else None
