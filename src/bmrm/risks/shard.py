"""Shard: what a worker holds: some of the rows, and the risks, points and lines made of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bmrm._cached import cached_property
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Design
from bmrm.data.store import Store
from bmrm.losses import Loss
from bmrm.losses.sets import NoQueries
from bmrm.risks.base import Array, Line, Point, Risk
from bmrm.risks.entries import entries_digest
from bmrm.risks.linear import LinearRisk
from bmrm.risks.structured import StructuredRisk


class PointName(NamedTuple):
    """A point of a risk on the shards: its number, and where it is, for shards that do not know it yet.

    Attributes
    ----------
    number : int
    w : array or None
        None where the shards know the point, or find it on a line.
    line : LineName or None
        The line it lies on, at t: its scores are combined there, not computed from w.
    t : float
    """

    number: int
    w: Array | None = None
    line: LineName | None = None
    t: float = 0.0


class LineName(NamedTuple):
    """A line of a risk on the shards: its number, and for shards that do not know it yet where it starts and leads."""

    number: int
    start: PointName | None = None
    end: Array | None = None


class Missing(NamedTuple):
    """The answer of a shard that has been made anew, and does not know what it is asked about."""

    what: str


class About(NamedTuple):
    """What a shard says of itself when it is made."""

    name: str
    rows: int
    columns: int
    entries: int
    zero_based: bool | None
    version: str
    remarks: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None


@dataclass
class _Kept:
    """A risk with its points and lines, by number; no risk where no row of the shard counts.

    `touched` are the points that `Risk.touch` has made.
    """

    risk: Risk | None
    touched: set[int] = field(default_factory=set)
    points: dict[int, Point] = field(default_factory=dict)
    lines: dict[int, Line] = field(default_factory=dict)


class Shard:
    """Rows in one place, asked by name; never for rows.

    Parameters
    ----------
    data : Dataset
        Its X may be a `Store`.
    name : str
        For messages: the file.
    n_threads : int, optional
        All cores by default, or for -1 (all but one for -2).
    remarks : tuple of str
        What is to be said about the rows, such as how many were left out.
    """

    def __init__(
        self, data: Dataset, name: str = "", n_threads: int | None = None, remarks: tuple[str, ...] = ()
    ) -> None:
        self.data, self.name, self.n_threads, self.remarks = data, name, n_threads, remarks
        self._risks: dict[int, _Kept] = {}

    def about(self) -> About:
        """Return sizes, and the version of the library."""
        from bmrm import __version__

        m, d = self.data.X.shape
        entries = self.design.matrix.n_entries
        names = None if self.data.feature_names is None else tuple(self.data.feature_names)
        return About(self.name, int(m), int(d), int(entries), self.data.zero_based, __version__, self.remarks, names)

    def identity(self, n_cols: int) -> str:
        """Return a few letters that tell the entries of so many columns from others."""
        self.widen(n_cols)
        return entries_digest(self.design.matrix, self.design.n_threads)

    def belongings(self) -> tuple[Any, Any, Any]:
        """Return the labels, groups and weights of the rows."""
        return self.data.y, self.data.groups, self.data.weight

    def widen(self, n_cols: int) -> None:
        """Give X that many columns, the new ones empty, if it has fewer."""
        X: Any = self.data.X
        if X.shape[1] >= n_cols:
            return
        if isinstance(X, Store):
            wider: Any = X.widened(n_cols)
        elif hasattr(X, "tocsr"):
            wider = type(X)((X.data, X.indices, X.indptr), shape=(X.shape[0], n_cols))
        else:
            wider = np.zeros((X.shape[0], n_cols), X.dtype)
            wider[:, : X.shape[1]] = X
        self.data = replace(self.data, X=wider)
        self.__dict__.pop("design", None)

    @cached_property
    def design(self) -> Design:
        """The rows without a constant column."""
        return Design(self.data.X, n_threads=self.n_threads)

    def dot(self, w: Array) -> Array:
        """Return X w; for a matrix w, that of all its columns."""
        self.widen(len(w))
        if w.ndim == 2:
            return self.design.widened(w.shape[1]).dot(w.reshape(-1)).reshape(-1, w.shape[1])
        return self.design.dot(w)

    def tdot(self, n_cols: int, slopes: Array) -> Array:
        """Return X' slopes, of one or several columns, for so many columns of X."""
        self.widen(n_cols)
        if slopes.ndim == 2:
            k = slopes.shape[1]
            return self.design.widened(k).tdot(np.ascontiguousarray(slopes).reshape(-1), 0.0).reshape(-1, k)
        return self.design.tdot(np.ascontiguousarray(slopes), 0.0)

    def row_norms(self) -> Array:
        """Return the squared norm of each row."""
        return self.design.row_norms()

    def square_sum(self) -> float:
        """Return the sum of the squares of all entries."""
        return float(self.design.matrix.square_sum(self.design.n_threads))

    def column_sizes(self, n_cols: int) -> tuple[Array, npt.NDArray[np.int64]]:
        """Return the sum of squares of each of so many columns and the number of its entries that are not 0."""
        self.widen(n_cols)
        return self.design.column_sizes()

    def add_linear(
        self, number: int, loss: Loss, intercept: bool, n_cols: int, y: Any, weight: Array | None, groups: Any,
        offset: Any,
    ) -> float:  # fmt: skip
        """Make a risk of these rows under a number; return what it counts beside those of other shards.

        Weights are as given, not normalized. A shard that is made anew has its own columns only: it is told how many
        all have.
        """
        self.widen(n_cols)
        self._risks[number] = _Kept(None)
        if self.design.n_rows == 0 or (weight is not None and not weight.any()):
            return 0.0
        design = self.design.with_constant() if intercept else self.design
        try:
            risk = LinearRisk(design, y, loss, sample_weight=weight, groups=groups, offset=offset)
        except NoQueries:
            return 0.0
        self._risks[number] = _Kept(risk)
        return loss.mass(risk.targets, weight, design.n_rows)

    def add_structured(
        self, number: int, loss: Any, X: Any, y: Any, weight: Array | None, remember: int | None
    ) -> float:
        """Make a structured risk of these examples under a number; return what it counts."""
        self._risks[number] = _Kept(None)
        if not len(X) or (weight is not None and not weight.any()):
            return 0.0
        self._risks[number] = _Kept(StructuredRisk(X, y, loss, weight, self.n_threads, remember))
        return float(len(X)) if weight is None else float(np.sum(weight))

    def drop(self, numbers: tuple[int, ...]) -> None:
        """Forget risks."""
        for number in numbers:
            self._risks.pop(number, None)

    def ask(
        self, number: int, name: PointName, wants: tuple[str, ...], gone: tuple[Any, Any], remembered: Any = None
    ) -> Any:
        """Return what is wanted of a point of a risk, None for a risk of no rows; points and lines that are gone go.

        Parameters
        ----------
        number : int
            Of the risk.
        name : PointName
        wants : tuple of str
            Of "value", "subgradient", "offset" (of the plane that touches there), "rounding", "steepness",
            "remembered".
        gone : two tuples of int
            Points and lines that nobody asks for any more.
        remembered : object, optional
            What `Risk.at` needs to make the point again as it was; True, if it was made by `Risk.touch`.
        """
        kept = self._found(number, gone)
        if kept is None or kept.risk is None:
            return Missing("risk") if kept is None else None
        point = kept.points.get(name.number)
        if point is None:
            point = _made(kept, name, "subgradient" in wants, remembered)
            if point is None:
                return Missing("point")
            kept.points[name.number] = point
        return [_found_at(point, want, name.number in kept.touched) for want in wants]

    def extreme(self, number: int, name: PointName, direction: Array) -> Any:
        """Return the subgradient at a point that is largest in a direction."""
        kept = self._found(number, ((), ()))
        point = None if kept is None else kept.points.get(name.number)
        if kept is not None and kept.risk is not None and point is None:
            point = _made(kept, name, True, None)
        if kept is None or (kept.risk is not None and point is None):
            return Missing("point")
        return None if point is None else point.extreme(direction)  # type: ignore[attr-defined]

    def slide(self, number: int, name: LineName, ts: tuple[float, ...], gone: tuple[Any, Any]) -> Any:
        """Return the value, the left slope and the right slope on a line at each t; None for a risk of no rows."""
        kept = self._found(number, gone)
        if kept is None or kept.risk is None:
            return Missing("risk") if kept is None else None
        line = _line(kept, name)
        return Missing("line") if line is None else [line.evaluate(t) for t in ts]

    def let_go(self, number: int, gone: tuple[Any, Any]) -> None:
        """Forget points and lines of a risk."""
        self._found(number, gone)

    def risk(self, number: int) -> Risk | None:
        """Return a risk, for the one who owns the shard."""
        kept = self._risks.get(number)
        return None if kept is None else kept.risk

    def kept(self, number: int) -> int:
        """Return how many points and lines of a risk are kept."""
        kept = self._risks.get(number)
        return 0 if kept is None else len(kept.points) + len(kept.lines)

    def held(self, number: int, most_trials: int) -> int:
        """Return how many points and lines take memory, once trials are forgotten but for the last ones of each line.

        Lines keep their start and their trials, whether these are known by a number or not.
        """
        kept = self._risks.get(number)
        if kept is None:
            return 0
        points = {id(point) for point in kept.points.values()}
        for line in kept.lines.values():
            line.forget_trials(most_trials)
            points.update(id(point) for point in line.known)
        return len(points) + len(kept.lines)

    def point(self, number: int, name: PointName) -> Point | None:
        """Return a point of a risk, for the one who owns the shard."""
        kept = self._risks.get(number)
        return None if kept is None else kept.points.get(name.number)

    def line(self, number: int, name: LineName) -> Line | None:
        """Return a line of a risk, for the one who owns the shard."""
        kept = self._risks.get(number)
        return None if kept is None else kept.lines.get(name.number)

    def forget(self, number: int, memory: Any) -> Any:
        """Forget the evaluations of a risk but for those given."""
        return self._of_risk(number, lambda risk: risk.forget(memory))

    def memory(self, number: int) -> Any:
        """Return what a risk needs to go on later."""
        return self._of_risk(number, lambda risk: risk.memory)

    def known_plane(self, number: int, w: Array) -> Any:
        """Return a plane that costs no evaluation."""
        return self._of_risk(number, lambda risk: risk.known_plane(w))

    def _of_risk(self, number: int, work: Any) -> Any:
        kept = self._risks.get(number)
        if kept is None:
            return Missing("risk")
        return None if kept.risk is None else work(kept.risk)

    def _found(self, number: int, gone: tuple[Any, Any]) -> _Kept | None:
        kept = self._risks.get(number)
        if kept is not None:
            for point in gone[0]:
                kept.points.pop(point, None)
                kept.touched.discard(point)
            for line in gone[1]:
                kept.lines.pop(line, None)
        return kept


def _made(kept: _Kept, name: PointName, touched: bool, remembered: Any) -> Point | None:
    """Make the point on its line, if that is known, else from w, if that is given."""
    assert kept.risk is not None
    line = None if name.line is None else _line(kept, name.line)
    if line is not None:
        return line.at(name.t)
    if name.w is None:
        return None
    if remembered is True or (touched and remembered is None):
        kept.touched.add(name.number)
        return kept.risk.touch(name.w)
    return kept.risk.at(name.w, remembered)


def _found_at(point: Point, want: str, touched: bool) -> Any:
    """Return what is wanted of a point.

    Values of points that were made by one reading of the rows are summed in another order than those of the same
    scores: such a point is remembered by how it was made, and w makes it again to the last bit.
    """
    if want == "remembered" and touched and isinstance(point.risk, LinearRisk):
        return True
    return point.plane[1] if want == "offset" else getattr(point, want)


def _line(kept: _Kept, name: LineName) -> Line | None:
    line = kept.lines.get(name.number)
    if line is None and name.start is not None and name.end is not None:
        start = kept.points.get(name.start.number) or _made(kept, name.start, False, None)
        if start is not None:
            kept.points[name.start.number] = start
            line = kept.lines[name.number] = start.toward(name.end)
    return line
