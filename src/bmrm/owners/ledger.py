"""The ledger: how much of a budget of privacy has been spent, kept in a file across restarts."""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bmrm._errors import DataError
from bmrm.data.atomic import atomic
from bmrm.owners.guard import Refused

_KIND = "bmrm privacy ledger"
_VERSION = 1
_SLACK = 1e-9  # of the budget: what the rounding of a sum of many answers may leave out


class BudgetSpent(Refused):
    """The budget of privacy is spent: this owner gives no further answers about its rows."""


class Ledger:
    """The rho spent so far, and by how many answers.

    A file is written before each answer leaves, so a crash may waste an answer but never forgets one. Several processes
    that serve the same rows share the file: each spends under a lock on FILE.lock, where the system has such locks.

    Parameters
    ----------
    path : path, optional
        Without one, what is spent is forgotten with the object.

    Examples
    --------
    >>> from bmrm.owners.ledger import Ledger
    >>> ledger = Ledger()
    >>> ledger.spend(0.25, budget=1.0)
    >>> ledger.left(0.25, budget=1.0), ledger.answers
    (3, 1)
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.rho, self.answers = 0.0, 0
        self._lock = threading.Lock()
        if self.path is not None:
            with self._alone():
                self._read()
                self._write()  # a ledger that cannot be written is an error now, not at the first answer

    def left(self, rho: float, budget: float) -> int:
        """Return how many answers of that rho the budget still pays for."""
        with self._lock, self._alone():
            self._read()
            return max(0, math.floor((budget - self.rho) / rho + _SLACK * budget / rho))

    def spend(self, rho: float, budget: float) -> None:
        """Write down an answer that is about to be given; raise BudgetSpent if the budget does not pay for it."""
        with self._lock, self._alone():
            self._read()
            if self.rho + rho > budget * (1.0 + _SLACK):
                raise BudgetSpent(f"the budget of privacy is spent, after {self.answers} answers")
            self.rho, self.answers = self.rho + rho, self.answers + 1
            self._write()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes out, where the system has locks on files."""
        if self.path is None:
            yield
            return
        try:
            import fcntl
        except ImportError:  # Windows
            yield
            return
        try:
            with open(f"{self.path}.lock", "a", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise DataError(f"{self.path}: the ledger cannot be locked ({error.strerror})") from error

    def _read(self) -> None:
        if self.path is None:
            return
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            if self.answers:
                raise DataError(f"{self.path}: the ledger is gone, after {self.answers} answers") from None
            return
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{self.path}: the ledger cannot be read ({error})") from error
        self.rho, self.answers = _parsed(text, self.path)

    def _write(self) -> None:
        if self.path is not None:
            entry = {"kind": _KIND, "version": _VERSION, "rho": self.rho, "answers": self.answers}
            with atomic(self.path) as file:
                file.write((json.dumps(entry) + "\n").encode())


def _parsed(text: str, path: Path) -> tuple[float, int]:
    """Return rho and the number of answers; a file that is no ledger is an error, never an empty ledger."""
    try:
        entry: Any = json.loads(text)
        rho, answers = float(entry["rho"]), int(entry["answers"])
        whole = entry["kind"] == _KIND and entry["version"] == _VERSION and answers >= 0 and 0.0 <= rho < math.inf
    except (ValueError, TypeError, KeyError, OverflowError):
        whole = False
    if not whole:
        raise DataError(
            f"{path}: is not a ledger of privacy of this version; expected the file that earlier answers have left. "
            f"Without it nobody knows what is spent"
        )
    return rho, answers
