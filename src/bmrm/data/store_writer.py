"""Writing a store: pieces of any size come in, blocks of one size and the statistics of all rows go out."""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bmrm import _core
from bmrm._errors import DataError
from bmrm.data.pieces import Belongings, Piece, joined
from bmrm.data.store_format import (
    PAGE,
    Block,
    Header,
    StoredArray,
    block_parts,
    header_bytes,
    padded,
    preamble,
)
from bmrm.data.threads import default_threads

BLOCK_BYTES = 16 << 20
_QUERY_BLOCKS = 2  # how much larger a block may be that ends with a query


class StoreWriter:
    """Writes the rows of pieces, in order, to an open file.

    Parameters
    ----------
    file : binary file
        Open for writing and seeking; the caller sees to it that it appears complete or not at all.
    single : bool or None
        Whether values are rounded to float32; by default those of the first piece decide.
    block_bytes : int
        The size of a block, but for single rows that are larger.
    """

    def __init__(self, file: BinaryIO, single: bool | None, block_bytes: int = BLOCK_BYTES) -> None:
        self._file, self._single, self._block_bytes = file, single, block_bytes
        self._waiting: list[Any] = []
        self._waiting_groups: list[NDArray[Any]] = []
        self._waiting_bytes = 0
        self._kind, self._columns, self.rows, self.entries, self._square_sum = "", 0, 0, 0, 0.0
        self._blocks: list[Block] = []
        self._norms: list[NDArray[np.float64]] = []
        self._squares, self._counts = np.zeros(0), np.zeros(0, np.int64)
        self._beside = Belongings()
        self._place = PAGE

    def add(self, piece: Piece) -> None:
        """Take the rows of a piece."""
        if piece.rows == 0:
            return
        if not self._kind:
            self._begin(piece)
        self._beside.add(piece, self._columns)
        X = self._typed(piece)
        self._check_finite(X, piece)
        self.rows += piece.rows
        self._waiting.append(X)
        if piece.groups is not None:
            self._waiting_groups.append(piece.groups)
        self._waiting_bytes += sum(part.nbytes for part in X) if isinstance(X, tuple) else X.nbytes
        if self._waiting_bytes >= self._block_bytes:
            self._flush(everything=False)

    @property
    def beside_bytes(self) -> int:
        """What joining the arrays beside the blocks will take."""
        return 8 * self.rows + self._beside.n_bytes

    def finish(self, zero_based: bool | None) -> Header:
        """Write what is left, the arrays and the header."""
        if not self.rows:
            raise DataError("no rows; expected at least one")
        self._flush(everything=True)
        arrays = self._beside.arrays()
        arrays["row_norms"] = np.concatenate(self._norms)
        arrays["column_squares"], arrays["column_counts"] = self._squares, self._counts
        stored = {name: self._write_array(array) for name, array in arrays.items()}
        header = Header(
            rows=self.rows, columns=self._columns, entries=self.entries, kind=self._kind,  # type: ignore[arg-type]
            dtype="<f4" if self._single else "<f8", square_sum=self._square_sum, zero_based=zero_based,
            blocks=tuple(self._blocks), arrays=stored,
        )  # fmt: skip
        content = header_bytes(header)
        self._seek(self._place)
        self._file.write(content)
        self._file.seek(0)
        self._file.write(preamble(self._place, content))
        return header

    def _begin(self, piece: Piece) -> None:
        sparse = isinstance(piece.X, tuple)
        self._kind = "csr" if sparse else "dense"
        values = piece.X[0] if isinstance(piece.X, tuple) else piece.X
        if self._single is None:
            self._single = values.dtype == np.float32

    def _typed(self, piece: Piece) -> Any:
        kind = np.dtype("<f4" if self._single else "<f8")
        with np.errstate(over="ignore"):  # infinity is found next
            if not isinstance(piece.X, tuple):
                self._columns = max(self._columns, piece.columns)
                return np.ascontiguousarray(piece.X, kind)
            values, indices, indptr = piece.X
            self._columns = max(self._columns, piece.columns)
            return np.ascontiguousarray(values, kind), indices, np.ascontiguousarray(indptr, np.int64)

    def _check_finite(self, X: Any, piece: Piece) -> None:
        sparse = isinstance(X, tuple)
        matrix = _core.csr(X[0], X[1], X[2], self._columns) if sparse else _core.dense(X)
        bad = matrix.first_nonfinite(default_threads())
        if bad is not None:
            kind = "a float32" if self._single else "finite"
            raise DataError(
                f"{piece.origin}: the value in row {piece.first_row + bad[0]}, column {bad[1]} is not {kind}"
            )

    def _flush(self, everything: bool) -> None:
        """Write full blocks of the rows that wait, and the rest as well if asked for."""
        if not self._waiting:
            return
        X = joined(self._waiting)
        n = len(X[2]) - 1 if isinstance(X, tuple) else len(X)
        ends = _row_ends(X)
        row = 0
        while row < n:
            written = int(ends[row - 1]) if row else 0
            if not everything and ends[-1] - written < self._block_bytes:
                break
            stop = max(int(np.searchsorted(ends, written + self._block_bytes, side="right")), row + 1)
            if self._waiting_groups and stop < n:
                most = int(np.searchsorted(ends, written + _QUERY_BLOCKS * self._block_bytes, side="right"))
                stop = _between_queries(np.concatenate(self._waiting_groups), row, stop, max(most, stop))
            self._write_block(_rows_of(X, row, stop))
            row = stop
        self._waiting = [_rows_of(X, row, n)] if row < n else []
        if self._waiting_groups:
            self._waiting_groups = [np.concatenate(self._waiting_groups)[row:]]
        self._waiting_bytes = int(ends[-1] - (ends[row - 1] if row else 0)) if row < n else 0

    def _write_block(self, X: Any) -> None:
        dtype = "<f4" if self._single else "<f8"
        if isinstance(X, tuple):
            values, indices, indptr = X
            parts, rows, entries, size = [indptr, values, indices], len(indptr) - 1, values.size, indices.itemsize
            matrix = _core.csr(values, indices, indptr, self._columns)
        else:
            parts, rows, entries, size, matrix = [X], len(X), X.size, 0, _core.dense(X)
        places, whole = block_parts(self._kind, dtype, rows, entries, size)
        content = np.zeros(whole, np.uint8)
        for place, part in zip(places, parts):
            content[place : place + part.nbytes] = np.ascontiguousarray(part).reshape(-1).view(np.uint8)
        self._seek(self._place)
        self._file.write(content.data)
        self._blocks.append(Block(self._place, whole, rows, entries, size, zlib.crc32(content.data)))
        self._place = padded(self._place + whole, PAGE)
        self.entries += entries
        self._note(matrix)

    def _note(self, matrix: _core.Matrix) -> None:
        threads, more = default_threads(), self._columns - len(self._squares)
        norms = np.empty(matrix.n_rows)
        matrix.row_norms(norms, threads)
        self._norms.append(norms)
        self._square_sum += matrix.square_sum(threads)
        if more:
            self._squares = np.append(self._squares, np.zeros(more))
            self._counts = np.append(self._counts, np.zeros(more, np.int64))
        squares, counts = np.zeros(self._columns), np.zeros(self._columns, np.int64)
        _core.column_sizes(matrix, None, squares, counts, threads)
        self._squares += squares
        self._counts += counts

    def _write_array(self, array: NDArray[Any]) -> StoredArray:
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        content = plain.tobytes()
        self._seek(self._place)
        self._file.write(content)
        place = StoredArray(self._place, len(content), plain.dtype.str, plain.shape, zlib.crc32(content))
        self._place = padded(self._place + len(content), PAGE)
        return place

    def _seek(self, place: int) -> None:
        """Go there; what lies between is filled with zeros, so that whole pages can be read."""
        self._file.seek(0, 2)
        gap = place - self._file.tell()
        if gap > 0:
            self._file.write(bytes(gap))


