"""The requests of a run: points and steps on lines, answered as the guard and the owner's record allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from bmrm.owners import binding
from bmrm.owners.guard import Guard, GuardTripped, Refused
from bmrm.owners.masks import Masks, encoded, power_of_two
from bmrm.owners.memory import new_things
from bmrm.owners.names import gone, line_name, number, point_name, whole
from bmrm.owners.quantize import normal, rounded, rounded_down
from bmrm.owners.record import Record, Told
from bmrm.owners.terms import Terms
from bmrm.owners.wire import Message
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearLine, LinearPoint
from bmrm.risks.shard import LineName, Missing, PointName, Shard

if TYPE_CHECKING:
    from bmrm.owners.owner import Owner

_WANTS: Final = ("value", "subgradient", "offset", "rounding")
_MOST_TRIALS, _MOST_KEPT = 64, 1000
_TRIALS_KEPT = 4  # of a line: a search ends at one of its last trials, which then costs nothing new
_EPS = float(np.finfo(np.float64).eps)


@dataclass
class Run:
    """A risk of this owner's rows in the making, or at work once there is a guard."""

    terms: Terms
    dim: int
    mass: float
    own: float
    floor: float
    masks: Masks | None
    size: float  # of the largest number at w = 0, as it is told
    point_bytes: int
    record: Record
    step: float
    guard: Guard | None = None
    share: float = 0.0
    q: float = 0.0
    parties: int = 1
    bound: bytes = b""  # what the masks of each request are bound to, with the request


class RunRequests:
    """Answers of runs that have begun."""

    owner: Owner
    shard: Shard
    _runs: dict[int, Run]

    def _ask(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> Message:
        run = self._run(header)
        name, wants = point_name(header["point"], arrays, run.dim), header["wants"]
        if not isinstance(wants, list) or not wants or not set(wants) <= set(_WANTS) or len(set(wants)) < len(wants):
            raise Refused(f"a point is asked for {wants!r}; expected some of {', '.join(_WANTS)}")
        self._room_for(run, header, name)
        found = self.shard.ask(header["risk"], name, tuple(wants), ((), ()))
        if isinstance(found, Missing):
            return Message({"missing": found.what})
        point = self.shard.point(header["risk"], name)
        assert isinstance(point, LinearPoint)
        told = self._told(run, point)
        numbers = np.concatenate([np.atleast_1d(self._number(run, point, told, want)) for want in wants])
        return self._sent(run, header, numbers, wants, (point.w,))

    def _number(self, run: Run, point: LinearPoint, told: Told, want: str) -> Any:
        """Return a part of an answer, on the grid."""
        if want == "value":
            return rounded(told.value, run.step)
        if want == "rounding":
            return told.rounding
        if want == "offset":
            offset = told.state.offset
            if run.masks is not None:  # its product with the share is rounded as well
                a = told.state.normal(point)
                offset -= 4.0 * _EPS * (abs(offset) + float(np.abs(a) @ np.abs(point.w)))
            return rounded_down(offset, run.step)
        return normal(told.state.normal(point), run.step, point.risk.unpenalized)

    def _slide(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> Message:
        run = self._run(header)
        name, ts = line_name(header["line"], arrays, run.dim), header["ts"]
        if not isinstance(ts, list) or not 0 < len(ts) <= _MOST_TRIALS:
            raise Refused(f"a line is asked about at most {_MOST_TRIALS} steps")
        steps = tuple(number(t) for t in ts)
        self._room_for(run, header, name, len(steps))
        found = self.shard.slide(header["risk"], name, (), ((), ()))
        if isinstance(found, Missing):
            return Message({"missing": found.what})
        line = self.shard.line(header["risk"], name)
        assert isinstance(line, LinearLine)
        numbers = np.array([self._trial(run, line, t) for t in steps], dtype=np.float64).reshape(-1)
        return self._sent(run, header, numbers, steps, (line.start.w, line.direction))

    def _trial(self, run: Run, line: LinearLine, t: float) -> tuple[float, float, float]:
        """Return the value and the slope at a step, twice: those of both sides of a kink tell the row that has it."""
        scores = line.start.scores + t * line.score_direction
        point = LinearPoint(line.start.risk, line.start.w + t * line.direction, scores)
        told = self._told(run, point)
        slopes = told.state.slopes
        slope = 0.0 if slopes is None else float(slopes @ line.score_direction)
        slope = float(rounded(slope, run.step * power_of_two(float(np.max(np.abs(line.direction), initial=0.0)))))
        return float(rounded(told.value, run.step)), slope, slope

    def _room_for(self, run: Run, header: dict[str, Any], name: PointName | LineName, trials: int = 0) -> None:
        """Let go what is gone, and take the memory for what a request may add, before it is computed."""
        risk, new = header["risk"], new_things(name)
        self.shard.let_go(risk, gone(header["gone"]))
        if sum(map(self.shard.kept, self._runs)) + new > _MOST_KEPT:
            raise GuardTripped(f"more than {_MOST_KEPT} points and lines are kept for the coordinator")
        held = self.shard.held(risk, _TRIALS_KEPT) + new + trials
        self.owner.room.hold((self, risk, "points"), held * run.point_bytes)

    def _run(self, header: dict[str, Any]) -> Run:
        run = self._runs.get(whole(header["risk"]))
        if run is None:
            raise Refused(f"this owner has no run {header['risk']}")
        return run

    def _told(self, run: Run, point: LinearPoint) -> Told:
        """Let the guard look at the point, decide what is told of it, and count the answer."""
        if run.guard is None:
            raise Refused("a run is evaluated after all owners have joined it")
        run.guard.before(point.w)
        self.owner.asked()
        before = run.record.fresh
        told = run.record.tell(point, run.step)
        if run.record.fresh > before:
            self.owner.counted()
            run.guard.after(point.w, point.value)
        return told

    def _sent(
        self, run: Run, header: dict[str, Any], numbers: Array, wants: Sequence[Any], at: Sequence[Array]
    ) -> Message:
        """Return numbers in the clear, or the owner's share of them under masks, bound to the request."""
        if run.masks is None:
            return Message({}, (numbers,))
        words: npt.NDArray[np.uint64] = encoded(run.share * numbers, run.q, run.parties)
        bound = binding.of_request(run.bound, header, wants, at)
        return Message({}, (run.masks.masked(whole(header["round"]), words, bound),))
