"""Standard input in the place of a data file: kept in a temporary file while the command runs."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from bmrm._errors import DataError
from bmrm.cli.outputs import STANDARD
from bmrm.data.sequences import KINDS
from bmrm.data.source_options import FORMATS

ALL_FORMATS = tuple(dict.fromkeys([*FORMATS, *KINDS]))
_NAME = "standard-input"


@contextlib.contextmanager
def with_standard_input(files: Sequence[Path], kind: str | None) -> Iterator[list[Path]]:
    """Give the files, with "-" replaced by a file that has what comes by standard input.

    Parameters
    ----------
    files : sequence of Path
    kind : str, optional
        The format of standard input, svmlight text by default.
    """
    count = sum(file == STANDARD for file in files)
    if count == 0:
        yield list(files)
        return
    if count > 1:
        raise click.UsageError("-: standard input can be read once only")
    with tempfile.TemporaryDirectory(prefix="bmrm-") as folder:
        path = Path(folder) / f"{_NAME}.{kind or 'svmlight'}"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield [path if each == STANDARD else each for each in files]
        except DataError as error:
            raise DataError(str(error).replace(str(path), "standard input")) from error
        except click.UsageError as error:
            raise click.UsageError(error.message.replace(str(path), "standard input")) from error


def is_standard_input(path: Path) -> bool:
    """Whether a file is the one that standard input was kept in."""
    return path.stem == _NAME and path.parent.name.startswith("bmrm-")


def refuse_row_formats(kind: str | None, files: Sequence[Path]) -> None:
    """Raise if a format is given for files of rows whose names tell it."""
    if kind is not None and not any(map(is_standard_input, files)):
        raise click.UsageError("--format is for models of sequences and for standard input; other files tell by name")
    if kind in KINDS and kind not in FORMATS:
        raise click.UsageError(f"--format {kind} is for sequences")
