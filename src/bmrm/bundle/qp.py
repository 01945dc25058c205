"""The master of the quadratic regularizer: a quadratic program on the simplex, solved in the dual.

    max over alpha >= 0, sum alpha = 1 of  <b, alpha> - 1/(2 lam) alpha' Q alpha,   Q = A S^-1 A'

with one equality row for each free coordinate: the planes' slopes in that direction must cancel. Each such row
has two slack variables, priced at the ends of an interval for the coordinate: the user's bounds, or an interval
that is widened when the solution meets its end. Multiplied by lam the quadratic part does not depend on lam, so
the factor that the solver keeps serves a whole path.

A proximal term kappa/2 |w - z|^2 (the norm that of the regularizer's weights) changes little: with v = w - u,
u = kappa z / (lam + kappa), it is the same program for lam + kappa and the planes' values at u.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._deadline import look
from bmrm._states import kept
from bmrm.bundle.box import FreeBox, quadratic_level, reach_of
from bmrm.bundle.master import MasterSolution, Memory, lower_bound, memory_of, on_simplex
from bmrm.bundle.planes import Array, Bundle
from bmrm.regularizers.base import Separable
from bmrm.regularizers.l2 import L2

_NO_COORDINATES: Array = np.empty(0)
_BLOCK = 2e8  # multiplications between two looks at the deadline: less than a tenth of a second


@kept
class _Program(Memory):
    """The quadratic program with its factor and active set, and the intervals of the free coordinates."""

    def __init__(self, regularizer: Separable) -> None:
        super().__init__(regularizer)
        self.free = regularizer.free
        self.inverse = inverse_weights(regularizer)
        self.reach = np.full(self.free.size, 10.0)  # half-widths of the intervals for the free coordinates
        self.box = FreeBox(regularizer)
        self.ids: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self.gram: list[Array] = []  # row k holds the products with planes 0 to k
        self.norms: Array = np.empty(0)
        self.slopes: Array = np.empty((0, self.free.size))  # in the free directions, as the program has them
        self.qp: _core.ActiveSetQp | None = None
        self.removals = 0

    def follow(self, bundle: Bundle) -> _core.ActiveSetQp:
        """Make the quadratic program's variables match the bundle's planes."""
        if self.qp is None or (self.removals != bundle.removals and not self._drop(bundle)):
            self._restart(bundle)
        if self.ids.size < len(bundle):
            self._add(bundle)
        self.removals = bundle.removals
        assert self.qp is not None
        return self.qp

    def held(self, free_part: Array) -> Array:
        """Return the free coordinates within their intervals, which are made wider where one comes near the end."""
        held: Array = np.maximum(np.minimum(free_part, self.reach), -self.reach)
        met = np.abs(held) > 0.9 * self.reach
        if met.any():
            self.reach = np.where(met, np.minimum(10.0 * self.reach, 1e15), self.reach)
        return held

    def _drop(self, bundle: Bundle) -> bool:
        """Remove the variables of planes that are gone; False if that cannot be done from where we stand."""
        assert self.qp is not None
        kept = np.isin(self.ids, bundle.ids)
        if not np.array_equal(self.ids[kept], bundle.ids[: int(kept.sum())]):
            return False
        gone = np.flatnonzero(~kept)
        if gone.size:
            slacks = 2 * self.free.size
            if np.any(self.qp.x[slacks + gone] > 0.0):
                return False
            self.qp.remove(slacks + gone)
            self.ids, self.norms, self.slopes = self.ids[kept], self.norms[kept], self.slopes[kept]
            self.gram = self._rows_of(kept)
        return True

    def _rows_of(self, kept: npt.NDArray[np.bool_]) -> list[Array]:
        """Return the Gram rows of these planes with each other."""
        return [self.gram[k][kept[: k + 1]] for k in np.flatnonzero(kept)]

    def _restart(self, bundle: Bundle) -> None:
        """Build the program anew and start it from the bundle's own multipliers."""
        kept = np.isin(self.ids, bundle.ids)
        same = np.array_equal(self.ids[kept], bundle.ids[: int(kept.sum())])
        known = self._rows_of(kept) if same else []
        self.qp = program_with_slacks(self.free.size)
        self.ids, self.norms, self.gram = np.empty(0, np.int64), np.empty(0), []
        self.slopes = np.empty((0, self.free.size))
        self._add(bundle, known)
        alpha = on_simplex(bundle.multipliers)
        self.qp.set_start(with_slacks(alpha, alpha @ self.slopes))

    def _add(self, bundle: Bundle, known: Sequence[Array] = ()) -> None:
        """Add the planes that are new to the program, some perhaps with known products."""
        assert self.qp is not None
        first, r, slopes = self.ids.size, self.free.size, without_noise(bundle, self.free)
        for k in range(first, len(bundle)):
            look()
            products = known[k] if k < len(known) else bundle.gram_row(k, self.inverse)
            self.gram.append(products)
            h, column = np.zeros(2 * r + k + 1), np.empty(1 + r)
            h[2 * r :], column[0], column[1:] = products, 1.0, slopes[k]
            self.qp.add(h, column)
        norms = [math.sqrt(max(products[-1], 0.0)) for products in self.gram[first:]]
        self.norms = np.concatenate([self.norms, norms])
        self.slopes = np.concatenate([self.slopes, slopes[first:]])
        self.ids = bundle.ids.copy()


