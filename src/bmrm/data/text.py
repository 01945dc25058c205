"""Text files: their lines, whatever they are compressed with."""

from __future__ import annotations

from pathlib import Path

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


def inner_suffix(path: Path) -> str:
    """Return the suffix that tells the format, in small letters: the one before that of a compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in SUFFIXES:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
