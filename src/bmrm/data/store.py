"""Store: rows on disk, read block by block whenever they are needed, with what belongs to them in memory."""

from __future__ import annotations

import os
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm._errors import DataError
from bmrm.data.dataset import Labels, label_sets
from bmrm.data.elsewhere import Elsewhere
from bmrm.data.memory import parse_bytes, return_freed
from bmrm.data.stream import BlockFile, StreamedMatrix, buffer_of

PathLike = str | os.PathLike[str]


class Store(Elsewhere):
    """A file of row blocks that `bmrm convert` or `convert` has written; it takes the place of X.

    A product with X reads the file once from beginning to end: a thread reads the next block while the current one is
    computed with. Each block's checksum is compared when it is first read. Solvers that need single rows refuse a
    store; ``auto`` picks one that streams.

    Parameters
    ----------
    path : str or path-like
    memory : int or str, optional
        A limit on the resident memory of this process, for example "2GB". Blocks are then read around the system's
        cache of files, and the number of planes is limited. Without a limit, the system keeps in its cache what it can.
    skip_bad : bool
        Leave out blocks whose checksum is wrong, and count them in a warning. All blocks are read for it first.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, bmrm
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.store"
    >>> _ = bmrm.convert(bmrm.Dataset(X=np.array([[2.0], [-1.0]]), y=np.array([1.0, -1.0])), path)
    >>> store = bmrm.Store(path)
    >>> store.shape, bmrm.LinearClassifier(lam=0.1).fit(store).predict(store)
    ((2, 1), array([ 1., -1.]))
    """

    def __init__(self, path: PathLike, memory: int | str | None = None, skip_bad: bool = False) -> None:
        self.path = Path(path)
        self.memory = None if memory is None else parse_bytes(memory)
        if self.memory is not None:
            return_freed()
        self.skip_bad = bool(skip_bad)
        self.file = BlockFile(self.path, around_cache=self.memory is not None)
        self.header = self.file.header
        self.blocks = self.header.blocks
        self._rows: NDArray[np.intp] | None = None  # those that are left, where some are not
        if skip_bad:
            self._leave_out(self.bad_blocks())

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.path, self.memory, self.skip_bad)

    def __repr__(self) -> str:
        kind = f"{self.header.kind} {self.dtype}, {len(self.blocks)} blocks"
        return f"Store({str(self.path)!r}: {self.shape[0]} x {self.shape[1]}, {kind})"

    @property
    def source(self) -> str:
        """The name of the file."""
        return str(self.path)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return sum(block.rows for block in self.blocks), self.header.columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return np.dtype(self.header.dtype)

    @cached_property
    def y(self) -> Labels | None:
        """The targets, or None; sets of labels are a list of tuples."""
        labels, ends = self.file.array("y"), self.file.array("y_ends")
        if labels is None or ends is None:
            return self._kept(labels)
        sets = label_sets(labels, ends)
        return sets if self._rows is None else [sets[row] for row in self._rows]

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """The query of each row, or None."""
        return self._kept(self.file.array("groups"))

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """The weight of each row, or None."""
        return self._kept(self.file.array("weight"))

    @property
    def zero_based(self) -> bool | None:
        """Whether the indices of the text that was converted count from 0."""
        return self.header.zero_based

    @cached_property
    def matrix(self) -> StreamedMatrix:
        """The rows as the products see them."""
        return StreamedMatrix(self.file, self.blocks, self.memory, self._rows)

    def bad_blocks(self) -> list[int]:
        """Return the numbers of the blocks that cannot be read as they were written: reads the whole file."""
        buffer = buffer_of([block.size for block in self.header.blocks])
        bad = []
        for k, block in enumerate(self.header.blocks):
            try:
                self.file.read(block, buffer)
            except DataError:
                bad.append(k)
        return bad

    def _leave_out(self, bad: list[int]) -> None:
        if not bad:
            return
        blocks, ends = self.header.blocks, np.cumsum([block.rows for block in self.header.blocks])
        keep = np.ones(self.header.rows, bool)
        for k in bad:
            keep[ends[k] - blocks[k].rows : ends[k]] = False
        self.blocks = tuple(block for k, block in enumerate(blocks) if k not in bad)
        if not self.blocks:
            raise DataError(f"{self.path}: all {len(blocks)} blocks are corrupt")
        self._rows = np.flatnonzero(keep)
        places = ", ".join(str(blocks[k].offset) for k in bad[:5]) + (", ..." if len(bad) > 5 else "")
        warnings.warn(
            f"{self.path}: skipped {len(bad)} of {len(blocks)} blocks, {np.count_nonzero(~keep)} of {keep.size} rows; "
            f"corrupt at offset {places}",
            UserWarning,
            stacklevel=3,
        )

    def _kept(self, array: NDArray[Any] | None) -> NDArray[Any] | None:
        return array if array is None or self._rows is None else array[self._rows]
