"""What is read of which file, how, and what was left out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bmrm._errors import DataError
from bmrm.data.columns import Columns
from bmrm.data.memory import resident, show_bytes

Format = Literal["svmlight", "parquet", "arrow", "csv", "npy", "npz", "store"]
FORMATS: tuple[Format, ...] = ("svmlight", "parquet", "arrow", "csv", "npy", "npz", "store")
PIECE_BYTES = 8 << 20
_NAMED = 3


@dataclass(frozen=True)
class FilePart:
    """A file, or some of it.

    Attributes
    ----------
    path : str
    start, stop : int
        Bytes of svmlight text, blocks of a store, batches of an Arrow file, rows of others; to the end where `stop` is
        None.
    """

    path: str
    start: int = 0
    stop: int | None = None

    @property
    def cut(self) -> bool:
        """Whether this is not the whole file."""
        return self.start > 0 or self.stop is not None

    def __str__(self) -> str:
        return self.path if not self.cut else f"{self.path} from {self.start}"


@dataclass
class Skipped:
    """How many lines or rows were left out, and what was wrong with the first ones."""

    rows: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, why: str, rows: int = 1) -> None:
        """Count one more."""
        self.rows += rows
        if len(self.first) < _NAMED:
            self.first.append(why)

    def __str__(self) -> str:
        """Return one line, empty if nothing was left out."""
        more = ", ..." if self.rows > len(self.first) else ""
        return f"skipped {self.rows} rows: {'; '.join(self.first)}{more}" if self.rows else ""


@dataclass
class SourceOptions:
    """How to read sources; `zero_based` is settled by the first piece of text where it is "auto".

    Attributes
    ----------
    zero_based : bool or "auto"
        Of svmlight text.
    target, group, weight : str, optional
        Columns of tables.
    labels : path, optional
        A .npy file with the labels, for a .npy or .npz file that has none.
    format : str, optional
        Of all files; by default their names tell.
    skip_bad : bool
        Leave out lines and rows that cannot be read or are not finite, and count them in `skipped`.
    piece_bytes : int
        About how much is read at a time.
    limit : int, optional
        The most bytes that may be resident; what is known to take more is not begun.
    widths : dict
        The number of features of each file, as they are read.
    columns : Columns
        Which columns with names are features, in which order.
    """

    zero_based: bool | Literal["auto"] = "auto"
    target: str | None = None
    group: str | None = None
    weight: str | None = None
    labels: Path | None = None
    format: Format | None = None
    skip_bad: bool = False
    piece_bytes: int = PIECE_BYTES
    limit: int | None = None
    widths: dict[str, int] = field(default_factory=dict)
    skipped: Skipped = field(default_factory=Skipped)
    columns: Columns = field(default_factory=Columns)

    def check_room(self, path: Path, size: int, what: str) -> None:
        """Raise if so many bytes that are read at once, and a copy of them, are more than the limit leaves."""
        if self.limit is not None and 2 * size + resident() > self.limit:
            raise DataError(
                f"{path}: {what} of {show_bytes(size)} is read as a whole, which a memory limit of "
                f"{show_bytes(self.limit)} has no room for; expected at least {show_bytes(2 * size + resident())}"
            )
