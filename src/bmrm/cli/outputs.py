"""Where the results of the commands go: files that are checked before any work, standard output, and a last resort."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import click

from bmrm._errors import DataError
from bmrm.data.atomic import check_replaceable
from bmrm.monitor import Progress, write_history

STANDARD = Path("-")  # standard input or output, in the place of a file

_MOST_NAMES = 1000


def check_writable(path: Path, others: Iterable[Path | None] = (), standard: bool = False) -> None:
    """Raise unless a result can be written there, before any work is done.

    Parameters
    ----------
    path : Path
    others : paths
        Further files of the command, which must not be overwritten.
    standard : bool
        Whether "-" may stand for standard output.
    """
    if path == STANDARD:
        if not standard:
            raise DataError("- is standard output, where this cannot be written; a file of that name is ./-")
        return
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{path}: the name of an output must be UTF-8 ({error.reason})") from error
    check_replaceable(path)
    if _is_standard(path):
        raise DataError(f"{path}: is where the messages of this command go and would be overwritten")
    for other in others:
        if other is not None and other != STANDARD and os.path.realpath(path) == os.path.realpath(other):
            is_input = "an input" if other.exists() else "another output"
            raise DataError(f"{path}: is {is_input} of this command and would be overwritten")
        if other is not None and other.exists() and path.exists() and path.samefile(other):
            raise DataError(f"{path}: is an input of this command and would be overwritten")
    try:
        with tempfile.TemporaryFile(dir=path.resolve().parent):
            return
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror})") from error


def _is_standard(path: Path) -> bool:
    """Whether standard output or standard error has been sent to this file."""
    for number in (1, 2):
        try:
            if os.path.samestat(os.fstat(number), os.stat(path)):
                return True
        except OSError:  # closed, or nothing there yet
            continue
    return False


def check_model_path(path: Path, others: Iterable[Path | None]) -> None:
    """Raise unless a model can be written there; "-" is standard output, which must be no terminal."""
    check_writable(path, others, standard=True)
    if path == STANDARD and sys.stdout.isatty():
        raise click.UsageError("--model -: a model is no text for a terminal; send standard output to a file or a pipe")


def save_model(save: Callable[[Path | BinaryIO], None], path: Path, stem: str) -> None:
    """Save a model; if that fails, save it elsewhere, and raise DataError with the place.

    Parameters
    ----------
    save : callable
        Writes to a path or an open binary file.
    path : Path
        "-" for standard output.
    stem : str
        Of the name elsewhere, if the model goes to standard output.
    """
    try:
        if path == STANDARD:
            save(sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            save(path)
    except (DataError, OSError) as error:
        what = "standard output" if path == STANDARD else str(path)
        reason = _reason(error, what)
        name = Path(f"{stem}.bmrm" if path == STANDARD else path.name)
        if path == STANDARD:
            _give_up(sys.stdout.fileno)
        raise DataError(f"{reason}; {_saved_elsewhere(save, name)}") from error


def save_history(path: Path, history: Iterable[Progress], place: str) -> None:
    """Write the course of runs; if that fails, say where the model is."""
    try:
        write_history(path, history)
    except (DataError, OSError) as error:
        raise DataError(f"{_reason(error, str(path))}; the model is saved to {place}") from error


def _reason(error: DataError | OSError, what: str) -> str:
    return str(error) if isinstance(error, DataError) else f"{what}: cannot be written ({error.strerror or error})"


def _saved_elsewhere(save: Callable[[Path | BinaryIO], None], name: Path) -> str:
    """Save to the current directory, else to that of temporary files, under a name that is free; say where."""
    folders: tuple[Callable[[], str], ...] = (os.getcwd, tempfile.gettempdir)
    for folder in folders:
        try:
            place = _free(Path(folder()), name)
            save(place)
        except (DataError, OSError):
            continue
        return f"the model is saved to {place} instead"
    return "nor can the model be saved to the current directory or to that of temporary files"


def _free(folder: Path, name: Path) -> Path:
    """Return a path in the folder where nothing is yet."""
    names = (name.name, *(f"{name.stem}-{number}{name.suffix}" for number in range(1, _MOST_NAMES)))
    for each in names:
        if not os.path.lexists(folder / each):
            return folder / each
    raise DataError(f"{folder / name}: is there already, as are {_MOST_NAMES - 1} others like it")


def _give_up(number: Callable[[], int]) -> None:
    """Let what is still to be flushed to a stream go nowhere: it has failed once, which is said."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), number())
    except OSError:
        return
