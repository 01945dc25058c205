"""NumPy's own files: ``.npy`` with a matrix, ``.npz`` with a dense or sparse matrix and what belongs to it.

Nothing in such a file is ever unpickled, and what an array's header declares is compared with the space the
array has in the file before memory is set aside for it.
"""

from __future__ import annotations

import math
import os
import tokenize
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bmrm import _core
from bmrm._errors import DataError
from bmrm._sparse import rows_of
from bmrm.data.atomic import atomic
from bmrm.data.compress import most_bytes
from bmrm.data.dataset import Dataset, Labels, Matrix, label_sets
from bmrm.data.text import checked_text

# What NumPy and the zip reader raise on damaged bytes.
_DAMAGE = (
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    OSError,
    SyntaxError,
    OverflowError,
    RecursionError,
    RuntimeError,
    NotImplementedError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def _read_array(stream: IO[bytes], size: int) -> NDArray[Any]:
    """Read one array in ``.npy`` format that has `size` bytes in the file."""
    version = npy.read_magic(stream)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"format version {version} is not supported")
    shape, _, dtype = readers[version](stream)
    if dtype.hasobject or dtype.kind not in "biufSU":
        raise ValueError(f"it has elements of type {dtype}; expected numbers")
    if stream.tell() + math.prod(shape) * dtype.itemsize != size:
        raise ValueError("its header does not agree with its size")
    stream.seek(0)
    array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    return checked_text(array)


def load_array(path: Path) -> NDArray[Any]:
    """Read a ``.npy`` file."""
    try:
        with warnings.catch_warnings(), path.open("rb") as file:
            warnings.simplefilter("ignore")
            return _read_array(file, os.fstat(file.fileno()).st_size)
    except FileNotFoundError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except _DAMAGE as error:
        raise DataError(f"{path}: not a readable .npy file ({error})") from error


def _members(path: Path) -> dict[str, NDArray[Any]]:
    arrays = {}
    try:
        with warnings.catch_warnings(), zipfile.ZipFile(path) as archive:
            warnings.simplefilter("ignore")
            for info in archive.infolist():
                if info.file_size > most_bytes(info.compress_size):
                    raise ValueError(
                        f"{info.filename} has {info.compress_size} bytes in the file and would have {info.file_size}; "
                        f"expected at most {most_bytes(info.compress_size)}, or an array that is not compressed"
                    )
                with archive.open(info) as stream:
                    arrays[info.filename.removesuffix(".npy")] = _read_array(stream, info.file_size)
    except FileNotFoundError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except _DAMAGE as error:
        raise DataError(f"{path}: not a readable .npz file ({error})") from error
    return arrays


def read_npy(path: Path) -> Dataset:
    """Read a matrix, without labels, from a ``.npy`` file."""
    return _dataset(path, load_array(path), {})


def read_npz(path: Path) -> Dataset:
    """Read a ``.npz`` file: X (or the arrays of a sparse matrix), and y, groups and weight where present."""
    arrays = _members(path)
    if "X" in arrays:
        return _dataset(path, arrays["X"], arrays)
    if "format" in arrays:
        return _dataset(path, _sparse(path, arrays), arrays)
    raise DataError(f"{path}: has the arrays {sorted(arrays)}; expected X, or data, indices, indptr, shape and format")


