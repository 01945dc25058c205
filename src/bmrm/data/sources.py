"""Files of any size as pieces of rows: svmlight text, NumPy arrays, stores, and tables (Parquet, Arrow, CSV)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm._errors import DataError
from bmrm._sparse import rows_of
from bmrm.data.arrays import load_array, read_npz
from bmrm.data.dataset import Dataset
from bmrm.data.npy_rows import NpyRows
from bmrm.data.pieces import Piece
from bmrm.data.source_options import PIECE_BYTES, FilePart, Format, SourceOptions
from bmrm.data.store import Store
from bmrm.data.store_format import block_arrays
from bmrm.data.stream import buffer_of
from bmrm.data.text import inner_suffix
from bmrm.data.text_pieces import svmlight_pieces

TABLES = ("parquet", "arrow", "csv")

_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".npy": "npy",
    ".npz": "npz",
    ".store": "store",
}


def format_of(path: Path, options: SourceOptions) -> Format:
    """Return the format of a file: as asked for, or by its name; svmlight text for unknown ones."""
    return options.format or _SUFFIXES.get(inner_suffix(path), "svmlight")


def pieces_of(part: FilePart, options: SourceOptions) -> Iterator[Piece]:
    """Yield the rows of a file or of a part of it, some at a time."""
    path = Path(part.path)
    kind = format_of(path, options)
    if path.is_dir():
        raise DataError(f"{path}: is a directory; expected a file")
    named = [name for name in ("target", "group", "weight") if getattr(options, name) is not None]
    if named and kind not in TABLES:
        raise DataError(f"{path}: has no column {getattr(options, named[0])!r}: only Parquet, Arrow and CSV have names")
    if options.labels is not None and kind not in ("npy", "npz"):
        raise DataError(f"{path}: labels of their own file are for .npy and .npz only")
    for piece in (each.arranged(options.columns) for each in _chosen(part, kind, options)):
        options.widths[str(path)] = max(options.widths.get(str(path), 0), piece.columns)
        yield finite_rows(piece, options) if options.skip_bad else piece


def _chosen(part: FilePart, kind: Format, options: SourceOptions) -> Iterator[Piece]:
    if kind in TABLES:
        from bmrm.data.tables import table_pieces

        return table_pieces(part, kind, options)
    if kind == "svmlight":
        return svmlight_pieces(part, options)
    if kind == "store":
        return _store_pieces(part, options)
    data = _arrays(Path(part.path), kind, options)
    return dataset_pieces(data, part.path, options.piece_bytes, part.start, part.stop)


def finite_rows(piece: Piece, options: SourceOptions) -> Piece:
    """Return the rows whose entries are all finite, and count the others."""
    values = piece.X[0] if isinstance(piece.X, tuple) else piece.X
    wrong = ~np.isfinite(values)
    if not wrong.any():
        return piece
    if isinstance(piece.X, tuple):
        bad = np.zeros(piece.rows, bool)
        bad[np.searchsorted(piece.X[2], np.flatnonzero(wrong), side="right") - 1] = True
    else:
        bad = wrong.any(axis=1)
    for row in np.flatnonzero(bad):
        options.skipped.add(f"{piece.origin}: row {piece.first_row + row} has a value that is not finite")
    return piece.only(~bad)


def _store_pieces(part: FilePart, options: SourceOptions) -> Iterator[Piece]:
    """Yield the blocks of a store."""
    remarks: list[str] = []
    store = Store(part.path, skip_bad=options.skip_bad, blocks=(part.start, part.stop), remarks=remarks)
    for remark in remarks:
        options.skipped.add(remark, store.rows_skipped)
    if store.header.zero_based is not None:
        options.zero_based = store.header.zero_based
    labels, data = _flat_labels(store.y), store.dataset()
    row, buffer = 0, buffer_of([block.size for block in store.blocks])
    for block in store.blocks:
        store.file.read(block, buffer)
        arrays: Any = tuple(array.copy() for array in block_arrays(store.header, block, buffer))
        X = arrays if len(arrays) == 3 else arrays[0]
        yield _piece_of(X, data, slice(row, row + block.rows), labels, store.shape[1], part.path)
        row += block.rows


def _arrays(path: Path, kind: Format, options: SourceOptions) -> Dataset:
    """Return the arrays of a file; of .npy the rows stay on disk."""
    if kind == "npz" and path.exists():
        options.check_room(path, path.stat().st_size, "a .npz file")
    rows: Any = NpyRows(path) if kind == "npy" else None
    data = Dataset(X=rows) if kind == "npy" else read_npz(path)
    if options.labels is None:
        return data
    if data.y is not None:
        raise DataError(f"{path}: has labels of its own; {options.labels} would replace them")
    return replace(data, y=load_array(options.labels))


def rows_on_disk(path: Path, kind: Format) -> Dataset:
    """Return the arrays of a .npy or .npz file; of .npy the rows stay on disk."""
    return _arrays(path, kind, SourceOptions())


def dataset_pieces(
    data: Dataset, origin: str = "data", piece_bytes: int = PIECE_BYTES, start: int = 0, stop: int | None = None
) -> Iterator[Piece]:
    """Yield the rows of arrays, some at a time."""
    X: Any = data.X
    sparse = hasattr(X, "tocsr")
    X = rows_of(X) if sparse else X
    m, d = X.shape
    end = m if stop is None else min(stop, m)
    row_bytes = (12 * X.nnz // max(m, 1) if sparse else d * X.itemsize) + 1
    step = max(piece_bytes // row_bytes, 1)
    labels = _flat_labels(data.y)
    for first in range(start, end, step):
        rows = slice(first, min(first + step, end))
        part: Any = _csr_rows(X, rows) if sparse else np.array(X[rows])
        yield _piece_of(part, data, rows, labels, d, origin)


def _piece_of(X: Any, data: Any, rows: slice, labels: tuple[Any, Any], columns: int, origin: str) -> Piece:
    """Return rows of arrays, or of a store, with what belongs to them."""
    y, ends = labels
    some, own_ends = (None if y is None else y[rows]), None
    if ends is not None and y is not None:
        first = int(ends[rows.start - 1]) if rows.start else 0
        some, own_ends = y[first : int(ends[rows.stop - 1])], ends[rows] - first
    groups = None if data.groups is None else data.groups[rows]
    weight = None if data.weight is None else data.weight[rows]
    return Piece(X, some, own_ends, groups, weight, columns, origin, rows.start, data.feature_names)


def _flat_labels(y: Any) -> tuple[NDArray[Any] | None, NDArray[np.int64] | None]:
    if not isinstance(y, list):
        return y, None
    ends = np.cumsum([len(labels) for labels in y], dtype=np.int64)
    return np.array([label for labels in y for label in labels], dtype=np.float64), ends


def _csr_rows(X: Any, rows: slice) -> tuple[NDArray[Any], ...]:
    part = X[rows]
    part.sum_duplicates()
    indices = part.indices.astype(np.int32 if X.shape[1] <= np.iinfo(np.int32).max else np.int64, copy=False)
    values = part.data if part.data.dtype == np.float32 else part.data.astype(np.float64)
    return values, np.ascontiguousarray(indices), part.indptr.astype(np.int64)
