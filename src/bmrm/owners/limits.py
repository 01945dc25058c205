"""Limits of a server: how long it waits for others, and how many it talks to; deadlines for whole messages."""

from __future__ import annotations

import contextlib
import math
import socket
import time
from dataclasses import dataclass

from bmrm._errors import DataError

_PIECE = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What a coordinator may take of an owner's time.

    Parameters
    ----------
    handshake : float
        Seconds for TLS and the first message together.
    message : float
        Seconds for each message as a whole, from its first byte to its last, received or sent. 60 seconds suffice for
        a w of 10^7 numbers at 1.4 MB/s.
    idle : float
        Seconds between two messages. A solver may compute that long between two requests.
    connections : int
        At once. Where there are more, the one that has been silent longest goes, but never one that has a run.

    Examples
    --------
    >>> from bmrm.owners import Limits
    >>> Limits(idle=60.0).message
    60.0
    """

    handshake: float = 10.0
    message: float = 60.0
    idle: float = 600.0
    connections: int = 16

    def __post_init__(self) -> None:
        for name in ("handshake", "message", "idle"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0.0 < value < math.inf):
                raise DataError(f"{name} of the limits must be a number of seconds above 0, got {value!r}")
        if type(self.connections) is not int or self.connections < 2:
            raise DataError(f"connections of the limits must be at least 2, got {self.connections!r}")


class Deadline:
    """A moment until which something as a whole must be done.

    Examples
    --------
    >>> from bmrm.owners.limits import Deadline
    >>> Deadline(10.0).left > 9.0
    True
    """

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """How many seconds are left; TimeoutError where there are none."""
        left = self._ends - time.monotonic()
        if left <= 0.0:
            raise TimeoutError("not done in time")
        return left


def send_all(connection: socket.socket, data: bytes, seconds: float) -> None:
    """Send all of the data before so many seconds are over, however slowly the peer reads."""
    deadline, view = Deadline(seconds), memoryview(data)
    while view:
        connection.settimeout(deadline.left)
        view = view[connection.send(view[:_PIECE]) :]


def end(connection: socket.socket) -> None:
    """End a connection that another thread may be waiting for, which TLS must not be asked about."""
    with contextlib.suppress(OSError):  # it has ended already
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
