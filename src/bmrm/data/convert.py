"""Any data as a store: read in pieces, written in blocks, complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bmrm._errors import DataError
from bmrm.data.atomic import atomic
from bmrm.data.dataset import Dataset
from bmrm.data.memory import parse_bytes
from bmrm.data.sources import FORMATS, Format, SourceOptions, dataset_pieces, pieces_of
from bmrm.data.store_format import Header
from bmrm.data.store_writer import BLOCK_BYTES, Piece, StoreWriter

PathLike = str | os.PathLike[str]

_SMALLEST_BLOCK, _LARGEST_BLOCK = 1 << 10, 1 << 30


@dataclass(frozen=True)
class Conversion:
    """What a conversion has written.

    Attributes
    ----------
    path : Path
    header : Header
    widths : dict
        The number of features of each file, where they are files.
    """

    path: Path
    header: Header
    widths: dict[str, int]


def convert(
    sources: PathLike | Dataset | Iterable[PathLike],
    path: PathLike,
    *,
    float32: bool = False,
    block_bytes: int | str = BLOCK_BYTES,
    zero_based: bool | Literal["auto"] = "auto",
    target: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    labels: PathLike | None = None,
    format: Format | None = None,
) -> Conversion:
    """Write a store: files of any size in pieces of a few megabytes, one after the other, as the rows of one matrix.

    The file appears at once and complete, or not at all.

    Parameters
    ----------
    sources : path, paths or Dataset
        svmlight text (also .gz, .bz2, .xz, .zst), .parquet, .arrow, .feather, .csv (these need pyarrow), .npy, .npz.
        Only .npz files are read as a whole. Sparse formats make a sparse store, others a dense one; they do not mix.
    path : str or path-like
        The store; one that exists is replaced.
    float32 : bool
        Round values to float32. By default they are float64, unless the first rows are float32 already.
    block_bytes : int or str
        The size of a block, from 1 KiB to 1 GiB. Three of them are in memory at a time when the store is used.
    zero_based : bool or "auto"
        Whether indices of svmlight text count from 0. "auto" says yes if an index 0 occurs in the first 8 MB; a later
        one is an error then.
    target, group, weight : str, optional
        Names of columns of tables; all other columns are features.
    labels : path, optional
        A .npy file with the labels, for one .npy or .npz file without.
    format : str, optional
        Of all files; by default their names tell.

    Returns
    -------
    Conversion

    Raises
    ------
    DataError
        If a file cannot be read or the store not be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import bmrm
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.svm").write_text("1 1:0.5\\n"), (folder / "b.svm").write_text("-1 3:2\\n")
    >>> bmrm.convert([folder / "a.svm", folder / "b.svm"], folder / "ab.store").header.columns
    3
    """
    size = parse_bytes(block_bytes)
    if not _SMALLEST_BLOCK <= size <= _LARGEST_BLOCK:
        raise ValueError(f"block_bytes is {size}; expected {_SMALLEST_BLOCK} to {_LARGEST_BLOCK}")
    if format is not None and format not in FORMATS:
        raise ValueError(f"format is {format!r}; expected one of {', '.join(FORMATS)}")
    options = SourceOptions(zero_based, target, group, weight, None if labels is None else Path(labels), format)
    destination = Path(path)
    pieces = _pieces(sources, destination, options)
    with atomic(destination) as file:
        writer = StoreWriter(file, float32 or None, size)
        for piece in pieces:
            writer.add(piece)
        try:
            header = writer.finish(None if options.zero_based == "auto" else bool(options.zero_based))
        except DataError as error:
            raise DataError(f"{destination}: not written: {error}") from None
    return Conversion(destination, header, options.widths)


def _pieces(
    sources: PathLike | Dataset | Iterable[PathLike], destination: Path, options: SourceOptions
) -> Iterator[Piece]:
    if isinstance(sources, Dataset):
        return dataset_pieces(sources)
    paths = [Path(sources)] if isinstance(sources, str | os.PathLike) else [Path(source) for source in sources]
    if not paths:
        raise DataError("no files to convert; expected at least one")
    for source in paths:
        if source.exists() and destination.exists() and destination.samefile(source):
            raise DataError(f"{destination}: is an input and would be overwritten")
    if options.labels is not None and len(paths) > 1:
        raise DataError(f"{options.labels}: labels of their own file are for one file, but there are {len(paths)}")
    return (piece for source in paths for piece in pieces_of(source, options))
