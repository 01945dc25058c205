"""Files that are either complete or not there."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from bmrm._errors import DataError


def _mode(path: Path) -> int:
    """The permissions of the file to be replaced, or those a plain new file would get."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


_KINDS = {
    stat.S_IFDIR: "directory",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFIFO: "pipe (FIFO)",
    stat.S_IFSOCK: "socket",
}


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise DataError unless the path is a regular file, or nothing yet, under a name that a file can have."""
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror})") from error
    except ValueError as error:
        raise DataError(f"{os.fspath(path)!r}: no name that a file can have ({error})") from error
    if kind != stat.S_IFREG:
        raise DataError(f"{path}: is a {_KINDS.get(kind, 'special file')}; expected the name of a file")


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file next to ``path``; it takes the path's place when the block ends well.

    Until then the old file, if any, stays as it is; when the block raises, nothing is left behind. Only regular files
    are replaced.
    """
    check_replaceable(path)
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".tmp")
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror})") from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield cast(BinaryIO, file)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(OSError):  # some file systems have no permissions
            os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(target.parent)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove the temporary files of writers of ``path`` that were killed; there must be no other writer now."""
    target = Path(os.path.realpath(path))
    leftover = re.compile(re.escape(f".{target.name[:40]}.") + r"[a-z0-9_]{8}\.tmp")
    with contextlib.suppress(OSError):
        for entry in os.scandir(target.parent):
            if leftover.fullmatch(entry.name):
                os.unlink(entry.path)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself last; where folders cannot be opened there is nothing to do."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
