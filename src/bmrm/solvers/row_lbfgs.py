"""L-BFGS in the space of the rows, for data with more columns than rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from bmrm import _core
from bmrm._states import kept
from bmrm._traits import Trait
from bmrm.bundle.charges import Errors, charged_dual
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk
from bmrm.risks.normal_error import UNIT, norm_of, roundings
from bmrm.solvers.base import Solver, Start, Step
from bmrm.solvers.row_pairs import Pairs, SlopePlanes

_FALLEN = 0.1  # of the gap at the last step: then the next one is due


@dataclass(frozen=True)
class RowLBFGS(Solver, name="row_lbfgs"):
    """Limited-memory BFGS whose vectors are combinations of rows, for smooth losses of rows and l2.

    Started at w_0, all its vectors are v = S^-1 X'u, X with S w_0 as one more row, and <u', X v> = <v', S v> is the
    inner product of two of them. So each is kept as u and X v, one number for each row; columns are met in two
    products only::

        repeat
            l = slopes of the loss at f = X w,   gamma = lam omega + l,   w = S^-1 X' omega
            g = S^-1 X' gamma,   G = X g                              the gradient of J in the norm of S: two products
            keep the plane of l, whose normal has the image G - lam f
            (u, X d) = -(two-loop recursion) (gamma, G)               in coefficients
            omega, f += t (u, X d)                                    t exact, from the scores
            if the estimated gap has fallen: w, f and the normal of the best combination of planes anew

    What is known of the gap in between are estimates, by inner products of combined vectors; the bounds yielded are
    computed from w and from the combination of slopes themselves, which costs three products.

    Parameters
    ----------
    memory : int
        Number of pairs kept.
    planes : int
        Number of planes kept for the bound.
    patience : int
        Iterations after which a step is due in any case.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0, 0.0, 2.0], [-1.0, 1.0, 0.0]], [1, -1], bmrm.losses.Logistic())
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), "row_lbfgs").converged
    True

    References
    ----------
    T07 section 4.2, for the bound. W. Chen, Z. Wang, J. Zhou, Large-scale L-BFGS using MapReduce, 2014, for the
    recursion in coefficients.
    """

    memory: int = 30
    planes: int = 15
    patience: int = 20

    needs = frozenset({Trait.SMOOTH_RISK, Trait.CURVED_ROWS, Trait.QUADRATIC})
    refuses = frozenset({Trait.BOUNDS, Trait.UNBOUNDED_RISK, Trait.FREE_COORDINATES})

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield the start, then a step each time the gap has fallen; end when a gradient step makes no progress."""
        run = _Run(problem, start, self)
        if start.memory is None:
            yield run.step(start)
        while run.advance_until_due(start.tol, self.patience):
            yield run.step(start)
        yield replace(run.step(start), ended=True)


@kept
@dataclass
class _State:
    """All that a run needs to go on."""

    origin: Array  # w_0
    omega: Array
    f: Array  # X w, and <S w_0, w>
    pairs: Pairs
    planes: SlopePlanes
    best: Array
    upper: float = np.inf
    lower: float = -np.inf
    gap: float = np.inf  # at the last step
    gradient: tuple[Array, Array] | None = None  # gamma and G, where they are known and the plane is kept


