"""Proximal Newton by coordinate descent on a working set, for regularizers that set coordinates to 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from bmrm import _core, linesearch
from bmrm._traits import Trait
from bmrm.bundle.master import master_for
from bmrm.bundle.plane_bound import PlaneBound
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array, Point
from bmrm.risks.columns import MOST_FACE, ColumnModel, Indices, Penalty, Plane
from bmrm.risks.linear import LinearLine, LinearPoint, LinearRisk
from bmrm.solvers import small_lasso
from bmrm.solvers.base import Solver, Start, Step, brace, new_bundle, solve_master
from bmrm.solvers.cholesky import factored

_REFRESH = 30
_STRIDE = 0.2  # lam of the next model, as a share of the largest entry of the gradient
_STAGE_EPOCHS = 16  # at most, with a larger lam: what such a model leaves over, the next one has to move anyway
_FIRST_EPOCHS, _LEAST_EPOCHS = 10, 5
_PLANES = 12
_CROWDED, _SETTLED = 0.5, 0.01  # of the rows, of the threshold: when stages are solved, and how far
_HASTY_EPOCHS, _MORE_CARE = 2, 0.25  # a descent that ends so soon may be far from arriving: columns alike move together
_EXACT = 1e-9  # of what a model promised: a difference so small says that the model is the risk itself
_ENOUGH = 0.3  # of the violation that the gap allows: the model is not the risk
_FEW_COLUMNS = 64  # all of them join at once where the model is the risk itself, and none is looked for to drop


@dataclass(frozen=True)
class Coordinate(Solver, name="coordinate"):
    """Coordinate descent on quadratic models of the risk, restricted to a working set of coordinates.

    The loop::

        repeat
            lam' = max(lam, the largest entry of g / 5), never above the lam' before          many columns, no bounds
            W = {j : w_j is not 0} and the coordinates that come next to, or farthest over, their threshold
            z = argmin over z_W of <g, z - w> + (z - w)'X'DX(z - w) / 2 + lam' Omega(z)        coordinate descent
            lower = the bound from the slopes s + D X(z - w) that the model predicts, scaled until feasible
            w = z, or the minimum of J on the line to z                                  from cached scores
            drop for good what the gap proves to be 0: |a_j| + |X_j| sqrt(2 l'' gap) < lam u_j

    X'DX is formed on the working set where that is cheap (few columns); then an epoch of the descent costs nothing
    beside it. Otherwise the epochs run on a copy of the data by columns, which is made once and takes as much memory
    as the data; after every third one, conjugate gradients move on the face that z lies in (its coordinates that are
    not 0, their signs kept), and where the epochs have cost as much as forming and factoring X'DX on the face would,
    that is done. The first models have a larger lam, so that no coordinate joins that leaves again later; they are
    solved roughly, unless nonzeros are half as many as rows and those are few enough for a face. Two
    products X'g and one product X w for each iteration. For least squares the model is the risk itself: with few
    columns all of them join at once, and one model is enough.
    The predicted slopes obey the optimality conditions as well as the model's minimum does, those at w only as well
    as w: that is why the bound hardly lags behind the objective.

    Parameters
    ----------
    working_set : int
        The least number of coordinates that may join those that are not 0.
    inner : float
        The descent ends when its moves have become so much smaller than the violation of optimality before it.
    max_epochs : int
        The most epochs for one model before its face is factored; fewer after a model that promised too much.
    screening : bool
        Whether coordinates that the gap proves to be 0 are left out.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0, 0.1], [-1.0, 0.2]], [1, -1], bmrm.losses.Logistic())
    >>> bmrm.solve(bmrm.Problem(risk, "l1", lam=0.3), "coordinate").w[1]
    np.float64(0.0)

    References
    ----------
    Friedman, Hastie and Tibshirani 2010 (glmnet); Yuan, Ho and Lin 2012 (newGLMNET, LIBLINEAR); Ndiaye, Fercoq,
    Gramfort and Salmon 2017 (gap safe screening); Massias, Gramfort and Salmon 2018 (celer).
    """

    working_set: int = 1000
    inner: float = 0.25
    max_epochs: int = 30
    screening: bool = True

    needs = frozenset({Trait.SMOOTH_RISK, Trait.CURVATURE, Trait.ROWS, Trait.ELASTIC})
    refuses = frozenset({Trait.UNBOUNDED_RISK})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each model; end when the objective falls no more."""
        run = _Run(self, problem, start)
        if start.memory is None:
            run.settle_free()
            if not run.at_once:
                run.bound(run.model.plane(run.point, run.curvature(), None, run.level_constant))
                yield run.step()
        while run.advance():
            yield run.step()
        if len(run.bundle) > 1:
            master = master_for(problem.regularizer)
            run.lower = max(run.lower, solve_master(problem, master, run.bundle, run.upper, run.point.w).lower)
        yield replace(run.step(), ended=True)

    def after_cut(self, problem: Problem, memory: Any) -> Any:
        """Return the memory: a step changes nothing in it."""
        return memory


