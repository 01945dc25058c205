"""The master of the absolute-value regularizer: a linear program that grows by a row for each plane.

    min over xi, u, v >= 0 of  xi / lam + sum_j weights_j (u_j + v_j)   subject to   <a_i, u - v> + b_i <= xi

The tolerances of HiGHS are absolute, and it takes entries below 1e-9 for 0. So it is given the program in other
units, all of them powers of two, which round nothing: the columns u_j, v_j such that their largest slopes are
about 1, the rows such that the offsets are, the costs such that most of them are.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bmrm._deadline import look, seconds_left
from bmrm._states import kept
from bmrm.bundle.box import FreeBox
from bmrm.bundle.master import MasterSolution, Memory, lower_bound, memory_of, on_simplex
from bmrm.bundle.planes import Array, Bundle
from bmrm.regularizers.base import Separable
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.zero import Zero

_CELLS_WORTH_A_THREAD = 200_000
_AT_ONCE = 0.1  # seconds in which a smaller program should be done
_DRIFT = 2.0**12  # how far the largest slope of a column may get from 1 before the units are chosen anew


@kept
class _Program(Memory):
    """The linear program, its units and its basis.

    Every solve starts from (rows, basis) and nothing else that HiGHS may remember, so that a program made anew
    from a copy goes the same way.
    """

    def __init__(self, regularizer: Separable) -> None:
        super().__init__(regularizer)
        self.free = regularizer.free
        self.box = FreeBox(regularizer)
        self.side = np.inf  # of the cube that w is kept in
        self.ids: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self.norms: Array = np.empty(0)
        self.largest: Array = np.empty(0)  # slopes of late in each coordinate
        self.columns: Array = np.empty(0)  # u_j = columns_j u'_j
        self.size = 0.0  # (xi, u, v) = size (xi', u', v')
        self.cost = 1.0
        self.highs: Any = None
        self._saved: tuple[list[int], list[int]] | None = None  # the basis to start from, else HiGHS has it

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"highs": None, "_saved": self._basis()}

    def reach(self, bundle: Bundle, level: float) -> Array:
        """Return the most that each plane's penalized part can take away where Omega(w) <= level."""
        return np.where(self.norms > 0.0, self.norms * level if np.isfinite(level) else np.inf, 0.0)

    def follow(self, bundle: Bundle, upper: float) -> Any:
        """Make the program's rows match the bundle's planes."""
        kept = np.isin(self.ids, bundle.ids)
        if not kept.all():
            basis = self._basis()
            if basis is not None:
                self._saved = (basis[0], [status for status, keep in zip(basis[1], kept) if keep])
            self.ids, self.norms, self.highs = self.ids[kept], self.norms[kept], None
        first = self.ids.size
        for a in bundle.normals[first:]:
            self._measure(np.abs(a))
            self.norms = np.append(self.norms, self.regularizer.reach(a, 1.0))
        if self._units_drifted():
            self._choose_units(bundle, upper)
            self._saved, self.highs = self._basis(), None
        if self.highs is None:
            first, self.highs = 0, self._empty(bundle.dim)
        for k in range(first, len(bundle)):
            look()
            self._add_row(bundle.normals[k], float(bundle.offsets[k]))
        self.ids = bundle.ids.copy()
        return self.highs

    def widen(self, w: Array) -> None:
        """Make the cube wider if w comes near its side."""
        if np.abs(w).max(initial=0.0) > 0.9 * self.side:
            self.side = min(10.0 * self.side, 1e15)
            least, most = self._intervals(w.size)
            self.highs.changeColsBounds(2 * w.size, np.arange(1, 1 + 2 * w.size, dtype=np.int32), least, most)

    def run(self, lam: float, cells: int) -> tuple[Array, Array]:
        """Solve from the basis kept; return u - v and the rows' multipliers, zeros where HiGHS gives up."""
        self.highs.changeColCost(0, self.height_cost(lam))
        basis = self.highs.getBasis() if self._saved is None else _made_basis(self._saved, self.ids.size)
        self._saved = None
        _run(self.highs, basis, cells)
        solution, d = self.highs.getSolution(), self.columns.size
        if not (solution.value_valid and solution.dual_valid):
            return np.zeros(d), np.zeros(self.ids.size)
        values = np.asarray(solution.col_value)
        w = (values[1 : 1 + d] - values[1 + d :]) * self.columns * self.size
        return w, -np.asarray(solution.row_dual)

    def height_cost(self, lam: float) -> float:
        """Return the cost of xi."""
        return self.cost / lam

    def _basis(self) -> tuple[list[int], list[int]] | None:
        if self._saved is not None or self.highs is None:
            return self._saved
        basis = self.highs.getBasis()
        rows = list(basis.row_status)[: self.ids.size]
        return ([int(s) for s in basis.col_status], [int(s) for s in rows]) if basis.valid else None

    def _measure(self, slopes: Array) -> None:
        """Take note of a plane's slopes; those far away count for less and less, they may be huge."""
        if not self.largest.size:
            self.largest = slopes
        else:
            self.largest = np.where(slopes > 0.0, np.maximum(slopes, 0.5 * self.largest), self.largest)

    def _units_drifted(self) -> bool:
        if not self.columns.size:
            return True
        seen = self.largest[self.largest > 0.0] * self.columns[self.largest > 0.0]
        return bool(seen.size and (seen.max() > _DRIFT or seen.min() < 1.0 / _DRIFT))

    def _choose_units(self, bundle: Bundle, upper: float) -> None:
        seen = self.largest > 0.0
        self.columns = np.ones(bundle.dim)
        if seen.any():
            self.columns[seen] = 1.0 / _power_of_two(self.largest[seen])
            self.columns[~seen] = np.median(self.columns[seen])
        if not self.size:
            offset = float(np.max(np.abs(bundle.offsets), initial=0.0))
            self.size = float(_power_of_two(np.array(upper if 0.0 < upper < np.inf else offset or 1.0)))
        costs = self.regularizer.s * self.columns
        self.cost = 1.0 / float(_power_of_two(np.array(np.median(costs[costs > 0.0])))) if costs.any() else 1.0

    def _add_row(self, a: Array, b: float) -> None:
        entries = np.flatnonzero(a)
        index = np.concatenate([[0], 1 + entries, 1 + a.size + entries]).astype(np.int32)
        scaled = a[entries] * self.columns[entries]
        value = np.concatenate([[-1.0], scaled, -scaled])
        status = self.highs.addRow(-np.inf, -b / self.size, index.size, index, value)
        if status.name == "kError":  # numbers too large for HiGHS: the plane is left out here, its row stays empty
            self.highs.addRow(-np.inf, np.inf, 0, index[:0], value[:0])

    def _empty(self, d: int) -> Any:
        import highspy

        program: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        options = {"output_flag": False, "threads": 1, "simplex_scale_strategy": 0,
                   "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}  # fmt: skip
        for name, value in options.items():
            program.setOptionValue(name, value)
        cost = np.concatenate([[1.0], np.tile(self.cost * self.regularizer.s * self.columns, 2)])
        least, most = self._intervals(d)
        none = np.empty(0, np.int32)
        program.addCols(1 + 2 * d, cost, np.r_[-np.inf, least], np.r_[np.inf, most], 0, none, none, np.empty(0))
        return program

    def _intervals(self, d: int) -> tuple[Array, Array]:
        """Return the ends of the intervals of u and v, w = u - v, within the bounds on w and the cube."""
        units = self.columns * self.size
        lower, upper = np.broadcast_to(self.regularizer.lower, d), np.broadcast_to(self.regularizer.upper, d)
        least = np.concatenate([np.maximum(lower, 0.0) / units, np.maximum(-upper, 0.0) / units])
        ends = np.minimum(np.concatenate([np.maximum(upper, 0.0), np.maximum(-lower, 0.0)]), self.side)
        return least, ends / np.tile(units, 2)


@kept
class _Cube(_Program):
    """The program without a penalty."""

    def __init__(self, regularizer: Separable) -> None:
        super().__init__(regularizer)
        lower, upper = (np.broadcast_to(side, regularizer.s.shape) for side in (regularizer.lower, regularizer.upper))
        self.free = np.flatnonzero(~np.isfinite(lower) | ~np.isfinite(upper))  # between two bounds the dual is finite
        self.box = FreeBox(regularizer, self.free)
        ends = np.concatenate([lower, upper])
        self.side = max(10.0, 2.0 * float(np.abs(ends[np.isfinite(ends)]).max(initial=0.0)))
        self._farthest = np.maximum(np.abs(lower), np.abs(upper))
        self._farthest[self.free] = 0.0

    def height_cost(self, lam: float) -> float:
        """Return 1: nothing else has a cost, and HiGHS fails where costs are huge."""
        return 1.0

    def reach(self, bundle: Bundle, level: float) -> Array:
        """Return the most that the coordinates between two bounds can take away from each plane."""
        taken: Array = np.abs(bundle.normals) @ self._farthest
        return taken * (1.0 + 1e-12)


class L1Master:
    """Solves the program from the basis kept with the bundle while planes come and go."""

    kind: type[_Program] = _Program
    plane_copies: ClassVar[int] = (
        32  # HiGHS has two entries for each of a plane's, in several forms: measured 27 (20000 columns)
    )

    def __init__(self, regularizer: L1 | Zero) -> None:
        self.regularizer = regularizer

    def solve(self, bundle: Bundle, lam: float, upper: float) -> MasterSolution:
        """Solve; the bound comes from the rows' multipliers, made feasible first."""
        memory = memory_of(bundle, self.kind, self.regularizer)
        memory.follow(bundle, upper)
        w, duals = memory.run(lam, bundle.normals.size)
        w = self.regularizer.clip(w)
        memory.widen(w)
        alpha = on_simplex(duals) if duals.max(initial=0.0) > 0.0 else on_simplex(bundle.multipliers)
        c, b = bundle.combine(alpha), float(alpha @ bundle.offsets)
        box: Array | float = np.inf
        if memory.free.size:
            level = max(upper - bundle.floor, 0.0) / lam
            box = memory.box.around(bundle, lam, upper, lambda: memory.reach(bundle, level), alpha, c[memory.free])
        lower = lower_bound(self.regularizer, lam, bundle, c, b, box, bundle.errors(alpha), upper, w)
        bundle.record(alpha)
        return MasterSolution(w, lower, memory.box.open)


class ZeroMaster(L1Master):
    """The same without a penalty: w is kept in a cube, widened when the solution meets its side.

    The cube only says where to look next; the bound holds everywhere.
    """

    kind = _Cube


def _made_basis(saved: tuple[list[int], list[int]], n_rows: int) -> Any:
    """Return a basis of HiGHS, new rows basic; not valid where rows that are gone have left it incomplete."""
    import highspy

    status = highspy.HighsBasisStatus
    columns, rows = ([status(s) for s in part] for part in saved)
    rows += [status.kBasic] * (n_rows - len(rows))
    basis = highspy.HighsBasis()
    basis.col_status, basis.row_status = columns, rows
    basis.valid = (columns + rows).count(status.kBasic) == n_rows
    return basis


def _power_of_two(x: Array) -> Array:
    """Return the power of two next above x > 0."""
    power: Array = np.ldexp(1.0, np.clip(np.frexp(x)[1], -900, 900))
    return power


def _run(program: Any, basis: Any, cells: int) -> None:
    """Run HiGHS from the basis, if it is valid, until it is done, the deadline passes or Ctrl-C comes.

    A thread that waits costs a millisecond, so it is for large programs, and for others that are not done at once:
    those begin anew there, for a result must not depend on the time that it took.
    """
    if cells < _CELLS_WORTH_A_THREAD:
        _begin(program, basis, min(_AT_ONCE, seconds_left()))
        program.run()
        if program.getModelStatus().name != "kTimeLimit" and program.getSolution().value_valid:
            return
        look()
    _begin(program, basis, np.inf)
    program.HandleUserInterrupt = True
    program.startSolve()
    try:
        while not program.wait(0.02)[0]:  # HiGHS has a bound on its iterations of its own
            look()
    except BaseException:
        program.cancelSolve()
        while not program.wait(0.02)[0]:
            pass
        raise
    finally:
        program.HandleUserInterrupt = False


def _begin(program: Any, basis: Any, seconds: float) -> None:
    program.clearSolver()
    if basis.valid:
        program.setBasis(basis)
    # HiGHS counts the time of all runs together, and knows no limit of 0.
    program.setOptionValue("time_limit", program.getRunTime() + max(seconds, 1e-3))
