"""Files that are either complete or not there."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from bmrm._errors import DataError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}  # errors of writing, which do not know the file's name


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
    are replaced. A new file gets the permissions that any new file gets, and one that is replaced keeps its own.
    """
    check_replaceable(path)
    target = Path(os.path.realpath(path))  # a link stays a link
    handle, name, mode = _opened(target, path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield cast(BinaryIO, file)
            file.flush()
            if mode is not None:
                with contextlib.suppress(OSError):  # some file systems have no permissions
                    os.chmod(name, mode)
            os.fsync(file.fileno())
            os.replace(name, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            raise DataError(f"{path}: cannot be written ({os.strerror(error.errno)})") from error
        raise
    _sync_folder(target.parent)


def _opened(target: Path, path: str | os.PathLike[str]) -> tuple[int, str, int | None]:
    """Open a new file beside the target; also return its name, and the permissions of the target if that exists.

    The kernel applies the umask: to read it, a process has to change it, which its other threads would notice.
    """
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
    except OSError:
        mode = None
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    while True:
        name = str(target.parent / f".{target.name[:40]}.{secrets.token_hex(8)}.tmp")
        try:
            handle = os.open(name, flags, 0o666 if mode is None else 0o600)
        except OSError as error:
            raise DataError(f"{path}: cannot be written ({error.strerror})") from error
        _lock(handle, wait=True)
        if os.path.exists(name):  # else somebody who removes leftovers was quicker than the lock
            return handle, name, mode
        os.close(handle)


def _lock(handle: int, wait: bool = False) -> bool:
    """Lock a file, for as long as the process has it open; return whether nobody else had, where that can be told."""
    if sys.platform == "win32":  # a file that is open cannot be removed there
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove the temporary files of writers of ``path`` that were killed; those of writers at work stay."""
    target = Path(os.path.realpath(path))
    leftover = re.compile(re.escape(f".{target.name[:40]}.") + r"[0-9a-f]{16}\.tmp")
    with contextlib.suppress(OSError):
        for entry in os.scandir(target.parent):
            if leftover.fullmatch(entry.name):
                _remove_unlocked(entry.path)


def _remove_unlocked(name: str) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(name, os.O_RDONLY)
        try:
            if _lock(handle):
                os.unlink(name)
        finally:
            os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself last; where folders cannot be opened there is nothing to do."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
