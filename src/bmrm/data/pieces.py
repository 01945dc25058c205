"""Pieces: consecutive rows of a source with what belongs to them; joined in memory, or written by `StoreWriter`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm._errors import DataError
from bmrm.data.columns import Columns, Names, few, places_of
from bmrm.data.dataset import Dataset, label_sets

_WHAT = {"y": "labels", "groups": "queries (qid)", "weight": "weights", "names": "names of columns"}


@dataclass(frozen=True)
class Piece:
    """Consecutive rows from one source, with what belongs to them.

    `X` is a dense array, or values, indices and indptr; `y_ends` says where the labels of each row end where rows have
    several. `origin` and `first_row` are for messages, `names` are those of the columns.
    """

    X: NDArray[Any] | tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    y: NDArray[Any] | None = None
    y_ends: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    weight: NDArray[Any] | None = None
    columns: int = 0
    origin: str = ""
    first_row: int = 0
    names: Names | None = None

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.X[2]) - 1 if isinstance(self.X, tuple) else len(self.X)

    def arranged(self, columns: Columns) -> Piece:
        """Return the same rows with the features in their order; without names there is only one."""
        if self.names is None and columns.given:
            raise DataError(f"{self.origin}: has no names of columns; expected {few(columns.names or ())}")
        if self.names is None or self.names is columns.names:
            return self
        wanted = columns.of(self.names, self.origin)
        if wanted == self.names:
            return self
        X: Any = self.X
        places = places_of(wanted, self.names)
        if isinstance(X, tuple):
            from scipy.sparse import csr_array

            chosen = csr_array(X, shape=(self.rows, self.columns))[:, places]
            chosen.sort_indices()
            X = chosen.data, chosen.indices.astype(X[1].dtype, copy=False), chosen.indptr.astype(np.int64)
        else:
            X = np.ascontiguousarray(X[:, places])
        return replace(self, X=X, columns=len(wanted), names=wanted)

    def only(self, keep: NDArray[np.bool_]) -> Piece:
        """Return the rows for which `keep` is true; only for rows with one label each."""
        X: Any = self.X
        if isinstance(X, tuple):
            values, indices, indptr = X
            lengths = np.diff(indptr)
            entries = np.repeat(keep, lengths)
            X = values[entries], indices[entries], np.append(0, np.cumsum(lengths[keep]))
        else:
            X = X[keep]
        y, groups, weight = (None if own is None else own[keep] for own in (self.y, self.groups, self.weight))
        return replace(self, X=X, y=y, groups=groups, weight=weight)


class Belongings:
    """Labels, queries and weights of pieces, which must agree about having them and about their kind of X.

    Attributes
    ----------
    n_bytes : int
        How much they take.
    """

    def __init__(self) -> None:
        self.n_bytes = 0
        self._first: Piece | None = None
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in ("y", "groups", "weight", "y_ends")}

    def add(self, piece: Piece, columns: int) -> None:
        """Take those of a piece; the ones before have so many columns."""
        first = self._first = self._first or piece
        if isinstance(piece.X, tuple) != isinstance(first.X, tuple):
            raise DataError(f"{piece.origin}: dense and sparse data together; {first.origin} is of the other kind")
        if not isinstance(piece.X, tuple) and columns and piece.columns != columns:
            raise DataError(f"{piece.origin}: has {piece.columns} features, but {first.origin} has {columns}")
        for name, what in _WHAT.items():
            if (getattr(piece, name) is None) != (getattr(first, name) is None):
                has, lacks = (first, piece) if getattr(piece, name) is None else (piece, first)
                raise DataError(f"{lacks.origin}: has no {what}, but {has.origin} has; expected all files to agree")
        if piece.y is not None:
            self._add_labels(piece)
        for name in ("groups", "weight"):
            part = getattr(piece, name)
            if part is not None:
                self._parts[name].append(np.ascontiguousarray(part, "<i8" if name == "groups" else "<f8"))
                self.n_bytes += part.nbytes

    def _add_labels(self, piece: Piece) -> None:
        y, before = np.asarray(piece.y), self._parts["y"]
        if before and (before[0].dtype.kind in "SU") != (y.dtype.kind in "SU"):
            raise DataError(f"{piece.origin}: labels are of type {y.dtype}, but {before[0].dtype} before")
        if before and y.shape[1:] != before[0].shape[1:]:
            raise DataError(f"{piece.origin}: labels have shape {y.shape}, but {before[0].shape} before")
        ends = self._parts["y_ends"]
        base = sum(len(part) for part in before)
        if piece.y_ends is not None and not ends and before:  # the first rows with other than one label
            ends.append(np.arange(1, base + 1))
        if piece.y_ends is not None or ends:
            own = np.arange(1, len(y) + 1) if piece.y_ends is None else piece.y_ends
            ends.append(np.asarray(own, np.int64) + base)
        before.append(y)
        self.n_bytes += y.nbytes + (8 * len(y) if ends else 0)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what there is, of all rows, and the names of the columns as "feature_names"."""
        names = None if self._first is None else self._first.names
        whole = {} if names is None else {"feature_names": np.array(names, dtype=str)}
        return whole | {name: np.concatenate(parts) for name, parts in self._parts.items() if parts}


def joined(parts: list[Any]) -> Any:
    """Return the rows of several X as one."""
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0], tuple):
        return np.concatenate(parts)
    lengths = np.concatenate([np.diff(indptr) for _, _, indptr in parts])
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]), indptr


def as_dataset(pieces: Iterable[Piece], zero_based: bool | None = None) -> Dataset:
    """Return the rows of all pieces, in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.data.pieces import Piece, as_dataset
    >>> as_dataset([Piece(np.eye(2), columns=2), Piece(np.ones((1, 2)), columns=2)]).X.shape
    (3, 2)
    """
    beside, rows, columns = Belongings(), [], 0
    for piece in pieces:
        if piece.rows:
            beside.add(piece, columns)
            rows.append(piece.X)
            columns = max(columns, piece.columns)
    if not rows:
        return Dataset(X=np.zeros((0, columns)), zero_based=zero_based)
    X, found = joined(rows), beside.arrays()
    if isinstance(X, tuple):
        from scipy.sparse import csr_array

        X = csr_array(X, shape=(len(X[2]) - 1, columns))
    y: Any = found.get("y")
    y = label_sets(y, found["y_ends"]) if "y_ends" in found else y
    names = found.get("feature_names")
    listed = None if names is None else names.tolist()
    return Dataset(X, y, found.get("groups"), found.get("weight"), zero_based, listed)
