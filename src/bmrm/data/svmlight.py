"""The svmlight text format: lines like ``label[,label...] [qid:N] index:value ... [# comment]``."""

from __future__ import annotations

import mmap
import operator
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bmrm import _core
from bmrm._errors import DataError
from bmrm._sparse import rows_of
from bmrm.data.atomic import atomic
from bmrm.data.compress import SUFFIXES, compressing, decompress
from bmrm.data.dataset import Dataset, label_sets
from bmrm.data.threads import checked_threads

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MOST_THREADS = 1024  # each has buffers of its own
_MOST_FEATURES = 1 << 60  # from here on vectors of so many float64 numbers cannot be addressed

PathLike: TypeAlias = str | os.PathLike[str]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ENTRIES_PER_CHUNK = 1 << 16


def read_svmlight(
    path: PathLike,
    *,
    zero_based: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    multilabel: bool | None = None,
    dtype: DTypeLike = np.float64,
    n_threads: int | None = None,
) -> Dataset:
    """Read a file in svmlight format, plain or compressed (.gz, .bz2, .xz, .zst).

    Parameters
    ----------
    path : str or path-like
        The file.
    zero_based : bool or "auto"
        Whether the first feature has index 0. "auto" says yes if an index 0 occurs, no otherwise.
    n_features : int, optional
        The number of columns; by default what the largest index in the file asks for.
    multilabel : bool, optional
        Whether examples have any number of labels. By default the file tells: it does if a line has several
        labels, or none.
    dtype : float64 or float32
        The type of the values. They are read as float64, correctly rounded, then rounded to this type.
    n_threads : int, optional
        How many threads parse; by default as many as the process may use. The result does not depend on it.

    Returns
    -------
    Dataset
        `X` is a ``csr_array`` with sorted indices, `y` an array of float64 (or a list of tuples of float if
        multilabel), `groups` the qid numbers as int64 or None, `weight` None.

    Raises
    ------
    DataError
        If the file cannot be read; the message names the first bad line and column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bmrm.data import read_svmlight
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.svm"
    >>> _ = path.write_text("+1 1:0.5 3:2 # a comment\\n-1 2:1e-3\\n")
    >>> data = read_svmlight(path)
    >>> data.X.shape, data.y.tolist()
    ((2, 3), [1.0, -1.0])
    """
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based is {zero_based!r}; expected True, False or 'auto'")
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype is {kind}; expected float64 or float32")
    columns, threads = _feature_count(n_features), min(checked_threads(n_threads), _MOST_THREADS)
    text = text_of(Path(path))
    try:
        parsed = _core.parse_svmlight(
            text,
            zero_based=None if zero_based == "auto" else bool(zero_based),
            multilabel=multilabel,
            n_features=columns,
            single=kind == np.float32,
            n_threads=threads,
        )
    except ValueError as error:
        raise DataError(f"{path}, {error}") from None
    values, indices, indptr, width, labels, ends, groups, from_zero = parsed
    if len(indptr) == 1:
        raise DataError(f"{path}: no examples; expected lines like '1 3:0.5 7:2'")
    matrix = _matrix(values, indices, indptr, width)
    y = labels if ends is None else label_sets(labels, ends)
    return Dataset(X=matrix, y=y, groups=groups, zero_based=from_zero)


def _feature_count(n_features: int | None) -> int | None:
    if n_features is None:
        return None
    count = operator.index(n_features)
    if not 0 <= count < _MOST_FEATURES:
        raise ValueError(f"n_features is {count}; expected a number from 0 to 2^60 - 1")
    return count


