"""A sum of risks on shards: points and lines are names for what the shards keep; only sums travel."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from bmrm import _core
from bmrm._cached import cached_property
from bmrm._states import kept
from bmrm.parallel.base import Placed, WorkerLost
from bmrm.risks.base import Array, Line, Point, Risk
from bmrm.risks.liars import Audit, ConvexityCheck
from bmrm.risks.shard import LineName, Missing, PointName

_EPS = float(np.finfo(np.float64).eps)
_ATTEMPTS = 20  # to tell a shard what it has to know, while its workers keep being lost
TOUCHED = ("value", "subgradient", "offset", "rounding")  # all that one evaluation has to say
_numbers = itertools.count(1)

Watcher: TypeAlias = Callable[[Array, dict[str, list[tuple[float, Any]]], list[int]], None]


class Parts:
    """R(w) = sum_s c_s R_s(w), each R_s on its shard, the c_s adding up to 1.

    Shards that have been made anew do not know the risk, its points and lines; they are told again.

    Parameters
    ----------
    placed : Placed
        Objects like `Shard`.
    method : str
        The one that adds the risk to a shard and returns what it counts.
    arguments : tuple
        For all shards.
    each : sequence of tuples
        For each shard.
    """

    def __init__(
        self, placed: Placed, method: str, arguments: tuple[Any, ...], each: Sequence[tuple[Any, ...]]
    ) -> None:
        self.placed, self.number = placed, next(_numbers)
        self._added = (method, arguments, each)
        self._gone_points: list[int] = []
        self._gone_lines: list[int] = []
        masses = self._masses(placed.call(method, self.number, *arguments, each=each))
        total = float(sum(masses))
        if not total > 0.0:
            raise ValueError("no row of any shard counts")
        self.c = [mass / total for mass in masses]
        self.watchers: list[Watcher] = []
        weakref.finalize(self, _drop, placed, self.number)

    def _masses(self, answers: list[Any]) -> list[float]:
        """Return what each shard counts, by its answer."""
        return answers

    def ask(self, method: str, of: Callable[[bool], tuple[Any, ...]], each: Any = None) -> list[Any]:
        """Call a method of the risk on all shards and return (c_s, answer) for those where rows count.

        Parameters
        ----------
        method : str
        of : callable
            Whether the shard must be told all to the arguments.
        each : sequence of tuples, optional
            Further arguments for each shard.
        """
        answers = self.placed.call(method, self.number, *of(False), each=each)
        for shard in [s for s, answer in enumerate(answers) if isinstance(answer, Missing)]:
            own = None if each is None else [each[shard]]
            answers[shard] = self._told_again(answers[shard], shard, method, of(True), own)
        return [(c, answer) for c, answer in zip(self.c, answers) if answer is not None]

    def _told_again(self, answer: Any, shard: int, method: str, whole: tuple[Any, ...], own: Any) -> Any:
        """Return the answer of a shard that has been made anew, once it knows what it is asked about."""
        add, arguments, each = self._added
        for _ in range(_ATTEMPTS):
            if answer.what == "risk":
                self.placed.call(add, self.number, *arguments, each=[each[shard]], only=[shard])
            (answer,) = self.placed.call(method, self.number, *whole, each=own, only=[shard])
            if not isinstance(answer, Missing):
                return answer
        raise WorkerLost(f"shard {shard} was lost {_ATTEMPTS} times in a row, each time before it had answered")

    def saw(self, w: Array, found: dict[str, list[tuple[float, Any]]]) -> None:
        """Tell the watchers what the shards have answered at w, before it is used."""
        shards = [s for s, c in enumerate(self.c) if c > 0.0]
        for watcher in self.watchers:
            watcher(w, found, shards)

    def gone(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the points and lines that nobody has a name for any more, once."""
        gone = tuple(self._gone_points), tuple(self._gone_lines)
        self._gone_points.clear()
        self._gone_lines.clear()
        return gone

    def named(self, thing: Any, lines: bool = False) -> int:
        """Return a number for a point or a line; the shards forget theirs some time after this one is gone."""
        number = next(_numbers)
        weakref.finalize(thing, (self._gone_lines if lines else self._gone_points).append, number)
        return number


def _drop(placed: Placed, number: int) -> None:
    placed.later("drop", (number,))


