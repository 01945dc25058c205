"""The master of the quadratic regularizer: a quadratic program on the simplex, solved in the dual.

    max over alpha >= 0, sum alpha = 1 of  <b, alpha> - 1/(2 lam) alpha' Q alpha,   Q = A S^-1 A'

with one equality row for each free coordinate: the planes' slopes in that direction must cancel. Each such row
has two slack variables, priced at the ends of an interval for the coordinate: the user's bounds, or an interval
that is widened when the solution meets its end. Multiplied by lam the quadratic part does not depend on lam, so
the factor that the solver keeps serves a whole path.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm.bundle.box import FreeBox, quadratic_level, reach_of
from bmrm.bundle.master import MasterSolution, lower_bound, on_simplex
from bmrm.bundle.planes import Array, Bundle
from bmrm.regularizers.base import Separable
from bmrm.regularizers.l2 import L2


class L2Master:
    """Keeps the quadratic program's factor and active set while planes come and go."""

    def __init__(self, regularizer: L2) -> None:
        self.regularizer = regularizer
        self.free = regularizer.free
        self._inverse = inverse_weights(regularizer)
        self._reach = np.full(self.free.size, 10.0)  # half-widths of the intervals for the free coordinates
        self._box = FreeBox(regularizer)
        self._ids: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._norms: Array = np.empty(0)
        self._slopes: Array = np.empty((0, self.free.size))  # in the free directions, as the program has them
        self._qp: _core.ActiveSetQp | None = None
        self._followed: tuple[Bundle, int] | None = None

    def solve(self, bundle: Bundle, lam: float, upper: float) -> MasterSolution:
        """Solve the dual, warm; return w = -A alpha / (lam weights) and the bound that alpha proves."""
        program = self._follow(bundle)
        r = self.free.size
        linear = lam * np.concatenate([-self._reach, -self._reach, bundle.offsets])
        alpha = on_simplex(program.solve(linear)[2 * r :])
        free_part = program.multipliers()[1:] / lam
        lower = self._bound(bundle, lam, upper, alpha)
        if r and not program.optimal:
            for other in self._second_tries(bundle, lam, linear, alpha):
                bound = self._bound(bundle, lam, upper, other[0])
                if bound > lower:
                    lower, (alpha, free_part) = bound, other
        w = bundle.combine(alpha) * self._inverse / -lam
        w[self.free] = np.clip(free_part, -self._reach, self._reach)
        self._reach = np.where(
            np.abs(w[self.free]) > 0.9 * self._reach, np.minimum(10.0 * self._reach, 1e15), self._reach
        )
        bundle.record(alpha)
        return MasterSolution(w, lower, self._box.open)

    def _bound(self, bundle: Bundle, lam: float, upper: float, alpha: Array) -> float:
        """Return the bound of min J that the multipliers prove."""
        c, b = bundle.combine(alpha), float(alpha @ bundle.offsets)
        box: Array | float = np.inf
        if self.free.size:
            sizes = float(np.sqrt(np.sum(c * c * self._inverse))), float(np.abs(c[self.free]).sum()), b
            level = quadratic_level(bundle, lam, upper, self._norms, sizes, self.free)
            box = self._box.around(bundle, lam, upper, reach_of(self._norms, level), alpha, c[self.free])
        return lower_bound(self.regularizer, lam, bundle, c, b, box)

    def _second_tries(self, bundle: Bundle, lam: float, linear: Array, alpha: Array) -> Iterator[tuple[Array, Array]]:
        """Yield other solutions where the program went round in circles: nearly free, and exact from there."""
        program, r = self._follow(bundle), self.free.size
        H = (bundle.normals * self._inverse) @ bundle.normals.T
        start, free_part = nearly_free(H, self._slopes, linear[2 * r :], alpha, lam)
        yield start, free_part
        program.set_start(with_slacks(start, start @ self._slopes))
        yield on_simplex(program.solve(linear)[2 * r :]), program.multipliers()[1:] / lam

    def _follow(self, bundle: Bundle) -> _core.ActiveSetQp:
        """Make the quadratic program's variables match the bundle's planes."""
        if self._qp is None or (self._followed != (bundle, bundle.removals) and not self._drop(bundle)):
            self._restart(bundle)
        for k in range(self._ids.size, len(bundle)):
            self._add(bundle, k)
        self._followed = (bundle, bundle.removals)
        assert self._qp is not None
        return self._qp

    def _drop(self, bundle: Bundle) -> bool:
        """Remove the variables of planes that are gone; False if that cannot be done from where we stand."""
        assert self._qp is not None
        kept = np.isin(self._ids, bundle.ids)
        if not np.array_equal(self._ids[kept], bundle.ids[: int(kept.sum())]):
            return False
        gone = np.flatnonzero(~kept)
        if gone.size:
            slacks = 2 * self.free.size
            if np.any(self._qp.x[slacks + gone] > 0.0):
                return False
            self._qp.remove(slacks + gone)
            self._ids, self._norms, self._slopes = self._ids[kept], self._norms[kept], self._slopes[kept]
        return True

    def _restart(self, bundle: Bundle) -> None:
        """Build the program anew and start it from the bundle's own multipliers."""
        self._qp = program_with_slacks(self.free.size)
        self._ids, self._norms = np.empty(0, np.int64), np.empty(0)
        self._slopes = np.empty((0, self.free.size))
        for k in range(len(bundle)):
            self._add(bundle, k)
        alpha = on_simplex(bundle.multipliers)
        self._qp.set_start(with_slacks(alpha, alpha @ self._slopes))

    def _add(self, bundle: Bundle, k: int) -> None:
        assert self._qp is not None
        a = bundle.normals[k]
        products = np.empty(k + 1)
        _core.dense(bundle.normals[: k + 1]).dot(a * self._inverse, products, bundle.n_threads)
        slopes = without_noise(bundle, self.free)[k]
        self._slopes = np.vstack([self._slopes, slopes])
        self._qp.add(np.concatenate([np.zeros(2 * self.free.size), products]), np.concatenate([[1.0], slopes]))
        self._ids = np.append(self._ids, bundle.ids[k])
        self._norms = np.append(self._norms, np.sqrt(max(products[k], 0.0)))


