"""Compressed files: which suffix means which format, and bytes in and out of each."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from bmrm._errors import DataError

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")


def _zstandard() -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError as error:
        raise DataError("reading and writing .zst needs the zstandard package: pip install 'bmrm[zst]'") from error


def _unzstd(data: bytes) -> bytes:
    """Decompress all frames; unlike a stream reader this notices when the last one is cut short."""
    decompressor = _zstandard().ZstdDecompressor()
    parts = []
    while data:
        frame = decompressor.decompressobj()
        parts.append(frame.decompress(data))
        if not frame.eof:
            raise EOFError("the last frame is not complete")
        data = frame.unused_data
    return b"".join(parts)


def decompress(path: Path) -> bytes:
    """Return the decompressed content of a file with one of the suffixes above."""
    suffix = path.suffix.lower()
    failures: tuple[type[Exception], ...] = (EOFError, OSError)
    if suffix == ".gz":
        import gzip
        import zlib

        unpack: Any = gzip.decompress
        failures += (zlib.error,)
    elif suffix == ".bz2":
        import bz2

        unpack = bz2.decompress
        failures += (ValueError,)
    elif suffix == ".xz":
        import lzma

        unpack = lzma.decompress
        failures += (lzma.LZMAError,)
    else:
        failures += (_zstandard().ZstdError,)
        unpack = _unzstd
    data = path.read_bytes()
    try:
        return bytes(unpack(data))
    except failures as error:
        raise DataError(f"{path}: truncated or corrupt {suffix} file ({error})") from error


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
