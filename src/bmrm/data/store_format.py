"""The file format of a store, version 1: row blocks, each with its place, size and checksum in a header.

::

    0       preamble: magic, version, place, size and CRC-32 of the header
    4096    block 0, at a multiple of 4096, as are all that follow
    ...     other blocks; arrays with one number for each row or column
    end     header: UTF-8 JSON

A block of a dense store is an array of rows, row by row. One of a sparse store is indptr (int64, one more than rows),
the values and the column indices, each at a multiple of 64 from the block's beginning. All numbers are little-endian.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._errors import DataError

VERSION = 1
PAGE = 4096
_MAGIC = b"bmrmrows"
_PREAMBLE = struct.Struct("<8sIQQI")
_MOST = 1 << 60  # rows or columns: numbers of 64 bits count them, with room for sums
_ALIGNMENT = 64
_LARGEST_HEADER = 1 << 30

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Block:
    """Where a block of rows is, and what it must look like."""

    offset: int
    size: int
    rows: int
    entries: int
    index_size: int
    crc: int


@dataclass(frozen=True)
class StoredArray:
    """Where an array is, and what it must look like."""

    offset: int
    size: int
    dtype: str
    shape: tuple[int, ...]
    crc: int


@dataclass(frozen=True)
class Header:
    """All that is known of a store before its blocks are read."""

    rows: int
    columns: int
    entries: int
    kind: Literal["dense", "csr"]
    dtype: Literal["<f4", "<f8"]
    square_sum: float
    zero_based: bool | None
    blocks: tuple[Block, ...]
    arrays: dict[str, StoredArray]


def padded(size: int, to: int) -> int:
    """Return the next multiple."""
    return -(-size // to) * to


def block_parts(kind: str, dtype: str, rows: int, entries: int, index_size: int) -> tuple[list[int], int]:
    """Return where the parts of a block begin, and its size."""
    value = np.dtype(dtype).itemsize
    if kind == "dense":
        return [0], entries * value
    values = padded(8 * (rows + 1), _ALIGNMENT)
    indices = padded(values + entries * value, _ALIGNMENT)
    return [0, values, indices], indices + entries * index_size


def block_arrays(header: Header, block: Block, data: Bytes) -> tuple[npt.NDArray[Any], ...]:
    """Return the arrays of a block as views of its bytes: the rows, or values, indices and indptr."""
    places, _ = block_parts(header.kind, header.dtype, block.rows, block.entries, block.index_size)
    if header.kind == "dense":
        return (data[: block.size].view(header.dtype).reshape(block.rows, header.columns),)
    _, values, indices = places
    value_size = np.dtype(header.dtype).itemsize
    return (
        data[values : values + block.entries * value_size].view(header.dtype),
        data[indices : block.size].view(f"<i{block.index_size}"),
        data[: 8 * (block.rows + 1)].view("<i8"),
    )


def block_matrix(header: Header, block: Block, data: Bytes) -> _core.Matrix:
    """Return a block as a matrix over its bytes."""
    arrays: Any = block_arrays(header, block, data)
    if header.kind == "dense":
        return _core.dense(arrays[0])
    return _core.csr(arrays[0], arrays[1], arrays[2], header.columns, checked=True)  # see check_block


def check_block(header: Header, block: Block, data: Bytes) -> None:
    """Raise ValueError unless the bytes are those that were written, and a block that can be computed with."""
    if zlib.crc32(data[: block.size].data) != block.crc:
        raise ValueError("its checksum is wrong")
    if header.kind == "csr":
        _, indices, indptr = block_arrays(header, block, data)
        in_order, bad_row, bad_index = _core.check_indices(indptr, indices, header.columns)
        if bad_row >= 0 or not in_order:
            raise ValueError(f"row {bad_row} has index {bad_index}" if bad_row >= 0 else "indices are not in order")


def preamble(offset: int, content: bytes) -> bytes:
    """Return the first bytes of a file whose header is there."""
    return _PREAMBLE.pack(_MAGIC, VERSION, offset, len(content), zlib.crc32(content))


def header_place(path: Any, first: bytes, size: int) -> tuple[int, int, int]:
    """Return offset, size and checksum of the header of a file that begins so and has that size."""
    if len(first) < _PREAMBLE.size or not first.startswith(_MAGIC):
        raise DataError(f"{path}: not a store; expected a file that 'bmrm convert' has written")
    _, version, offset, length, crc = _PREAMBLE.unpack(first[: _PREAMBLE.size])
    if version != VERSION:
        raise DataError(f"{path}: a store of version {version}; this program reads version {VERSION}: convert again")
    if length > _LARGEST_HEADER or offset + length > size:
        raise DataError(f"{path}: truncated: its header should be at offset {offset}, but it has {size} bytes")
    return offset, length, crc


def header_bytes(header: Header) -> bytes:
    """Return the header as it is written."""
    plain = asdict(header)
    plain["blocks"] = [list(asdict(block).values()) for block in header.blocks]
    return json.dumps(plain, separators=(",", ":")).encode()


def parse_header(path: Any, content: bytes, offset: int, crc: int, size: int) -> Header:
    """Return the header, checked so far that reading by it stays within the file."""
    if zlib.crc32(content) != crc:
        raise DataError(f"{path}: corrupt header at offset {offset}: its checksum is wrong")
    try:
        plain = json.loads(content)
        blocks = tuple(Block(*(int(number) for number in block)) for block in plain["blocks"])
        arrays = {name: StoredArray(**part | {"shape": tuple(part["shape"])}) for name, part in plain["arrays"].items()}
        header = Header(**plain | {"blocks": blocks, "arrays": arrays})
        _check_header(header, size)
    except (ArithmeticError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: unusable header at offset {offset} ({error})") from error
    return header


def _check_header(header: Header, size: int) -> None:
    if header.kind not in ("dense", "csr") or header.dtype not in ("<f4", "<f8"):
        raise ValueError(f"kind {header.kind!r} of {header.dtype!r}")
    if not all(type(number) is int for number in (header.rows, header.columns, header.entries)):
        raise ValueError(f"{header.rows!r} rows, {header.columns!r} columns, {header.entries!r} entries")
    if not (1 <= header.rows < _MOST and 0 <= header.columns < _MOST and header.square_sum >= 0.0):
        raise ValueError(f"{header.rows} rows, {header.columns} columns")
    for block in header.blocks:
        whole = block_parts(header.kind, header.dtype, block.rows, block.entries, block.index_size)[1]
        dense = header.kind == "dense"
        wrong = block.entries != block.rows * header.columns if dense else block.index_size not in (4, 8)
        numbers = [getattr(block, field.name) for field in fields(block)]
        if wrong or min(numbers) < 0 or whole != block.size or block.offset % PAGE or block.offset + whole > size:
            raise ValueError(f"block {numbers} of a file with {size} bytes")
    if sum(block.rows for block in header.blocks) != header.rows:
        raise ValueError(f"blocks have other than {header.rows} rows")
    for name, array in header.arrays.items():
        if not all(type(number) is int for number in (array.offset, array.size, array.crc, *array.shape)):
            raise ValueError(f"array {name} at {array.offset!r}, {array.size!r} bytes, of shape {array.shape!r}")
        dtype = np.dtype(array.dtype)
        whole = dtype.itemsize * math.prod(array.shape)
        if (
            min(array.shape, default=0) < 0
            or dtype.kind not in "biufSU"
            or whole != array.size
            or not 0 <= array.offset <= size - whole
        ):
            raise ValueError(f"array {name}")