def program_with_slacks(n_free: int) -> _core.ActiveSetQp:
    """Return a program with the simplex row, a row for each free coordinate, and that row's two slacks."""
    right = np.zeros(1 + n_free)
    right[0] = 1.0
    program = _core.ActiveSetQp(right)
    for i in range(2 * n_free):
        column = np.zeros(1 + n_free)
        column[1 + i % n_free] = -1.0 if i < n_free else 1.0
        program.add(np.zeros(i + 1), column)
    return program


def nearly_free(H: Array, slopes: Array, linear: Array, start: Array, lam: float) -> tuple[Array, Array]:
    """Solve with a tiny penalty in place of the equality rows; return the multipliers and the free coordinates.

    At a degenerate point of several free coordinates the active-set method may go round in circles. This program
    has the simplex row only and is solved without fail; what the penalty leaves of the slopes is charged to the
    bound like any other residue.
    """
    tiny = 1e-10
    program = program_with_slacks(0)
    H = H + slopes @ slopes.T / tiny
    for k in range(len(H)):
        program.add(H[k, : k + 1], np.ones(1))
    program.set_start(start)
    alpha = on_simplex(program.solve(linear))
    return alpha, -(alpha @ slopes) / (lam * tiny)


def with_slacks(alpha: Array, slopes: Array) -> Array:
    """Return the feasible point of a program with slacks: they take up the slopes in the free directions."""
    return np.concatenate([np.maximum(slopes, 0.0), np.maximum(-slopes, 0.0), alpha])


def without_noise(bundle: Bundle, free: npt.NDArray[np.intp]) -> Array:
    """Return the planes' slopes in the free directions, 0 where only rounding is left; the bound counts that in."""
    slopes = bundle.normals[:, free]
    if not free.size:
        return slopes
    scale = np.abs(slopes).max(axis=0, initial=0.0)
    return np.where(np.abs(slopes) <= 1e-13 * scale, 0.0, slopes)


def inverse_weights(regularizer: Separable) -> Array:
    """Return 1 / weights of the squares, 0 for free coordinates."""
    s = regularizer.parts[1]
    return np.divide(1.0, s, out=np.zeros_like(s), where=s > 0.0)