@kept
class Recollection:
    """What a run remembers of a point on the shards: its name, or, read from a file, what each shard needs for it.

    The value is remembered too: one found on a line differs in the last digit from the one that the scores give.

    Parameters
    ----------
    point : RemotePoint
    """

    def __init__(self, point: RemotePoint) -> None:
        self.point: RemotePoint | None = point
        self.of_shards: tuple[Any, ...] = ()
        self.value = np.nan

    def __deepcopy__(self, memo: dict[int, Any]) -> Recollection:
        return self  # points do not change

    def __getstate__(self) -> tuple[tuple[Any, ...], float]:
        if self.point is None:
            return self.of_shards, self.value
        value = self.point.value  # first: where it comes from a line, that is forgotten when the shards are asked
        return self.point.of_shards(), value

    def __setstate__(self, state: tuple[tuple[Any, ...], float]) -> None:
        self.point, (self.of_shards, self.value) = None, state

    def recalled(self, risk: Risk, parts: Parts, w: Array) -> RemotePoint:
        """Return the point again."""
        if self.point is not None and self.point.parts is parts:
            return self.point
        point = RemotePoint(risk, parts, w)
        point._remembered, value = self.__getstate__()
        point.find("value", "rounding")  # so that the shards know the point by its scores
        point.value = value
        risk.products -= 1
        return point


class RemotePoint(Point):
    """w, and the numbers that the shards have found there."""

    risk: RemoteRisk

    def __init__(self, risk: Risk, parts: Parts, w: Array, on: tuple[RemoteLine, float] | None = None) -> None:
        super().__init__(risk, w)
        self.parts, self._on = parts, on
        risk.products += on is None
        self.number = parts.named(self)
        self._known: dict[str, list[Any]] = {}
        self._told = False
        self._remembered: Sequence[Any] | None = None
        self.fine = True

    def name(self, whole: bool) -> PointName:
        """Return what the shards know the point by; all that they need to make it, where they do not."""
        if whole or (not self._told and self._on is None):
            return PointName(self.number, self.w)
        if not self._told and self._on is not None:
            line, t = self._on
            return PointName(self.number, None, line.name(False), t)
        return PointName(self.number)

    def find(self, *wants: str) -> list[list[Any]]:
        """Return, for each thing wanted, the pairs of c and what the shards have found; asks once for what is new."""
        new = tuple(want for want in wants if want not in self._known)
        if new:
            each = None if self._remembered is None else [(own,) for own in self._remembered]
            gone = self.parts.gone()
            answers = self.parts.ask("ask", lambda whole: (self.name(whole), new, gone), each)
            if not self._told and self._on is not None:
                self._on[0].told = True
            for place, want in enumerate(new):
                self._known[want] = [(c, answer[place]) for c, answer in answers]
                self.risk.products += want == "subgradient"
            if "value" in new or "subgradient" in new:
                self.parts.saw(self.w, {want: self._known[want] for want in ("value", *new) if want in self._known})
            self._remembered, self._told, self._on = None, True, None
        return [self._known[want] for want in wants]

    @cached_property
    def value(self) -> float:
        """R(w)."""
        if self._on is not None and self._on[1] in self._on[0].trials:
            return self._on[0].trials[self._on[1]][0]
        values, *_ = self.find(
            *(("value", "rounding") if self._on is None else self.risk.touched)
        )  # new on a line: for a plane
        return float(sum(c * value for c, value in values))

    @cached_property
    def subgradient(self) -> Array:
        """One subgradient of R at w."""
        return weighted_sum(self.find(*self.risk.touched)[1], self.w.size)

    @property
    def plane(self) -> tuple[Array, float]:
        """The sum of the shards' planes, less the rounding of the sum."""
        a = self.subgradient
        (offsets,) = self.find("offset")
        size = sum(c * abs(b) for c, b in offsets) + _core.inner_of_sizes(a, self.w)
        return a, float(sum(c * b for c, b in offsets)) - (4.0 + len(offsets)) * _EPS * size

    @cached_property
    def rounding(self) -> float:
        """How much larger than the value computed R(w) may be."""
        _, roundings = self.find("value", "rounding")
        return float(sum(c * r for c, r in roundings)) + (4.0 + len(roundings)) * _EPS * abs(self.value)

    @property
    def steepness(self) -> float:
        """The norm of the slopes of all shards, where these tell theirs."""
        if "steepness" not in self.risk.touched:
            return 1.0
        (found,) = self.find("steepness")
        return float(np.sqrt(sum((c * own) ** 2 for c, own in found)))

    @property
    def remembered(self) -> Any:
        """The point itself, as long as it lives; in a file, the scores of the shards."""
        return Recollection(self)

    def of_shards(self) -> tuple[Any, ...]:
        """Return what each shard needs to make its point again: scores, which travel for this alone."""
        (found,) = self.find("remembered")
        answers = iter([own for _, own in found])
        return tuple(next(answers) if c > 0.0 else None for c in self.parts.c)

    def extreme(self, d: Array) -> Array:
        """Return the subgradient that is largest in direction d."""
        self.risk.products += 2
        return weighted_sum(self.parts.ask("extreme", lambda whole: (self.name(whole), d)), self.w.size)

    def toward(self, w: Array) -> RemoteLine:
        """Return the line to w."""
        return RemoteLine(self, w)