class _Run:
    """Where a run stands: the point, the bounds, and which coordinates may still be other than 0."""

    def __init__(self, settings: Coordinate, problem: Problem, start: Start) -> None:
        self.settings, self.problem, self.tol = settings, problem, start.tol
        self.regularizer, self.risk = cast(Separable, problem.regularizer), cast(LinearRisk, problem.risk)
        self.model, d, lam = ColumnModel(self.risk), self.risk.dim, problem.lam
        u, v = (lam * np.broadcast_to(part, d) for part in self.regularizer.parts)
        lower, upper = (np.array(np.broadcast_to(side, d)) for side in (self.regularizer.lower, self.regularizer.upper))
        self.penalty = Penalty(u, v, lower, upper)
        self.unbounded = self.regularizer.bounds is None
        self.at_once = d <= _FEW_COLUMNS and self.model.quadratic  # the first model is the problem itself
        self.screening = settings.screening and not self.at_once
        self.level_constant = self.risk.design.intercept and d - 1 in self.regularizer.free and np.isinf(upper[-1])
        self.bundle = start.bundle or new_bundle(problem, _PLANES)
        self.bundle.max_cuts = _PLANES
        memory: dict[str, Any] = start.memory or {"alive": np.ones(d, bool)}
        self.alive, self.proof = memory["alive"], memory.get("proof") or PlaneBound(self.regularizer)
        self.lower, self.stuck = memory.get("lower", -np.inf), memory.get("stuck", 0)
        self.iteration, self.worst = memory.get("iteration", 0), memory.get("worst", 0.0)
        self.excess, self.most_epochs = memory.get("excess", np.inf), memory.get("most_epochs", _FIRST_EPOCHS)
        self.care = memory.get("care", 1.0)
        self.model.epochs = memory.get("epochs", self.model.epochs)
        self.move_to(self.risk.at(start.w, memory.get("scores")))

    def step(self) -> Step:
        names = ("alive", "lower", "stuck", "iteration", "worst", "excess", "most_epochs", "care")
        memory = {name: getattr(self, name) for name in names}
        if self.regularizer.free.size:  # else there is nothing that it remembers
            memory["proof"] = self.proof
        memory |= {"scores": self.point.scores, "epochs": self.model.epochs}
        return Step(self.point.w, self.upper, self.lower, self.bundle, memory)

    def move_to(self, point: Point) -> None:
        self.point = cast(LinearPoint, point)
        self._curvature: Array | None = None
        self.upper = self.objective(point, self.problem.lam)

    def objective(self, point: Point, lam: float) -> float:
        return lam * self.regularizer.value(point.w) + point.value

    def curvature(self) -> Array:
        if self._curvature is None:
            self._curvature = self.model.curvature(self.point)
        return self._curvature

    def settle_free(self) -> None:
        """Minimize J over the free coordinates alone: a plane proves something only where its slope there is 0."""
        free = self.regularizer.free.astype(np.int64)
        only_constant = self.level_constant and free.size == 1
        self.excess = 1.0
        for _ in range(50 if free.size else 0):
            g = np.zeros(self.risk.dim)
            g[free] = float(np.sum(self.point.slopes)) if only_constant else self.point.subgradient[free]
            if np.abs(g).max() <= 1e-9 * float(np.abs(self.point.slopes).sum()) or not self.descend(g, free):
                break
        self.excess = np.inf

    def advance(self) -> bool:
        """Take one step; False if the objective has stopped to fall."""
        self.iteration += 1
        if self.iteration % _REFRESH == 0:
            self.move_to(self.risk.at(self.point.w))
        self.lower_excess()
        working, covers = self.working_set()
        if self.descend(self.point.subgradient, working, prove=covers):
            self.stuck = 0
        elif self.excess > 1.0:
            self.excess = max(1.0, _STRIDE * self.excess)
        else:
            self.stuck += 1
        return bool(self.stuck < 3)

    def lower_excess(self) -> None:
        """Let the next model have a larger lam as long as the gradient is far above lam: at bounds it stays so."""
        if self.excess > 1.0 and not (self.crowded() and self.unsettled()):
            u, steep = self.penalty.u, np.abs(self.point.subgradient)
            many = self.unbounded and self.risk.dim > self.settings.working_set
            steepest = float(np.max(np.divide(steep, u, out=np.zeros_like(u), where=u > 0.0))) if many else 1.0
            self.excess = max(1.0, min(self.excess, _STRIDE * steepest))

    def crowded(self) -> bool:
        """Whether nonzeros are so many that soon they will have no one best value each, with lam still far away.

        A model with more nonzeros than rows has a whole face of minima, from which coordinates leave one by one: that
        costs more than to solve the stages before. 1000 rows of 10 000 columns, least squares, 1e-6, to 1e-3: 6.5 s;
        with stages as short as elsewhere, 28 % are left of the gap after 30 s.
        """
        rows, far = self.risk.design.n_rows, 1.0 / _STRIDE < self.excess < np.inf
        return bool(far and rows <= MOST_FACE and np.count_nonzero(self.point.w) > _CROWDED * rows)

    def unsettled(self) -> bool:
        """Whether the point is far from the minimum of this stage."""
        penalty = self.penalty.times(self.excess)
        violation = penalty.violation(self.point.w, self.point.subgradient, slice(None))
        return bool(violation.max() > _SETTLED * penalty.u.max())

    def working_set(self) -> tuple[Indices, bool]:
        """Return the coordinates that may move, and whether all that violate optimality are among them."""
        w, g, u = self.point.w, self.point.subgradient, self.penalty.u
        if self.at_once:
            return np.arange(g.size), True
        base = (w != 0.0) | (u == 0.0)
        ratio = np.divide(np.abs(g), self.excess * u, out=np.zeros_like(g), where=~base & self.alive)
        room = max(self.settings.working_set, 2 * int(base.sum()))
        near = np.flatnonzero(ratio > 0.95)
        if near.size > room:
            near = near[np.argpartition(-ratio[near], room)[:room]]
        covers = int(np.sum(ratio > 1.0)) <= room
        base[near] = True
        return np.flatnonzero(base), covers

    def descend(self, g: Array, working: Indices, prove: bool = False) -> bool:
        """Minimize the model on the working set, bound min J by it, and move; False if the objective does not fall."""
        point, D, penalty = self.point, self.curvature(), self.penalty
        if self.excess > 1.0:
            penalty = penalty.times(self.excess)
        violation = float(penalty.violation(point.w, g, working).max(initial=0.0))
        near = 1.0
        if self.excess == 1.0:
            self.worst = max(self.worst, violation)
            near = max(violation / max(self.worst, 1e-300), self.enough())
        share = self.care * float(np.clip(near, 0.01, self.settings.inner))
        tol = share * 0.01**self.stuck * violation
        whole = self.excess == 1.0 or self.crowded()
        trusted = whole and self.most_epochs == self.settings.max_epochs
        rescue = factored if trusted else None
        exactly = small_lasso.minimize if self.unbounded and working.size <= small_lasso.MOST_COORDINATES else None
        epochs = self.most_epochs if whole else min(self.most_epochs, _STAGE_EPOCHS)
        z = self.model.minimize(D, g, point.w, working, penalty, tol, epochs, exactly, rescue)
        if self.excess == 1.0 and self.model.epochs <= _HASTY_EPOCHS:
            self.care *= _MORE_CARE
        line = point.toward(z)
        ahead = line.score_direction
        promised = _core.inner(g, z - point.w) + 0.5 * float(np.sum(D * ahead * ahead))
        lam = self.excess * self.problem.lam
        promised += lam * (self.regularizer.value(z) - self.regularizer.value(point.w))
        before = self.objective(point, lam)
        moved = self.along(line, z, promised, lam)
        exact = moved and abs(self.objective(self.point, lam) - before - promised) <= _EXACT * abs(promised)
        if prove and self.excess == 1.0 and (exact or -promised <= 0.1 * abs(self.upper)):
            touched, ahead_of_it = (self.point, None) if exact else (point, ahead)
            self.bound(self.model.plane(touched, D, ahead_of_it, self.level_constant))
        return moved

    def enough(self) -> float:
        """Return to what share of the violation a model need be minimized for its bound to close the gap asked for."""
        gap = self.upper - self.lower
        return _ENOUGH * self.tol * abs(self.upper) / gap if gap > 0.0 else 0.0

    def along(self, line: LinearLine, z: Array, promised: float, lam: float) -> bool:
        """Move to z if J falls by a third of what the model promises, else to the minimum on the line."""
        full, now = line.at(1.0), self.objective(self.point, lam)
        full.w = z
        if self.objective(full, lam) - now <= 0.3 * promised:
            self.most_epochs = min(2 * self.most_epochs, self.settings.max_epochs)
        else:
            self.most_epochs = max(self.most_epochs // 2, _LEAST_EPOCHS)
            stage = Problem(self.risk, self.regularizer, lam) if self.excess > 1.0 else self.problem
            full = line.at(linesearch.minimize(stage, line))
            full.w = self.regularizer.clip(full.w)
        if not self.objective(full, lam) < now:
            return False
        self.move_to(full)
        return True

    def bound(self, plane: Plane) -> None:
        """Raise the lower bound by the plane, and drop the coordinates that it proves to be 0."""
        lam = self.problem.lam
        if self.regularizer.free.size:
            self.bundle.add_point(self.point)
        of_plane = plane.a, plane.offset, plane.steepness, self.point.w
        lower, theta = self.proof.of(self.bundle, lam, self.upper, *of_plane)
        if self.proof.open and brace(self.problem, self.bundle, self.point.w, self.proof.open):
            lower, theta = self.proof.of(self.bundle, lam, self.upper, *of_plane)
        self.bundle.record(np.eye(len(self.bundle))[-1])
        self.lower = max(self.lower, lower)
        if self.screening and np.isfinite(lower) and np.isfinite(self.model.bend):
            radius = np.sqrt(2.0 * self.model.bend * max(self.upper - lower, 0.0))
            near = self.bundle.errors_of(plane.steepness).norm + self.model.norms * radius
            self.alive &= np.abs(theta * plane.a) + near >= self.penalty.u
