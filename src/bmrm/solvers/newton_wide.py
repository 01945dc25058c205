"""Newton's method with conjugate gradients for losses of k scores for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from bmrm import _core, linesearch
from bmrm.bundle.master import Master, master_for
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearLine, LinearPoint, LinearRisk
from bmrm.risks.wide_curvature import Bend, WideCurvature
from bmrm.solvers.base import Start, Step, new_bundle, solve_master
from bmrm.solvers.bounds import FlatBound
from bmrm.solvers.cholesky import factored

_REFRESH = 20
_ACCURACY = (
    0.1  # of a Newton step: the gap falls by its square (0.05: 1.3 times the passes on usps at 1e-4; 0.2: as many)
)
_CG_STEPS = 250
_RIDGE = 1e-12
MOST_BLOCK_COLUMNS = 1000  # for which the blocks of the classes are factored
_ROWS_PER_COLUMN, _FEWEST_ROWS = 4, 1000  # that a block is made of
_FLAT = 0.1  # of the slope before a step: where no more is left of it, its length is right
_LEVELS = 30  # Newton steps on the constants
# Of the largest curvature: where all constants move alike there is none, and rounding must not move them far.
_SINGULAR = 1e-7

Solve = Callable[[Array], Array]


def rows_of_blocks(n_rows: int, n_columns: int) -> int:
    """Return how many rows the blocks of the classes are made of, about."""
    return min(n_rows, max(_FEWEST_ROWS, _ROWS_PER_COLUMN * n_columns))


class WideSystem:
    """Solves (diag(r) + X' l'' X) D = G by conjugate gradients with the classes' own blocks as preconditioner.

    A block is X' diag(p l''_cc) X + diag(r), from a part of the rows where they are many, factored; with many columns
    its diagonal has to do. Where the loss compares scores and all classes are penalized alike, everything happens
    among matrices whose rows add up to 0, which the blocks do not know.

    Parameters
    ----------
    curvature : WideCurvature
    r : array
        At least 0; lam times the regularizer's weights.
    """

    def __init__(self, curvature: WideCurvature, r: Array) -> None:
        self.curvature, self.r, self.k = curvature, r, curvature.k
        R = r.reshape(-1, self.k)
        self._alike = bool(np.all(R[:, :1] == R))

    def solve(self, bend: Bend, g: Array) -> Array:
        """Return D, to a relative accuracy that is enough for a Newton step."""
        precondition = self._preconditioner(bend)
        x, residual = np.zeros_like(g), g.copy()
        z = precondition(residual)
        direction, square = z.copy(), float(residual @ z)
        enough = _ACCURACY**2 * square
        for _ in range(_CG_STEPS):
            if square <= enough or square <= 0.0:
                break
            image = self.curvature.times(bend, direction)
            image += self.r * direction
            curvature = float(direction @ image)
            if curvature <= 0.0:
                break
            step = square / curvature
            x += step * direction
            image *= step
            residual -= image
            z = precondition(residual)
            before, square = square, float(residual @ z)
            direction *= square / before
            direction += z
        return x

    def _preconditioner(self, bend: Bend) -> Solve:
        inner = self._blocks(bend) if self.r.size <= MOST_BLOCK_COLUMNS * self.k else self._diagonal(bend)
        if not (bend.compares and self._alike):
            return inner

        def level(v: Array) -> Array:
            V: Array = v.reshape(-1, self.k)
            V = V - V.mean(axis=1, keepdims=True)
            return V.reshape(-1)

        return lambda v: level(inner(v))

    def _diagonal(self, bend: Bend) -> Solve:
        diagonal = self.curvature.diagonal(bend) + self.r
        diagonal[diagonal <= 0.0] = 1.0
        return lambda v: v / diagonal

    def _blocks(self, bend: Bend) -> Solve:
        d = self.r.size // self.k
        inverse = self.curvature.block_inverse(bend, self.r, rows_of_blocks(self.curvature.design.n_rows, d), _RIDGE)

        def solve(v: Array) -> Array:
            return inverse(v.reshape(d, self.k)).reshape(-1)

        return solve


class WideRun:
    """The point, its gradient and the planes of one run of Newton's method.

    The loop::

        repeat
            D = -(lam S + X' l'' X)^-1 gradient of J            conjugate gradients, two products each
            W = argmin of J along W + t D                        exact, from cached scores; t = 1 where that will do
            constants = argmin of J over them alone              if they are free; from cached scores
            lower = J(W) - |gradient|^2 / (2 lam), or better by the last planes

    At the best constants the slopes of each class add up to 0, so that the plane is flat in the free directions.

    Parameters
    ----------
    problem : Problem
    start : Start
    planes : int
    """

    def __init__(self, problem: Problem, start: Start, planes: int) -> None:
        risk, regularizer = cast(LinearRisk, problem.risk), cast(Separable, problem.regularizer)
        self.problem, self.risk = problem, risk
        self.bundle = start.bundle or new_bundle(problem, planes)
        self.master: Master = master_for(regularizer)
        self.r: Array = problem.lam * np.broadcast_to(regularizer.s, (risk.dim,))
        self.curvature = WideCurvature(risk)
        self.system = WideSystem(self.curvature, self.r)
        self.free = regularizer.free
        self.levels = self.free.size > 0 and tuple(self.free) == risk.unpenalized
        self.flat = FlatBound(problem) if self.levels else None
        self.iteration: int
        w, self.iteration, scores = start.memory or (start.w, 0, None)
        self.point = risk.at(w, scores)
        if start.memory is None and self.levels:
            self.point = self._levelled(self.point)
        self.upper = self._objective(self.point)

    def _objective(self, point: LinearPoint) -> float:
        return self.problem.lam * self.problem.regularizer.value(point.w) + point.value

    def step(self) -> Step:
        """Add the plane at the point and return what is known."""
        point, bundle = self.point, self.bundle
        bundle.add_point(point)
        if self.flat is not None:
            lower = self.flat.of(bundle, *point.plane, point.slopes, point.w, self.upper)
        else:
            lower = solve_master(self.problem, self.master, bundle, self.upper, point.w).lower
        return Step(point.w, self.upper, lower, bundle, (point.w, self.iteration, point.remembered))

    last_step = step

    def advance(self) -> bool:
        """Take one Newton step; False if it makes nothing better."""
        self.iteration += 1
        point = self.risk.at(self.point.w) if self.iteration % _REFRESH == 0 else self.point
        gradient = self.r * point.w + point.subgradient
        direction = self.system.solve(self.curvature.at(point.scores), gradient)
        line = point.toward(point.w - direction)
        moved = line.at(1.0 if self._fits(line, gradient) else linesearch.minimize(self.problem, line))
        if self.levels:
            moved = self._levelled(moved)
        upper = self._objective(moved)
        if not upper < self.upper:
            return False
        self.point, self.upper = moved, upper
        return True

    def _fits(self, line: LinearLine, gradient: Array) -> bool:
        """Whether the whole step is as good as a search: J falls, and little is left of its slope."""
        end = line.at(1.0)
        if not self._objective(end) < self.upper:
            return False
        before = _core.inner(gradient, line.direction)
        after = _core.inner(self.r * end.w, line.direction) + line.slope_at(1.0)
        return abs(after) <= _FLAT * abs(before)

    def _levelled(self, point: LinearPoint) -> LinearPoint:
        """Return the point with the best constants: Newton's method on them, no product with the data."""
        k, w, F = self.curvature.k, point.w.copy(), point.scores.reshape(-1, self.curvature.k)
        value, slopes, _ = self.risk.loss_and_slopes(point.scores)
        shift, step = np.zeros(k), 1.0
        for _ in range(_LEVELS):
            total = slopes.reshape(-1, k).sum(axis=0)
            H = self.curvature.at((F + shift).reshape(-1)).total()
            trial = shift - step * factored(H, _SINGULAR * float(H.diagonal().max()))(total)
            new_value, new_slopes, _ = self.risk.loss_and_slopes((F + trial).reshape(-1))
            rest = float(np.abs(new_slopes.reshape(-1, k).sum(axis=0)).max())
            if not new_value <= value + 1e-14 * abs(value):
                step *= 0.25
                continue
            if not rest < float(np.abs(total).max()) and new_value >= value:
                break
            shift, value, slopes, step = trial, new_value, new_slopes, 1.0
        w[-k:] += shift
        return LinearPoint(self.risk, w, (F + shift).reshape(-1))
