"""A matrix whose rows are on disk: a thread reads the next blocks while the current one is computed with."""

from __future__ import annotations

import mmap
import os
import threading
import weakref
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._errors import DataError
from bmrm.data.memory import room_for_planes
from bmrm.data.store_format import (
    PAGE,
    Block,
    Bytes,
    Header,
    block_matrix,
    check_block,
    header_place,
    padded,
    parse_header,
)
from bmrm.data.text import checked_text

Array: TypeAlias = npt.NDArray[np.float64]

_MOST_READ = 1 << 30  # bytes in one call, which the system may limit
_BUFFERS = 3  # one is computed with, one is full, one is being read


def corrupt(path: Path, what: str, offset: int, why: str) -> DataError:
    """Return the error for a part of a file that cannot be used."""
    return DataError(f"{path}: corrupt {what} at offset {offset}: {why}")


def buffer_of(sizes: Sequence[int]) -> Bytes:
    """Return memory for the largest block, aligned as reads around the system's cache need it."""
    size = padded(max([1, *sizes]), PAGE)
    return np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)


class BlockFile:
    """The open file of a store: its header, its arrays, and its blocks, which are checked when they are first read.

    Reads do not move the file's position, so that forked processes may share it.

    Parameters
    ----------
    path : Path
    around_cache : bool
        Leave nothing in the system's cache of files.
    """

    def __init__(self, path: Path, around_cache: bool) -> None:
        self.path, self._around = path, around_cache
        self._handle = _opened(path)
        weakref.finalize(self, os.close, self._handle)
        size = os.fstat(self._handle).st_size
        offset, length, crc = header_place(path, self._bytes(0, PAGE), size)
        self.header = parse_header(path, self._bytes(offset, length), offset, crc, size)
        self.bytes_read = 0
        self._checked: set[int] = set()
        self._direct = _opened_directly(path, self._handle) if around_cache else None
        if self._direct is not None:
            weakref.finalize(self, os.close, self._direct)

    def array(self, name: str) -> npt.NDArray[Any] | None:
        """Return an array that is stored beside the blocks, None if it is not."""
        place = self.header.arrays.get(name)
        if place is None:
            return None
        content = self._bytes(place.offset, place.size)
        if len(content) != place.size or zlib.crc32(content) != place.crc:
            raise corrupt(self.path, f"array {name}", place.offset, "its checksum is wrong")
        try:
            return checked_text(np.frombuffer(content, place.dtype).reshape(place.shape))
        except ValueError as error:
            raise corrupt(self.path, f"array {name}", place.offset, str(error)) from error

    def statistic(self, name: str) -> npt.NDArray[Any]:
        """Return an array that was computed when the file was written."""
        array = self.array(name)
        if array is None:
            raise DataError(f"{self.path}: has no {name}: convert again")
        return array

    def _bytes(self, offset: int, size: int) -> bytes:
        parts = []
        while size > 0:
            try:
                part = os.pread(self._handle, min(size, _MOST_READ), offset)
            except OSError as error:
                raise corrupt(self.path, "data", offset, str(error.strerror)) from error
            if not part:
                break
            parts.append(part)
            offset, size = offset + len(part), size - len(part)
        return b"".join(parts)

    def read(self, block: Block, buffer: Bytes) -> None:
        """Fill the buffer's beginning with a block."""
        self._fill(block, buffer)
        if block.offset in self._checked:
            return
        try:
            check_block(self.header, block, buffer)
        except ValueError as error:
            raise corrupt(self.path, "block", block.offset, str(error)) from None
        self._checked.add(block.offset)

    def _fill(self, block: Block, buffer: Bytes) -> None:
        handle = self._handle if self._direct is None else self._direct
        whole = block.size if self._direct is None else padded(block.size, PAGE)
        done = 0
        while done < block.size:
            part = buffer.data[done : min(whole, done + _MOST_READ)]
            try:
                count = os.preadv(handle, [part], block.offset + done)
            except OSError as error:
                raise corrupt(self.path, "block", block.offset, str(error.strerror)) from error
            if count == 0:
                raise corrupt(self.path, "block", block.offset, f"the file ends after {done} of {block.size} bytes")
            done += count
        self.bytes_read += block.size
        if self._around and self._direct is None and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(handle, block.offset, padded(block.size, PAGE), os.POSIX_FADV_DONTNEED)


