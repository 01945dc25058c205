"""Bundle: planes below the risk, kept from one problem to the next."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._states import kept
from bmrm.bundle.charges import Errors
from bmrm.bundle.storage import Normals, Plane, Slopes, appended
from bmrm.risks.base import Point
from bmrm.risks.normal_error import UNIT, NormalError, norm_of
from bmrm.risks.space import RowSpace

Array: TypeAlias = npt.NDArray[np.float64]

_LARGEST = 1e30
_EPS = float(np.finfo(np.float64).eps)
_ROUNDINGS = 8.0  # of an entry of a normal of which nothing else is known


@kept
class Bundle:
    """Planes <a_i, w> + b_i <= R(w), valid for every lam and every regularizer.

    A risk with a floor contributes one more plane, (0, floor), which is never dropped. Planes carry increasing
    ids, so that a master can tell which are new; ``multipliers`` are those of the last master solved.

    Parameters
    ----------
    dim : int
        Length of w.
    floor : float
        A lower bound of the risk, -inf if none is known.
    max_cuts : int, optional
        The most planes kept; by default what fits into 1 GiB. When it is reached, planes that are not needed
        are dropped, and if all are needed, the weakest are replaced by their combination.
    max_idle : int
        Planes with multiplier 0 for so many masters in a row are dropped.
    space : RowSpace, optional
        Where to keep planes by their slopes; by default they are kept by their normals.
    error : NormalError, optional
        That of the risk. By default a normal is taken to be off by 4 eps of its own entries.

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
        self,
        dim: int,
        floor: float = -np.inf,
        max_cuts: int | None = None,
        max_idle: int = 20,
        n_threads: int = 1,
        space: RowSpace | None = None,
        error: NormalError | None = None,
    ) -> None:
        if max_cuts is not None and max_cuts < 3:
            raise ValueError(f"max_cuts must be at least 3, got {max_cuts}")
        self.dim, self.floor, self.n_threads = dim, floor, n_threads
        self._planes: Normals | Slopes = (
            Normals(np.empty((0, dim)), n_threads) if space is None else Slopes(space, n_threads)
        )
        self.max_cuts = self._planes.default_cuts if max_cuts is None else max_cuts
        self.max_idle = max_idle
        self.error = error
        self.offsets: Array = np.empty(0)
        self.steepness: Array = np.empty(0)  # what the errors of the normals grow with
        self.ids: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self.idle: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self.multipliers: Array = np.empty(0)
        self.units: Array | float = 1.0  # the planes are those of R(units v), as functions of v
        self.near: Array = np.zeros(1)  # a good point: bounds charge rounding for the coordinates that it has
        self.braced: set[int] = set()  # free coordinates for which planes from both sides were sought
        self.removals = 0  # how often planes were taken away: tells masters whether to look for gaps
        self.memory: Any = None  # what a master keeps with these planes: a copy goes on from it as the original does
        self._parked: tuple[Array | float, Any] | None = None  # the memory for other units, and those units
        self._next_id = 0
        if np.isfinite(floor):
            self._append(Plane(normal=np.zeros(dim)), floor, 1.0, 0.0)

    def __len__(self) -> int:
        return self.offsets.size

    def __bool__(self) -> bool:
        return True

    @property
    def normals(self) -> Array:
        """The planes' normals, one for each row; planes kept by their slopes cost a product each."""
        return self._planes.normals

    @property
    def space(self) -> RowSpace | None:
        """Where planes are kept by their slopes; None if they are kept by their normals."""
        return self._planes.space

    def normal(self, k: int) -> Array:
        """Return the normal of plane k, -1 for the newest."""
        return self._planes.normal(k)

    def gram_row(self, k: int, inverse: Array) -> Array:
        """Return <a_i, S^-1 a_k> for the planes up to k, from the diagonal of S^-1."""
        return self._planes.dot(self._planes.normal(k) * inverse, k + 1)

    def add_point(self, point: Point) -> None:
        """Add the plane that touches R at the point, by its slopes where those are kept."""
        if not np.isfinite(point.value):
            return
        factors = None if self.space is None else point.factors
        a, b = point.plane
        self._add(Plane(None if factors is None else factors[0], normal=a), b, point.steepness)

    def add(self, w: Array, value: float, a: Array) -> None:
        """Add the plane that touches R at w: normal a, offset b = value - <a, w>, less the rounding in it."""
        if not np.isfinite(value):
            return
        rounding = 4.0 * _EPS * (abs(value) + _core.inner_of_sizes(a, w))
        self.add_plane(a, value - _core.inner(a, w) - rounding)

    def add_plane(self, a: Array, b: float, steepness: float = 1.0) -> None:
        """Add a plane given by normal and offset; one with numbers whose products overflow is left out.

        The steepness is what the error of the normal grows with, where the risk has a `NormalError`.
        """
        self._add(Plane(normal=a), b, steepness)

    def copy(self) -> Bundle:
        """Return a bundle with the same planes of R itself, that can be changed by itself."""
        return self.rescaled(1.0 / self.units)

    def rescaled(self, c: Array | float) -> Bundle:
        """Return the planes in v, where w = c v."""
        error = None if self.error is None else self.error.rescaled(c)
        other = Bundle(self.dim, -np.inf, self.max_cuts, self.max_idle, self.n_threads, error=error)
        other._planes = self._planes.rescaled(c)
        other.floor, other.removals, other._next_id = self.floor, self.removals, self._next_id
        other.units, other.near = self.units * c, self.near / c
        for name in ("offsets", "steepness", "ids", "idle", "multipliers"):
            setattr(other, name, getattr(self, name).copy())
        other.braced = set(self.braced)
        parked = self._parked if self.memory is None else (self.units, self.memory)
        if parked is not None and np.all(parked[0] == other.units):
            other.memory = copy.deepcopy(parked[1])
        else:
            other._parked = copy.deepcopy(parked)
        return other

    def keep_in(self, space: RowSpace | None) -> None:
        """Keep planes by their slopes in that space from now on, or by their normals if it is None.

        Planes without known slopes stay normals. The other way costs a product for each plane, and those that do
        not fit the budget as normals are dropped or aggregated first.
        """
        if (space is None) == (self.space is None):
            return
        standard = self.max_cuts == self._planes.default_cuts
        if space is None:
            if standard:
                self.max_cuts = Normals(np.empty((0, self.dim)), 1).default_cuts
            if len(self) >= self.max_cuts:
                self._shrink()
            self._planes = Normals(self.normals, self.n_threads)
        else:
            planes = Slopes(space, self.n_threads)
            for a in self.normals:
                planes.append(Plane(normal=a))
            self._planes = planes
            if standard:
                self.max_cuts = planes.default_cuts

    def products(self, v: Array) -> Array:
        """Return <a_i, v> for every plane."""
        return self._planes.dot(v)

    def combine(self, multipliers: Array) -> Array:
        """Return sum_i multipliers_i a_i."""
        return self._planes.tdot(multipliers)

    def errors(self, multipliers: Array) -> Errors:
        """Return how far the planes' combination may be from the true one."""
        if self.error is not None:
            return self.errors_of(float(multipliers @ self.steepness))
        used = np.flatnonzero(multipliers)
        weights = (_ROUNDINGS + used.size) * UNIT * multipliers[used]
        norm = float(weights @ self.steepness[used])

        def each() -> Array:
            total = np.zeros(self.dim)
            for weight, k in zip(weights, used):
                total += weight * np.abs(self.normal(int(k)))
            return total

        return Errors(norm, norm, self.dim, each)

    def errors_of(self, steepness: float) -> Errors:
        """Return how far a combination of that steepness may be from the true one; its sum has at most all planes."""
        assert self.error is not None
        return Errors.of(self.error, steepness, len(self))

    def value(self, w: Array) -> float:
        """Return the largest plane at w: a lower bound of R(w)."""
        return float(np.max(self.products(w) + self.offsets, initial=-np.inf))

    def record(self, multipliers: Array) -> None:
        """Note the multipliers of a master, drop planes idle for too long, and keep the number bounded."""
        self.multipliers = multipliers
        self.idle = (self.idle + 1) * (multipliers <= 0.0)
        stale = self.idle > self.max_idle
        if self.floor > -np.inf:
            stale[0] = False
        # Moving the planes together costs a reading of all of them: worth it only for many at a time.
        if 4 * int(np.count_nonzero(stale)) > len(self):
            self._keep(np.flatnonzero(~stale))
        if len(self) >= self.max_cuts or self._planes.full:
            self._shrink()

    def keep_newest(self, n: int) -> None:
        """Drop all planes but the floor and the newest n."""
        first = 1 if np.isfinite(self.floor) else 0
        self._keep(np.concatenate([np.arange(first), np.arange(max(first, len(self) - n), len(self))]))

    def _shrink(self) -> None:
        """Make room for at least one plane: drop the longest idle third, or aggregate if all are in use."""
        first = 1 if np.isfinite(self.floor) else 0
        most = min(self.max_cuts, len(self))
        target = max(first, min(2 * most // 3, most - 2))
        order = first + np.lexsort((-self.multipliers[first:], self.idle[first:]))
        dropped = order[target - first :]
        keep = np.sort(np.concatenate([np.arange(first), order[: target - first]]))
        if self.multipliers[dropped].any():
            plane, b = self._planes.mixed(self.multipliers), float(self.multipliers @ self.offsets)
            steepness = float(self.multipliers @ self.steepness)
            self._keep(keep)
            self.multipliers = np.zeros(len(self))
            self._append(plane, b, 1.0, steepness)
        else:
            self._keep(keep)

    def _keep(self, rows: npt.NDArray[np.intp]) -> None:
        self.removals += 1
        self.braced.clear()
        self._planes.keep(rows)
        self.offsets, self.ids, self.idle = self.offsets[rows], self.ids[rows], self.idle[rows]
        self.multipliers, self.steepness = self.multipliers[rows], self.steepness[rows]

    def _add(self, plane: Plane, b: float, steepness: float) -> None:
        known = (part is None or _core.within(part, _LARGEST) for part in (plane.slopes, plane.normal))
        if abs(b) <= _LARGEST and all(known):
            if self.error is None and plane.normal is not None:
                steepness = norm_of(plane.normal)
            self._append(plane, b, 0.0 if len(self) else 1.0, steepness)

    def _append(self, plane: Plane, b: float, multiplier: float, steepness: float) -> None:
        self._planes.append(plane)
        self.offsets = appended(self.offsets, b)
        self.ids = appended(self.ids, self._next_id)
        self.idle = appended(self.idle, 0)
        self.multipliers = appended(self.multipliers, multiplier)
        self.steepness = appended(self.steepness, steepness)
        self._next_id += 1
