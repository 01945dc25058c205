"""Store: rows on disk, read block by block whenever they are needed, with what belongs to them in memory."""

from __future__ import annotations

import os
import warnings
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm._cached import cached_property
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
    blocks : (int, int), optional
        Only the rows of these blocks, the last one not included; None for the end.
    remarks : list of str, optional
        Takes what would be a warning.

    Attributes
    ----------
    blocks : tuple of Block
        Those that are left.
    rows_skipped : int

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

    def __init__(
        self,
        path: PathLike,
        memory: int | str | None = None,
        skip_bad: bool = False,
        blocks: tuple[int, int | None] = (0, None),
        remarks: list[str] | None = None,
    ) -> None:
        self.path = Path(path)
        self.memory = None if memory is None else parse_bytes(memory)
        if self.memory is not None:
            return_freed()
        self.skip_bad, self._range = bool(skip_bad), blocks
        self.file = BlockFile(self.path, around_cache=self.memory is not None)
        self.header = self.file.header
        self.blocks = self.header.blocks
        self.rows_skipped = 0
        self._rows: NDArray[np.intp] | None = None  # those that are left, where some are not
        first, last, _ = slice(*blocks).indices(len(self.blocks))
        bad = self.bad_blocks(first, last) if skip_bad else []
        if bad or last - first < len(self.blocks):
            self._keep([k for k in range(first, last) if k not in set(bad)])
        if bad:
            self._tell(bad, last - first, remarks)

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.path, self.memory, self.skip_bad, self._range)

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

    def widened(self, n_cols: int) -> Store:
        """Return the same rows with more columns, the new ones empty: only where the store is sparse."""
        if n_cols == self.shape[1]:
            return self
        if self.header.kind == "dense":
            raise DataError(f"{self.path}: a dense store with {self.shape[1]} features; expected {n_cols} as in others")
        store = copy(self)
        store.__dict__.pop("matrix", None)
        store.header = replace(self.header, columns=n_cols)
        return store

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
        if ends.dtype.kind not in "iu":
            raise DataError(
                f"{self.path}: the ends of the label sets (y_ends) are {ends.dtype}; expected whole numbers"
            )
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

    @cached_property
    def feature_names(self) -> tuple[str, ...] | None:
        """The name of each column, or None."""
        names = self.file.array("feature_names")
        return None if names is None or len(names) != self.shape[1] else tuple(names.tolist())

    @property
    def zero_based(self) -> bool | None:
        """Whether the indices of the text that was converted count from 0."""
        return self.header.zero_based

    @cached_property
    def matrix(self) -> StreamedMatrix:
        """The rows as the products see them."""
        return StreamedMatrix(self.file, self.blocks, self.memory, self._rows, self.header)

    def bad_blocks(self, first: int = 0, last: int | None = None) -> list[int]:
        """Return the numbers of the blocks that cannot be read as they were written: reads them all."""
        some = range(len(self.header.blocks))[first:last]
        buffer = buffer_of([self.header.blocks[k].size for k in some])
        bad = []
        for k in some:
            try:
                self.file.read(self.header.blocks[k], buffer)
            except DataError:
                bad.append(k)
        return bad

    def _keep(self, numbers: list[int]) -> None:
        """Have only the rows of these blocks."""
        blocks, ends = self.header.blocks, np.cumsum([block.rows for block in self.header.blocks])
        if not numbers:
            raise DataError(f"{self.path}: all {len(blocks)} blocks are corrupt")
        self.blocks = tuple(blocks[k] for k in numbers)
        self._rows = np.concatenate([np.arange(ends[k] - blocks[k].rows, ends[k]) for k in numbers])

    def _tell(self, bad: list[int], n_blocks: int, remarks: list[str] | None) -> None:
        blocks = self.header.blocks
        self.rows_skipped = sum(blocks[k].rows for k in bad)
        places = ", ".join(str(blocks[k].offset) for k in bad[:5]) + (", ..." if len(bad) > 5 else "")
        text = (
            f"{self.path}: skipped {len(bad)} of {n_blocks} blocks, {self.rows_skipped} of "
            f"{self.shape[0] + self.rows_skipped} rows; corrupt at offset {places}"
        )
        if remarks is None:
            warnings.warn(text, UserWarning, stacklevel=3)
        else:
            remarks.append(text)

    def _kept(self, array: NDArray[Any] | None) -> NDArray[Any] | None:
        return array if array is None or self._rows is None else array[self._rows]
