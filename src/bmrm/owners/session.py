"""Session: the requests of one coordinator, answered by an owner."""

from __future__ import annotations

import dataclasses
import time
import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bmrm.losses import Loss
from bmrm.owners.agreement import agree, announced
from bmrm.owners.columns import told
from bmrm.owners.guard import Guard, GuardTripped, Refused
from bmrm.owners.labels import MOST_SCORES, n_numbers
from bmrm.owners.masks import Masks, power_of_two
from bmrm.owners.memory import point_bytes, risk_bytes, wider_bytes
from bmrm.owners.names import number, whole
from bmrm.owners.quantize import step_for
from bmrm.owners.record import Record
from bmrm.owners.runs import Run, RunRequests
from bmrm.owners.score_requests import ScoreRequests
from bmrm.owners.terms import Terms, shape, targets
from bmrm.owners.wire import Message, WireError, packed
from bmrm.risks.shard import Shard

if TYPE_CHECKING:
    from bmrm.owners.owner import Owner

_WANTS: Final = ("value", "subgradient", "offset", "rounding")
_METHODS: Final = ("hello", "classes", "begin", "join", "ask", "slide", "drop", *ScoreRequests.METHODS)
_MOST_TRIALS, _MOST_KEPT, _MOST_RUNS = 64, 1000, 1000
_TRIALS_KEPT = 4  # of a line: a search ends at one of its last trials, which then costs nothing new
_MOST_VECTORS = 17  # of a request: a point on a line from a point on a line ..., as deep as names may be
_EPS = float(np.finfo(np.float64).eps)


