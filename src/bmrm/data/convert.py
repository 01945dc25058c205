"""Any data as a store: read in pieces, written in blocks, complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bmrm._errors import DataError
from bmrm.data.atomic import atomic, remove_leftovers
from bmrm.data.columns import Columns
from bmrm.data.dataset import Dataset
from bmrm.data.memory import parse_bytes, resident, return_freed, show_bytes
from bmrm.data.pieces import Piece
from bmrm.data.source_options import FORMATS, PIECE_BYTES, FilePart, Format, Skipped, SourceOptions
from bmrm.data.sources import dataset_pieces, pieces_of
from bmrm.data.store_format import Header
from bmrm.data.store_writer import BLOCK_BYTES, StoreWriter
from bmrm.data.text_pieces import IndexZero

PathLike = str | os.PathLike[str]

_SMALLEST_BLOCK, _LARGEST_BLOCK = 1 << 10, 1 << 30
_SMALLEST_PIECE = 1 << 18
_SMALLEST_DEFAULT, _BLOCKS = 1 << 20, 64  # blocks that the memory allowed has room for: three for each shard
_SHARE = 16  # of the memory that is left: a piece, what it is parsed to, and the blocks that wait


@dataclass(frozen=True)
class Conversion:
    """What a conversion has written.

    Attributes
    ----------
    path : Path
    header : Header
    widths : dict
        The number of features of each file, where they are files.
    skipped : Skipped
        Lines and rows that were left out.
    remarks : tuple of str
        Which columns were left out, a line for each file.
    """

    path: Path
    header: Header
    widths: dict[str, int]
    skipped: Skipped
    remarks: tuple[str, ...] = ()


def convert(
    sources: PathLike | Dataset | Iterable[PathLike | FilePart],
    path: PathLike,
    *,
    float32: bool = False,
    block_bytes: int | str | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    target: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    labels: PathLike | None = None,
    format: Format | None = None,
    memory: int | str | None = None,
    skip_bad: bool = False,
) -> Conversion:
    """Write a store: files of any size in pieces of a few megabytes, one after the other, as the rows of one matrix.

    The file appears at once and complete, or not at all. It keeps the names of columns.

    Parameters
    ----------
    sources : path, paths or Dataset
        svmlight text (also .gz, .bz2, .xz, .zst), .parquet, .arrow, .feather, .csv (these need pyarrow), .npy, .npz,
        other stores.
        Only .npz files are read as a whole. Sparse formats make a sparse store, others a dense one; they do not mix.
    path : str or path-like
        The store; one that exists is replaced.
    float32 : bool
        Round values to float32. By default they are float64, unless the first rows are float32 already.
    block_bytes : int or str, optional
        The size of a block, from 1 KiB to 1 GiB. Three of them are in memory at a time when the store is used. By
        default 16 MiB; less where `memory` is less than 64 of them.
    zero_based : bool or "auto"
        Whether indices of svmlight text count from 0. "auto" says yes if an index 0 occurs; where that is not in the
        first 8 MB, the conversion starts again when it is met.
    target, group, weight : str, optional
        Names of columns of tables; all other columns are features.
    features : sequence of str, optional
        The columns that are features, in this order, of sources that name their columns; others are left out. By
        default all columns, in the order of the first source: later ones are put in order by name, and one that lacks
        a column or has others is refused.
    drop : sequence of str
        Columns that are no features, where they are there.
    labels : path, optional
        A .npy file with the labels, for one .npy or .npz file without.
    format : str, optional
        Of all files; by default their names tell.
    memory : int or str, optional
        A limit on the resident memory of this process, for example "500MB": less is read at a time, and a conversion
        that needs more is refused.
    skip_bad : bool
        Leave out lines of text that cannot be read, rows with gaps or numbers that are not finite, and damaged blocks
        of stores, and count them.

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
    limit = None if memory is None else parse_bytes(memory)
    size = _default_block(limit) if block_bytes is None else parse_bytes(block_bytes)
    if not _SMALLEST_BLOCK <= size <= _LARGEST_BLOCK:
        raise ValueError(f"block_bytes is {size}; expected {_SMALLEST_BLOCK} to {_LARGEST_BLOCK}")
    if format is not None and format not in FORMATS:
        raise ValueError(f"format is {format!r}; expected one of {', '.join(FORMATS)}")
    options = SourceOptions(
        zero_based, target, group, weight, None if labels is None else Path(labels), format, skip_bad,
        PIECE_BYTES if limit is None else _piece_bytes(limit), limit,
        columns=Columns(None if features is None else tuple(features), drop),
    )  # fmt: skip
    listed = sources if isinstance(sources, Dataset) else _parts(sources)
    again = replace(options, zero_based=True, widths={}, skipped=Skipped())
    try:
        return _written(listed, Path(path), options, float32, size, limit)
    except IndexZero:
        if zero_based != "auto" or isinstance(listed, Dataset) or not all(os.path.isfile(p.path) for p in listed):
            raise
        return _written(listed, Path(path), again, float32, size, limit)


def _parts(sources: PathLike | Iterable[PathLike | FilePart]) -> list[FilePart]:
    listed = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    return [source if isinstance(source, FilePart) else FilePart(os.fspath(source)) for source in listed]


def _written(
    sources: Dataset | list[FilePart], destination: Path, options: SourceOptions, float32: bool, size: int,
    limit: int | None,
) -> Conversion:  # fmt: skip
    pieces = _pieces(sources, destination, options)
    remove_leftovers(destination)
    with atomic(destination) as file:
        writer = StoreWriter(file, float32 or None, size)
        for piece in pieces:
            writer.add(piece)
            _check_memory(limit, writer, piece)
        try:
            header = writer.finish(None if options.zero_based == "auto" else bool(options.zero_based))
        except DataError as error:
            what = ", ".join(dict.fromkeys(str(part) for part in sources)) if isinstance(sources, list) else "data"
            raise DataError(f"{what}: {error}") from None
    return Conversion(destination, header, options.widths, options.skipped, options.columns.remarks())


def _default_block(limit: int | None) -> int:
    return BLOCK_BYTES if limit is None else min(max(limit // _BLOCKS, _SMALLEST_DEFAULT), BLOCK_BYTES)


def _piece_bytes(limit: int) -> int:
    """Return how much to read at a time: text takes several times as much when it is parsed."""
    return_freed()
    return min(max((limit - resident()) // _SHARE, _SMALLEST_PIECE), PIECE_BYTES)


def _check_memory(limit: int | None, writer: StoreWriter, piece: Piece) -> None:
    """Raise if more is resident than allowed, or will be when what belongs to the rows is written."""
    if limit is None:
        return
    needed = resident() + writer.beside_bytes
    if needed > limit:
        raise DataError(
            f"{piece.origin}: a memory limit of {show_bytes(limit)} is too small to convert it; "
            f"{show_bytes(needed)} are in use at row {piece.first_row}"
        )


def _pieces(sources: Dataset | list[FilePart], destination: Path, options: SourceOptions) -> Iterator[Piece]:
    if isinstance(sources, Dataset):
        return (piece.arranged(options.columns) for piece in dataset_pieces(sources, piece_bytes=options.piece_bytes))
    if not sources:
        raise DataError("no files to convert; expected at least one")
    for part in sources:
        if os.path.exists(part.path) and destination.exists() and destination.samefile(part.path):
            raise DataError(f"{destination}: is an input and would be overwritten")
    if options.labels is not None and len(sources) > 1:
        raise DataError(f"{options.labels}: labels of their own file are for one file, but there are {len(sources)}")
    return (piece for part in sources for piece in pieces_of(part, options))
