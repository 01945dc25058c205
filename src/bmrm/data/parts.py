"""Parts of files: which rows of which files make a shard, so that all shards are about equal work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from bmrm.data.balance import entries_of, nearest, row_work
from bmrm.data.compress import SUFFIXES
from bmrm.data.source_options import FilePart, SourceOptions
from bmrm.data.sources import format_of, rows_on_disk
from bmrm.data.stream import BlockFile

_SHARDS_PER_WORKER = 4
_LITTLE = 1 << 20  # bytes for each shard; less is not worth cutting a file for
_CHUNK = 1 << 16

Array = npt.NDArray[np.float64]


class Plan(NamedTuple):
    """The parts of files that make a shard, and how much work they are, in bytes or so."""

    parts: tuple[FilePart, ...]
    work: float


class Cut(NamedTuple):
    """A place between two shards: the file that goes on there, from where, and the work before."""

    file: int
    place: int
    before: float


class Units(NamedTuple):
    """What a file can be cut into: places, as `FilePart` counts them, and the work before each, from 0 to all."""

    places: npt.NDArray[np.int64]
    before: Array


def planned(files: Sequence[str | os.PathLike[str]], n_workers: int = 1, n_shards: int | None = None) -> list[Plan]:
    """Return the parts of files that make each shard, in the order of the files, of about equal work.

    Work is nonzeros and, where queries are known beforehand, their sorting (see `row_work`); of svmlight text bytes,
    of compressed files and tables bytes on disk. Neighboring rows of a query stay together.

    Parameters
    ----------
    files : sequence of paths
        Those that this process does not see are not cut, and counted like the mean of the others.
    n_workers : int
    n_shards : int, optional
        By default 4 for each worker, but whole files where there is one worker or little data.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bmrm.data.parts import planned
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.svm"
    >>> _ = path.write_text("1 1:1\\n-1 2:1\\n" * 4)
    >>> [[(part.start, part.stop) for part in shard.parts] for shard in planned([path], n_shards=2)]
    [[(0, 26)], [(26, None)]]
    """
    paths = [os.fspath(file) for file in files]
    sizes = np.array([_size(path) for path in paths])
    sizes[np.isnan(sizes)] = np.nanmean(sizes) if not np.isnan(sizes).all() else 1.0
    most = _SHARDS_PER_WORKER * n_workers
    whole = n_shards is None and (n_workers == 1 or sizes.sum() < most * _LITTLE)
    wanted = n_shards or (min(len(paths), most) if whole else most)
    ends = np.concatenate([[0.0], np.cumsum(np.maximum(sizes, 1.0))])
    whole_files = [Cut(file, 0, float(before)) for file, before in enumerate(ends)]
    if whole and wanted == len(paths):
        chosen = whole_files
    elif whole or wanted == 1:
        chosen = [whole_files[k] for k in nearest(ends, wanted)]
    else:
        cutter = _Cutter(paths, ends)
        inner = [cutter.at(ends[-1] * k / wanted) for k in range(1, wanted)]
        chosen = sorted({whole_files[0], whole_files[-1], *inner})
    return [Plan(_between(paths, a, b), b.before - a.before) for a, b in pairwise(chosen)]


def _size(path: str) -> float:
    try:
        return float(os.path.getsize(path))
    except OSError:
        return float("nan")


def _between(paths: Sequence[str], start: Cut, stop: Cut) -> tuple[FilePart, ...]:
    """Return the parts of files from one place to another."""
    first = [start.place if file == start.file else 0 for file in range(start.file, stop.file + 1)]
    parts = [FilePart(paths[start.file + k], place) for k, place in enumerate(first[:-1])]
    return (*parts, FilePart(paths[stop.file], first[-1], stop.place)) if stop.place else tuple(parts)


class _Cutter:
    """Finds the places in files that are nearest to some shares of them.

    Parameters
    ----------
    paths : sequence of str
    ends : array
        The work before each file, and all of it.
    """

    def __init__(self, paths: Sequence[str], ends: Array) -> None:
        self._paths, self._ends = paths, ends
        self._units: dict[str, Units | None] = {}

    def at(self, target: float) -> Cut:
        """Return the place that is nearest to some work; the end of a file is the start of the next."""
        file = int(np.searchsorted(self._ends, target, side="right")) - 1
        start, size = self._ends[file], self._ends[file + 1] - self._ends[file]
        place, share = self._inside(self._paths[file], (target - start) / size)
        if share <= 0.0 or share >= 1.0:
            file += share >= 1.0
            return Cut(file, 0, float(self._ends[file]))
        return Cut(file, place, float(start + share * size))

    def _inside(self, path: str, share: float) -> tuple[int, float]:
        """Return the place in a file that is nearest to a share of it, and its own share."""
        if _is_plain_text(path):
            size = os.path.getsize(path)
            place = row_start(path, int(share * size))
            return place, place / size
        if path not in self._units:
            self._units[path] = units_of(path)
        units = self._units[path]
        if units is None:
            return 0, float(round(share))
        k = int(np.argmin(np.abs(units.before - share * units.before[-1])))
        return int(units.places[k]), float(units.before[k] / max(units.before[-1], 1.0))


def _is_plain_text(path: str) -> bool:
    file = Path(path)
    return format_of(file, SourceOptions()) == "svmlight" and file.suffix.lower() not in SUFFIXES and file.is_file()


def units_of(path: str) -> Units | None:
    """Return the rows, blocks or batches that a file can be cut between; None where it cannot be cut."""
    file, kind = Path(path), format_of(Path(path), SourceOptions())
    if not file.is_file() or file.suffix.lower() in SUFFIXES or kind in ("csv", "svmlight"):
        return None
    if kind == "store":
        return _blocks(file)
    if kind == "parquet":
        from bmrm.data.tables import parquet_rows

        return _even(parquet_rows(file))
    if kind == "arrow":
        from bmrm.data.tables import arrow_batches

        return _even(arrow_batches(file))
    data = rows_on_disk(file, kind)
    return _allowed(row_work(entries_of(data.X), data.groups), data.groups)


def _even(n: int) -> Units:
    return Units(np.arange(n + 1), np.arange(n + 1, dtype=np.float64))


def _allowed(work: Array, groups: npt.NDArray[np.int64] | None) -> Units:
    """Return the places between rows, but not within a query."""
    before = np.concatenate([[0.0], np.cumsum(work)])
    places = np.arange(len(before))
    if groups is not None:
        same = np.concatenate([[False], groups[1:] == groups[:-1], [False]])
        places = places[~same]
    return Units(places, before[places])


def _blocks(path: Path) -> Units:
    """Return the places between blocks of a store, but not within a query."""
    file = BlockFile(path, around_cache=False)
    blocks, groups = file.header.blocks, file.array("groups")
    ends = np.concatenate([[0], np.cumsum([block.rows for block in blocks])])
    before = np.concatenate([[0.0], np.cumsum([float(block.entries) for block in blocks])])
    places = np.arange(len(before))
    if groups is not None:
        inner = ends[1:-1]
        keep = np.concatenate([[True], groups[inner] != groups[inner - 1], [True]])
        sorting = np.concatenate([[0.0], np.cumsum(row_work(np.zeros(len(groups)), groups))])
        before, places = (before + sorting[ends])[keep], places[keep]
    return Units(places, before)


def row_start(path: str, offset: int) -> int:
    """Return where the first row of svmlight text at or after an offset begins that may start a part.

    That is one with a row before it, of another query or of none. The end of the file, where there is no such row.
    """
    with open(path, "rb") as file:
        place = _line_begin(file, offset - 1)
        while place > 0 and not _is_row(_line(file, place)):
            place = _line_begin(file, place - 1)
        file.seek(place)
        seen, query = False, b""
        for line in file:
            if _is_row(line):
                own = _query(line)
                if seen and place >= offset and (not own or own != query):
                    return place
                seen, query = True, own
            place += len(line)
        return place


def _line(file: BinaryIO, place: int) -> bytes:
    file.seek(place)
    return file.readline()


def _line_begin(file: BinaryIO, place: int) -> int:
    """Return where the line begins that has the byte at a place."""
    end = max(place, 0)
    while end > 0:
        start = max(end - _CHUNK, 0)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _is_row(line: bytes) -> bool:
    return bool(line.partition(b"#")[0].strip())


def _query(line: bytes) -> bytes:
    """Return the qid of a line, empty where it has none."""
    words = line[:_CHUNK].partition(b"#")[0].split(maxsplit=2)[:2]
    return next((word for word in words if word.startswith(b"qid:")), b"")
