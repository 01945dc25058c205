"""What an owner that allows scores answers: labels, weights and scores of single rows, and sums for given slopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bmrm.owners.guard import Refused
from bmrm.owners.labels import single
from bmrm.owners.memory import score_bytes, wider_bytes
from bmrm.owners.names import whole
from bmrm.owners.wire import Message, WireError
from bmrm.risks.entries import digest

if TYPE_CHECKING:
    from bmrm.owners.owner import Owner
    from bmrm.risks.shard import Shard

Arrays = tuple[npt.NDArray[Any], ...]


class ScoreRequests:
    """The requests of losses that look at all rows together, and of checkpoints.

    X w for d different w, or X' g where g is 1 at one row only, say all of the rows. So nothing here protects rows:
    `Owner.allow_scores` does, and the budget of answers limits how much is told.
    """

    METHODS = ("gather", "scores", "pull", "sizes", "checksum")

    owner: Owner
    peer: str
    shard: Shard
    _runs: dict[int, Any]
    at_work: bool
    gathered: int | None = None  # columns of w, once labels have been told

    @property
    def score_bytes(self) -> int:
        """How many bytes of numbers a request may have: none before labels have been told."""
        return 0 if self.gathered is None else 8 * max(self.gathered, self.owner.data.n_examples)

    def _gather(self, header: dict[str, Any], arrays: Arrays) -> Message:
        """Tell labels and weights of all rows, text as places in a list; how many columns w will have is agreed on."""
        if not self.owner.allow_scores:
            raise Refused(
                "this owner tells no labels and scores of single rows; it would with --allow-scores (serve-shard; in "
                "Python allow_scores=True of Owner)"
            )
        columns, data = whole(header["columns"]), self.owner.data
        self._make_score_room(columns)
        self.owner.log.noted(self.peer, "scores", f"labels and weights of {data.n_examples} rows are told")
        found, text = [], None
        if data.y is not None:
            y = single(data.y)
            if y.dtype.kind == "U":
                names, y = np.unique(y, return_inverse=True)
                text = names.tolist()
            found.append(y.astype(np.float64))
        if data.weight is not None:
            found.append(np.asarray(data.weight, dtype=np.float64))
        return Message({"labels": data.y is not None, "text": text, "weighted": data.weight is not None}, tuple(found))

    def _scores(self, header: dict[str, Any], arrays: Arrays) -> Message:
        """Tell X w."""
        columns, w = self._columns(), self._vector(arrays)
        if w.size != columns:
            raise Refused(f"w has {w.size} numbers; expected {columns}")
        self.owner.asked()
        self.owner.counted()
        return Message({}, (self.shard.dot(w),))

    def _pull(self, header: dict[str, Any], arrays: Arrays) -> Message:
        """Tell X' g for the slopes g of all rows."""
        columns, slopes = self._columns(), self._vector(arrays)
        if slopes.size != self.owner.data.n_examples:
            raise Refused(f"{slopes.size} slopes came for {self.owner.data.n_examples} rows")
        self.owner.asked()
        self.owner.counted()
        return Message({}, (self.shard.tdot(columns, slopes),))

    def _sizes(self, header: dict[str, Any], arrays: Arrays) -> Message:
        """Tell the sum of squares and the number of entries of each column."""
        squares, counts = self.shard.column_sizes(self._columns())
        return Message({}, (squares, counts.astype(np.int64), np.array([self.shard.square_sum()])))

    def _checksum(self, header: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
        """Tell a checksum of the data, for checkpoints; 64 bits of a SHA-256."""
        if self.owner.masked_only is not None or self.owner.peers is not None:
            raise Refused("this owner answers under masks only, and tells no checksum of its rows")
        columns = whole(header["columns"])
        if columns not in {self.gathered, *(run.terms.n_features for run in self._runs.values())}:
            raise Refused(f"no run with {columns} features has begun")
        y, groups, weight = self.shard.belongings()
        return {"checksum": digest([self.shard.identity(columns), digest(y), digest(groups), digest(weight)])}

    def _columns(self) -> int:
        """Return how many columns were agreed on when labels were told."""
        if self.gathered is None:
            raise Refused("scores are told after the labels ('gather'), if they are allowed")
        return self.gathered

    def _make_score_room(self, columns: int) -> None:
        """Belong to this session, and take the memory of wider rows, labels, scores and slopes before they are made."""
        X, room = self.owner.data.X, self.owner.room
        if columns < X.shape[1]:
            raise Refused(f"this owner has {X.shape[1]} features, the run {columns}")
        agreed = {self.gathered, *(run.terms.n_features for run in self._runs.values())} - {None}
        if agreed - {columns}:
            raise Refused(f"this session has {agreed.pop()} features; they stay as they are until its end")
        before = self.at_work
        self._enter()
        try:
            room.hold((self, "wider"), wider_bytes(X, columns))
            room.hold((self, "scores"), score_bytes(int(X.shape[0]), columns))
        except Refused:
            if not before:
                room.release((self, "wider"))
                self._leave()
            raise
        self.gathered = columns

    def _enter(self) -> None:
        raise NotImplementedError

    def _leave(self) -> None:
        raise NotImplementedError

    @staticmethod
    def _vector(arrays: Arrays) -> npt.NDArray[Any]:
        if len(arrays) != 1 or arrays[0].dtype != np.float64 or not np.isfinite(arrays[0]).all():
            raise WireError("a request for scores or slopes needs one vector of finite float64")
        return arrays[0]