def _between_queries(groups: NDArray[Any], row: int, stop: int, most: int) -> int:
    """Return where a block from `row` to about `stop` ends: where a query does, if one ends before `most`.

    A store can then be cut between blocks without cutting queries.
    """
    ends = np.flatnonzero(groups[1:] != groups[:-1]) + 1
    before, after = ends[(ends > row) & (ends <= stop)], ends[(ends > stop) & (ends <= most)]
    return int(before[-1] if len(before) else after[0] if len(after) else stop)


def _rows_of(X: Any, start: int, stop: int) -> Any:
    """Return some rows, as views where that is possible."""
    if not isinstance(X, tuple):
        return X[start:stop]
    values, indices, indptr = X
    part = slice(int(indptr[start]), int(indptr[stop]))
    return values[part], indices[part], indptr[start : stop + 1] - indptr[start]


def _row_ends(X: Any) -> NDArray[np.int64]:
    """Return how many bytes the rows up to each one take."""
    if isinstance(X, tuple):
        values, indices, indptr = X
        ends: NDArray[np.int64] = indptr[1:] * (values.itemsize + indices.itemsize) + 8 * np.arange(1, len(indptr))
        return ends
    ends = np.arange(1, len(X) + 1, dtype=np.int64) * max(X.shape[1] * X.itemsize, 1)
    return ends
