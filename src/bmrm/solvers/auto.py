"""The solver that picks a solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from bmrm._cached import cached_property
from bmrm._states import kept
from bmrm._traits import Trait
from bmrm.problem import Problem, missing
from bmrm.regularizers import L2, Zero
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk
from bmrm.risks.scaled import powers_of_two
from bmrm.solvers.base import Solver, Start, Step, bundle_for
from bmrm.solvers.choice import (
    for_smooth_rows,
    for_wide_rows,
    is_easy,
    kinks_are_few,
    rows_are_hard,
    rows_are_nearly_hard,
    suit_planes,
)
from bmrm.solvers.coordinate import Coordinate
from bmrm.solvers.dual_coordinate import DualCoordinate
from bmrm.solvers.heavy_ball import HeavyBall
from bmrm.solvers.hybrid import Hybrid
from bmrm.solvers.interior_point import InteriorPoint
from bmrm.solvers.lbfgs import LBFGS
from bmrm.solvers.ls_bmrm import LsBMRM
from bmrm.solvers.newton import Newton
from bmrm.solvers.owlqn import OWLQNStar
from bmrm.solvers.proximal_bundle import ProximalBundle
from bmrm.solvers.semismooth_newton import SemismoothNewton
from bmrm.solvers.subgradient_bfgs import SubgradientLBFGS
from bmrm.solvers.units import steps_in_units

_UNEVEN = 100.0  # columns whose sizes differ by more are brought to one size
# The same for more than 1000 columns: those of text are uneven as they should be, l2 being meant in their units
# (L-BFGS on gen_text, sizes 776 apart, logistic, 1e-6: 89 ms, 1180 in other units; news20, 107, 1e-4: 0.7 and 3.6 s).
_UNEVEN_MANY = 1e4
_PATIENCE = 20  # steps in which the gap must have fallen to half of what it was
_SHORT_PATIENCE = 5  # for dual coordinate descent, a step of which is several passes, where the next one is as good
_FEW_PATIENCE = 3  # the same, where rows on kinks are few: then Newton steps are short
# Of the gap: as long as a step's bound rises by more, its slopes still change, and Newton steps would begin too early
# (farm_ads, hinge, 1e-4, to 1e-3 and 1e-6: 0.70 and 0.83 s without this, 0.48 and 0.62 with it; 1e-5: 0.93 and 1.12,
# 0.75 and 0.88; at 0.03 or 0.003 it does less).
_RISE = 0.01
# What may be left of the gap after one of its steps, of 8 passes, where columns are many and the next one is Newton's
# method by conjugate gradients or L-BFGS in the space of the rows: beyond, 1e-3 is far (reuters, squared_hinge, 1e-6).
_MANY_SHARE = 0.3
# Steps where columns are many and so are the rows on kinks (news20, hinge: 5500): Newton steps by conjugate gradients
# take half a second each there and had a gap of 2e-2 after 15 s, where epochs had 1e-3 after 3.
_LONG_PATIENCE = 1000
# Unless the gap is below this share of J: what rows with equal columns leave of it then, Newton steps finish (reuters,
# hinge, 1e-5: epochs take 0.11 s to 1e-5 and 8.5 s more to 1e-6).
_NEAR = 1e-3
# Pairs of L-BFGS where every step is an evaluation of a risk without rows: they cost little beside it. CRFs to a gap of
# 1e-4: 175 steps with 10, 155 with 20 (OCR letters); 134 and 120 (CoNLL-2000).
_LONG_MEMORY = 20
# The proximal method comes near by a constant factor for each step, `ls_bmrm` with its planes ends in finitely many
# where a loss is piecewise linear (roc_area of 15 rows to 1e-10: 85 steps, and 32 with both).
_PROXIMAL_PATIENCE = 2
_FEW_COLUMNS = 1000
_FEW_FREE = 5
_EASY_STEPS = 10
_IN_UNITS = (LBFGS, LsBMRM, ProximalBundle)  # solvers that mind the sizes of columns


@dataclass(frozen=True)
class Auto(Solver, name="auto"):
    """Picks by the problem's traits and size, and hands over when the gap no longer falls.

    ===============================  =====================================================================
    loss and regularizer             solvers, in this order
    ===============================  =====================================================================
    smooth rows, l2 or no penalty    `newton`; before it `dual_coordinate`, where q is small enough for its
                                     epochs to cost less than forming the matrix of second derivatives (long
                                     rows, mnist). Beyond 2000 columns `dual_coordinate`, then `newton` by
                                     conjugate gradients; the latter at once where q > 200, with exponentials,
                                     which make epochs dear, q > 28. `lbfgs` where m q <= 100, with exponentials
                                     1000: it takes a handful of steps. Beyond 3 columns for each row
                                     `dual_coordinate`, then `row_lbfgs`; if the loss is piecewise, q > 200 and half of
                                     the rows are few enough for `newton` to factor their system, that goes second
    other rows, l2                   `dual_coordinate`, then `semismooth_newton`; the latter at once where
                                     columns are few, and columns uneven or q > 2 and 0.45 times the passes that
                                     the matrix of a Newton step costs, for losses of residuals q > 0.1: there
                                     epochs are many, and no row can be left out, as all lie near a kink or on a
                                     slope.
                                     Losses of margins with few columns and m q <= 60: `ls_bmrm` first, it needs 3 to
                                     8 passes, which cost less than epochs; with many columns where q > 20000 and rows
                                     are many, instead of epochs, which get nowhere there
    other rows, l1 or elastic net    `semismooth_newton`, if columns are few
    smooth rows, l1 or elastic net   `coordinate`; with bounds on w, for l2 and no penalty as well
    `softmax` and other smooth       `newton`, then `lbfgs`; the latter first beyond 1000 columns (`row_lbfgs` beyond
    losses of several scores, l2     3 columns for each row) or where m q <= 500, unless coordinates are free or the
                                     classes' blocks cost less than a pass (few columns: 3 to 4 steps will do)
    `multiclass_hinge`,              `dual_coordinate`; with more than 5 free constants it is kept where progress is
    `multilabel_hinge` without       slow: bundle methods have no bound before they have more planes than constants
    costs, `hierarchical_hinge`, l2
    smooth, l2 or no penalty         `lbfgs`
    smooth, l1 or elastic net        `owlqn_star` (20000 x 50 in two shards, logistic, 1e-6: 15 steps, `ls_bmrm` 376)
    structured models and a user's   `proximal_bundle`: where lam is small and each trial of a line search a call of
    own risks, l2                    the model, planes from far away cost much (RNA foldings, 1e-3: 46 calls to what
                                     `ls_bmrm` had not reached after 80; chains of OCR letters, 1e-2: 159 steps and 185)
    planes with noise (`Privacy`)    `heavy_ball`
    others, more than 5 coordinates  `hybrid`: from 0, where many scores are equal, the planes of a bundle say little
    free                             about the constants (digits, `hierarchical_hinge`, 1e-6: after 35 planes J is
                                     what it was; `hybrid` arrives at 1e-4 in 7 s)
    ===============================  =====================================================================

    Here q is the mean of |x_i|^2 / (lam m), times the largest second derivative of a smooth loss: dual coordinate
    descent takes about 18 (1 + q) epochs.

    Next comes `interior_point`, for piecewise quadratic rows, any penalty, bounds and few columns; at once where more
    than 5 coordinates are free. Where the risk has no lower bound, `ls_bmrm` comes first, and `subgradient_lbfgs` looks
    for a way down as well, before `interior_point` where there is no penalty. Behind all of them stands `ls_bmrm`,
    which makes progress on every convex problem: a solver that has not halved the gap within 20 steps (`interior_point`
    and `proximal_bundle`: 100, the bound may come last, the latter 2 below 1e-3 of J; `lbfgs`: 100 if columns are many;
    `coordinate`: 40; `semismooth_newton`: 60 if columns are many; `dual_coordinate`: 5, but, like `ls_bmrm` in its
    place, 1000 where columns are many, the steps of `semismooth_newton` come next and the gap is above 1e-3 of J, 40
    below, and 3 where the rows on kinks are few enough to factor their system, once the bound rises by less than
    0.01 of the gap in a step, 1 below 1e-3 of J where columns are few and q of margins is above 0.3 of its limit,
    20 where `ls_bmrm` is next, and 1, which must leave no more than 0.3 of the gap, with a smooth loss and many
    columns), or can go no further, leaves its point to the next one, `dual_coordinate` its slopes to
    `semismooth_newton`, and L-BFGS and `proximal_bundle` their
    planes as well (the planes of the others crowd around one point, which the master problem does not like). Where
    `ls_bmrm` comes to a stand as well, it begins once more at 0; the best point is kept. `lbfgs`, `ls_bmrm` and
    `proximal_bundle` run in other units, w = c v with powers of two c, where columns differ in size by more than a
    factor of 100 (10000, if they are more than 1000) and m q > 100; Newton steps and coordinate steps do not mind the
    units.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5)).converged
    True
    """

    takes_noise = True

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield the steps of the solvers chosen; where J is infinite at the start, from a point with small scores."""
        if Trait.NOISE in problem.traits:
            yield from HeavyBall().steps(problem, start)
            return
        steps = self._steps(problem, start)
        for step in steps:
            moved = None if np.isfinite(step.upper) else _with_small_scores(problem, start)
            if moved is not None:
                yield from self._steps(problem, moved)
                return
            yield step

    def after_cut(self, problem: Problem, memory: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the memory with what the solver at hand can go on from; else that one begins anew."""
        stage, watch, inner, w, upper, slopes = memory
        if inner is None:
            return memory
        solver = _chosen(_with_weights(problem), _Units(problem))[stage]
        inner = solver.after_cut(problem, inner)
        return stage, None if inner is None else watch, inner, w, upper, slopes

    def _steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield the steps of the solvers chosen, one after the other, with the best point of them all."""
        stage, watch, memory, w, upper, slopes = start.memory or (0, None, None, start.w, np.inf, None)
        best, weighted, units = start.w, _with_weights(problem), _Units(problem)
        solvers = _chosen(weighted, units)
        start = Start(w, bundle_for(problem, start, None), start.seed, memory, start.tol, slopes)
        for k, solver in enumerate(solvers[stage:], stage):
            if k > stage or (k > 0 and memory is None):
                start = _handed_over(problem, solvers[k - 1 : k + 1], start, best)
            watch = watch or _Watch(weighted, solver, solvers[k + 1 : k + 2])
            if isinstance(solver, _IN_UNITS) and units.c is not None:
                steps = steps_in_units(solver, problem, units.c, start)
            else:
                steps = solver.steps(problem if isinstance(solver, _IN_UNITS) else weighted, start)
            for step in steps:
                if step.upper <= upper:
                    best, upper = step.w, step.upper
                watch.see(step)
                tired = watch.tired or (watch.slow and kinks_are_few(problem, step.slopes))
                leave = (tired or step.ended) and k + 1 < len(solvers)
                start = Start(step.w, step.bundle, start.seed, tol=start.tol, slopes=step.slopes if leave else None)
                kept: tuple[Any, ...] = (k, watch, step.memory, step.w, upper, None)
                if leave:
                    kept = (k + 1, None, None, best, upper, step.slopes)
                yield Step(best, upper, step.lower, step.bundle, kept, step.ended and not leave)
                if leave:
                    break
            watch = None


def _with_small_scores(problem: Problem, start: Start) -> Start | None:
    """Return a start where the squares of the scores are about as small as can be; None if there is no such point."""
    risk = problem.risk
    if not isinstance(risk, LinearRisk):
        return None
    squares = LinearRisk(risk.design, np.zeros(risk.design.n_rows), "least_squares", offset=risk.offset)
    easy = Problem(squares, problem.regularizer, problem.lam)
    *_, last = islice(Auto().steps(easy, Start(start.w)), _EASY_STEPS)
    risk.products += squares.products
    return Start(last.w, seed=start.seed, tol=start.tol) if np.isfinite(problem.objective(last.w)) else None


def _handed_over(problem: Problem, pair: Sequence[Solver], start: Start, best: Array) -> Start:
    """Return where the next solver begins: at the best point, some with new planes at 0, which they come from best."""
    before, after = pair
    if isinstance(before, LBFGS | ProximalBundle):  # planes may be in other units, which the next need not know
        bundle = None if start.bundle is None else start.bundle.copy()
        return Start(best, bundle, start.seed, tol=start.tol)
    if isinstance(after, InteriorPoint) or (isinstance(before, LsBMRM) and isinstance(after, LsBMRM)):
        return Start(problem.regularizer.prox(np.zeros(problem.risk.dim), 1.0), seed=start.seed, tol=start.tol)
    return Start(best, seed=start.seed, tol=start.tol, slopes=start.slopes)


@kept
class _Watch:
    """Sees the gap of every step, and tells when it has not been halved for too long."""

    def __init__(self, problem: Problem, solver: Solver, after: Sequence[Solver]) -> None:
        few = problem.risk.dim <= _FEW_COLUMNS
        self.upper, self.lower, self.mark, self.waited = np.inf, -np.inf, np.inf, 0
        # The bundle method may be slow; it is left only when it has come to a stand.
        last = isinstance(solver, LsBMRM | Hybrid) and not isinstance(
            next(iter(after), None), DualCoordinate | SemismoothNewton
        )
        self.share, self.patience = (0.99, 3 * _PATIENCE) if last else (0.5, _PATIENCE)
        self.patience_near = self.patience_few = np.inf
        self.rises = True  # whether the bound does
        if isinstance(solver, InteriorPoint | ProximalBundle) or (isinstance(solver, LBFGS) and not few):
            self.patience = 5 * _PATIENCE
            self.patience_near = _PROXIMAL_PATIENCE if isinstance(solver, ProximalBundle) else np.inf
        elif isinstance(solver, LsBMRM) and not few and not last:
            self.patience, self.patience_near = _LONG_PATIENCE, 2 * _PATIENCE
        elif isinstance(solver, Coordinate):
            self.patience = 2 * _PATIENCE
        elif isinstance(solver, SemismoothNewton) and not few:
            self.patience = 3 * _PATIENCE  # its bound comes with the end of an inner problem
        elif isinstance(solver, DualCoordinate) and len(getattr(problem.regularizer, "free", ())) > _FEW_FREE:
            self.patience = _LONG_PATIENCE
        elif isinstance(solver, DualCoordinate) and not isinstance(after[0], LsBMRM):
            self.patience = _SHORT_PATIENCE
            newton_next = isinstance(after[0], SemismoothNewton)
            if few and newton_next and rows_are_nearly_hard(problem):
                self.patience_near = 1
            elif not few and newton_next:
                self.patience, self.patience_near = _LONG_PATIENCE, 2 * _PATIENCE
                self.patience_few = _FEW_PATIENCE
            elif not few:
                self.patience, self.share, self.waited = 1, _MANY_SHARE, -1  # the start does not count

    def see(self, step: Step) -> None:
        """Note the step's bounds."""
        before = self.lower
        self.upper, self.lower = min(self.upper, step.upper), max(self.lower, step.lower)
        gap = self.upper - self.lower
        self.rises = self.lower - before > _RISE * gap
        if gap <= self.share * self.mark and np.isfinite(gap):
            self.mark, self.waited = gap, 0
        else:
            self.waited += 1

    @property
    def slow(self) -> bool:
        """Whether it is time for another solver if that takes short steps."""
        return self.waited >= self.patience_few and not self.rises

    @property
    def tired(self) -> bool:
        """Whether it is time for another solver."""
        near = self.upper - self.lower <= _NEAR * abs(self.upper)
        return self.waited >= (min(self.patience, self.patience_near) if near else self.patience)


def _chosen(problem: Problem, units: _Units) -> list[Solver]:
    """Return the solvers to try, the best first; the last one fits every problem."""

    def fits(solver: type[Solver]) -> bool:
        return not missing(solver, problem)

    few = problem.risk.dim <= _FEW_COLUMNS
    central = fits(InteriorPoint) and few
    free = getattr(problem.regularizer, "free", ())
    chosen: list[Solver] = []
    if fits(Newton):
        chosen += for_smooth_rows(problem) if Trait.ROWS in problem.traits else for_wide_rows(problem)
    elif fits(Coordinate):
        chosen.append(Coordinate())
    elif fits(SemismoothNewton) and (few or fits(DualCoordinate)):
        if fits(DualCoordinate) and not (few and (rows_are_hard(problem) or units.c is not None)):
            planes = not len(free) and suit_planes(problem, few)
            chosen += [LsBMRM()] if planes else []
            chosen += [DualCoordinate()] if few or not planes else []
        chosen.append(SemismoothNewton())
    elif fits(DualCoordinate):
        chosen.append(DualCoordinate())
    elif fits(LBFGS) and not central:
        chosen.append(LBFGS(memory=_LONG_MEMORY))
    elif fits(OWLQNStar) and not central:
        chosen.append(OWLQNStar())
    if Trait.UNBOUNDED_RISK in problem.risk.traits:
        chosen = [InteriorPoint()] if central else []
        if fits(SubgradientLBFGS):
            chosen.insert(0 if len(free) == problem.risk.dim else len(chosen), SubgradientLBFGS())
        return [LsBMRM(), *chosen, LsBMRM()]
    if central:
        first = len(free) > _FEW_FREE and not fits(Newton)
        chosen.insert(0 if first else len(chosen), InteriorPoint())
    if not chosen and _FEW_FREE < len(free) < problem.risk.dim and fits(Hybrid):
        chosen.append(Hybrid())
    elif (
        not chosen
        and not isinstance(problem.risk, LinearRisk)
        and len(free) < problem.risk.dim
        and fits(ProximalBundle)
    ):
        chosen.append(ProximalBundle())
    return [*chosen, LsBMRM(), LsBMRM()] if chosen else [LsBMRM()]


def _with_weights(problem: Problem) -> Problem:
    """Return a problem of few columns without a penalty as one of weights 0, which more solvers take; others as is."""
    regularizer = problem.regularizer
    if not isinstance(regularizer, Zero) or problem.risk.dim > _FEW_COLUMNS:
        return problem
    return Problem(problem.risk, L2(np.zeros(problem.risk.dim), regularizer.bounds), problem.lam)


class _Units:
    """Powers of two that bring all columns to about one size, where that helps; computed when first asked for."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @cached_property
    def c(self) -> Array | None:
        """None where columns have one size, where it is not known or does not matter."""
        problem = self._problem
        sizes = None if is_easy(problem) else problem.risk.sizes()
        if sizes is None:
            return None
        known = sizes[sizes > 0.0]
        uneven = _UNEVEN if sizes.size <= _FEW_COLUMNS else _UNEVEN_MANY
        if not known.size or known.max() <= uneven * known.min():
            return None
        return None if problem.regularizer.rescaled(np.ones(sizes.size)) is None else powers_of_two(sizes)
