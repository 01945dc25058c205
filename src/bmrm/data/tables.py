"""Tables with named columns, read by pyarrow some rows at a time: Parquet, Arrow and Feather, CSV."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm._errors import DataError
from bmrm.data.columns import Names, check_once, few
from bmrm.data.pieces import Piece
from bmrm.data.source_options import FilePart, SourceOptions

_ROWS = 1 << 14
_CELLS = 1 << 20  # in one piece
_TEXT = ("string", "large_string", "string_view")
_BUFFER = 1 << 16  # bytes of each column that are read at a time


def _pyarrow(name: str = "pyarrow") -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DataError("Parquet, Arrow and CSV files need the pyarrow package: pip install 'bmrm[arrow]'") from error


def table_pieces(part: FilePart, kind: str, options: SourceOptions) -> Iterator[Piece]:
    """Yield the rows of a table; `options.columns` says which columns are features, in which order.

    Features are numbers or truth values, without gaps; the target may also be text. Rows with gaps are left out and
    counted where the options say so. Of columns that are left out nothing is asked, not even to be numbers.
    """
    arrow, path = _pyarrow(), Path(part.path)
    if options.limit is not None:
        arrow.set_memory_pool(arrow.system_memory_pool())  # the others keep more of what is freed
    failures = (arrow.ArrowInvalid, arrow.ArrowNotImplementedError, arrow.ArrowKeyError, arrow.ArrowTypeError, OSError)
    target, group, weight = options.target, options.group, options.weight
    row = part.start if kind == "parquet" else 0
    try:
        for batch, features in _batches(part, kind, options):
            whole = _without_gaps(path, batch, row, options) if options.skip_bad else batch
            X = _features(path, whole, features, row)
            parts = [None if name is None else _column(path, whole, name, row) for name in (target, group, weight)]
            yield Piece(X, parts[0], None, parts[1], parts[2], len(features), str(path), row, features)
            row += batch.num_rows
    except FileNotFoundError as error:
        raise DataError(f"{path}: cannot be read (No such file or directory)") from error
    except failures as error:
        raise DataError(f"{path}: not a readable {kind} file ({' '.join(str(error).split())[:300]})") from error


def parquet_rows(path: Path) -> int:
    """Return the number of rows of a Parquet file."""
    with _parquet(path) as file:
        return int(file.metadata.num_rows)


def arrow_batches(path: Path) -> int:
    """Return the number of batches of an Arrow file; 1 for a stream, which cannot tell."""
    with path.open("rb") as raw:
        if raw.read(6) != b"ARROW1":
            return 1
        raw.seek(0)
        with _pyarrow("pyarrow.ipc").open_file(raw) as file:
            return int(file.num_record_batches)


def _without_gaps(path: Path, batch: Any, row: int, options: SourceOptions) -> Any:
    bad = np.zeros(batch.num_rows, bool)
    for column in batch.columns:
        if column.null_count:
            bad |= column.is_null().to_numpy(zero_copy_only=False)
    for k in np.flatnonzero(bad):
        options.skipped.add(f"{path}: row {row + int(k)} has gaps")
    return batch.filter(_pyarrow().array(~bad)) if bad.any() else batch


def _parquet(path: Path) -> Any:
    """Open a file so that pages are read when they are needed, not whole columns of a row group at once."""
    parquet = _pyarrow("pyarrow.parquet")
    return parquet.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=_BUFFER)


def _named(options: SourceOptions) -> list[str]:
    return [name for name in (options.target, options.group, options.weight) if name is not None]


def _chosen(path: Path, names: list[str], options: SourceOptions) -> tuple[list[str], Names]:
    """Return the columns to read, and which of them are features."""
    named = _named(options)
    absent = [name for name in named if name not in names]
    if absent:
        raise DataError(f"{path}: has no column {absent[0]!r}; the columns are {few(names)}")
    check_once(named, names, str(path))
    features = options.columns.of([name for name in names if name not in named], str(path))
    return [*features, *dict.fromkeys(named)], features


def _batches(part: FilePart, kind: str, options: SourceOptions) -> Iterator[tuple[Any, Names]]:
    """Yield rows of the columns that are read, and which of these are features."""
    path = Path(part.path)
    if kind == "parquet":
        with _parquet(path) as file:
            chosen, features = _chosen(path, file.schema_arrow.names, options)
            some = chosen if len(chosen) < len(file.schema_arrow.names) else None
            for batch in _released(_parquet_batches(file, part, some)):
                yield batch.select(chosen), features
    elif kind == "arrow":
        if path.exists():
            options.check_room(path, path.stat().st_size // max(arrow_batches(path), 1), "a batch")
        found = None
        for batch in _released(_sliced(_arrow_batches(path, part))):
            chosen, features = found = found or _chosen(path, batch.schema.names, options)
            yield batch.select(chosen), features
    else:
        csv = _pyarrow("pyarrow.csv")
        way = csv.ReadOptions(use_threads=options.limit is None)  # threads read ahead
        with csv.open_csv(path, way) as first:  # the types that its first rows suggest
            schema = first.schema
        chosen, features = _chosen(path, schema.names, options)
        types = {name: _pyarrow().float64() for name in features if _counts(schema, name)}
        wanted = csv.ConvertOptions(column_types=types, include_columns=chosen)
        with csv.open_csv(path, way, convert_options=wanted) as reader:
            for batch in _released(_sliced(reader)):
                yield batch, features


def _released(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches; what was freed in between goes back to the system."""
    for batch in batches:
        yield batch
        del batch
        _pyarrow().default_memory_pool().release_unused()