class L2Master:
    """Solves the dual, warm: the program is kept with the bundle while planes come and go."""

    plane_copies: ClassVar[int] = 2

    def __init__(self, regularizer: L2) -> None:
        self.regularizer = regularizer

    def solve(self, bundle: Bundle, lam: float, upper: float) -> MasterSolution:
        """Solve the dual; return w = -A alpha / (lam weights) and the bound that alpha proves."""
        memory = memory_of(bundle, _Program, self.regularizer)
        program, r = memory.follow(bundle), memory.free.size
        linear = lam * np.concatenate([-memory.reach, -memory.reach, bundle.offsets])
        alpha = on_simplex(program.solve(linear)[2 * r :])
        free_part = program.multipliers()[1:] / lam if r else _NO_COORDINATES
        c, lower = self._bound(memory, bundle, lam, upper, alpha, free_part)
        if r and not program.optimal:
            for other in _second_tries(memory, bundle, lam, linear, alpha):
                slopes, bound = self._bound(memory, bundle, lam, upper, *other)
                if bound > lower:
                    c, lower, (alpha, free_part) = slopes, bound, other
        w = c * memory.inverse / -lam
        if r:
            w[memory.free] = memory.held(free_part)
        bundle.record(alpha)
        return MasterSolution(w, lower, memory.box.open)

    def solve_near(self, bundle: Bundle, lam: float, upper: float, z: Array, kappa: float) -> MasterSolution:
        """Solve with the term kappa/2 |w - z|^2; the bound is that of J without it, from the multipliers."""
        memory = memory_of(bundle, _Program, self.regularizer)
        program, r, total = memory.follow(bundle), memory.free.size, lam + kappa
        u = np.where(memory.inverse > 0.0, kappa / total * z, 0.0)
        linear = total * np.concatenate([-memory.reach, -memory.reach, bundle.offsets + bundle.products(u)])
        alpha = on_simplex(program.solve(linear)[2 * r :])
        free_part = program.multipliers()[1:] / total if r else _NO_COORDINATES
        c, lower = self._bound(memory, bundle, lam, upper, alpha, free_part)
        w = u - c * memory.inverse / total
        if r:
            w[memory.free] = memory.held(free_part)
        bundle.record(alpha)
        return MasterSolution(w, lower, memory.box.open)

    def _bound(
        self, memory: _Program, bundle: Bundle, lam: float, upper: float, alpha: Array, free_part: Array
    ) -> tuple[Array, float]:
        """Return the planes' combination and the bound of min J that it proves."""
        c, b = bundle.combine(alpha), float(alpha @ bundle.offsets)
        near: Array = c
        box: Array | float = np.inf
        if memory.free.size:
            near = np.zeros_like(c)
            near[memory.free] = np.clip(free_part, -memory.reach, memory.reach)

            def reach() -> Array:
                level = quadratic_level(bundle, lam, upper, memory.norms, (c, memory.inverse, b), memory.free)
                return reach_of(memory.norms, level)

            box = memory.box.around(bundle, lam, upper, reach, alpha, c[memory.free])
        return c, lower_bound(self.regularizer, lam, bundle, c, b, box, bundle.errors(alpha), upper, near)


def _second_tries(
    memory: _Program, bundle: Bundle, lam: float, linear: Array, alpha: Array
) -> Iterator[tuple[Array, Array]]:
    """Yield other solutions where the program went round in circles: nearly free, and exact from there."""
    program, r = memory.follow(bundle), memory.free.size
    H = products_of(bundle.normals * memory.inverse, bundle.normals)
    start, free_part = nearly_free(H, memory.slopes, linear[2 * r :], alpha, lam)
    yield start, free_part
    program.set_start(with_slacks(start, start @ memory.slopes))
    yield on_simplex(program.solve(linear)[2 * r :]), program.multipliers()[1:] / lam


def program_with_slacks(n_free: int) -> _core.ActiveSetQp:
    """Return a program with the simplex row, a row for each free coordinate, and that row's two slacks."""
    right = np.zeros(1 + n_free)
    right[0] = 1.0
    program = _core.ActiveSetQp(right)
    for i in range(2 * n_free):
        if i % 64 == 63:
            look()
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
        look()
        program.add(H[k, : k + 1], np.ones(1))
    program.set_start(start)
    alpha = on_simplex(program.solve(linear))
    return alpha, -(alpha @ slopes) / (lam * tiny)


def with_slacks(alpha: Array, slopes: Array) -> Array:
    """Return the feasible point of a program with slacks: they take up the slopes in the free directions."""
    return np.concatenate([np.maximum(slopes, 0.0), np.maximum(-slopes, 0.0), alpha])


def products_of(A: Array, B: Array) -> Array:
    """Return A B', in blocks of rows with a look at the deadline before each: BLAS itself cannot be interrupted."""
    rows = max(1, int(_BLOCK / max(B.size, 1)))
    out = np.empty((len(A), len(B)))
    for first in range(0, len(A), rows):
        look()
        np.matmul(A[first : first + rows], B.T, out=out[first : first + rows])
    return out


def without_noise(bundle: Bundle, free: npt.NDArray[np.intp]) -> Array:
    """Return the planes' slopes in the free directions, 0 where only rounding is left; the bound counts that in."""
    if not free.size:
        return np.empty((len(bundle), 0))
    slopes = bundle.normals.take(free, axis=1)
    size = np.abs(slopes)
    slopes[size <= 1e-13 * size.max(axis=0, initial=0.0)] = 0.0
    return slopes


def inverse_weights(regularizer: Separable) -> Array:
    """Return 1 / weights of the squares, 0 for free coordinates."""
    s = regularizer.parts[1]
    return np.divide(1.0, s, out=np.zeros_like(s), where=s > 0.0)
