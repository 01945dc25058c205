"""Wire: messages between rank 0 and the other ranks of MPI; waits sleep."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bmrm.parallel.base import WorkerLost
from bmrm.parallel.messages import Bytes

_TAG = 7601  # no collective call and no duplicate of the communicator: those would wait for ranks that are gone
_SHORTEST, _LONGEST = 10e-6, 1e-3  # seconds between two looks


class RankLost(Exception):
    """A rank is gone, and MPI goes on without it."""

    def __init__(self, rank: int) -> None:
        super().__init__(f"rank {rank} is gone")
        self.rank = rank


class Pause:
    """Sleeps between two looks, longer and longer."""

    def __init__(self) -> None:
        self._seconds = _SHORTEST

    def __call__(self) -> None:
        """Sleep."""
        time.sleep(self._seconds)
        self._seconds = min(2.0 * self._seconds, _LONGEST)


class Wire:
    """Messages of bytes, in order, between two ranks.

    Sending and looking for a message are each one call of MPI, so that an interrupt between any two of them leaves
    whole messages behind. With the fault tolerance of MPI (ULFM) calls that need a dead rank raise at once.

    Parameters
    ----------
    mpi : module
        ``mpi4py.MPI``.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi, self._comm = mpi, mpi.COMM_WORLD
        self.rank, self.size = int(self._comm.rank), int(self._comm.size)
        self._status = mpi.Status()
        self._sending: dict[int, list[Any]] = {}
        self._orphans: list[Bytes] = []

    def send(self, rank: int, message: Bytes) -> None:
        """Begin to send; the message must not be changed any more."""
        self._sending.setdefault(rank, []).append(message)  # held until it has arrived, whatever comes between
        self._sending[rank][-1] = self._tried(rank, self._comm.Isend, [message, self._mpi.BYTE], rank, _TAG)

    def sent(self, rank: int) -> bool:
        """Return whether everything for a rank has gone out."""
        mine = self._sending.get(rank, [])
        while mine:
            if isinstance(mine[0], np.ndarray):  # an interrupt came before MPI had said how to ask for it
                self._orphans.append(mine[0])
            elif not self._tried(rank, mine[0].Test):
                return False
            del mine[0]
        return True

    def received(self, rank: int) -> Bytes | None:
        """Return the next message of a rank, if one has come."""
        if not self._tried(rank, self._comm.Iprobe, rank, _TAG, self._status):
            return None
        message = np.empty(self._status.Get_count(self._mpi.BYTE), np.uint8)
        self._tried(rank, self._comm.Recv, [message, self._mpi.BYTE], rank, _TAG)
        return message

    def wait(self, rank: int, seconds: float = float("inf")) -> Bytes | None:
        """Return the next message of a rank; None if none has come within the time."""
        pause, until = Pause(), time.monotonic() + seconds
        while True:
            self.sent(rank)
            message = self.received(rank)
            if message is not None or time.monotonic() > until:
                return message
            pause()

    def forget(self, rank: int) -> None:
        """Send nothing more to a rank that is gone."""
        self._sending.pop(rank, None)

    def abort(self) -> None:
        """End all ranks at once."""
        self._comm.Abort(1)

    def _tried(self, rank: int, call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except self._mpi.Exception as error:
            if error.Get_error_class() == getattr(self._mpi, "ERR_PROC_FAILED", None):
                raise RankLost(rank) from None
            raise WorkerLost(f"rank {rank} cannot be reached: {error}") from error
