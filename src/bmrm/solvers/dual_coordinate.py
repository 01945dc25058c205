"""Dual coordinate descent: one row at a time, with a gap that comes for free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmrm import linesearch
from bmrm._deadline import look
from bmrm._states import kept
from bmrm._traits import Trait
from bmrm.bundle.charges import worth
from bmrm.bundle.master import master_for
from bmrm.bundle.planes import Bundle
from bmrm.losses import HierarchicalHinge, Loss, MultilabelHinge
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array
from bmrm.risks.class_dual import ClassDual
from bmrm.risks.dual import Dual, DualPoint, DualRows
from bmrm.risks.joint_dual import LabelDual, TreeDual
from bmrm.risks.linear import LinearRisk
from bmrm.solvers.base import Solver, Start, Step, new_bundle, solve_master
from bmrm.solvers.bounds import FlatBound
from bmrm.solvers.held_constants import FIRST, FIXED, HeldConstants

_STRIDE = 0xD1342543DE82EF95  # between the keys of two epochs
_FEWEST = 4  # epochs whose w are worth a mean
_SAMPLED = 2  # entries visited for each coordinate, before w is added to that mean again
_RIGHT, _WRONG = 2.0, 4.0  # the gap over its estimate: up to here rows were rightly left out, from there wrongly
_BOLDEST = 0.05
# Fewer checks where rows on kinks are few and epochs over them short (hinge to 1e-6, on mnist, covtype_scaled, farm_ads
# and 20news_bigram: 1.1 times faster); smooth losses gain nothing.
_MOST_TRUST = 0.2
_SEARCH = 1e-3  # of the slope, left where a search ends
# Epochs before the first check of rows with constants, which have hardly moved before: after 1 there is a check more,
# which costs as much as 2 epochs (cellcycle, 351 constants, lam 1e-2, to 1e-2).
_FIRST_CHECK = 3
_TINY = 1e-300
_MOST_EPOCHS = 10_000  # for each pass: one may visit rows without entries only
_GOAL = 0.9  # of the gap asked for: an estimate as small is worth a check


@kept
@dataclass
class _State:
    """All that a run needs to go on."""

    point: DualPoint
    center: Array  # of the free coordinates; 0 elsewhere
    best: Array
    scores: Array | None  # of the best w
    upper: float
    lower: float
    gap: float  # at the last check
    total: Array | None = None  # of `count` of the w since the last check
    reach: float = np.inf
    caution: float = 1.0  # of the largest movement: rows that far from a kink are left out
    trust: float = 1.0  # of the fraction that the gap must fall to: less where estimates were right
    epochs: int = 0
    held: HeldConstants | None = None  # the constants of several scores
    key: int = 0  # of the orders
    done: bool = False
    count: int = 0

    def add(self) -> None:
        """Add w to the total."""
        w = self.point.w
        if self.total is None:
            self.total = w.copy()
        elif self.count == 0:
            self.total[:] = w
        else:
            self.total += w
        self.count += 1

    def fallen(self, estimate: float, share: float, goal: float) -> bool:
        """Whether the gap of the bound, to go by the estimate, is the one asked for or a share of the last one."""
        held = self.held
        if held is None:
            return estimate <= max(share * self.gap, goal)
        if self.epochs < _FIRST_CHECK:
            return False
        lag = held.lag(self.point.w, self.center)
        return estimate + lag <= share * (self.gap + held.excess) or held.ahead * estimate + lag <= goal

    def offer(self, w: Array, scores: Array, objective: float) -> None:
        """Keep w, which nobody changes, if it is the best so far."""
        if objective < self.upper:
            self.best, self.scores, self.upper = w, scores, objective


@dataclass(frozen=True)
class DualCoordinate(Solver, name="dual_coordinate"):
    """Dual coordinate descent (LIBLINEAR's method), for every compiled loss of rows and for the multiclass hinge loss.

    Each row has a slope s_i; w = -S^-1 X'(p s) / lam follows. The loop::

        repeat
            for each active row i in random order, a few neighbors at a time
                f = <x_i, w> + offset_i,   q = p_i |x_i|^2 / lam
                z, s_i' = prox of q l at f + q s_i                       the maximum over s_i
                w -= p_i (s_i' - s_i) S^-1 x_i / lam,   s_i = s_i'
                estimate += p_i (l(f) - s_i f - b_i)                      b_i = l(z) - s_i z = -l*(s_i)
                leave the row out if l is linear around f, as far as the rows' own steps go
            if the estimate is a fraction of the last gap: look at all rows, yield J(w) and the dual value; the best w
                is the last, or the lowest on the line from the best one to the mean of those since the last look

    For `multiclass_hinge` it is the sequential dual method: a row has theta_i on the simplex of the classes, its slopes
    are theta_i - e_y, the maximum over theta_i is the projection of theta_i + (f + Delta(y)) / q, b_i is <theta_i,
    Delta(y)>, and a row is left out where theta_i is a vertex whose class leads by more than the steps go.

    Most steps are far shorter than the longest one, so that rows may be left out sooner: half as far from a kink after
    each check whose gap was about what was estimated, and twice as far after one that found many rows left out wrongly.
    With kinks in the loss the next check then comes later, at half of the fraction and down to a fifth of it.

    The slopes are a plane of the risk at any time, which proves the bound. An epoch costs a pass over the active rows,
    a check half a pass. Free coordinates get a quadratic penalty around a center that moves to w after each check
    (the method of multipliers); the bound then comes from the bundle's master problem.

    Parameters
    ----------
    fraction : float
        By how much the estimated gap must have fallen since the last check of all rows, at first.
    passes : float
        Passes over the data after which all rows are checked in any case.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "dual_coordinate").converged
    True

    References
    ----------
    M09 (LIBLINEAR). S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin, A sequential dual method for
    large scale multi-class linear SVMs, 2008.
    """

    fraction: float = 0.25
    passes: float = 8.0

    needs = frozenset({Trait.DUAL_ROWS, Trait.QUADRATIC})
    refuses = frozenset({Trait.BOUNDS})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield the start and one step for each check of all rows; end when no slope changes any more."""
        rows = _dual_rows(problem)
        state: _State = start.memory or _begin(problem, rows, start)
        bound = _Bound(problem, rows, start.bundle)
        if state.held is not None:
            state.held.hold(rows, state.held.growth)
        elif bound.constants.size:
            state.held = HeldConstants(bound.constants, rows.weights[bound.constants])
        if start.memory is None and np.isfinite(state.upper):
            yield Step(state.best, state.upper, state.lower, bound.bundle, state)
        while not state.done:
            estimate = self._descend(rows, state, _GOAL * start.tol * abs(state.upper))
            _verify(problem, rows, bound, state, estimate)
            slopes = state.point.s if state.point.b.size else None  # of one score for each row
            yield Step(state.best, state.upper, state.lower, bound.bundle, state, slopes=slopes)

    def after_cut(self, problem: Problem, memory: _State) -> _State:
        """Return the state with all its slopes; w is computed anew before it proves anything."""
        point = memory.point
        point.active[:] = np.arange(point.active.size)
        point.n_active, point.error = point.active.size, np.inf
        memory.done, memory.count = False, 0
        return memory

    def _descend(self, rows: Dual, state: _State, goal: float) -> float:
        """Run epochs until the estimated gap has fallen, or is the one asked for; return it.

        The centers of the constants of several scores move after each epoch.
        """
        work, unsampled = 0.0, 0
        while True:  # at most _MOST_EPOCHS for each pass
            look()  # an epoch of few rows does not
            state.epochs += 1
            key = (state.key + state.epochs * _STRIDE) % 2**64
            everything = state.point.n_active == state.point.active.size
            epoch = rows.epoch(state.point, key, state.reach)
            state.reach = state.caution * epoch.movement
            state.done = everything and not epoch.changed
            work += max(epoch.entries, rows.n_entries / _MOST_EPOCHS)  # active rows may be without entries
            unsampled += epoch.entries
            if unsampled >= _SAMPLED * state.point.w.size:  # adding up must not cost what the epochs do
                state.add()
                unsampled = 0
            fallen = state.fallen(epoch.estimate, self.fraction * state.trust, goal)
            if fallen or not epoch.changed or work >= self.passes * rows.n_entries:
                return epoch.estimate
            if state.held is not None:
                state.reach += state.held.recenter(rows, state.point, state.center, epoch.estimate)


class _Bound:
    """The proven lower bound of a dual point: its own value, or by the master where coordinates are free.

    If those are the constants of several scores, the bound is that of the same plane after it was made level.
    """

    def __init__(self, problem: Problem, rows: Dual, bundle: Bundle | None) -> None:
        self.problem, self.rows, self.bundle = problem, rows, bundle
        self.free = Trait.FREE_COORDINATES in problem.traits
        self.constants: npt.NDArray[np.intp] = np.empty(0, np.intp)  # of several scores, if nothing else is free
        self._flat: FlatBound | None = None
        if self.free:
            risk, regularizer = problem.risk, problem.regularizer
            assert isinstance(regularizer, Separable)
            self.free_coordinates = np.broadcast_to(regularizer.s, (risk.dim,)) == 0.0
            self.bundle = bundle or new_bundle(problem, 30)
            if tuple(regularizer.free) == risk.unpenalized:
                self._flat = FlatBound(problem)
                if isinstance(risk, LinearRisk) and risk.vectors is not None:
                    self.constants = regularizer.free

    @property
    def needs_normal(self) -> bool:
        """Whether it takes the normal of the point's own plane, not of a level one."""
        return self.free and not self.constants.size

    def __call__(self, point: DualPoint, offset: float, rounding: float, a: Array | None, upper: float) -> float:
        lam = self.problem.lam
        if not self.free:
            value = offset - 0.5 * lam * point.length**2
            length = point.length + point.error + self.rows.product_error(point, worth(value, upper))
            return offset - rounding - 0.5 * lam * length * length * (1.0 + 1e-15 * point.w.size)
        assert self.bundle is not None
        level = None if self._flat is None else self.rows.levelled(point)
        if self._flat is not None and level is not None:
            return self._flat.of(self.bundle, level.a, level.b - rounding, level.slopes, point.w, upper)
        assert a is not None
        self.bundle.add_plane(a, offset - rounding, point.steepness)
        master = master_for(self.problem.regularizer)  # a new one each time: resumed runs are the same
        return solve_master(self.problem, master, self.bundle, upper, point.w).lower


def _dual_rows(problem: Problem) -> Dual:
    risk, regularizer = problem.risk, problem.regularizer
    assert isinstance(risk, LinearRisk)
    assert isinstance(regularizer, Separable)
    s = regularizer.s
    if risk.vectors is None:
        return DualRows(risk, np.where(s > 0.0, s, min(1.0, 0.01 / problem.lam)), problem.lam)
    kinds: dict[type[Loss], type[Dual]] = {MultilabelHinge: LabelDual, HierarchicalHinge: TreeDual}
    kind = kinds.get(type(risk.loss), ClassDual)
    if Trait.FREE_COORDINATES in problem.traits:
        square = problem.lam * _largest_cost(risk.loss) * _mean_square(risk)
        s = np.where(s > 0.0, s, (FIXED if kind is ClassDual else FIRST) / max(np.sqrt(square), _TINY))
    return kind(risk, s, problem.lam)


def _largest_cost(loss: Loss) -> float:
    """Return the largest cost of a mistake; of distances in a tree a bound, as all of them take long to compute."""
    delta = getattr(loss, "delta", None)
    if isinstance(loss, HierarchicalHinge) and delta is None:
        return 2.0 * float(loss.tree.on_paths().sum(axis=1).max())
    return float(np.max(delta)) if delta is not None else float(getattr(loss, "margin", 1.0))


def _mean_square(risk: LinearRisk) -> float:
    """Return the mean of |x_i|^2."""
    return risk.design.matrix.square_sum(risk.n_threads) / risk.design.n_rows


def _begin(problem: Problem, rows: Dual, start: Start) -> _State:
    """Start from slopes next to 0, or from those of the loss at w if their dual value is better."""
    lam, regularizer = problem.lam, problem.regularizer
    at_start = problem.risk.at(start.w)
    upper = lam * regularizer.value(start.w) + at_start.value
    point = rows.flat()
    if at_start.remembered.any() and start.w.any():  # the scores of w = 0 are read faster than w, if columns are many
        other = rows.near(at_start.remembered)
        if rows.value(other) > rows.value(point):
            point = other
    zero = np.zeros(start.w.size)
    key = int(np.random.SeedSequence(start.seed).generate_state(1, np.uint64)[0])
    return _State(point, zero, start.w, at_start.remembered, upper, -np.inf, np.inf, key=key)


def _verify(problem: Problem, rows: Dual, bound: _Bound, state: _State, estimate: float) -> None:
    """Compute J(w) and the bound with true scores; compute w anew where its rounding errors begin to matter."""
    point, lam = state.point, problem.lam
    a = None
    if bound.needs_normal or lam * point.error * point.length > 0.01 * estimate:
        a = rows.renew(point, state.center)
    check = rows.check(point, state.reach)
    objective = lam * problem.regularizer.value(point.w) + check.value
    state.offer(check.w, check.scores, objective)
    if state.total is not None and state.count >= _FEWEST:
        line = problem.risk.at(state.best, state.scores).toward(state.total / state.count)
        found = line.at(linesearch.minimize(problem, line, accuracy=_SEARCH))
        state.offer(found.w, found.remembered, lam * problem.regularizer.value(found.w) + found.value)
    state.count = 0
    state.lower = max(state.lower, bound(point, check.offset, check.rounding, a, state.upper))
    state.gap = check.gap
    if state.held is not None:
        state.held.note(point, state.center, estimate, check.gap, min(state.upper - state.lower, abs(state.upper)))
    right = check.gap <= _RIGHT * estimate
    state.trust = max(0.5 * state.trust, _MOST_TRUST) if right and Trait.CURVATURE not in problem.traits else 1.0
    if right:
        state.caution = max(0.5 * state.caution, _BOLDEST)
    elif check.gap > _WRONG * estimate:
        state.caution = min(2.0 * state.caution, 1.0)
    if state.held is not None:
        moves = state.held.recenter(rows, point, state.center, estimate) > 0.0
    elif bound.free:
        moved = np.where(bound.free_coordinates, point.w - state.center, 0.0)
        state.center = np.where(bound.free_coordinates, point.w, 0.0)
        point.w += moved
        moves = bool(moved.any())
    if bound.free:
        point.n_active = point.active.size
        state.done = state.done and not moves