class RemoteLine(Line):
    """A line of scores on the shards: values and slopes at trial steps travel, nothing else."""

    start: RemotePoint

    def __init__(self, start: RemotePoint, end: Array) -> None:
        super().__init__(start, end)
        self.end, self.fine = end, start.fine
        self.number = start.parts.named(self, lines=True)
        self.told = False  # to the shards
        start.risk.products += 1
        self.trials: dict[float, tuple[float, float, float]] = {}

    def name(self, whole: bool) -> LineName:
        """Return what the shards know the line by; where it starts and leads, where they do not."""
        if self.told and not whole:
            return LineName(self.number)
        return LineName(self.number, self.start.name(whole), self.end)

    def at(self, t: float) -> RemotePoint:
        """Return the point at t; the shards combine its scores."""
        if t not in self._points:
            w = self.start.w + t * self.direction
            point = self._points[t] = type(self.start)(self.start.risk, self.start.parts, w, (self, t))
            point.fine = self.fine
        return self._points[t]  # type: ignore[return-value]

    def evaluate(self, t: float) -> tuple[float, float, float]:
        """Return the value and both one-sided slopes at t: one round trip."""
        return self.evaluate_all([t])[0]

    def evaluate_all(self, ts: Sequence[float]) -> list[tuple[float, float, float]]:
        """Return the same at several t: one round trip for all of them."""
        new = tuple(t for t in ts if t not in self.trials)
        if new:
            parts = self.start.parts
            gone = parts.gone()
            answers = parts.ask("slide", lambda whole: (self.name(whole), new, gone))
            self.told = self.start._told = True
            for place, t in enumerate(new):
                rows = [(c, answer[place]) for c, answer in answers]
                parts.saw(self.start.w + t * self.direction, {"value": [(c, row[0]) for c, row in rows]})
                value, left, right = (float(sum(c * row[k] for c, row in rows)) for k in range(3))
                self.trials[t] = value, left, right
        return [self.trials[t] for t in ts]


class RemoteRisk(Risk):
    """What risks on shards share: one evaluation is one round trip."""

    parts: Parts
    touched: tuple[str, ...] = TOUCHED

    @property
    def busy(self) -> tuple[float, ...]:
        """How many seconds each shard has computed so far."""
        return tuple(self.parts.placed.seconds)

    def evaluate(self, w: Array) -> tuple[float, Array]:
        """Return the value and one subgradient."""
        point = self.touch(w)
        return point.value, point.subgradient

    def touch(self, w: Array) -> RemotePoint:
        """Return w with value and subgradient."""
        point = self.at(w)
        point.find(*self.touched)
        return point

    def at(self, w: Array, remembered: Any = None) -> RemotePoint:
        """Return w; the shards are asked when something about it is."""
        w = np.ascontiguousarray(w, dtype=np.float64)
        if w.shape != (self.dim,):
            raise ValueError(f"w has shape {w.shape}, expected ({self.dim},)")
        return RemotePoint(self, self.parts, w) if remembered is None else remembered.recalled(self, self.parts, w)


def watch(risk: Risk, parts: Parts, names: Sequence[str], coarse: Callable[[Array], float] | None = None) -> None:
    """Check all answers from now on: against earlier ones, and now and then by asking again.

    Parameters
    ----------
    risk : Risk
    parts : Parts
    names : sequence of str
        Of the shards.
    coarse : callable, optional
        How much a rounded plane may be off at w.
    """

    def again(w: Array) -> dict[str, list[tuple[float, Any]]]:
        products = risk.products  # of the run itself
        found = RemotePoint(risk, parts, w).find("value", "subgradient", "offset")
        risk.products = products
        return {"value": found[0], "subgradient": found[1]}

    parts.watchers += [ConvexityCheck(names, risk.floor, coarse), Audit(again, names)]


def weighted_sum(shares: Sequence[tuple[float, Array]], dim: int) -> Array:
    """Return sum_s c_s a_s, in the order of the shards."""
    total = np.zeros(dim)
    for c, a in shares:
        total += c * a
    return total
