"""Archives of plain arrays and a JSON header, checked against a sum. Nothing in them is ever executed."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import warnings
import zipfile
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from bmrm._errors import DataError
from bmrm.data.atomic import atomic
from bmrm.data.text import checked_text

_HEADER = "header"

Arrays = dict[str, npt.NDArray[Any]]


def write_archive(path: str | os.PathLike[str] | BinaryIO, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write the archive to an open file, or to a path, where it appears complete or not at all."""
    text = json.dumps({**header, "sha256": _digest(arrays)}, ensure_ascii=False, allow_nan=False)
    members = {_HEADER: np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    if not isinstance(path, str | os.PathLike):
        content = io.BytesIO()  # zip archives differ in files that have no places, such as pipes
        np.savez(content, allow_pickle=False, **members)
        path.write(content.getbuffer())
        return
    with atomic(path) as file:
        np.savez(file, allow_pickle=False, **members)


def parse_archive(
    content: bytes, kind: str, version: int, kinds: Callable[[str], str | None]
) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of an archive, checked to be what `write_archive` wrote.

    Parameters
    ----------
    content : bytes
    kind, version : str, int
        What the header must say.
    kinds : callable
        Returns the kinds of numbers that the array of a name may hold, None if there is no such name.
    """
    arrays = _members(content, lambda name: "u" if name == _HEADER else kinds(name))
    header = json.loads(arrays.pop(_HEADER).tobytes().decode())
    if not isinstance(header, dict) or header.get("format") != kind:
        raise DataError(f"its header does not say '{kind}'")
    if header.get("format_version") != version:
        raise DataError(f"format version {header.get('format_version')!r}; this bmrm reads {version}")
    if header.get("sha256") != _digest(arrays):
        raise DataError("the checksum of its arrays does not match")
    return header, arrays


def _digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape};".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _members(content: bytes, kinds: Callable[[str], str | None]) -> Arrays:
    """The arrays of the archive; what it declares is compared with its size before memory is set aside."""
    with warnings.catch_warnings(), zipfile.ZipFile(io.BytesIO(content)) as archive:
        warnings.simplefilter("ignore")
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        known = {name: kinds(name.removesuffix(".npy")) for name in names if name.endswith(".npy")}
        if f"{_HEADER}.npy" not in names or len(set(names)) < len(names) or not all(known.get(name) for name in names):
            raise DataError(f"it holds {names[:8]}; expected the arrays of such a file and no others")
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise DataError("it is compressed; such files are not")
        if sum(entry.file_size for entry in entries) > len(content):
            raise DataError("it declares more bytes than it has")
        return {e.filename.removesuffix(".npy"): _array(archive.read(e), known[e.filename] or "") for e in entries}


def _array(content: bytes, kinds: str) -> npt.NDArray[Any]:
    stream = io.BytesIO(content)
    if npy.read_magic(stream) != (1, 0):
        raise DataError("an array has another format version than 1.0")
    shape, by_columns, dtype = npy.read_array_header_1_0(stream)
    if dtype.kind not in kinds or by_columns or any(size < 0 for size in shape):
        raise DataError(f"an array has type {dtype} and shape {shape}, which is not expected")
    if stream.tell() + math.prod(shape) * dtype.itemsize != len(content):
        raise DataError("the header of an array does not agree with its size")
    return checked_text(np.frombuffer(content, dtype=dtype, offset=stream.tell()).reshape(shape))