class Session(RunRequests, ScoreRequests):
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
        self._runs: dict[int, Run] = {}
        self._begun: set[int] = set()  # all numbers of runs ever: a number has the same terms for ever
        self._pinned: Terms | None = None
        self.said = 0  # answers
        self.at_work = False  # whether the owner belongs to this session, which has begun a run

    @property
    def most_bytes(self) -> int:
        """How many bytes of numbers a request may have: vectors of the longest w, and none before a run has begun."""
        longest = max((run.dim for run in self._runs.values()), default=0)
        return max(_MOST_VECTORS * 8 * longest, self.score_bytes)

    def end(self) -> None:
        """Let everything go, and the owner serve others."""
        self._forget(list(self._runs))
        self.owner.room.release((self, "wider"))
        self.owner.room.release((self, "scores"))
        self._leave()

    def _enter(self) -> None:
        """Let the owner belong to this session; a second one at the same time is refused."""
        if not self.at_work:
            self.owner.taken()
            self.at_work = True

    def _leave(self) -> None:
        if self.at_work:
            self.at_work = False
            self.owner.free()

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
        payload, self.said = packed(answer), self.said + 1
        self.owner.log.sent(self.peer, str(method)[:40], sum(array.size for array in answer.arrays), payload)
        return payload

    @staticmethod
    def _refusal(reason: str, kind: str) -> Message:
        return Message({"refused": reason, "kind": kind})

    def _answer(self, method: Any, request: Message) -> Message:
        if method not in _METHODS:
            raise Refused(f"unknown method {str(method)[:40]!r}; expected one of {', '.join(_METHODS)}")
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
        sizes |= {"targets": n_numbers(data.y), "scores": self.owner.allow_scores}
        return sizes | told(data.feature_names)

    def _classes(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        return {"labels": self.owner.labels()}

    def _begin(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        """Make a risk of the rows; say what it counts."""
        terms = Terms.from_header(header["terms"])
        terms.check(self.owner.guard)
        if not terms.masked and (self.owner.masked_only is not None or self.owner.peers is not None):
            raise Refused("this owner answers under masks only")
        loss, risk = self._checked_loss(terms), whole(header["risk"])
        self._check_pinned(risk, terms)
        self._enter()
        try:
            answer = self._begun_run(risk, loss, terms)
        except BaseException:
            self._forget([risk])
            if self._pinned is None and self.gathered is None:
                self._leave()
            raise
        self._pinned = terms if self._pinned is None else self._pinned
        self._begun.add(risk)
        return answer

    def _checked_loss(self, terms: Terms) -> Loss:
        """Return the loss of a run, whose numbers of classes and scores fit each other and this owner."""
        n_classes = len(terms.classes or ())
        if n_classes > MOST_SCORES:
            raise Refused(f"the terms name {n_classes} classes; expected at most {MOST_SCORES}")
        try:
            loss = terms.made_loss()
            shape(loss, terms)
        except (ValueError, TypeError) as error:  # by names and parameters alone
            raise Refused(str(error)) from None
        if getattr(loss, "n_classes", None) not in (None, n_classes):
            raise Refused(f"the terms name {n_classes} classes; expected those of the loss")
        if loss.couples == "group" and self.owner.data.groups is None:
            raise Refused(f"loss '{loss.name}' needs queries, which this owner does not have")
        return loss

    def _begun_run(self, risk: int, loss: Loss, terms: Terms) -> dict[str, Any]:
        data = self.owner.data
        point = self._make_room(risk, loss, terms)
        y = targets(data, loss, terms)
        groups = data.groups if loss.couples == "group" else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # queries without pairs: said to nobody else
            mass = self.shard.add_linear(risk, loss, terms.intercept, terms.n_features, y, data.weight, groups, None)
        made = self.shard.risk(risk)
        if made is None:
            raise Refused("no row of this owner counts")
        start = made.touch(np.zeros(made.dim))
        masks = Masks() if terms.masked else None
        step = 0.0 if terms.masked else self._step(terms, loss, start.value)
        record = self._record(terms, y, loss.floor)
        size = power_of_two(max(abs(start.value), float(np.max(np.abs(start.subgradient), initial=0.0))))
        self._runs[risk] = Run(terms, made.dim, mass, start.value, loss.floor, masks, size, point, record, step)
        more = {"grid": step} if masks is None else announced(self.owner, masks, terms.header()) | {"size": size}
        return {"mass": float(mass)} | more

    def _record(self, terms: Terms, y: Any, floor: float) -> Record:
        """Return what has been told of these targets with this loss."""
        return self.owner.records.of(terms, y, floor)

    def _step(self, terms: Terms, loss: Loss, own: float) -> float:
        """Return the step of the owner's grid; masked sums have a grid already."""
        dim, free = shape(loss, terms)
        regularizer = terms.made_regularizer(dim, free)
        return step_for(regularizer, terms.lam, own - loss.floor, dim, self.owner.guard.coarse)

    def _check_pinned(self, risk: int, terms: Terms) -> None:
        """Raise Refused if terms change: the first ones hold for the session, but for the positive class."""
        if risk in self._begun:
            raise Refused(f"run {risk} has begun already; its terms stay as they are")
        if self.gathered not in (None, terms.n_features):
            raise Refused(f"this session has {self.gathered} features; they stay as they are until its end")
        first = terms if self._pinned is None else self._pinned
        names = [field.name for field in dataclasses.fields(terms) if field.name != "positive"]
        changed = [name for name in names if getattr(terms, name) != getattr(first, name)]
        if changed:
            raise Refused(f"the terms of this session have another {changed[0]}; they stay as they are until its end")
        if len(self._begun) >= _MOST_RUNS:
            raise Refused(f"{len(self._begun)} runs have begun in this session, which is all that one may have")

    def _make_room(self, risk: int, loss: Loss, terms: Terms) -> int:
        """Take the memory that a run needs, before anything is made; return the bytes of a point."""
        X, room = self.owner.data.X, self.owner.room
        if terms.n_features < X.shape[1]:
            raise Refused(f"this owner has {X.shape[1]} features, the run {terms.n_features}")
        dim = shape(loss, terms)[0]
        sizes = (int(X.shape[0]), dim, max(dim // max(terms.n_features, 1), 1), loss.couples == "group")
        room.hold((self, "wider"), wider_bytes(X, terms.n_features))
        room.hold((self, risk), risk_bytes(*sizes))
        room.hold((self, risk, "points"), point_bytes(*sizes))  # w = 0
        return point_bytes(*sizes)

    def _join(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        """Learn what all owners count together, and agree on masks."""
        run, total = self._run(header), number(header["total"])
        if run.guard is not None:
            raise Refused("this run has begun already")
        if total < run.mass * (1.0 - 1e-9):
            raise Refused(f"all owners together are said to count {total:g}, but this one alone counts {run.mass:g}")
        if run.masks is not None:
            agreed = agree(self.owner, self.peer, run.masks, run.terms.header(), run.size, header)
            run.parties, run.q, run.bound = agreed.parties, agreed.step, agreed.bound
        run.share = min(1.0, run.mass / total)
        loss = run.terms.made_loss()
        regularizer = run.terms.made_regularizer(*shape(loss, run.terms))
        run.guard = Guard(self.owner.guard, regularizer, run.terms.lam, run.floor, run.own, run.share)
        return {}

    def _drop(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        if not isinstance(header["risks"], list):
            raise WireError("risks to drop must be a list")
        self._forget([whole(risk) for risk in header["risks"]])
        return {}

    def _forget(self, risks: list[int]) -> None:
        for risk in risks:
            self._runs.pop(risk, None)
            self.shard.drop((risk,))
            self.owner.room.release((self, risk))
            self.owner.room.release((self, risk, "points"))
