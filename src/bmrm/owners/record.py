"""The owner's own record: the w's it was asked about, and the slopes of its rows that its answers were made of."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bmrm.owners.guard import Refused
from bmrm.owners.memory import Room
from bmrm.owners.quantize import rounded_up
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearPoint

if TYPE_CHECKING:
    from bmrm.owners.guard import GuardSettings
    from bmrm.owners.terms import Terms

_SKETCH = 64  # numbers kept of the scores at a w: lengths are within about 12 %, points of a line stay on a line
_SAMPLE = 2048  # rows that are compared first
_SHARE = 0.5  # of the owner's memory for coordinators; the oldest planes are forgotten
_PARALLEL = 1e-12  # 1 - |cosine| of directions that count as one line: what rounding leaves of an exact one, with room
_FEWEST = 2.0  # rows: the difference of two answers is never one row
_FLOOR = 1e-12  # of the largest slope: no change


@dataclass(eq=False)
class State:
    """A plane below the risk: weighted slopes g of the rows and the offset b, R(w) >= <g, scores(w)> + b.

    Attributes
    ----------
    slopes : array or None
        None for the plane R >= floor.
    offset : float
    largest : float
        max |g|.
    """

    slopes: Array | None
    offset: float
    largest: float = 0.0

    def at(self, scores: Array) -> float:
        """Return the plane's value at the scores."""
        return self.offset if self.slopes is None else self.offset + float(self.slopes @ scores)

    def normal(self, point: LinearPoint) -> Array:
        """Return the normal X'g, with the rows of a point's risk."""
        if self.slopes is point.slopes:
            return point.subgradient.copy()
        if self.slopes is None:
            return np.zeros(point.risk.dim)
        return point.risk.pull_back(self.slopes, float(np.sum(self.slopes)) if point.risk.vectors is None else 0.0)


@dataclass(frozen=True)
class Told:
    """What is told of a w: the plane of a state, its value, and how much larger the risk may be."""

    state: State
    value: float
    rounding: float
    fresh: bool


class Records:
    """What an owner has told, with all its losses and targets. Planes take half of its memory for coordinators at most.

    Parameters
    ----------
    settings : GuardSettings
    room : Room
        The owner's memory for coordinators.
    """

    def __init__(self, settings: GuardSettings, room: Room) -> None:
        self.settings, self.room = settings, room
        self._records: dict[str, Record] = {}
        self._losses: set[str] = set()

    def of(self, terms: Terms, y: Any, floor: float) -> Record:
        """Return what has been told with the loss of the terms and these targets: one record for all lam and columns.

        Answers for two losses together say more than the record of each knows of, so losses are counted.
        """
        loss = json.dumps([terms.loss, terms.loss_parameters], sort_keys=True)
        if loss not in self._losses and len(self._losses) >= self.settings.losses:
            raise Refused(
                f"this owner answers for {self.settings.losses} loss, with the same parameters, until it is started "
                f"again (--guard-losses)"
            )
        self._losses.add(loss)
        digest = hashlib.sha256(pickle.dumps(y, protocol=4)).hexdigest()
        return self._records.setdefault(loss + digest, Record(self.settings, floor, self._make_room))

    @property
    def n_bytes(self) -> int:
        """How much memory all planes take."""
        return sum(record.n_bytes for record in self._records.values())

    def _make_room(self) -> None:
        """Take memory for what is kept; where there is too little, forget planes of the largest record."""
        while True:
            sizes = {record: record.n_bytes for record in self._records.values()}
            total, largest = sum(sizes.values()), max(sizes, key=lambda record: sizes[record])
            if total <= _SHARE * self.room.most and self._holds(total):
                return
            if not sizes[largest]:
                return
            largest.forget_oldest()

    def _holds(self, n: int) -> bool:
        try:
            self.room.hold(self, n)
        except Refused:
            return False
        return True


