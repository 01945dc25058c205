"""The master of the quadratic regularizer: a quadratic program on the simplex, solved in the dual.

    max over alpha >= 0, sum alpha = 1 of  <b, alpha> - 1/(2 lam) alpha' Q alpha,   Q = A S^-1 A'

with one equality row for each free coordinate: the planes' slopes in that direction must cancel. Each such row
has two slack variables, priced at the ends of an interval for the coordinate: the user's bounds, or an interval
that is widened when the solution meets its end. Multiplied by lam the quadratic part does not depend on lam, so
the factor that the solver keeps serves a whole path.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm.bundle.box import FreeBox
from bmrm.bundle.master import MasterSolution, lower_bound, on_simplex
from bmrm.bundle.planes import Array, Bundle
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
        self._qp: _core.ActiveSetQp | None = None
        self._followed: tuple[Bundle, int] | None = None

    def solve(self, bundle: Bundle, lam: float, upper: float) -> MasterSolution:
        """Solve the dual, warm; return w = -A alpha / (lam weights) and the bound that alpha proves."""
        program = self._follow(bundle)
        r = self.free.size
        linear = lam * np.concatenate([-self._reach, -self._reach, bundle.offsets])
        alpha = on_simplex(program.solve(linear)[2 * r :])
        c, b = bundle.combine(alpha), float(alpha @ bundle.offsets)
        w = c * self._inverse / -lam
        box: Array | float = np.inf
        if r:
            w[self.free] = np.clip(program.multipliers()[1:] / lam, -self._reach, self._reach)
            self._reach = np.where(np.abs(w[self.free]) > 0.9 * self._reach, 10.0 * self._reach, self._reach)
            reach = self._norms * np.sqrt(2.0 * max(self._level(bundle, lam, upper, c, b), 0.0))
            box = self._box.around(bundle, lam, upper, reach, c[self.free])
        lower = lower_bound(self.regularizer, lam, bundle, c, b, box)
        bundle.record(alpha)
        return MasterSolution(w, lower)

    def _level(self, bundle: Bundle, lam: float, upper: float, slopes: Array, b: float) -> float:
        """Return a bound of Omega at the minimizer, given J(w) <= upper.

        With a floor, lam Omega(w) <= upper - floor. Without one, the combination of the planes takes its place:
        lam/2 z^2 - |c| z + b - |e| |v| <= upper for z = |w|, c and e its slopes in the penalized and the free
        part, and |v| <= k0 + k1 z by the planes; the largest z that satisfies this is the root of a quadratic.
        """
        if np.isfinite(bundle.floor):
            return (upper - bundle.floor) / lam
        if not np.isfinite(upper):
            return np.inf
        e = float(np.abs(slopes[self.free]).sum())
        k0, k1 = self._growth(bundle, upper) if e > 0.0 else (0.0, 0.0)
        c = float(np.sqrt(np.sum(slopes**2 * self._inverse))) + e * k1
        rest = upper - b + e * k0
        z = (c + np.sqrt(c * c + 2.0 * lam * max(rest, 0.0))) / lam
        return 0.5 * float(z) ** 2

    def _growth(self, bundle: Bundle, upper: float) -> tuple[float, float]:
        """Return k0, k1 with |v| <= k0 + k1 |w| for a single free coordinate v (inf if planes leave it open)."""
        if self.free.size != 1:
            return np.inf, np.inf
        slopes = bundle.normals[:, self.free[0]]
        pairs = []
        for side in (slopes > 0, slopes < 0):
            if not side.any():
                return np.inf, np.inf
            room = (upper - bundle.offsets[side]) / np.abs(slopes[side])
            best = int(np.argmin(room))
            pairs.append((max(0.0, room[best]), self._norms[side][best] / np.abs(slopes[side][best])))
        return max(p[0] for p in pairs), max(p[1] for p in pairs)

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
            self._ids, self._norms = self._ids[kept], self._norms[kept]
        return True

    def _restart(self, bundle: Bundle) -> None:
        """Build the program anew and start it from the bundle's own multipliers."""
        self._qp = program_with_slacks(self.free.size)
        self._ids, self._norms = np.empty(0, np.int64), np.empty(0)
        for k in range(len(bundle)):
            self._add(bundle, k)
        alpha = on_simplex(bundle.multipliers)
        slopes = np.array([self._without_noise(bundle, a) for a in bundle.normals[:, self.free]])
        self._qp.set_start(with_slacks(alpha, alpha @ slopes))

    def _without_noise(self, bundle: Bundle, slopes: Array) -> Array:
        """Return the slopes in the free directions, 0 where only rounding is left; the bound counts that in."""
        scale = np.abs(bundle.normals[:, self.free]).max(axis=0, initial=0.0)
        return np.where(np.abs(slopes) <= 1e-13 * scale, 0.0, slopes)

    def _add(self, bundle: Bundle, k: int) -> None:
        assert self._qp is not None
        a = bundle.normals[k]
        products = np.empty(k + 1)
        _core.dense(bundle.normals[: k + 1]).dot(a * self._inverse, products, bundle.n_threads)
        column = np.concatenate([[1.0], self._without_noise(bundle, a[self.free])])
        self._qp.add(np.concatenate([np.zeros(2 * self.free.size), products]), column)
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


def with_slacks(alpha: Array, slopes: Array) -> Array:
    """Return the feasible point of a program with slacks: they take up the slopes in the free directions."""
    return np.concatenate([np.maximum(slopes, 0.0), np.maximum(-slopes, 0.0), alpha])


def inverse_weights(regularizer: L2) -> Array:
    """Return 1 / weights, 0 for free coordinates."""
    s = regularizer.s
    return np.divide(1.0, s, out=np.zeros_like(s), where=s > 0.0)