def _opened(path: Path) -> int:
    if path.is_dir():
        raise DataError(f"{path}: is a directory; expected a store")
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error


def _opened_directly(path: Path, handle: int) -> int | None:
    """Open the same file for reads around the system's cache; None where the system or the file has none."""
    if not hasattr(os, "O_DIRECT"):
        return None
    try:
        direct = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        same = os.path.samestat(os.fstat(handle), os.fstat(direct))
        if same and os.preadv(direct, [buffer_of([PAGE]).data], 0) > 0:
            return direct
    except OSError:  # a file system that opens such files, but does not read them
        pass
    os.close(direct)
    return None


class StreamedMatrix:
    """The products of a compiled matrix, for rows that are read block by block; the sums go by blocks, in order.

    Parameters
    ----------
    file : BlockFile
    blocks : sequence of Block
    memory : int or None
        The most bytes that may be resident.
    rows : array, optional
        The numbers of the rows in the file, where some are left out.
    header : Header, optional
        That of the file, with more columns.
    """

    def __init__(
        self, file: BlockFile, blocks: Sequence[Block], memory: int | None, rows: npt.NDArray[np.intp] | None = None,
        header: Header | None = None,
    ) -> None:  # fmt: skip
        self._file, self._blocks, self._memory, self._rows = file, blocks, memory, rows
        self._header = header or file.header
        self.n_rows = sum(block.rows for block in blocks)
        self.n_cols = self._header.columns
        self.n_entries = sum(block.entries for block in blocks)
        self._buffers: list[Bytes] = []
        self._sizes: tuple[Array, npt.NDArray[np.int64]] | None = None
        self._lock = threading.Lock()

    def each(self, work: Callable[[slice, _core.Matrix], None]) -> None:
        """Call the function with the rows and the matrix of every block, in order; the next ones are read meanwhile."""
        with self._lock:
            if not self._buffers:
                sizes = [block.size for block in self._blocks]
                self._buffers = [buffer_of(sizes) for _ in range(min(_BUFFERS, len(self._blocks)))]
            free: SimpleQueue[Bytes | None] = SimpleQueue()
            full: SimpleQueue[Bytes | BaseException] = SimpleQueue()
            for buffer in self._buffers:
                free.put(buffer)
            reader = threading.Thread(target=self._read, args=(free, full), name="bmrm-reader", daemon=True)
            reader.start()
            try:
                self._work(work, free, full)
            finally:
                free.put(None)
                reader.join()

    def _work(self, work: Callable[[slice, _core.Matrix], None], free: Any, full: Any) -> None:
        row = 0
        for block in self._blocks:
            buffer = full.get()
            if isinstance(buffer, BaseException):
                raise buffer
            work(slice(row, row + block.rows), block_matrix(self._header, block, buffer))
            free.put(buffer)
            row += block.rows

    def _read(self, free: Any, full: Any) -> None:
        try:
            for block in self._blocks:
                buffer = free.get()
                if buffer is None:
                    return
                self._file.read(block, buffer)
                full.put(buffer)
        except BaseException as error:  # raised where the blocks are waited for
            full.put(error)

    def dot(self, w: Array, out: Array, n_threads: int = 1) -> None:
        """out = X w"""
        self.each(lambda rows, block: block.dot(w, out[rows], n_threads))

    def sum_depth(self, k: int = 1) -> int:
        """Return the most additions on the way of one row's term into an entry of X' g."""
        return max(block.rows for block in self._blocks) + len(self._blocks)

    def tdot(self, g: Array, out: Array, n_threads: int = 1) -> None:
        """out = X' g"""
        self._sum(lambda rows, block, part: block.tdot(g[rows], part, n_threads), out)

    def dot_wide(self, W: Array, out: Array, n_threads: int = 1) -> None:
        """out = X W, for k scores of each row"""
        self.each(lambda rows, block: block.dot_wide(W, out[rows], n_threads))

    def tdot_wide(self, L: Array, out: Array, n_threads: int = 1) -> None:
        """out = X' L, for k slopes of each row"""
        self._sum(lambda rows, block, part: block.tdot_wide(L[rows], part, n_threads), out)

    def evaluate(
        self, loss: _core.ScalarLoss, w: Array, constant: float, offset: Array | None, y: Array, weight: Array | None,
        scale: float, scores: Array, slopes: Array, gradient: Array, n_threads: int = 1,
    ) -> tuple[float, float]:  # fmt: skip
        """Scores, weighted slopes, X' slopes, by one reading; returns the weighted value and the sum of the slopes."""
        pairs = []

        def evaluate(rows: slice, block: _core.Matrix, part: Array) -> None:
            shift, p = None if offset is None else offset[rows], None if weight is None else weight[rows]
            pairs.append(
                block.evaluate(
                    loss, w, constant, shift, y[rows], p, scale, scores[rows], slopes[rows], part, n_threads
                )
            )  # fmt: skip

        self._sum(evaluate, gradient)
        values, totals = zip(*pairs)
        return float(sum(values)), float(sum(totals))

    def _sum(self, work: Callable[[slice, _core.Matrix, Array], None], out: Array) -> None:
        out.fill(0.0)
        part = np.empty_like(out)

        def add(rows: slice, block: _core.Matrix) -> None:
            work(rows, block, part)
            np.add(out, part, out=out)

        self.each(add)

    def row_norms(self, out: Array, n_threads: int = 1) -> None:
        """out[i] = |x_i|^2, as it was stored"""
        norms = self._file.statistic("row_norms")
        out[:] = norms if self._rows is None else norms[self._rows]

    def square_sum(self, n_threads: int = 1) -> float:
        """Return the sum of the squares of all entries, as it was stored."""
        if self._rows is None:
            return self._file.header.square_sum
        return float(np.sum(self._file.statistic("row_norms")[self._rows]))

    def column_sizes(self) -> tuple[Array, npt.NDArray[np.int64]]:
        """Return the sum of squares of each column and the number of its entries that are not 0.

        They are stored for all rows; where some are left out the blocks are read once.
        """
        if self._sizes is None:
            squares, counts = np.zeros(self.n_cols), np.zeros(self.n_cols, np.int64)
            if self._rows is None:
                stored = self._file.statistic("column_squares"), self._file.statistic("column_counts")
                squares[: len(stored[0])], counts[: len(stored[1])] = stored
            else:
                self.each(lambda rows, block: _add_sizes(block, squares, counts))
            self._sizes = squares, counts
        return self._sizes[0].copy(), self._sizes[1].copy()

    def identity(self) -> list[list[int]]:
        """Return what tells the rows from others: the sizes and checksums of their blocks."""
        return [[block.rows, block.entries, block.crc] for block in self._blocks]

    def room_for_planes(self, n_scores: int, dim: int) -> int | None:
        """Return how many bytes the limit leaves for planes, beside all else that a run needs; None without a limit."""
        if self._memory is None:
            return None
        waiting = 0 if self._buffers else min(_BUFFERS, len(self._blocks)) * max(block.size for block in self._blocks)
        return room_for_planes(self._memory, waiting, n_scores, dim, f"{self._file.path}")


def _add_sizes(block: _core.Matrix, squares: Array, counts: npt.NDArray[np.int64]) -> None:
    own, number = np.zeros_like(squares), np.zeros_like(counts)
    _core.column_sizes(block, None, own, number, 1)
    np.add(squares, own, out=squares)
    np.add(counts, number, out=counts)