class Record:
    """What an owner has told of its rows with one loss, over all runs, whatever their lam.

    A w gets a plane of its own only if that plane differs from each earlier one in many rows: with the differences
    |g_i - h_i| of the slopes, their sum must be at least n times the largest, n = `changed` of
    the rows. One of the planes is R >= floor, so at
    least so many rows are active in each answer. Every other w is answered by the highest of the earlier planes, and by
    a rounding error, told as a power of two, that covers the distance to R(w). The answers stay a proof: each plane is
    below R, and value plus rounding error above.

    Parameters
    ----------
    settings : GuardSettings
    floor : float
        Of the risk.
    make_room : callable, optional
        Called when there is a new plane: may forget the oldest ones.

    Attributes
    ----------
    fresh : int
        How many w have got a plane of their own.
    """

    def __init__(self, settings: GuardSettings, floor: float, make_room: Callable[[], None] = lambda: None) -> None:
        self.settings, self.fresh, self._make_room = settings, 0, make_room
        self._states = [State(None, floor)]
        self._samples: list[Array] = []
        self._told: dict[bytes, Told] = {}
        self._seen = np.zeros((0, _SKETCH))
        self._rows: npt.NDArray[np.int64] | None = None

    def tell(self, point: LinearPoint, q: float) -> Told:
        """Return what is told of a point; of the same w always the same.

        Parameters
        ----------
        point : LinearPoint
        q : float
            The least rounding error that is told.
        """
        key = hashlib.sha256(point.w.tobytes() + np.float64(q).tobytes()).digest()
        told = self._told.get(key)
        if told is None:
            told = self._told[key] = self._decided(point, q)
        return told

    def _decided(self, point: LinearPoint, q: float) -> Told:
        sketch = self._sketched(point.factors[1])
        slopes = point.slopes
        if self._far(sketch) and self._differs(point) and self._off_lines(sketch):
            state = State(slopes, point.plane_offset, float(np.max(np.abs(slopes))))
            self._keep(state, sketch)
            return Told(state, point.value, rounded_up(q + point.rounding, q), True)
        scores = point.factors[1]
        state = max(self._states, key=lambda each: each.at(scores))
        value = min(state.at(scores), point.value)
        return Told(state, value, rounded_up(q + point.value + point.rounding - value, q), False)

    def _keep(self, state: State, sketch: Array) -> None:
        assert state.slopes is not None
        self.fresh += 1
        self._states.append(state)
        self._samples.append(state.slopes[self._sampled(state.slopes.size)])
        self._seen = np.vstack([self._seen, sketch])
        self._make_room()

    @property
    def n_bytes(self) -> int:
        """How much memory the planes take."""
        return sum(state.slopes.nbytes for state in self._states if state.slopes is not None)

    def forget_oldest(self) -> None:
        """Forget a plane, and what was told by it."""
        gone = self._states.pop(1)
        del self._samples[0]
        self._told = {key: told for key, told in self._told.items() if told.state is not gone}

    def _sampled(self, size: int) -> Any:
        """Return the places of the slopes that are compared first."""
        if size <= _SAMPLE:
            return slice(None)
        if self._rows is None:
            self._rows = np.random.default_rng(0).choice(size, _SAMPLE, replace=False)
        return self._rows

    def _sketched(self, scores: Array) -> Array:
        """Return a random linear image of the scores X w, so that columns of different size count alike."""
        if scores.size <= _SKETCH:
            return np.pad(scores, (0, _SKETCH - scores.size))
        buckets = _buckets(scores.size)
        signed = np.where(buckets < _SKETCH, scores, -scores)
        return np.bincount(buckets % _SKETCH, signed, _SKETCH).astype(np.float64)

    def _far(self, sketch: Array) -> bool:
        """Whether w is farther than the resolution from each w with a plane of its own."""
        if not len(self._seen) or not self.settings.resolution:
            return True
        apart = np.linalg.norm(self._seen - sketch, axis=1)
        size = np.maximum(np.linalg.norm(self._seen, axis=1), np.linalg.norm(sketch))
        return bool((apart > self.settings.resolution * size).all())

    def _off_lines(self, sketch: Array) -> bool:
        """Whether no line through w holds as many w with planes of their own as are allowed."""
        most = self.settings.per_line
        if len(self._seen) < most:
            return True
        directions = self._seen - sketch
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return bool((np.sum(np.abs(directions @ directions.T) > 1.0 - _PARALLEL, axis=1) < most).all())

    def _differs(self, point: LinearPoint) -> bool:
        """Whether the slopes differ from those of each state in enough rows."""
        if not self.settings.changed:
            return True
        slopes, outputs = point.slopes, point.risk.n_outputs
        least = max(_FEWEST, self.settings.changed * slopes.size / outputs)
        size = float(np.max(np.abs(slopes)))
        if not size > 0.0:
            return False
        sample = slopes[self._sampled(slopes.size)]
        for state, own in zip(self._states, [None, *self._samples]):
            if own is not None and np.sum(np.abs(sample - own)) >= outputs * least * (size + state.largest):
                continue  # more rows than that would do: no row changes by more than its two slopes
            change = np.abs(slopes if state.slopes is None else slopes - state.slopes)
            change = change.reshape(-1, outputs).sum(axis=1) if outputs > 1 else change
            largest = float(np.max(change))
            if largest <= _FLOOR * size or float(np.sum(change)) < least * largest:
                return False
        return True


@lru_cache(maxsize=4)
def _buckets(size: int) -> npt.NDArray[np.uint8]:
    """Return where each score goes in a sketch, and its sign; always the same: no w seems far that is near."""
    return np.random.default_rng(0).integers(2 * _SKETCH, size=size).astype(np.uint8)