def _parquet_batches(file: Any, part: FilePart, columns: list[str] | None) -> Iterator[Any]:
    """Yield rows of some columns, or all, of a file from those row groups that have some of the part."""
    sizes = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
    ends = np.cumsum(sizes)
    stop = int(ends[-1]) if part.stop is None and sizes else part.stop or 0
    groups = [g for g, end in enumerate(ends) if end > part.start and end - sizes[g] < stop]
    if not groups:
        return
    step = max(min(_ROWS, _CELLS // max(len(file.schema_arrow.names), 1)), 1)
    row = int(ends[groups[0]]) - sizes[groups[0]]
    for batch in file.iter_batches(batch_size=step, row_groups=groups, columns=columns, use_threads=False):
        first, last = max(part.start - row, 0), min(stop - row, batch.num_rows)
        if first < last:
            yield batch.slice(first, last - first)
        row += batch.num_rows


def _arrow_batches(path: Path, part: FilePart) -> Iterator[Any]:
    ipc = _pyarrow("pyarrow.ipc")
    with path.open("rb") as raw:
        whole = raw.read(6) == b"ARROW1"  # else a stream, which has no index of its batches
        raw.seek(0)
        if not whole:
            with ipc.open_stream(raw) as stream:
                yield from stream
            return
        with ipc.open_file(raw) as file:
            for k in range(file.num_record_batches)[part.start : part.stop]:
                yield file.get_batch(k)


def _sliced(batches: Any) -> Iterator[Any]:
    for batch in batches:
        step = max(_CELLS // max(batch.num_columns, 1), 1)
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def _counts(schema: Any, name: str) -> bool:
    types = _pyarrow("pyarrow.types")
    kind = schema.field(name).type
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind))


def _features(path: Path, batch: Any, names: Names, row: int) -> NDArray[Any]:
    if not names:
        raise DataError(f"{path}: has no columns beside those named; expected features")
    types = _pyarrow("pyarrow.types")
    single = all(types.is_float32(batch.schema.field(name).type) for name in names)
    X = np.empty((batch.num_rows, len(names)), np.float32 if single else np.float64)
    for j, name in enumerate(names):
        column = _column(path, batch, name, row)
        if column.dtype.kind not in "biuf":
            raise DataError(f"{path}: column {name!r} has type {batch.schema.field(name).type}; expected numbers")
        X[:, j] = column
    return X


def _column(path: Path, batch: Any, name: str, row: int) -> NDArray[Any]:
    types = _pyarrow("pyarrow.types")
    column = batch.column(batch.schema.get_field_index(name))
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        first = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(f"{path}: column {name!r} has no value in row {row + first}; gaps are not accepted")
    if types.is_decimal(column.type):
        column = column.cast(_pyarrow().float64())
    array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return array.astype(str) if array.dtype.kind == "O" and str(column.type) in _TEXT else array
