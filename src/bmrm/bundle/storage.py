"""How a bundle keeps its planes: by their normals, or by their slopes in the smaller space of the rows.

A plane of a linear risk is a = X'l. With m rows and d columns, t planes cost t d numbers as normals and t m as
slopes; a combination is X'(L'alpha), products with v are L (X v). Each of the two costs one product with the data,
which pays where m and the number of entries of X are small beside t d.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._states import kept
from bmrm.risks.space import RowSpace

Array: TypeAlias = npt.NDArray[np.float64]

BYTE_BUDGET = 1 << 30
FEWEST_PLANES = 20


def cuts_within_budget(length: int, budget: int = BYTE_BUDGET) -> int:
    """Return how many planes of so many numbers fit the budget: at least 20, at most 2000."""
    return int(np.clip(budget // (8 * max(length, 1)), FEWEST_PLANES, 2000))


def appended(values: npt.NDArray[Any], value: Any) -> npt.NDArray[Any]:
    """Return the values (or the rows of a matrix) and one more."""
    longer = np.empty((len(values) + 1, *values.shape[1:]), values.dtype)
    longer[:-1] = values
    longer[-1] = value
    return longer


@dataclass(frozen=True)
class Plane:
    """A normal a = X'l + r: by its slopes, by itself, or by both where a product has been paid for already.

    Attributes
    ----------
    slopes : array, optional
        l.
    rest : array, optional
        r, if it is not 0; only beside slopes.
    normal : array, optional
        a.
    """

    slopes: Array | None = None
    rest: Array | None = None
    normal: Array | None = None


def products(table: Array, v: Array, n_threads: int) -> Array:
    """Return <a_i, v> for every row, by the threads of this library: those of BLAS would spin beside them."""
    out = np.empty(len(table))
    if len(table):
        _core.dense(table).dot(v, out, n_threads)
    return out


def mixture(table: Array, alpha: Array, n_threads: int) -> Array:
    """Return sum_i alpha_i a_i over the rows."""
    out = np.zeros(table.shape[1])
    if len(table):
        _core.dense(table).tdot(alpha, out, n_threads)
    return out


@kept
class _Rows:
    """The rows of a matrix that grows."""

    def __init__(self, rows: Array) -> None:
        self.n, self._table = len(rows), rows if len(rows) else np.empty((4, rows.shape[1]))

    def __getstate__(self) -> Array:
        return self.table

    def __setstate__(self, rows: Array) -> None:
        self.__init__(rows)  # type: ignore[misc]

    @property
    def table(self) -> Array:
        return self._table[: self.n]

    def append(self, row: Array | float) -> None:
        if self.n == len(self._table):
            grown = np.empty((2 * self.n, self._table.shape[1]))
            grown[: self.n] = self._table
            self._table = grown
        self._table[self.n] = row
        self.n += 1

    def keep(self, rows: npt.NDArray[np.intp]) -> None:
        for to, row in enumerate(rows):
            if to != row:
                self._table[to] = self._table[row]
        self.n = len(rows)

    def dot(self, v: Array, first: int | None, n_threads: int) -> Array:
        return products(self.table[:first], v, n_threads)

    def tdot(self, alpha: Array, n_threads: int) -> Array:
        return mixture(self.table, alpha, n_threads)


@kept
class Normals:
    """Planes by their normals, a dense matrix."""

    space: RowSpace | None = None
    full = False  # the number of planes is all that limits them

    def __init__(self, normals: Array, n_threads: int) -> None:
        self._rows, self._n_threads = _Rows(normals), n_threads
        self.default_cuts = cuts_within_budget(normals.shape[1])

    @property
    def normals(self) -> Array:
        """All normals."""
        return self._rows.table

    def normal(self, k: int) -> Array:
        """Return the normal of plane k."""
        row: Array = self._rows.table[k]
        return row

    def append(self, plane: Plane) -> None:
        """Add a plane; its normal must be known."""
        assert plane.normal is not None
        self._rows.append(plane.normal)

    def keep(self, rows: npt.NDArray[np.intp]) -> None:
        """Keep these planes only."""
        self._rows.keep(rows)

    def dot(self, v: Array, first: int | None = None) -> Array:
        """Return <a_i, v> for every plane, or for the first ones."""
        return self._rows.dot(v, first, self._n_threads)

    def tdot(self, alpha: Array) -> Array:
        """Return sum_i alpha_i a_i."""
        return self._rows.tdot(alpha, self._n_threads)

    def mixed(self, alpha: Array) -> Plane:
        """Return the combination as a plane."""
        return Plane(normal=self.tdot(alpha))

    def rescaled(self, c: Array | float) -> Normals:
        """Return a copy in other units."""
        return Normals(self.normals * c, self._n_threads)


@kept
class Slopes:
    """Planes by their slopes. A plane that comes without any is kept by its normal, beside zero slopes.

    Parameters
    ----------
    space : RowSpace
    n_threads : int
    slopes : array (t, m), optional
    rests : dict, optional
        r, for the planes that have one.
    """

    def __init__(
        self, space: RowSpace, n_threads: int, slopes: Array | None = None, rests: dict[int, Array] | None = None
    ) -> None:
        self.space, self._n_threads = space, n_threads
        self._rows = _Rows(np.empty((0, space.size)) if slopes is None else slopes)
        self._rests = {} if rests is None else rests
        self._newest: tuple[int, Array] | None = None  # a normal that was known when its plane came
        self.default_cuts = cuts_within_budget(space.size)

    @property
    def full(self) -> bool:
        """Whether planes without slopes take more than the budget."""
        return len(self._rests) > FEWEST_PLANES and 8 * sum(rest.size for rest in self._rests.values()) > BYTE_BUDGET

    @property
    def normals(self) -> Array:
        """All normals: one product for each plane with slopes."""
        return np.array([self.normal(k) for k in range(self._rows.n)])

    def normal(self, k: int) -> Array:
        """Return the normal of plane k: a product, unless it is that of the newest plane."""
        k = k % self._rows.n
        if self._newest is not None and self._newest[0] == k:
            return self._newest[1]
        slopes, rest = self._rows.table[k], self._rests.get(k)
        if rest is None:
            return self.space.pull_back(slopes)
        return self.space.pull_back(slopes) + rest if slopes.any() else rest

    def append(self, plane: Plane) -> None:
        """Add a plane."""
        k = self._rows.n
        normal = None if plane.normal is None else plane.normal.copy()
        rest = normal if plane.slopes is None else plane.rest
        self._rows.append(0.0 if plane.slopes is None else plane.slopes)
        self._newest = None if normal is None else (k, normal)
        if rest is not None and rest.any():
            self._rests[k] = rest

    def keep(self, rows: npt.NDArray[np.intp]) -> None:
        """Keep these planes only."""
        self._rows.keep(rows)
        self._rests = {to: self._rests[row] for to, row in enumerate(rows.tolist()) if row in self._rests}
        self._newest = None

    def dot(self, v: Array, first: int | None = None) -> Array:
        """Return <a_i, v> for every plane, or for the first ones: one product."""
        out = self._rows.dot(self.space.push(v), first, self._n_threads)
        for k, rest in self._rests.items():
            if k < out.size:
                out[k] += _core.inner(rest, v)
        return out

    def tdot(self, alpha: Array) -> Array:
        """Return sum_i alpha_i a_i: one product."""
        mixed = self.mixed(alpha)
        assert mixed.slopes is not None
        out = self.space.pull_back(mixed.slopes)
        return out if mixed.rest is None else out + mixed.rest

    def mixed(self, alpha: Array) -> Plane:
        """Return the combination as a plane."""
        rest: Array | None = None
        for k, part in self._rests.items():
            if alpha[k]:
                rest = alpha[k] * part if rest is None else rest + alpha[k] * part
        return Plane(self._rows.tdot(alpha, self._n_threads), rest)

    def rescaled(self, c: Array | float) -> Slopes:
        """Return a copy in other units: the slopes are the same in all of them."""
        rests = {k: rest * c for k, rest in self._rests.items()}
        other = Slopes(self.space.rescaled(c), self._n_threads, self._rows.table.copy(), rests)
        other._newest = None if self._newest is None else (self._newest[0], self._newest[1] * c)
        return other
