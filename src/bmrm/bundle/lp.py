"""The master of the absolute-value regularizer: a linear program that grows by a row for each plane.

    min over xi, u, v >= 0 of  xi / lam + sum_j weights_j (u_j + v_j)   subject to   <a_i, u - v> + b_i <= xi

The objective is divided by lam so that HiGHS's absolute tolerances mean the same for every lam.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm.bundle.box import FreeBox
from bmrm.bundle.master import MasterSolution, lower_bound, on_simplex
from bmrm.bundle.planes import Array, Bundle
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.zero import Zero

_CELLS_WORTH_A_THREAD = 200_000


class L1Master:
    """Keeps the linear program and its basis while planes come and go."""

    def __init__(self, regularizer: L1 | Zero) -> None:
        self.regularizer = regularizer
        self.free = regularizer.free
        self._box = FreeBox(regularizer)
        self._program: Any = None
        self._ids: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._norms: Array = np.empty(0)

    def solve(self, bundle: Bundle, lam: float, upper: float) -> MasterSolution:
        """Solve from the basis kept; the bound comes from the rows' multipliers, made feasible first."""
        program = self._follow(bundle)
        program.changeColCost(0, 1.0 / lam)
        _run(program, cells=bundle.normals.size)
        solution = program.getSolution()
        d = bundle.dim
        values = np.asarray(solution.col_value)
        w = self.regularizer.clip(values[1 : 1 + d] - values[1 + d :])
        duals = -np.asarray(solution.row_dual)
        alpha = on_simplex(duals) if duals.max(initial=0.0) > 0.0 else on_simplex(bundle.multipliers)
        c, b = bundle.combine(alpha), float(alpha @ bundle.offsets)
        box: Array | float = np.inf
        if self.free.size:
            level = max(upper - bundle.floor, 0.0) / lam
            reach = np.where(self._norms > 0.0, self._norms * level if np.isfinite(level) else np.inf, 0.0)
            box = self._box.around(bundle, lam, upper, reach, alpha, c[self.free])
        lower = lower_bound(self.regularizer, lam, bundle, c, b, box)
        bundle.record(alpha)
        return MasterSolution(w, lower, self._box.open)

    def _follow(self, bundle: Bundle) -> Any:
        """Make the program's rows match the bundle's planes."""
        if self._program is None:
            self._program = _empty_program(self.regularizer, bundle.dim)
        kept = np.isin(self._ids, bundle.ids)
        gone = np.flatnonzero(~kept).astype(np.int32)
        if gone.size:
            self._program.deleteRows(gone.size, gone)
            self._ids, self._norms = self._ids[kept], self._norms[kept]
        for k in range(self._ids.size, len(bundle)):
            self._add_row(bundle.normals[k], float(bundle.offsets[k]))
            self._ids = np.append(self._ids, bundle.ids[k])
        return self._program

    def _add_row(self, a: Array, b: float) -> None:
        entries = np.flatnonzero(a)
        index = np.concatenate([[0], 1 + entries, 1 + a.size + entries]).astype(np.int32)
        value = np.concatenate([[-1.0], a[entries], -a[entries]])
        status = self._program.addRow(-np.inf, -b, index.size, index, value)
        if status.name == "kError":  # numbers too large for HiGHS: the plane is left out here, its row stays empty
            self._program.addRow(-np.inf, np.inf, 0, index[:0], value[:0])
        self._norms = np.append(self._norms, self.regularizer.reach(a, 1.0))


class ZeroMaster(L1Master):
    """The same without a penalty: w is kept in a cube, widened when the solution meets its side.

    The cube only says where to look next; the bound holds everywhere.
    """

    def __init__(self, regularizer: Zero) -> None:
        super().__init__(regularizer)
        lower, upper = (np.broadcast_to(side, regularizer.s.shape) for side in (regularizer.lower, regularizer.upper))
        self.free = np.flatnonzero(~np.isfinite(lower) | ~np.isfinite(upper))  # between two bounds the dual is finite
        self._box = FreeBox(regularizer, self.free)
        ends = np.concatenate([lower, upper])
        self._side = max(10.0, 2.0 * float(np.abs(ends[np.isfinite(ends)]).max(initial=0.0)))

    def solve(self, bundle: Bundle, lam: float, upper: float) -> MasterSolution:
        """Solve inside the cube; widen it for the next time where that was too narrow."""
        program, d = self._follow(bundle), bundle.dim
        least, most = _intervals(self.regularizer, d)
        columns = np.arange(1, 1 + 2 * d, dtype=np.int32)
        program.changeColsBounds(2 * d, columns, least, np.minimum(most, self._side))
        solution = super().solve(bundle, lam, upper)
        if np.abs(solution.w).max(initial=0.0) > 0.9 * self._side:
            self._side = min(10.0 * self._side, 1e15)
        return solution


def _intervals(regularizer: L1 | Zero, d: int) -> tuple[Array, Array]:
    """Return the ends of the intervals of u and v, w = u - v, within the bounds on w."""
    lower, upper = np.broadcast_to(regularizer.lower, d), np.broadcast_to(regularizer.upper, d)
    least = np.concatenate([np.maximum(lower, 0.0), np.maximum(-upper, 0.0)])
    return least, np.concatenate([np.maximum(upper, 0.0), np.maximum(-lower, 0.0)])


def _empty_program(regularizer: L1 | Zero, d: int) -> Any:
    import highspy

    program: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    program.setOptionValue("output_flag", False)
    program.setOptionValue("threads", 1)
    for tolerance in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        program.setOptionValue(tolerance, 1e-10)
    cost = np.concatenate([[1.0], np.tile(np.broadcast_to(regularizer.s, d), 2)])
    least, most = _intervals(regularizer, d)
    none = np.empty(0, np.int32)
    program.addCols(1 + 2 * d, cost, np.r_[-np.inf, least], np.r_[np.inf, most], 0, none, none, np.empty(0))
    return program


def _run(program: Any, cells: int) -> None:
    """Run HiGHS; large programs on a thread of their own, so that Ctrl-C stops them through HiGHS's callback."""
    if cells < _CELLS_WORTH_A_THREAD:
        program.run()
        return
    program.HandleUserInterrupt = True
    program.startSolve()
    try:
        while not program.wait(0.02)[0]:
            pass
    except KeyboardInterrupt:
        program.cancelSolve()
        while not program.wait(0.02)[0]:
            pass
        raise
    finally:
        program.HandleUserInterrupt = False
