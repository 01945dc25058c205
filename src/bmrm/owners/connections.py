"""Connections: who is talking to a server, and who must go where there are too many."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from bmrm.owners.limits import end
from bmrm.owners.session import Session


@dataclass(eq=False)
class Connection:
    """One connection: a guest, until its session has begun a run."""

    socket: socket.socket
    host: str
    port: int
    session: Session | None = None
    spoke: float = field(default_factory=time.monotonic)

    @property
    def peer(self) -> str:
        """Who it is, for the log."""
        return f"{self.host}:{self.port}"

    @property
    def at_work(self) -> bool:
        """Whether it has a run."""
        return self.session is not None and self.session.at_work


class Connections:
    """A number of connections at once. A newcomer takes the place of a guest, so that guests never close the port.

    Parameters
    ----------
    most : int
        At least 2, because one of them may be at work.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._all: set[Connection] = set()
        self._lock = threading.Lock()

    def add(self, connection: Connection) -> None:
        """Add one; where there are too many, end the guest that has been silent longest, of the most crowded host."""
        with self._lock:
            if len(self._all) >= self.most:
                crowds = Counter(each.host for each in self._all)
                guests = [each for each in self._all if not each.at_work]
                displaced = min(guests, key=lambda each: (-crowds[each.host], each.spoke))
                self._all.discard(displaced)
                end(displaced.socket)
            self._all.add(connection)

    def secured(self, connection: Connection, with_tls: socket.socket) -> None:
        """Put the socket with TLS in the place of that below it; one that was displaced meanwhile ends."""
        with self._lock:
            connection.socket = with_tls
            if connection not in self._all:
                end(with_tls)

    def discard(self, connection: Connection) -> None:
        """Forget one that has ended."""
        with self._lock:
            self._all.discard(connection)

    def end_all(self) -> None:
        """End all of them; their threads see it."""
        with self._lock:
            for each in self._all:
                end(each.socket)