class _Run:
    """One run: the state, and what follows from it at the current point."""

    def __init__(self, problem: Problem, start: Start, settings: RowLBFGS) -> None:
        self.problem, self.risk, self.lam = problem, cast(LinearRisk, problem.risk), problem.lam
        s = np.broadcast_to(cast(Separable, problem.regularizer).s, (self.risk.dim,))
        self.s: Array | None = None if np.all(s == 1.0) else s
        n = self.risk.design.n_scores + 1
        self.n_planes = settings.planes
        pairs = Pairs(settings.memory, n, self.risk.n_threads)
        self.state: _State = start.memory or _State(
            start.w, np.zeros(n), np.zeros(n), pairs, SlopePlanes(settings.planes), start.w
        )
        self.moved = bool(self.state.origin.any())
        if start.memory is None and self.moved:
            self.state.omega[-1] = 1.0
            self.state.f = self._push(start.w)
        self._look()

    def _pull(self, u: Array) -> Array:
        """Return S^-1 X'u: one product."""
        v = self.risk.pull_back(u[:-1], float(np.sum(u[:-1])))
        if self.s is not None:
            v /= self.s
        return v + u[-1] * self.state.origin if self.moved else v

    def _push(self, v: Array) -> Array:
        """Return X v and <S w_0, v>: one product."""
        self.risk.products += 1
        last = 0.0
        if self.moved:
            last = _core.inner(self.state.origin, v if self.s is None else self.s * v)
        return np.append(self.risk.design.dot(v), last)

    @property
    def scores(self) -> Array:
        """X w + offset."""
        f, offset = self.state.f[:-1], self.risk.offset
        return f if offset is None else f + offset

    def _look(self) -> None:
        """Evaluate the loss at the scores."""
        omega, f = self.state.omega, self.state.f
        self.value, slopes, _ = self.risk.loss_and_slopes(self.scores)
        self.slopes = np.append(slopes, 0.0)
        self.upper = 0.5 * self.lam * _core.inner(omega, f) + self.value

    def advance_until_due(self, tol: float, patience: int) -> bool:
        """Iterate until the estimated gap has fallen; False if J falls no longer."""
        state = self.state
        asked = tol * abs(state.upper)
        due = max(_FALLEN * state.gap, 0.95 * asked if state.gap > asked else 0.0)
        for _ in range(patience):
            if state.gradient is None:
                gamma = self.lam * state.omega + self.slopes
                g = self._push(self._pull(gamma))
                state.gradient = gamma, g
                state.planes.add(self.slopes, g - self.lam * state.f, self._offset())
                if self.upper - max(self.risk.floor, state.planes.solve(self.lam)) <= due:
                    return True
            if not (self._descend(*state.gradient) or (state.pairs.clear() and self._descend(*state.gradient))):
                return False
            state.gradient = None
        return True

    def _offset(self) -> float:
        """Return that of the plane of the slopes, less the rounding in it; it touches at whatever scores."""
        size = abs(self.value) + _core.inner_of_sizes(self.slopes, self.state.f)
        rounding = (8.0 + roundings(self.slopes.size)) * UNIT * size
        return self.value - _core.inner(self.slopes, self.state.f) - rounding

    def _descend(self, gamma: Array, g: Array) -> bool:
        """Move to the minimum along the quasi-Newton direction; False if J does not fall."""
        state, risk, before = self.state, self.risk, self.upper
        u, along = state.pairs.direction(gamma, g)
        line = risk.line(self.scores, along[:-1])
        p, q = self.lam * _core.inner(state.omega, along), self.lam * _core.inner(u, along)
        t = _core.minimize_on_line([line], p, q, 1.0, risk.n_threads)[0]
        here = state.omega, state.f
        state.omega, state.f = state.omega + t * u, state.f + t * along
        self._look()
        if self.upper < before:
            state.pairs.propose(t * u, t * along, gamma, g)
            return True
        state.omega, state.f = here
        self._look()
        return False

    def step(self, start: Start) -> Step:
        """Return what is proved by w itself and by the slopes of the best combination."""
        state = self.state
        w = state.origin
        if state.omega[:-1].any():
            w = self._pull(state.omega)
            state.f = self._push(w)
            self._look()
        objective = self.lam * self.problem.regularizer.value(w) + self.value
        if objective < state.upper:
            state.best, state.upper = w, objective
        state.lower = max(state.lower, self._proved())
        state.gap = state.upper - state.lower
        return Step(state.best, state.upper, state.lower, start.bundle, state)

    def _proved(self) -> float:
        """Return the bound of the planes' best combination: one product."""
        slopes, offset = self.state.planes.combined()
        if slopes is None:
            return self.risk.floor
        a = self.risk.pull_back(slopes[:-1], float(np.sum(slopes[:-1])))
        error = self.risk.normal_error
        assert error is not None
        errors = Errors.of(error, norm_of(slopes), self.n_planes)
        charged = charged_dual(self.problem.regularizer, self.lam, a, offset, np.inf, errors, self.state.upper, a)
        return max(self.risk.floor, charged.bound)
