"""The log of all that has left an owner's machine."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from bmrm._errors import DataError

_MOST = 10_000  # characters of an entry: keys of 150 owners; what coordinators write into it must not fill the disk


class DepartureLog:
    """One JSON object for each message sent: when, to whom, what, how many numbers, and the SHA-256 of its bytes.

    Parameters
    ----------
    path : path, optional
        Appended to; without one the last 10000 entries are kept in memory.

    Examples
    --------
    >>> from bmrm.owners.log import DepartureLog
    >>> log = DepartureLog()
    >>> log.sent("127.0.0.1:5000", "hello", 0, b"...")
    >>> log.entries[0]["what"], log.entries[0]["numbers"]
    ('hello', 0)
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.entries: deque[dict[str, Any]] = deque(maxlen=10_000)
        self._lock = threading.Lock()
        if self.path is not None:
            self._append("")  # an unwritable log is an error now, not when something leaves

    def sent(self, peer: str, what: str, numbers: int, payload: bytes) -> None:
        """Note a message before it leaves."""
        self._write({"peer": peer, "what": what, "numbers": numbers, "sha256": hashlib.sha256(payload).hexdigest()})

    def noted(self, peer: str, what: str, reason: str) -> None:
        """Note something that happened, such as a refusal with its full reason, which does not leave the machine."""
        self._write({"peer": peer, "what": what, "reason": reason})

    def _write(self, entry: dict[str, Any]) -> None:
        entry = {name: value[:_MOST] if isinstance(value, str) else value for name, value in entry.items()}
        entry = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())} | entry
        with self._lock:
            if self.path is None:
                self.entries.append(entry)
            else:
                self._append(json.dumps(entry) + "\n")

    def _append(self, text: str) -> None:
        assert self.path is not None
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise DataError(f"{self.path}: the log cannot be written ({error.strerror})") from error
