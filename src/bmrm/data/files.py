"""The front of the package: the name of a file chooses how it is read and written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import DTypeLike

from bmrm._errors import DataError
from bmrm.data.arrays import load_array, read_npy, read_npz, write_npy, write_npz
from bmrm.data.columns import is_frame
from bmrm.data.compress import SUFFIXES
from bmrm.data.convert import convert
from bmrm.data.dataset import Dataset
from bmrm.data.store import Store
from bmrm.data.svmlight import PathLike, read_svmlight, write_svmlight

_UNSUPPORTED = (".csv", ".tsv", ".json", ".arff", ".parquet", ".feather", ".h5", ".mat", ".pkl", ".xlsx")
_SUPPORTED = (
    "svmlight text under any other name (also .gz, .bz2, .xz, .zst), .npz with dense or sparse arrays, and .npy; "
    "'bmrm convert' reads Parquet, Arrow and CSV"
)


class ReadOptions(TypedDict, total=False):
    """Options of :func:`~bmrm.data.svmlight.read_svmlight`."""

    zero_based: bool | Literal["auto"]
    n_features: int | None
    multilabel: bool | None
    dtype: DTypeLike
    n_threads: int | None


class WriteOptions(TypedDict, total=False):
    """Options of :func:`~bmrm.data.svmlight.write_svmlight`."""

    zero_based: bool
    comment: str | None


def _kind(path: Path) -> Literal["npy", "npz", "store", "svmlight"]:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in SUFFIXES
    inner = "".join((suffixes[:-1] if packed else suffixes)[-1:])
    if inner in _UNSUPPORTED:
        raise DataError(f"{path}: {inner} files are not supported; this version has {_SUPPORTED}")
    if inner in (".npy", ".npz") and packed:
        raise DataError(f"{path}: {inner} files cannot be compressed as a whole; expected a plain {inner}")
    if inner == ".store" and not packed:
        return "store"
    return "npy" if inner == ".npy" else "npz" if inner == ".npz" else "svmlight"


def read(path: PathLike, *, y: PathLike | None = None, **options: Unpack[ReadOptions]) -> Dataset:
    """Read a data file; its name says how.

    A name that ends in ``.npz`` holds arrays X, y, groups, weight and feature_names (all but X optional), or a sparse
    matrix as :func:`scipy.sparse.save_npz` writes it, possibly with the others added; without y, the labels of the
    result are None. A name that ends in ``.npy`` holds X only. Any other name is svmlight text,
    compressed if the name ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zst``. Of a name that ends in ``.store``, X is a
    :class:`~bmrm.Store`, whose rows stay on disk. CSV, Parquet and Arrow are for :func:`~bmrm.convert`.

    Parameters
    ----------
    path : str or path-like
        The file.
    y : str or path-like, optional
        A ``.npy`` file with the labels, for files that have none of their own.
    **options
        For svmlight text: `zero_based`, `n_features`, `multilabel`, `dtype` and `n_threads`, as in
        :func:`bmrm.data.read_svmlight`.

    Returns
    -------
    Dataset
        X, y, groups and weight.

    Raises
    ------
    DataError
        If the file cannot be read; the message says where and what was expected.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import bmrm
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.svm"
    >>> _ = path.write_text("+1 1:0.5 3:2\\n-1 2:1\\n")
    >>> bmrm.read(path, n_features=5).X.shape
    (2, 5)
    """
    file = Path(path)
    kind = _kind(file)
    if kind in ("svmlight", "store") and y is not None:
        raise TypeError("y is for .npy and .npz files; svmlight text and stores have their own labels")
    if kind == "svmlight":
        return read_svmlight(path, **options)
    if options:
        raise TypeError(f"{sorted(options)} are options of svmlight text; {path} is a .{kind} file")
    if kind == "store":
        return Store(file).dataset()
    if file.is_dir():
        raise DataError(f"{path}: is a directory; expected a file")
    data = read_npy(file) if kind == "npy" else read_npz(file)
    return data if y is None else _with_labels(data, Path(y), file)


def _with_labels(data: Dataset, path: Path, matrix_path: Path) -> Dataset:
    if data.y is not None:
        raise DataError(f"{matrix_path}: has labels of its own; y={str(path)!r} would replace them")
    labels = load_array(path)
    if labels.shape != (data.n_examples,):
        raise DataError(f"{path}: has shape {labels.shape}; expected ({data.n_examples},), one label per row")
    return replace(data, y=labels)


def write(
    path: PathLike,
    data: Any,
    y: Any = None,
    *,
    groups: Any = None,
    weight: Any = None,
    **options: Unpack[WriteOptions],
) -> None:
    """Write a data file; its name says how, as in :func:`read`.

    The file appears at once and complete, or not at all: an old one stays until the new one is written.

    Parameters
    ----------
    path : str or path-like
        The file; one that exists is replaced.
    data : Dataset, array, data frame or sparse matrix
        What to write: a whole dataset, or X. Names of columns are kept in ``.npz`` files and stores.
    y, groups, weight : array, optional
        What belongs to X; part of `data` if that is a Dataset. Svmlight text needs y and has no weight.
    **options
        For svmlight text: `zero_based` and `comment`, as in :func:`bmrm.data.write_svmlight`.

    Raises
    ------
    DataError
        If the format cannot express the data, or the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import bmrm
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.npz"
    >>> bmrm.write(path, np.eye(2), y=np.array([1.0, -1.0]))
    >>> bmrm.read(path).y.tolist()
    [1.0, -1.0]
    """
    file = Path(path)
    kind = _kind(file)
    dataset = _gathered(data, y, groups, weight)
    if kind == "svmlight":
        if dataset.y is None:
            raise DataError(f"{path}: svmlight text needs labels; expected y")
        if dataset.weight is not None:
            raise DataError(f"{path}: svmlight text has no weights; expected a name that ends in .npz")
        write_svmlight(path, dataset.X, dataset.y, dataset.groups, **options)
        return
    if options:
        raise TypeError(f"{sorted(options)} are options of svmlight text; {path} is a .{kind} file")
    if kind == "store":
        convert(dataset, file)
    elif kind == "npy":
        write_npy(file, dataset)
    else:
        write_npz(file, dataset)


def _gathered(data: Any, y: Any, groups: Any, weight: Any) -> Dataset:
    if isinstance(data, Dataset):
        if y is not None or groups is not None or weight is not None:
            raise TypeError("y, groups and weight are part of the dataset; give them only with a matrix")
        return data
    from scipy.sparse import csr_array, issparse

    several = isinstance(y, list) and any(isinstance(labels, tuple | list) for labels in y)
    matrix: Any = data
    return Dataset(
        X=csr_array(matrix) if issparse(data) else data if is_frame(data) else np.asarray(data),
        y=y if y is None or several else np.asarray(y),
        groups=None if groups is None else np.asarray(groups, dtype=np.int64),
        weight=None if weight is None else np.asarray(weight, dtype=np.float64),
    )
