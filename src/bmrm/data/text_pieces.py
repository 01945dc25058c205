"""svmlight text of any size, or some of its bytes, as pieces of rows; bad lines are left out if asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bmrm import _core
from bmrm._errors import DataError
from bmrm.data.compress import streamed
from bmrm.data.pieces import Piece
from bmrm.data.source_options import PIECE_BYTES, FilePart, SourceOptions
from bmrm.data.svmlight import text_of
from bmrm.data.threads import checked_threads

_LINE = re.compile(r"line (\d+)")
_COUNTS_FROM_ONE = "counts from 1"  # says the parser of an index 0: that is a wrong option, not a wrong line


class IndexZero(DataError):
    """An index 0 comes after text that seemed to count from 1."""


def svmlight_pieces(part: FilePart, options: SourceOptions) -> Iterator[Piece]:
    """Yield the rows of text, some at a time; the first ones settle where indices begin."""
    lines, rows = lines_before(part), 0
    for text in _whole_lines(part, options.piece_bytes):
        for piece in _parsed(np.frombuffer(text, np.uint8), part, options, lines, rows):
            yield piece
            rows += piece.rows
        lines += text.count(b"\n")


def whole_text(part: FilePart, options: SourceOptions, n_threads: int | None = None) -> Piece:
    """Return the rows of text as one piece: where indices begin is settled by all of them."""
    text = text_of(Path(part.path), part.start, part.stop)
    try:
        return _piece(text, part, options, 0, n_threads)
    except ValueError as error:
        raise DataError(f"{part.path}, {_renumbered(str(error), lines_before(part))}") from None


def lines_before(part: FilePart) -> int:
    """Return how many lines of the file come before the part."""
    if not part.start:
        return 0
    with open(part.path, "rb") as file:
        left, count = part.start, 0
        while left > 0 and (chunk := file.read(min(left, PIECE_BYTES))):
            count += chunk.count(b"\n")
            left -= len(chunk)
    return count


def _parsed(text: NDArray[np.uint8], part: FilePart, options: SourceOptions, lines: int, rows: int) -> Iterator[Piece]:
    """Yield the rows; where a line is wrong and may be left out, the text is halved until that line is alone."""
    try:
        yield _piece(text, part, options, rows)
        return
    except ValueError as error:
        message = f"{part.path}, {_renumbered(str(error), lines)}"
    if _COUNTS_FROM_ONE in message:
        raise IndexZero(message)
    if not options.skip_bad:
        raise DataError(message)
    ends = np.flatnonzero(text == ord("\n")) + 1
    inner = ends[ends < len(text)]
    if not len(inner):
        options.skipped.add(message)
        return
    middle = int(inner[len(inner) // 2])
    for half, before in ((text[:middle], 0), (text[middle:], len(inner) // 2 + 1)):
        for piece in _parsed(half, part, options, lines + before, rows):
            yield piece
            rows += piece.rows


def _piece(
    text: NDArray[np.uint8], part: FilePart, options: SourceOptions, rows: int, n_threads: int | None = None
) -> Piece:
    settled = None if options.zero_based == "auto" else options.zero_based
    parsed = _core.parse_svmlight(text, settled, None, None, False, checked_threads(n_threads))
    values, indices, indptr, width, labels, ends, groups, from_zero = parsed
    if len(values):
        options.zero_based = from_zero
    return Piece((values, indices, indptr), labels, ends, groups, None, width, str(part.path), rows)


def _renumbered(message: str, lines_before: int) -> str:
    """Return a message of the parser with the number of the line in the whole file."""
    return _LINE.sub(lambda found: f"line {int(found[1]) + lines_before}", message, count=1)


def _whole_lines(part: FilePart, size: int) -> Iterator[bytes]:
    """Yield the text in parts of whole lines."""
    rest, first = b"", part.start == 0
    for chunk in streamed(Path(part.path), size, part.start, part.stop):
        if first:
            chunk, first = chunk.removeprefix(b"\xef\xbb\xbf"), False
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            yield rest + head + newline
            rest = tail
        else:
            rest += chunk
    if rest:
        yield rest
