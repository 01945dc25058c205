"""Files of any size as pieces of rows: svmlight text, NumPy arrays, and tables (Parquet, Arrow, CSV)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm import _core
from bmrm._errors import DataError
from bmrm.data.arrays import load_array, read_npz
from bmrm.data.compress import streamed
from bmrm.data.dataset import Dataset
from bmrm.data.store_writer import Piece
from bmrm.data.text import inner_suffix
from bmrm.data.threads import default_threads

Format = Literal["svmlight", "parquet", "arrow", "csv", "npy", "npz"]
FORMATS: tuple[Format, ...] = ("svmlight", "parquet", "arrow", "csv", "npy", "npz")
TABLES = ("parquet", "arrow", "csv")
PIECE_BYTES = 8 << 20

_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".npy": "npy",
    ".npz": "npz",
}
_LINE = re.compile(r"line (\d+)")


@dataclass
class SourceOptions:
    """How to read sources; `zero_based` is settled by the first piece of text where it is "auto".

    Attributes
    ----------
    zero_based : bool or "auto"
        Of svmlight text.
    target, group, weight : str, optional
        Columns of tables.
    labels : path, optional
        A .npy file with the labels, for a .npy or .npz file that has none.
    format : str, optional
        Of all files; by default their names tell.
    """

    zero_based: bool | Literal["auto"] = "auto"
    target: str | None = None
    group: str | None = None
    weight: str | None = None
    labels: Path | None = None
    format: Format | None = None
    widths: dict[str, int] = field(default_factory=dict)


def format_of(path: Path, options: SourceOptions) -> Format:
    """Return the format of a file: as asked for, or by its name; svmlight text for unknown ones."""
    return options.format or _SUFFIXES.get(inner_suffix(path), "svmlight")


def pieces_of(path: Path, options: SourceOptions) -> Iterator[Piece]:
    """Yield the rows of a file, some at a time."""
    kind = format_of(path, options)
    if path.is_dir():
        raise DataError(f"{path}: is a directory; expected a file")
    named = [name for name in ("target", "group", "weight") if getattr(options, name) is not None]
    if named and kind not in TABLES:
        raise DataError(f"{path}: has no column {getattr(options, named[0])!r}: only Parquet, Arrow and CSV have names")
    if options.labels is not None and kind not in ("npy", "npz"):
        raise DataError(f"{path}: labels of their own file are for .npy and .npz only")
    if kind in TABLES:
        from bmrm.data.tables import table_pieces

        pieces = table_pieces(path, kind, options.target, options.group, options.weight)
    elif kind == "svmlight":
        pieces = _svmlight_pieces(path, options)
    else:
        pieces = dataset_pieces(_arrays(path, kind, options), str(path))
    for piece in pieces:
        options.widths[str(path)] = max(options.widths.get(str(path), 0), piece.columns)
        yield piece


def _svmlight_pieces(path: Path, options: SourceOptions) -> Iterator[Piece]:
    lines, rows = 0, 0
    for text in _whole_lines(path):
        raw = np.frombuffer(text, np.uint8)
        settled = None if options.zero_based == "auto" else options.zero_based
        try:
            parsed = _core.parse_svmlight(raw, settled, None, None, False, default_threads())
        except ValueError as error:
            raise DataError(f"{path}, {_renumbered(str(error), lines)}") from None
        values, indices, indptr, width, labels, ends, groups, from_zero = parsed
        if len(values):
            options.zero_based = from_zero
        lines += text.count(b"\n")
        yield Piece((values, indices, indptr), labels, ends, groups, None, width, str(path), rows)
        rows += len(indptr) - 1


def _renumbered(message: str, lines_before: int) -> str:
    """Return a message of the parser with the number of the line in the whole file."""
    return _LINE.sub(lambda found: f"line {int(found[1]) + lines_before}", message, count=1)


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the text in parts of whole lines."""
    rest, first = b"", True
    for part in streamed(path, PIECE_BYTES):
        if first:
            part, first = part.removeprefix(b"\xef\xbb\xbf"), False
        head, newline, tail = part.rpartition(b"\n")
        if newline:
            yield rest + head + newline
            rest = tail
        else:
            rest += part
    if rest:
        yield rest


def _arrays(path: Path, kind: Format, options: SourceOptions) -> Dataset:
    """Return the arrays of a file; of .npy the rows stay on disk."""
    data = Dataset(X=_mapped(path)) if kind == "npy" else read_npz(path)
    if options.labels is None:
        return data
    if data.y is not None:
        raise DataError(f"{path}: has labels of its own; {options.labels} would replace them")
    return Dataset(X=data.X, y=load_array(options.labels), groups=data.groups, weight=data.weight)


def _mapped(path: Path) -> NDArray[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except (OSError, ValueError, SyntaxError, TypeError, OverflowError, EOFError) as error:
        raise DataError(f"{path}: not a readable .npy file ({error})") from error
    if array.dtype.kind not in "biuf" or array.ndim != 2:
        raise DataError(f"{path}: has type {array.dtype} and shape {array.shape}; expected a matrix of numbers")
    return array


def dataset_pieces(data: Dataset, origin: str = "data") -> Iterator[Piece]:
    """Yield the rows of arrays, some at a time."""
    X: Any = data.X
    sparse = not isinstance(X, np.ndarray)
    X = X.tocsr() if sparse else X
    m, d = X.shape
    row_bytes = (12 * X.nnz // max(m, 1) if sparse else d * X.itemsize) + 1
    step = max(PIECE_BYTES // row_bytes, 1)
    y, ends = _flat_labels(data.y)
    for start in range(0, m, step):
        rows = slice(start, min(start + step, m))
        part: Any = _csr_rows(X, rows) if sparse else np.array(X[rows])
        some, own_ends = (None if y is None else y[rows]), None
        if ends is not None and y is not None:
            first = int(ends[start - 1]) if start else 0
            some, own_ends = y[first : int(ends[rows.stop - 1])], ends[rows] - first
        groups = None if data.groups is None else data.groups[rows]
        weight = None if data.weight is None else data.weight[rows]
        yield Piece(part, some, own_ends, groups, weight, d, origin, start)


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
