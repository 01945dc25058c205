"""Bundle: planes below the risk, kept from one problem to the next."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core

Array: TypeAlias = npt.NDArray[np.float64]

BYTE_BUDGET = 1 << 30
_LARGEST = 1e30


def cuts_within_budget(dim: int, budget: int = BYTE_BUDGET) -> int:
    """Return how many dense planes of that length fit the budget: at least 20, at most 2000."""
    return int(np.clip(budget // (8 * max(dim, 1)), 20, 2000))


class Bundle:
    """Planes <a_i, w> + b_i <= R(w), valid for every lam and every regularizer.

    A risk with a floor contributes one more plane, (0, floor), which is never dropped. Planes carry increasing
    ids, so that a master can tell which are new; ``multipliers`` are those of the last master solved.

    Parameters
    ----------
    dim : int
        Length of w.
    floor : float
        A lower bound of the risk, -inf if there is none.
    max_cuts : int, optional
        The most planes kept; by default what fits into 1 GiB. When it is reached, planes that are not needed
        are dropped, and if all are needed, the weakest are replaced by their combination.
    max_idle : int
        Planes with multiplier 0 for so many masters in a row are dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.bundle import Bundle
    >>> bundle = Bundle(dim=2, floor=0.0)
    >>> bundle.add(np.zeros(2), 1.0, np.array([-1.0, 0.0]))
    >>> round(bundle.value(np.array([0.25, 0.0])), 6)
    0.75
    """

    def __init__(
        self, dim: int, floor: float = 0.0, max_cuts: int | None = None, max_idle: int = 20, n_threads: int = 1
    ) -> None:
        if max_cuts is not None and max_cuts < 3:
            raise ValueError(f"max_cuts must be at least 3, got {max_cuts}")
        self.dim, self.floor, self.n_threads = dim, floor, n_threads
        self.max_cuts = cuts_within_budget(dim) if max_cuts is None else max_cuts
        self.max_idle = max_idle
        self._normals: Array = np.empty((4, dim))
        self.offsets: Array = np.empty(0)
        self.ids: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self.idle: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self.multipliers: Array = np.empty(0)
        self.units: Array | float = 1.0  # the planes are those of R(units v), as functions of v
        self.braced: set[int] = set()  # free coordinates for which planes from both sides were sought
        self.removals = 0  # how often planes were taken away: tells masters whether to look for gaps
        self.memory: Any = None  # what a master keeps with these planes: a copy goes on from it as the original does
        self._parked: tuple[Array | float, Any] | None = None  # the memory for other units, and those units
        self._next_id = 0
        if np.isfinite(floor):
            self._append(np.zeros(dim), floor, 1.0)

    def __len__(self) -> int:
        return self.offsets.size

    def __bool__(self) -> bool:
        return True

    @property
    def normals(self) -> Array:
        """The planes' normals, one for each row."""
        return self._normals[: len(self)]

    def add(self, w: Array, value: float, a: Array) -> None:
        """Add the plane that touches R at w: normal a, offset b = value - <a, w>, less the rounding in it."""
        if not np.isfinite(value):
            return
        rounding = 4.0 * np.finfo(np.float64).eps * (abs(value) + _core.inner(np.abs(a), np.abs(w)))
        self.add_plane(a, value - _core.inner(a, w) - rounding)

    def add_plane(self, a: Array, b: float) -> None:
        """Add a plane given by normal and offset; one with numbers whose products overflow is left out."""
        if abs(b) <= _LARGEST and float(np.max(np.abs(a), initial=0.0)) <= _LARGEST:
            self._append(a, b, 0.0 if len(self) else 1.0)

    def copy(self) -> Bundle:
        """Return a bundle with the same planes of R itself, that can be changed by itself."""
        return self.rescaled(1.0 / self.units)

    def rescaled(self, c: Array | float) -> Bundle:
        """Return the planes in v, where w = c v."""
        other = Bundle(self.dim, -np.inf, self.max_cuts, self.max_idle, self.n_threads)
        other.floor, other.removals, other._next_id = self.floor, self.removals, self._next_id
        other._normals = self.normals * c if len(self) else np.empty((4, self.dim))
        other.units = self.units * c
        for name in ("offsets", "ids", "idle", "multipliers"):
            setattr(other, name, getattr(self, name).copy())
        other.braced = set(self.braced)
        parked = self._parked if self.memory is None else (self.units, self.memory)
        if parked is not None and np.all(parked[0] == other.units):
            other.memory = copy.deepcopy(parked[1])
        else:
            other._parked = copy.deepcopy(parked)
        return other

    def products(self, v: Array) -> Array:
        """Return <a_i, v> for every plane."""
        out = np.empty(len(self))
        if len(self):
            _core.dense(self.normals).dot(v, out, self.n_threads)
        return out

    def combine(self, multipliers: Array) -> Array:
        """Return sum_i multipliers_i a_i."""
        out = np.empty(self.dim)
        _core.dense(self.normals).tdot(multipliers, out, self.n_threads)
        return out

    def value(self, w: Array) -> float:
        """Return the largest plane at w: a lower bound of R(w)."""
        return float(np.max(self.products(w) + self.offsets, initial=-np.inf))

    def record(self, multipliers: Array) -> None:
        """Note the multipliers of a master, drop planes idle for too long, and keep the number bounded."""
        self.multipliers = multipliers
        self.idle = np.where(multipliers > 0.0, 0, self.idle + 1)
        keep = self.idle <= self.max_idle
        if np.isfinite(self.floor):
            keep[0] = True
        # Moving the planes together costs a reading of all of them: worth it only for many at a time.
        if 4 * int((~keep).sum()) > len(self):
            self._keep(np.flatnonzero(keep))
        if len(self) >= self.max_cuts:
            self._shrink()

    def _shrink(self) -> None:
        """Make room for at least one plane: drop the longest idle third, or aggregate if all are in use."""
        first = 1 if np.isfinite(self.floor) else 0
        target = max(first, min(2 * self.max_cuts // 3, self.max_cuts - 2))
        order = first + np.lexsort((-self.multipliers[first:], self.idle[first:]))
        dropped = order[target - first :]
        keep = np.sort(np.concatenate([np.arange(first), order[: target - first]]))
        if self.multipliers[dropped].any():
            a, b = self.combine(self.multipliers), float(self.multipliers @ self.offsets)
            self._keep(keep)
            self.multipliers = np.zeros(len(self))
            self._append(a, b, 1.0)
        else:
            self._keep(keep)

    def _keep(self, rows: npt.NDArray[np.intp]) -> None:
        self.removals += 1
        self.braced.clear()
        for to, row in enumerate(rows):
            if to != row:
                self._normals[to] = self._normals[row]
        self.offsets, self.ids, self.idle = self.offsets[rows], self.ids[rows], self.idle[rows]
        self.multipliers = self.multipliers[rows]

    def _append(self, a: Array, b: float, multiplier: float) -> None:
        k = len(self)
        if k == self._normals.shape[0]:
            grown = np.empty((2 * k, self.dim))
            grown[:k] = self._normals
            self._normals = grown
        self._normals[k] = a
        self.offsets = np.append(self.offsets, b)
        self.ids = np.append(self.ids, self._next_id)
        self.idle = np.append(self.idle, 0)
        self.multipliers = np.append(self.multipliers, multiplier)
        self._next_id += 1
