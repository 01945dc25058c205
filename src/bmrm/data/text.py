"""Text files: their lines, whatever they are compressed with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm._errors import DataError
from bmrm.data.compress import SUFFIXES, decompress


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file in UTF-8, decompressed if its name ends in .gz, .bz2, .xz or .zst."""
    if path.is_dir():
        raise DataError(f"{path}: is a directory; expected a file")
    try:
        content = decompress(path) if path.suffix.lower() in SUFFIXES else path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: not UTF-8 text") from None
    # Not splitlines, which also cuts at characters that may stand in a token.
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def checked_text(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array; ValueError if it is one of text with numbers that stand for no character."""
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        codes = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))).view(np.uint32)
        if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))).any():
            raise ValueError("text has numbers that stand for no character of Unicode")
    return array


def inner_suffix(path: Path) -> str:
    """Return the suffix that tells the format, in small letters: the one before that of a compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in SUFFIXES:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
