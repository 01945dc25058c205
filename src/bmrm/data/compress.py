"""Compressed files: which suffix means which format, and bytes in and out of each."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from bmrm._errors import DataError

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")

# What compressed data may become, so that a small file cannot ask for all memory: text and numbers of experiments
# shrink 2 to 30 times; nothing below 256 MB endangers a machine that trains.
_MOST_TIMES, _HARMLESS = 100, 1 << 28
_PIECE = 1 << 16  # bytes that are decompressed at once where nothing else bounds what they become


def _zstandard() -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError as error:
        raise DataError("reading and writing .zst needs the zstandard package: pip install 'bmrm[zst]'") from error


def most_bytes(size: int) -> int:
    """Return how many bytes may come out of so many compressed ones."""
    return max(_HARMLESS, _MOST_TIMES * size)


def _unzstd(data: bytes, most: int) -> bytes:
    """Decompress all frames, or some more than `most` bytes."""
    parts, size = [], 0
    for part in _unzstd_parts(io.BytesIO(data), 8 * _PIECE):
        parts.append(part)
        size += len(part)
        if size > most:
            break
    return b"".join(parts)


def _read(opened: Any, data: bytes, most: int) -> bytes:
    """Decompress, but no more than one byte beyond `most`."""
    with opened(io.BytesIO(data)) as file:
        return bytes(file.read(most + 1))


def decompress(path: Path) -> bytes:
    """Return the decompressed content of a file with one of the suffixes above."""
    suffix = path.suffix.lower()
    data = path.read_bytes()
    most = most_bytes(len(data))
    failures: tuple[type[Exception], ...] = (EOFError, OSError)
    unpack: Callable[[bytes, int], bytes] = _unzstd
    if suffix == ".gz":
        import gzip
        import zlib

        unpack = partial(_read, gzip.open)
        failures += (zlib.error,)
    elif suffix == ".bz2":
        import bz2

        unpack = partial(_read, bz2.open)
        failures += (ValueError,)
    elif suffix == ".xz":
        import lzma

        unpack = partial(_read, lzma.open)
        failures += (lzma.LZMAError,)
    else:
        failures += (_zstandard().ZstdError,)
    try:
        content = unpack(data, most)
    except failures as error:
        raise DataError(f"{path}: truncated or corrupt {suffix} file ({error})") from error
    if len(content) > most:
        raise DataError(
            f"{path}: its {len(data)} bytes become more than {most}; expected at most {_MOST_TIMES} times as many: "
            f"decompress it first"
        )
    return content


@contextlib.contextmanager
def compressing(file: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    """Wrap an open file so that what is written to it is compressed as the suffix says."""
    with contextlib.ExitStack() as stack:
        if suffix == ".gz":
            import gzip

            # Neither a name nor a time inside: equal data gives equal files.
            yield stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))  # type: ignore[misc]
        elif suffix == ".bz2":
            import bz2

            yield stack.enter_context(bz2.BZ2File(file, "wb"))  # type: ignore[misc]
        elif suffix == ".xz":
            import lzma

            yield stack.enter_context(lzma.LZMAFile(file, "wb"))  # type: ignore[misc]
        elif suffix == ".zst":
            writer = _zstandard().ZstdCompressor().stream_writer(file, closefd=False)
            yield stack.enter_context(writer)
        else:
            yield file


def streamed(path: Path, size: int, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Yield the decompressed content of a file, or that of a plain one, about so many bytes at a time.

    From `start` to `stop`, for plain files only.
    """
    suffix = path.suffix.lower()
    failures: tuple[type[Exception], ...] = (EOFError, ValueError)
    if suffix == ".xz":
        import lzma

        failures += (lzma.LZMAError,)
    elif suffix == ".gz":
        import gzip
        import zlib

        failures += (zlib.error, gzip.BadGzipFile)
    elif suffix == ".zst":
        failures += (_zstandard().ZstdError,)
    try:
        with path.open("rb") as raw:
            yield from _unzstd_parts(raw, size) if suffix == ".zst" else _parts(raw, suffix, size, start, stop)
    except failures as error:
        raise DataError(f"{path}: truncated or corrupt {suffix} file ({error})") from error
    except OSError as error:
        if suffix in SUFFIXES and error.errno is None:  # bz2 and gzip say so of damaged bytes
            raise DataError(f"{path}: truncated or corrupt {suffix} file ({error})") from error
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error


def _parts(raw: BinaryIO, suffix: str, size: int, start: int, stop: int | None) -> Iterator[bytes]:
    file: Any = raw
    if start:
        raw.seek(start)
    if suffix in (".gz", ".bz2", ".xz"):
        file = importlib.import_module({".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}[suffix]).open(raw)
    left = None if stop is None else stop - start
    while part := file.read(size if left is None else min(size, left)):
        left = None if left is None else left - len(part)
        yield part


def _unzstd_parts(raw: BinaryIO, size: int) -> Iterator[bytes]:
    """Decompress all frames; unlike a stream reader this notices when the last one is cut short."""
    decompressor = _zstandard().ZstdDecompressor()
    frame, waiting = None, b""
    while data := waiting or raw.read(size // 8):
        frame = frame or decompressor.decompressobj()
        if part := frame.decompress(data):
            yield part
        waiting, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError("the last frame is not complete")
