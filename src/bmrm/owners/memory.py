"""Room: the memory that coordinators may take of an owner, and what each of their wishes needs of it."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any

import numpy as np

from bmrm._errors import DataError
from bmrm.data.memory import parse_bytes, show_bytes
from bmrm.owners.guard import Refused
from bmrm.risks.shard import LineName, PointName

MOST_BYTES = 512_000_000  # a coordinator that trains on a million rows needs about 200 MB
LEAST_BYTES = 1 << 24  # messages of a small run, with their copies
_NUMBER = 8  # bytes
# Numbers that are kept, measured with 10^6 rows or 2 * 10^6 features (nine losses) and rounded up.
_POINT_DIM, _RISK_DIM = 3, 6
_POINT_ROWS, _RISK_ROWS = 2, 4
_POINT_ROWS_OF_QUERIES, _RISK_ROWS_OF_QUERIES = 7, 10
_SCORES = 4  # vectors of each length: of requests, of answers, and their copies


class Room:
    """A number of bytes, shared by all connections of an owner.

    Parameters
    ----------
    most : int or str
        Bytes, at least 16 MiB, or text such as "2GB".

    Examples
    --------
    >>> from bmrm.owners.memory import Room
    >>> room = Room(100_000_000)
    >>> room.hold("w", 90_000_000)
    >>> room.hold("w", 95_000_000)
    >>> room.left
    5000000
    """

    def __init__(self, most: int | str = MOST_BYTES) -> None:
        try:
            self.most = parse_bytes(most)
        except ValueError as error:
            raise DataError(f"max_memory: {error}") from None
        if self.most < LEAST_BYTES:
            raise DataError(f"max_memory must be at least {show_bytes(LEAST_BYTES)}, got {most!r}")
        self._held: dict[Hashable, int] = {}
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """How many bytes are free."""
        with self._lock:
            return self.most - sum(self._held.values())

    def hold(self, what: Hashable, n: int) -> None:
        """Take n bytes for something, in the place of those it has; raise Refused where they are not free."""
        with self._lock:
            others = sum(self._held.values()) - self._held.get(what, 0)
            if others + n > self.most:
                raise Refused(
                    f"this takes {show_bytes(n)} of memory, and {show_bytes(max(self.most - others, 0))} are free of "
                    f"the {show_bytes(self.most)} that this owner has for coordinators (--max-memory)"
                )
            self._held[what] = n

    def release(self, what: Hashable) -> None:
        """Give back what something has."""
        with self._lock:
            self._held.pop(what, None)


def wider_bytes(X: Any, n_features: int) -> int:
    """Return what the rows take with so many features, where they have fewer: dense rows are copied."""
    rows, own = X.shape
    return _NUMBER * int(rows) * n_features if isinstance(X, np.ndarray) and n_features > own else 0


def risk_bytes(rows: int, dim: int, outputs: int, of_queries: bool) -> int:
    """Return what a risk of so many rows takes beside them: targets, weights, vectors as long as w."""
    of_rows = _RISK_ROWS_OF_QUERIES if of_queries else _RISK_ROWS
    return _NUMBER * (of_rows * rows * outputs + _RISK_DIM * dim)


def point_bytes(rows: int, dim: int, outputs: int, of_queries: bool) -> int:
    """Return what a point or a line that is kept takes: w, subgradient, scores, slopes."""
    of_rows = _POINT_ROWS_OF_QUERIES if of_queries else _POINT_ROWS
    return _NUMBER * (of_rows * rows * outputs + _POINT_DIM * dim)


def plane_bytes(dim: int) -> int:
    """Return what a plane that is kept takes."""
    return _NUMBER * (dim + 1)


def score_bytes(rows: int, columns: int) -> int:
    """Return what labels, weights, scores and slopes of single rows take, and vectors as long as w."""
    return _NUMBER * _SCORES * (rows + columns)


def new_things(name: PointName | LineName | None) -> int:
    """Return how many points and lines a name may add.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.owners.memory import new_things
    >>> from bmrm.risks.shard import LineName, PointName
    >>> new_things(LineName(1, PointName(2, np.zeros(3)), np.ones(3)))
    2
    """
    if name is None:
        return 0
    return 1 + new_things(name.line if isinstance(name, PointName) else name.start)
