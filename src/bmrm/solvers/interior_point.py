"""Mehrotra's interior-point method for piecewise linear-quadratic losses and few features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from bmrm import _core
from bmrm._traits import Trait
from bmrm.bundle.master import master_for
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array
from bmrm.risks.curvature import RowCurvature
from bmrm.risks.linear import LinearPoint, LinearRisk
from bmrm.risks.normal_error import norm_of
from bmrm.risks.terms import RowTerms
from bmrm.solvers.barrier import Barrier, CoordinateTerms, Direction
from bmrm.solvers.base import Solver, Start, Step, bundle_for
from bmrm.solvers.bounds import FEW_FREE, FlatBound, bound_of
from bmrm.solvers.newton_system import FINE_RIDGE, MOST_COLUMNS, NewtonSystem

_TOWARD_END = 0.995  # share of the way to where a variable would be 0
_REFRESH = 10
_START_WIDTH = 0.3
_SOME_FREE = 5  # coordinates for which the planes' box takes long, but not too long
_NOTHING = 1e-60  # of the objective: what the barriers still leave of the gap cannot matter any more
_FIXED = 1e100  # curvature of a coordinate between two equal bounds


@dataclass(frozen=True)
class InteriorPoint(Solver, name="interior_point"):
    """Predictor and corrector steps on the box-constrained dual, with d x d normal equations.

    Each row's loss is a line and a few ramps, max over 0 <= theta <= J of theta a - c theta^2 / 2 with a = z - knot:
    kinks have c = 0, curved pieces c = 1 / curvature. Absolute values of single coordinates (l1, the elastic net)
    are ramps as well, and so are bounds, with an infinite J. A linear term of the risk (the learned threshold of
    `nu_novelty`) is a part of the gradient. The loop::

        repeat
            T = 1 / (u / eta + v / theta + c)                    for every ramp
            factor lam S + X' diag(p_i sum_k T_ik) X             the only matrix, d x d
            predictor: aim at theta v = eta u = 0                 sigma = (mu after it / mu)^3
            corrector: aim at sigma mu, with the predictor's second-order terms
            step 0.995 of the way to the boundary
            plane from theta: 0 <= theta <= J is feasible by construction

    About 10 to 40 iterations at any lam. Every iteration reads all rows for the matrix, so it suits data with few
    columns.

    Parameters
    ----------
    planes : int
        Number of planes kept for the bound.
    most_columns : int
        Up to so many columns the matrix is formed and factored; above, conjugate gradients have to do.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [2.0]], [1, 3], bmrm.losses.Quantile(tau=0.5))
    >>> bmrm.solve(bmrm.Problem(risk, "l1", lam=1e-3), "interior_point", tol=1e-6).converged
    True

    References
    ----------
    S. Mehrotra, On the implementation of a primal-dual interior point method, 1992. M09 (workshop remark).
    """

    planes: int = 8
    most_columns: int = MOST_COLUMNS

    needs = frozenset({Trait.COMPILED, Trait.PIECEWISE, Trait.ELASTIC})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each iteration; end when the numbers allow no further step."""
        run = _Run(problem, start, self)
        if start.memory is None:
            yield run.step()
        while run.advance():
            yield run.step()


