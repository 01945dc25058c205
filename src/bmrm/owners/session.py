"""Session: the requests of one coordinator, answered by an owner."""

from __future__ import annotations

import dataclasses
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from bmrm.losses import Loss
from bmrm.owners.columns import told
from bmrm.owners.guard import Guard, GuardTripped, Refused
from bmrm.owners.masks import Masks, encoded, power_of_two
from bmrm.owners.names import line_name, number, point_name, whole
from bmrm.owners.quantize import normal, rounded, rounded_down, step_for
from bmrm.owners.record import Record, Told
from bmrm.owners.terms import Terms, class_labels, shape, targets
from bmrm.owners.wire import MOST_BYTES, Message, WireError, packed
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearLine, LinearPoint
from bmrm.risks.shard import Missing, Shard

if TYPE_CHECKING:
    from bmrm.owners.owner import Owner

_WANTS: Final = ("value", "subgradient", "offset", "rounding")
_METHODS: Final = ("hello", "classes", "begin", "join", "ask", "slide", "drop")
_MOST_TRIALS, _MOST_KEPT, _MOST_RUNS = 64, 1000, 1000
_EPS = float(np.finfo(np.float64).eps)


@dataclass
class _Run:
    """A risk of this owner's rows in the making, or at work once there is a guard."""

    terms: Terms
    dim: int
    mass: float
    own: float
    floor: float
    masks: Masks | None
    record: Record
    step: float
    guard: Guard | None = None
    share: float = 0.0
    q: float = 0.0
    parties: int = 1


