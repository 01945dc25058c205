"""The master of squares with bounds on w or absolute values beside them: l2 with bounds, and the elastic net.

The dual is still a concave maximum over the simplex, but w(alpha) = clip(-soft(A alpha, lam u) / (lam v)), u and v
the weights of absolute values and squares, makes it piecewise quadratic. Each round solves the quadratic program of
the piece at hand (the coordinates at a bound or at 0 held there), then moves toward its solution as far as the true
dual grows; a few rounds reach the maximum.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bmrm._deadline import look
from bmrm._states import kept
from bmrm.bundle.box import FreeBox, quadratic_level, reach_of
from bmrm.bundle.master import MasterSolution, Memory, lower_bound, memory_of, on_simplex
from bmrm.bundle.planes import Array, Bundle
from bmrm.bundle.qp import inverse_weights, nearly_free, products_of, program_with_slacks, with_slacks, without_noise
from bmrm.regularizers.base import Separable
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l2 import L2

_MOST_ROUNDS = 60


@kept
class _Intervals(Memory):
    """The intervals of free coordinates: the bundle's multipliers are the warm start."""

    def __init__(self, regularizer: Separable) -> None:
        super().__init__(regularizer)
        free = regularizer.free
        # Half-widths; the intervals must meet the bounds.
        lower, upper = (np.broadcast_to(side, regularizer.s.shape)[free] if free.size else np.empty(0)
                        for side in (regularizer.lower, regularizer.upper))  # fmt: skip
        self.reach = np.maximum(10.0, 2.0 * np.maximum(lower, -upper))
        self.box = FreeBox(regularizer)


class PiecewiseMaster:
    """Maximizes the piecewise quadratic dual from the bundle's multipliers."""

    plane_copies: ClassVar[int] = 3

    def __init__(self, regularizer: L2 | ElasticNet) -> None:
        self.regularizer = regularizer
        self.free = regularizer.free
        self._inverse = inverse_weights(regularizer)
        self._absolute = regularizer.parts[0]

    def solve(self, bundle: Bundle, lam: float, upper: float) -> MasterSolution:
        """Maximize the dual from the bundle's multipliers; return w(alpha) and the bound."""
        reg, free = self.regularizer, self.free
        memory = memory_of(bundle, _Intervals, reg)
        lower_end = np.maximum(np.broadcast_to(reg.lower, bundle.dim)[free], -memory.reach)
        upper_end = np.minimum(np.broadcast_to(reg.upper, bundle.dim)[free], memory.reach)
        alpha = on_simplex(bundle.multipliers)
        c = bundle.combine(alpha)
        x = with_slacks(alpha, alpha @ without_noise(bundle, free))
        prices = np.concatenate([lower_end, -upper_end, np.zeros(alpha.size)])
        for _ in range(_MOST_ROUNDS):
            target, nu = self._model_solution(bundle, lam, x, c, prices)
            step = target - x
            towards = bundle.combine(step[2 * free.size :])
            t = self._best_step(bundle, lam, c, towards, prices, step)
            if t <= 0.0:
                break
            x, c = self._feasible(bundle, x + t * step), c + t * towards
            if t == 1.0 and float(np.abs(step).sum()) <= 1e-13:
                break
        alpha = on_simplex(x[2 * free.size :])
        c = bundle.combine(alpha)
        w = self._penalized_minimizer(c, lam)
        w[free] = np.clip(nu[1:] / lam, lower_end, upper_end)
        solution = MasterSolution(w, self._bound(bundle, memory.box, lam, upper, alpha, c, w), memory.box.open)
        met = np.abs(w[free]) > 0.9 * memory.reach
        memory.reach = np.where(met, np.minimum(10.0 * memory.reach, 1e15), memory.reach)
        bundle.record(alpha)
        return solution

    def _feasible(self, bundle: Bundle, x: Array) -> Array:
        """Return x with its multipliers on the simplex and its slacks taking up what is left of the free rows."""
        r = self.free.size
        alpha = on_simplex(x[2 * r :])
        slacks = np.maximum(x[: 2 * r], 0.0)
        rest = alpha @ without_noise(bundle, self.free) - slacks[:r] + slacks[r:]
        return np.concatenate([slacks + np.concatenate([np.maximum(rest, 0.0), np.maximum(-rest, 0.0)]), alpha])

    def _penalized_minimizer(self, c: Array, lam: float) -> Array:
        excess = np.sign(c) * np.maximum(np.abs(c) - lam * self._absolute, 0.0)
        w = np.clip(-excess * self._inverse / lam, self.regularizer.lower, self.regularizer.upper)
        w[self.free] = 0.0
        return w

    def _model_solution(self, bundle: Bundle, lam: float, x: Array, c: Array, prices: Array) -> tuple[Array, Array]:
        """Solve the quadratic program of the piece at hand; return its solution and multipliers."""
        r, reg = self.free.size, self.regularizer
        w = self._penalized_minimizer(c, lam)
        inside = (w > reg.lower) & (w < reg.upper) & (np.broadcast_to(self._inverse, w.shape) > 0.0)
        inside &= (w != 0.0) | (self._absolute == 0.0)
        scaled = bundle.normals[:, inside] * np.sqrt(np.broadcast_to(self._inverse, w.shape)[inside])
        H = products_of(scaled, scaled)
        program, slopes = program_with_slacks(r), without_noise(bundle, self.free)
        for k in range(len(bundle)):
            look()
            column = np.concatenate([[1.0], slopes[k]])
            program.add(np.concatenate([np.zeros(2 * r), H[k, : k + 1]]), column)
        program.set_start(x)
        linear = lam * prices
        linear[2 * r :] += lam * (bundle.offsets + bundle.products(w)) + H @ x[2 * r :]
        target, nu = program.solve(linear), program.multipliers()
        if r and not program.optimal:
            alpha, free_part = nearly_free(H, slopes, linear[2 * r :], on_simplex(x[2 * r :]), lam)
            target, nu = with_slacks(alpha, alpha @ slopes), np.concatenate([nu[:1], lam * free_part])
        return target, nu

    def _best_step(self, bundle: Bundle, lam: float, c: Array, towards: Array, prices: Array, step: Array) -> float:
        """Return the t in [0, 1] where the dual along the step is largest: bisection on its falling slope."""
        linear = float(prices @ step) + float(bundle.offsets @ step[2 * self.free.size :])
        penalized = np.where(np.broadcast_to(self._inverse, towards.shape) > 0.0, towards, 0.0)

        def slope(t: float) -> float:
            return linear + float(penalized @ self._penalized_minimizer(c + t * towards, lam))

        if slope(1.0) >= 0.0:
            return 1.0
        lower, upper = 0.0, 1.0
        for _ in range(50):
            middle = 0.5 * (lower + upper)
            lower, upper = (middle, upper) if slope(middle) > 0.0 else (lower, middle)
        return lower

    def _bound(
        self, bundle: Bundle, free_box: FreeBox, lam: float, upper: float, alpha: Array, c: Array, w: Array
    ) -> float:
        b = float(alpha @ bundle.offsets)
        box: Array | float = np.inf
        if self.free.size:

            def reach() -> Array:
                norms = np.sqrt((bundle.normals**2 * self._inverse).sum(axis=1))
                return reach_of(norms, quadratic_level(bundle, lam, upper, norms, (c, self._inverse, b), self.free))

            box = free_box.around(bundle, lam, upper, reach, alpha, c[self.free])
        return lower_bound(self.regularizer, lam, bundle, c, b, box, bundle.errors(alpha), upper, w)