class _Run:
    """w, the barriers of rows and coordinates, and the planes of one run."""

    def __init__(self, problem: Problem, start: Start, settings: InteriorPoint) -> None:
        risk = cast(LinearRisk, problem.risk)
        regularizer = cast(Separable, problem.regularizer)
        self.problem, self.risk, self.terms = problem, risk, RowTerms(risk)
        self.bundle = bundle_for(problem, start, settings.planes)
        self.master, self.flat = master_for(regularizer), FlatBound(problem)
        absolute, square = (problem.lam * np.broadcast_to(part, (risk.dim,)) for part in regularizer.parts)
        lower, upper = (np.broadcast_to(side, (risk.dim,)) for side in (regularizer.lower, regularizer.upper))
        self.absolute, self.r = absolute, square
        self.held: Array = np.where(lower < upper, 0.0, _FIXED)
        self.singles = CoordinateTerms(absolute, lower, upper)
        self.regularizer, self.p = regularizer, risk.full_weight
        self.share = np.where(self.p > 0.0, self.p, risk.scale)  # of a row in mu
        self.curvature = RowCurvature(risk)
        self.system = NewtonSystem(self.curvature, self.r, settings.most_columns, FINE_RIDGE)
        self.best, self.upper, self.lower = start.w, np.inf, -np.inf
        if start.memory is None:
            self.iteration = 0
            self._begin(start.w)
        else:
            self._recall(start.memory)

    def _begin(self, w: Array) -> None:
        """Start at the regularized least squares fit whose slopes rho (z - z0) fill the box of the dual.

        These slopes are stationary, and with mu = J^2 / (8 rho) they lie on the central path but for terms of
        second order.
        """
        terms, ramps = self.terms, self.terms.ramps
        point = self.risk.at(w)
        self._look_at(point)
        whole = float(np.sum(ramps.jump[np.isfinite(ramps.jump)]))
        distance = terms.arguments(point.scores) - terms.middle
        rho = _START_WIDTH * whole / (_core.inner_of_sizes(self.p, distance) or 1.0) if whole > 0.0 else 1.0
        slope = ramps.slope + 0.5 * whole if whole > 0.0 else 0.0
        self.system.r = self.r + self.absolute + self.held
        gradient = (self.r + self.absolute) * w + self._pull_back(self.p * terms.e * (slope + rho * distance))
        self.point = self.risk.at(w - self.system.at(rho * self.p)(gradient, 1e-3))
        z = terms.arguments(self.point.scores)
        share = 0.5 + rho * (z - terms.middle) / (whole or 1.0)
        self.rows = Barrier(terms.along(z), ramps.jump, ramps.give, share, whole**2 / (8.0 * rho))
        mu = float(np.sum(self.rows.products() @ self.share)) / self.rows.pairs
        squares = self.curvature.diagonal(self.p)
        scale = 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))
        self.coordinates = self.singles.barrier(self.point.w, scale, mu)

    def _recall(self, memory: dict[str, Any]) -> None:
        self.iteration, self.rows, self.coordinates = memory["iteration"], memory["rows"], memory["coordinates"]
        self.upper, self.lower = memory["upper"], memory["lower"]
        self.point = self.risk.at(memory["w"], memory["scores"])

    def _look_at(self, point: LinearPoint) -> None:
        self.point = point
        inside = self.regularizer.inside(point.w)
        self._offer(point if inside else self.risk.at(self.regularizer.clip(point.w)))

    def _offer(self, point: LinearPoint) -> None:
        objective = self.problem.lam * self.regularizer.value(point.w) + point.value
        if objective < self.upper:
            self.best, self.upper = point.w, objective

    def step(self) -> Step:
        """Add the plane of theta and return what is known."""
        theta = np.minimum(self.rows.theta, self.terms.ramps.jump)
        (a, b), slopes = self.terms.plane(theta), self.terms.slopes(theta)
        self.bundle.add_plane(a, b, norm_of(slopes))
        lower = self.flat.of(self.bundle, a, b, slopes, self.best, self.upper)
        if not lower > self.bundle.floor and self.flat.free.size and not self.flat.steep:
            theta = self._flattened(theta, a)
            lower = self.flat.of(self.bundle, *self.terms.plane(theta), self.terms.slopes(theta), self.best, self.upper)
        if not lower > self.bundle.floor and (self.flat.free.size <= FEW_FREE or self._planes_may_help()):
            lower = bound_of(self.problem, self.master, self.bundle, self.upper, self.best)
        self.lower = max(self.lower, lower)
        memory = {
            "w": self.point.w,
            "scores": self.point.remembered,
            "rows": self.rows,
            "coordinates": self.coordinates,
            "iteration": self.iteration,
            "upper": self.upper,
            "lower": self.lower,
        }
        return Step(self.best, self.upper, self.lower, self.bundle, memory)

    def _flattened(self, theta: Array, a: Array) -> Array:
        """Return theta, moved along the rows that have room until the plane's free slopes are gone: see `FlatBound`."""
        terms, stiff = self.terms, self.rows.stiffness()
        g = np.zeros_like(a)
        g[self.flat.free] = a[self.flat.free]
        self.system.r = self.r + self.held + self.singles.gathered(self.coordinates.stiffness(), self.r.size)
        h = self.system.at(self.p * np.sum(stiff, axis=0))(g, 1e-8)
        self.risk.products += 1
        moved = theta - stiff * terms.ramps.sign * (terms.e * self.risk.design.dot(h))
        return np.clip(moved, 0.0, terms.ramps.jump)

    def _planes_may_help(self) -> bool:
        return self.flat.free.size <= _SOME_FREE and not self.flat.steep

    def advance(self) -> bool:
        """Take a predictor and a corrector step; False if no step is possible."""
        self.iteration += 1
        if self.iteration % _REFRESH == 0:  # scores combined many times have lost some digits
            self.point = self.risk.at(self.point.w)
        stiff = self.rows.stiffness(), self.coordinates.stiffness()
        self.system.r = self.r + self.held + self.singles.gathered(stiff[1], self.r.size)
        solve = self.system.at(self.p * np.sum(stiff[0], axis=0))
        pairs = self.rows.pairs + self.coordinates.pairs
        mu = self._complementarity(0.0, None) / pairs
        if not mu * pairs > _NOTHING * abs(self.upper):
            return False
        dw, du, affine = self._direction(solve, stiff, 0.0, None)
        t = min(1.0, self.rows.longest(affine[0]), self.coordinates.longest(affine[1]))
        sigma = min(1.0, max(0.0, self._complementarity(t, affine) / pairs / mu)) ** 3
        dw, du, both = self._direction(solve, stiff, sigma * mu, affine)
        t = min(1.0, _TOWARD_END * self.rows.longest(both[0]), _TOWARD_END * self.coordinates.longest(both[1]))
        w = self.point.w + t * dw
        if not (t > 1e-10 and np.isfinite(w).all()):
            return False
        self.rows.move(t, both[0])
        self.coordinates.move(t, both[1])
        self._look_at(self.risk.at(w, self.point.scores + t * du))
        settled = self.regularizer.clip(self.singles.settled(self.point.w, self.coordinates))
        if np.any(settled != self.point.w):
            self._offer(self.risk.at(settled))
        return True

    def _complementarity(self, t: float, d: tuple[Direction, Direction] | None) -> float:
        rows = self.rows.products() if d is None else self.rows.products_after(t, d[0])
        others = self.coordinates.products() if d is None else self.coordinates.products_after(t, d[1])
        return float(np.sum(rows @ self.share)) + float(np.sum(others))

    def _pull_back(self, slopes: Array) -> Array:
        """Return the gradient of the rows with these slopes, and of the risk's linear term."""
        return self.risk.pull_back(slopes, float(slopes.sum()))

    def _direction(
        self, solve: Any, stiff: tuple[Array, Array], mu: float, affine: tuple[Direction, Direction] | None
    ) -> tuple[Array, Array, tuple[Direction, Direction]]:
        """Return the step in w, in the scores, and in both barriers."""
        terms, w, singles = self.terms, self.point.w, self.singles
        sign, p = terms.ramps.sign, self.p * terms.e
        of_rows = self.rows.push(
            terms.along(terms.arguments(self.point.scores)), mu / self.share, affine[0] if affine else None
        )
        of_others = self.coordinates.push(singles.along(w), mu, affine[1] if affine else None)
        pulled = terms.slopes(self.rows.theta) + p * np.sum(sign * stiff[0] * of_rows[2], axis=0)
        pushed = singles.sign * (self.coordinates.theta + stiff[1] * of_others[2])
        gradient = self.r * w + self._pull_back(pulled) + singles.slopes + singles.gathered(pushed, w.size)
        dw = -solve(gradient, 1e-8 if affine is not None and self.flat.free.size else 1e-6)
        self.risk.products += 1
        du = self.risk.design.dot(dw)
        rows = self.rows.direction(sign * (terms.e * du), of_rows, stiff[0])
        others = self.coordinates.direction(singles.sign * dw[singles.j], of_others, stiff[1])
        return dw, du, (rows, others)