def _sparse(path: Path, arrays: dict[str, NDArray[Any]]) -> Matrix:
    from scipy import sparse

    try:
        kind = bytes(arrays["format"].astype("S").item()).decode()
        shape: Any = tuple(arrays["shape"].tolist())
        matrix: Any
        if kind == "coo":
            matrix = sparse.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape=shape)
        elif kind in ("csr", "csc"):
            make = sparse.csr_array if kind == "csr" else sparse.csc_array
            _check_compressed(arrays["indptr"], arrays["indices"], shape[::-1] if kind == "csc" else shape)
            matrix = make((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
            matrix.check_format(full_check=True)
        else:
            raise ValueError(f"a sparse matrix in format {kind!r}; expected csr, csc or coo")
        rows = matrix.tocsr()
        rows.sum_duplicates()
    except _DAMAGE as error:
        raise DataError(f"{path}: not a readable sparse matrix ({error})") from error
    return cast("Matrix", rows)


def _check_compressed(indptr: NDArray[Any], indices: NDArray[Any], shape: tuple[int, int]) -> None:
    """Raise ValueError for what SciPy, which subtracts in 32 bits, may overlook before it sorts by these indices."""
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu" or len(shape) != 2 or min(shape) < 0:
        raise ValueError(f"indptr of {indptr.dtype}, indices of {indices.dtype} and shape {shape}")
    _, row, index = _core.check_indices(indptr.astype(np.int64), indices.astype(np.int64), shape[1])
    if row >= 0 or indptr.size != shape[0] + 1:
        raise ValueError(f"index {index} and {indptr.size} starts of rows for shape {shape}")


def _dataset(path: Path, X: Matrix, arrays: dict[str, NDArray[Any]]) -> Dataset:
    if X.dtype.kind not in "biuf":
        raise DataError(f"{path}: X has elements of type {X.dtype}; expected numbers")
    columns: dict[str, NDArray[Any]] = {
        name: arrays[name] for name in ("y", "y_ends", "groups", "weight", "feature_names") if name in arrays
    }
    for name, column in columns.items():
        kinds = {"y": "biufSU", "weight": "biuf", "feature_names": "U"}.get(name, "iu")
        if column.ndim == 0 or column.dtype.kind not in kinds:
            what = {"iu": "whole numbers", "U": "text"}.get(kinds, "numbers")
            raise DataError(f"{path}: {name} is {column.dtype} of shape {column.shape}; expected {what}")
    groups, weight, names = columns.get("groups"), columns.get("weight"), columns.get("feature_names")
    try:
        return Dataset(
            X=X,
            y=_labels(columns),
            groups=None if groups is None else groups.astype(np.int64),
            weight=None if weight is None else weight.astype(np.float64),
            feature_names=None if names is None else names.tolist(),
        )
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


def _labels(columns: dict[str, NDArray[Any]]) -> Labels | None:
    if "y" not in columns or "y_ends" not in columns:
        return columns.get("y")
    y, ends = columns["y"], columns["y_ends"].astype(np.int64)
    if (np.diff(ends, prepend=0) < 0).any() or ends[-1:].tolist() != [len(y)]:
        raise ValueError("y_ends does not cut y into one set of labels per example")
    return label_sets(y, ends)


def write_npy(path: Path, data: Dataset) -> None:
    """Write a dense matrix, and nothing else, to a ``.npy`` file."""
    if not isinstance(data.X, np.ndarray):
        raise DataError(f"{path}: .npy holds dense arrays only; expected a name that ends in .npz")
    if data.y is not None or data.groups is not None or data.weight is not None:
        raise DataError(f"{path}: .npy holds X only; expected a name that ends in .npz")
    with atomic(path) as file:
        npy.write_array(file, _plain(path, "X", data.X), allow_pickle=False)


def write_npz(path: Path, data: Dataset) -> None:
    """Write all arrays to a ``.npz`` file; a sparse matrix as :func:`scipy.sparse.load_npz` reads it."""
    names = None if data.feature_names is None else np.array(data.feature_names, dtype=str)
    arrays: dict[str, Any] = {"groups": data.groups, "weight": data.weight, "feature_names": names}
    if isinstance(data.y, list):
        arrays["y"] = np.array([label for labels in data.y for label in labels], dtype=np.float64)
        arrays["y_ends"] = np.cumsum([len(labels) for labels in data.y], dtype=np.int64)
    else:
        arrays["y"] = data.y
    if isinstance(data.X, np.ndarray):
        arrays["X"] = data.X
    else:
        matrix = rows_of(data.X)
        arrays |= {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
        arrays |= {"shape": np.array(matrix.shape), "format": np.array(b"csr"), "_is_array": np.array(True)}
    plain = {name: _plain(path, name, array) for name, array in arrays.items() if array is not None}
    with atomic(path) as file:
        np.savez(file, allow_pickle=False, **plain)


def _plain(path: Path, name: str, array: Any) -> NDArray[Any]:
    plain = np.asarray(array)
    if plain.dtype.kind not in "biufSU":
        raise DataError(f"{path}: {name} has elements of type {plain.dtype}; expected numbers")
    return plain