def text_of(path: Path, start: int = 0, stop: int | None = None) -> NDArray[np.uint8]:
    """Return the bytes of the file, decompressed, without a byte order mark; some of them if asked."""
    if path.is_dir():
        raise DataError(f"{path}: is a directory; expected a file")
    try:
        content = decompress(path) if path.suffix.lower() in SUFFIXES else _map(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    begin = len(_BYTE_ORDER_MARK) if start == 0 and content[:3] == _BYTE_ORDER_MARK else start
    return np.frombuffer(content, np.uint8)[begin:stop] if len(content) else np.empty(0, np.uint8)


def _map(path: Path) -> bytes | mmap.mmap:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
            return file.read()  # neither pipes nor empty files can be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _matrix(values: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], n_features: int) -> csr_array[Any]:
    from scipy.sparse import csr_array

    matrix = csr_array((values, indices, indptr), shape=(len(indptr) - 1, n_features), copy=False)
    matrix.has_canonical_format = True  # the parser saw to it; this saves a search later
    return matrix


def write_svmlight(
    path: PathLike,
    X: Any,
    y: Any,
    groups: Any = None,
    *,
    zero_based: bool = False,
    comment: str | None = None,
) -> None:
    """Write a file in svmlight format, compressed if the name ends in .gz, .bz2, .xz or .zst.

    The file appears at once and complete, or not at all. Reading it back gives the same numbers bit for bit;
    pass `n_features` (the last columns may be empty), `zero_based` if it was used here, and
    ``multilabel=True`` if labels are sets, for the text alone need not tell these.

    Parameters
    ----------
    path : str or path-like
        The file; one that exists is replaced.
    X : array or sparse matrix of shape (n_examples, n_features)
        Finite numbers. Of a dense array the nonzeros are written, of a sparse one the stored entries.
    y : array of shape (n_examples,) or list of tuples of numbers
        Finite labels, one per example or a tuple of any length each.
    groups : array of int of shape (n_examples,), optional
        Written as qid; not negative.
    zero_based : bool
        Whether the first feature gets index 0 rather than 1.
    comment : str, optional
        Written at the top of the file.

    Raises
    ------
    DataError
        If the format cannot express the data, or the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bmrm.data import write_svmlight
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.svm"
    >>> write_svmlight(path, [[0.5, 0, 2]], [1])
    >>> path.read_text()
    '1 1:0.5 3:2\\n'
    """
    matrix = _rows(path, X)
    heads = _heads(path, y, groups, matrix)
    with atomic(path) as raw, compressing(raw, Path(path).suffix.lower()) as file:
        if comment is not None:
            file.write("".join(f"# {line}\n" for line in comment.splitlines()).encode())
        for chunk in _lines(matrix, heads, 0 if zero_based else 1):
            file.write(chunk)


def _rows(path: PathLike, X: Any) -> csr_array[Any]:
    """X as rows in canonical form with finite float64 values."""
    from scipy.sparse import csr_array, issparse

    given: Any = X if issparse(X) else np.asarray(X)
    if given.dtype.kind not in "biuf" or given.ndim != 2 or given.shape[0] == 0:
        what = f"shape {given.shape} and type {given.dtype}"
        raise DataError(f"{path}: X has {what}; expected a matrix of real numbers with at least one row")
    if given.shape[1] >= _MOST_FEATURES:
        raise DataError(f"{path}: X has {given.shape[1]} columns; the format holds at most 2^60 - 1")
    matrix: csr_array[Any] = csr_array(rows_of(given) if issparse(X) else given, dtype=np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise DataError(f"{path}: X has values that are not finite")
    return matrix


def _heads(path: PathLike, y: Any, groups: Any, matrix: csr_array[Any]) -> list[str]:
    """The labels and the qid of each line."""
    n_rows = matrix.shape[0]
    if not isinstance(y, Iterable) or (isinstance(y, np.ndarray) and y.ndim != 1):
        raise DataError(f"{path}: y is neither a list nor an array of one dimension; expected one per row of X")
    heads = [_labels(path, label) for label in (y.tolist() if isinstance(y, np.ndarray) else y)]
    if len(heads) != n_rows:
        raise DataError(f"{path}: y has length {len(heads)}, but X has {n_rows} rows")
    if groups is not None:
        numbers = np.asarray(groups)
        if numbers.shape != (n_rows,) or numbers.dtype.kind not in "iu" or (numbers < 0).any():
            raise DataError(f"{path}: groups must be {n_rows} whole numbers, none of them negative")
        return [f"{head} qid:{number}" for head, number in zip(heads, numbers.tolist())]
    for row in np.flatnonzero(np.diff(matrix.indptr) == 0).tolist():
        if not heads[row]:
            raise DataError(f"{path}: row {row} has neither labels nor values; its line would be blank")
    return heads


def _labels(path: PathLike, label: Any) -> str:
    several: Iterable[Any] = label if isinstance(label, Iterable) and not isinstance(label, str) else (label,)
    try:
        numbers = [float(number) for number in several]
    except (TypeError, ValueError):
        numbers = [np.nan]
    if not np.isfinite(numbers).all():
        raise DataError(f"{path}: label {label!r}; expected a finite number or a tuple of them")
    return ",".join(map(_number, numbers))


def _number(value: float) -> str:
    """The shortest text that reads back as this number."""
    return repr(value).removesuffix(".0")


def _lines(matrix: csr_array[Any], heads: list[str], first: int) -> Iterator[bytes]:
    """The lines of the file, many at a time but never so many that they weigh."""
    ends = matrix.indptr.astype(np.int64)
    row, n_rows = 0, len(heads)
    while row < n_rows:
        stop = int(np.searchsorted(ends, ends[row] + _ENTRIES_PER_CHUNK, side="right")) - 1
        stop = min(max(stop, row + 1), row + _ENTRIES_PER_CHUNK, n_rows)
        part = slice(int(ends[row]), int(ends[stop]))
        indices = (matrix.indices[part].astype(np.int64) + first).tolist()
        entries = [f" {i}:{_number(v)}" for i, v in zip(indices, matrix.data[part].tolist())]
        bounds = (ends[row : stop + 1] - ends[row]).tolist()
        lines = [
            f"{head}{''.join(entries[begin:end])}\n" for head, begin, end in zip(heads[row:stop], bounds, bounds[1:])
        ]
        yield "".join(lines).encode()
        row = stop