class Session:
    """What an owner answers to one coordinator: sums over its rows, after its guard has looked at w.

    Parameters
    ----------
    owner : Owner
    peer : str
        Who asks, for the log.
    """

    def __init__(self, owner: Owner, peer: str) -> None:
        self.owner, self.peer = owner, peer
        data = owner.data  # a copy of the head: `widen` must not change what others see
        self.shard = Shard(dataclasses.replace(data), owner.name, owner.n_threads)
        self._runs: dict[int, _Run] = {}

    def reply(self, request: Message) -> bytes:
        """Return the answer as bytes, which are in the log; what cannot be a request raises WireError."""
        method = request.header.get("method")
        began = time.perf_counter()
        try:
            answer = self._answer(method, request)
        except GuardTripped as error:
            self.owner.stop(self.peer, str(error))
            answer = self._refusal(str(error), "guard")
        except Refused as error:
            self.owner.log.noted(self.peer, "refused", str(error))
            answer = self._refusal(str(error), "request")
        except WireError:
            raise
        except Exception as error:  # what it says may have numbers of rows in it
            self.owner.log.noted(self.peer, "failed", f"{type(error).__name__}: {error}")
            answer = self._refusal(f"'{method}' failed ({type(error).__name__}); the owner's log says why", "failure")
        answer.header["seconds"] = round(time.perf_counter() - began, 6)
        payload = packed(answer)
        self.owner.log.sent(self.peer, str(method), sum(array.size for array in answer.arrays), payload)
        return payload

    @staticmethod
    def _refusal(reason: str, kind: str) -> Message:
        return Message({"refused": reason, "kind": kind})

    def _answer(self, method: Any, request: Message) -> Message:
        if method not in _METHODS:
            raise Refused(f"unknown method {method!r}; expected one of {', '.join(_METHODS)}")
        if self.owner.stopped is not None:
            raise Refused(f"the guard has stopped this owner: {self.owner.stopped}")
        try:
            found = getattr(self, f"_{method}")(request.header, request.arrays)
        except KeyError as error:
            raise WireError(f"a request '{method}' without {error}") from None
        return found if isinstance(found, Message) else Message(found)

    def _hello(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        from bmrm import __version__

        data = self.owner.data
        sizes = {"version": __version__, "rows": data.n_examples, "features": int(data.X.shape[1])}
        return sizes | told(data.feature_names)

    def _classes(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        return {"labels": class_labels(self.owner.data)}

    def _begin(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        """Make a risk of the rows; say what it counts."""
        terms = Terms.from_header(header["terms"])
        terms.check(self.owner.guard)
        if self.owner.masked_only is not None and not terms.masked:
            raise Refused("this owner answers under masks only")
        try:
            loss = terms.made_loss()
        except (ValueError, TypeError) as error:  # by names and parameters alone
            raise Refused(str(error)) from None
        data = self.owner.data
        if loss.couples == "group" and data.groups is None:
            raise Refused(f"loss '{loss.name}' needs queries, which this owner does not have")
        self._check_size(shape(loss, terms)[0], terms.n_features)
        y = targets(data, loss, terms)
        groups = data.groups if loss.couples == "group" else None
        risk = whole(header["risk"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # queries without pairs: said to nobody else
            mass = self.shard.add_linear(risk, loss, terms.intercept, terms.n_features, y, data.weight, groups, None)
        made = self.shard.risk(risk)
        if made is None:
            raise Refused("no row of this owner counts")
        start = made.touch(np.zeros(made.dim))
        masks = Masks() if terms.masked else None
        step = 0.0 if terms.masked else self._step(terms, loss, start.value)
        record = self.owner.record(terms, y, loss.floor)
        self._runs[risk] = _Run(terms, made.dim, mass, start.value, loss.floor, masks, record, step)
        size = power_of_two(max(abs(start.value), float(np.max(np.abs(start.subgradient), initial=0.0))))
        more = {"grid": step} if masks is None else {"key": masks.public.hex(), "size": size}
        return {"mass": float(mass)} | more

    def _step(self, terms: Terms, loss: Loss, own: float) -> float:
        """Return the step of the owner's grid; masked sums have a grid already."""
        dim, free = shape(loss, terms)
        regularizer = terms.made_regularizer(dim, free)
        return step_for(regularizer, terms.lam, own - loss.floor, dim, self.owner.guard.coarse)

    def _check_size(self, dim: int, n_features: int) -> None:
        """Raise Refused where a coordinator's numbers would take more memory than a run does."""
        X, most = self.owner.data.X, MOST_BYTES // 8
        if n_features < X.shape[1]:
            raise Refused(f"this owner has {X.shape[1]} features, the run {n_features}")
        if len(self._runs) >= _MOST_RUNS:
            raise Refused(f"{len(self._runs)} runs are kept for the coordinator; it must let one go first")
        if dim > most:
            raise Refused(f"w would have {dim} numbers; this owner accepts {most}")
        if isinstance(X, np.ndarray) and 8 * X.shape[0] * n_features > max(4 * X.nbytes, MOST_BYTES):
            raise Refused(f"this owner's rows are dense and have {X.shape[1]} features; {n_features} are too many")

    def _join(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        """Learn what all owners count together, and agree on masks."""
        run, total = self._run(header), number(header["total"])
        if run.guard is not None:
            raise Refused("this run has begun already")
        if total < run.mass * (1.0 - 1e-9):
            raise Refused(f"all owners together are said to count {total:g}, but this one alone counts {run.mass:g}")
        if run.masks is not None:
            self._agree(run, header)
        run.share = min(1.0, run.mass / total)
        loss = run.terms.made_loss()
        regularizer = run.terms.made_regularizer(*shape(loss, run.terms))
        run.guard = Guard(self.owner.guard, regularizer, run.terms.lam, run.floor, run.own, run.share)
        return {}

    def _agree(self, run: _Run, header: dict[str, Any]) -> None:
        assert run.masks is not None
        keys, place, q = header["keys"], whole(header["place"]), number(header["step"])
        if not (isinstance(keys, list) and all(isinstance(key, str) and len(key) == 64 for key in keys) and q > 0.0):
            raise WireError("keys that are none, or a step that is not above 0")
        if place >= len(keys):
            raise WireError(f"place {place} of {len(keys)}")
        if len(keys) < (self.owner.masked_only or 2):
            raise Refused(
                f"this owner answers in runs of at least {self.owner.masked_only} owners; there are {len(keys)}"
            )
        run.masks.join([bytes.fromhex(key) for key in keys], place)
        run.parties, run.q = len(keys), q
        self.owner.log.noted(self.peer, "masks", f"keys of all owners: {' '.join(keys)}")

    def _ask(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> Message:
        run = self._run(header)
        name, wants = point_name(header["point"], arrays, run.dim), header["wants"]
        if not isinstance(wants, list) or not wants or not set(wants) <= set(_WANTS) or len(set(wants)) < len(wants):
            raise Refused(f"a point is asked for {wants!r}; expected some of {', '.join(_WANTS)}")
        found = self.shard.ask(header["risk"], name, tuple(wants), _gone(header["gone"]))
        if isinstance(found, Missing):
            return Message({"missing": found.what})
        point = self.shard.point(header["risk"], name)
        assert isinstance(point, LinearPoint)
        told = self._told(run, header, point)
        numbers = np.concatenate([np.atleast_1d(self._number(run, point, told, want)) for want in wants])
        return self._sent(run, header, numbers)

    def _number(self, run: _Run, point: LinearPoint, told: Told, want: str) -> Any:
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
        found = self.shard.slide(header["risk"], name, (), _gone(header["gone"]))
        if isinstance(found, Missing):
            return Message({"missing": found.what})
        line = self.shard.line(header["risk"], name)
        assert isinstance(line, LinearLine)
        numbers = [self._trial(run, header, line, t) for t in steps]
        return self._sent(run, header, np.array(numbers, dtype=np.float64).reshape(-1))

    def _trial(self, run: _Run, header: dict[str, Any], line: LinearLine, t: float) -> tuple[float, float, float]:
        """Return the value and the slope at a step, twice: those of both sides of a kink tell the row that has it."""
        scores = line.start.scores + t * line.score_direction
        point = LinearPoint(line.start.risk, line.start.w + t * line.direction, scores)
        told = self._told(run, header, point)
        slopes = told.state.slopes
        slope = 0.0 if slopes is None else float(slopes @ line.score_direction)
        slope = float(rounded(slope, run.step * power_of_two(float(np.max(np.abs(line.direction), initial=0.0)))))
        return float(rounded(told.value, run.step)), slope, slope

    def _drop(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        for risk in header["risks"]:
            self._runs.pop(risk, None)
            self.shard.drop((risk,))
        return {}

    def _run(self, header: dict[str, Any]) -> _Run:
        run = self._runs.get(whole(header["risk"]))
        if run is None:
            raise Refused(f"this owner has no run {header['risk']}")
        return run

    def _told(self, run: _Run, header: dict[str, Any], point: LinearPoint) -> Told:
        """Let the guard look at the point, decide what is told of it, and count the answer."""
        if run.guard is None:
            raise Refused("a run is evaluated after all owners have joined it")
        if self.shard.kept(header["risk"]) > _MOST_KEPT:
            raise GuardTripped(f"more than {_MOST_KEPT} points and lines are kept for the coordinator")
        run.guard.before(point.w)
        self.owner.asked()
        before = run.record.fresh
        told = run.record.tell(point, run.step)
        if run.record.fresh > before:
            self.owner.counted()
            run.guard.after(point.w, point.value)
        return told

    def _sent(self, run: _Run, header: dict[str, Any], numbers: Array) -> Message:
        """Return numbers in the clear, or the owner's share of them under masks."""
        if run.masks is None:
            return Message({}, (numbers,))
        words: npt.NDArray[np.uint64] = encoded(run.share * numbers, run.q, run.parties)
        return Message({}, (run.masks.masked(whole(header["round"]), words),))


def _gone(value: Any) -> tuple[Any, Any]:
    """Return the two lists of numbers of points and lines, checked."""
    if not (isinstance(value, list) and len(value) == 2 and all(isinstance(part, list) for part in value)):
        raise WireError("points and lines that are gone must be two lists")
    points, lines = (tuple(whole(n) for n in part) for part in value)
    return points, lines
