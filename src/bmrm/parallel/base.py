"""Engine and Placed: objects are made where their data live, and asked by name."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Maker: TypeAlias = Callable[[], Any]


class EngineError(RuntimeError):
    """Workers cannot be reached, are lost, or do not fit together."""


class WorkerLost(EngineError):
    """A worker is gone, and nobody could take over its shards."""


class Answer(NamedTuple):
    """What a shard returned, and how many seconds it computed for that."""

    value: Any
    seconds: float


class Engine(ABC):
    """Workers, on this machine or on others.

    Use it in a ``with`` statement: leaving it lets the workers go.

    Attributes
    ----------
    name : str
    n_workers : int
    threads : int or None
        How many threads a shard should compute with on its worker; None for all cores.
    """

    name: str
    n_workers: int
    threads: int | None = None

    @abstractmethod
    def place(self, makers: Sequence[Maker], work: Sequence[float] | None = None) -> Placed:
        """Call each maker once, on some worker, and keep what it returns there.

        Parameters
        ----------
        makers : sequence of callables without arguments
            They are pickled. A maker is called again, elsewhere, when the worker that has its object is lost.
        work : sequence of float, optional
            How much work each object will be, in any unit: it decides which workers get how many.
        """

    def close(self) -> None:
        """Let the workers go."""
        return None

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Placed(ABC):
    """Objects on workers, one for each shard.

    Parameters
    ----------
    n_shards : int

    Attributes
    ----------
    seconds : list of float
        How long each shard has computed so far.
    calls : int
        Round trips so far.
    sent, received : int
        Bytes of arrays and numbers that went to the shards and came back, as far as they are counted by value.
    """

    def __init__(self, n_shards: int) -> None:
        self.n_shards = n_shards
        self.seconds = [0.0] * n_shards
        self.calls = self.sent = self.received = 0
        self._waiting: list[tuple[str, tuple[Any, ...]]] = []

    def call(
        self,
        method: str,
        *arguments: Any,
        each: Sequence[tuple[Any, ...]] | None = None,
        only: Sequence[int] | None = None,
    ) -> list[Any]:
        """Call a method of the objects and return the answers in the order of the shards.

        An exception in a shard is raised here, with a note that says which shard it was; the others have been asked.

        Parameters
        ----------
        method : str
        *arguments
            For all shards.
        each : sequence of tuples, optional
            Further arguments, one tuple for each shard that is asked.
        only : sequence of int, optional
            The shards to ask; all by default.
        """
        while self._waiting:
            waiting, its = self._waiting.pop(0)
            self._ask(list(range(self.n_shards)), waiting, its, [()] * self.n_shards)
        shards = range(self.n_shards) if only is None else only
        own = [()] * len(shards) if each is None else each
        answers = self._ask(list(shards), method, arguments, own)
        self.calls += 1
        self.sent += len(shards) * payload(arguments) + sum(map(payload, own))
        for shard, answer in zip(shards, answers):
            self.seconds[shard] += answer.seconds
            self.received += payload(answer.value)
        return [answer.value for answer in answers]

    def later(self, method: str, *arguments: Any) -> None:
        """Call a method of all objects before the next call: safe where nothing may be sent now."""
        self._waiting.append((method, arguments))

    @abstractmethod
    def _ask(
        self, shards: list[int], method: str, arguments: tuple[Any, ...], each: Sequence[tuple[Any, ...]]
    ) -> list[Answer]:
        """Return the answers of these shards, in this order; lost objects are made again elsewhere before."""

    def release(self) -> None:
        """Let the objects go; nothing can be asked afterwards."""
        return None

    def workers(self) -> list[str]:
        """Return the name of the worker that has each shard."""
        return ["here"] * self.n_shards


def payload(value: Any) -> int:
    """Return the bytes of the arrays and numbers in a value.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.parallel.base import payload
    >>> payload((1.0, np.zeros(3), [2.0]))
    40
    """
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, (tuple, list)):
        return sum(map(payload, value))
    return 8 if isinstance(value, (int, float)) else 0


def noted(error: BaseException, shard: int, worker: str) -> BaseException:
    """Return the error with a note of where it happened."""
    error.add_note(f"(shard {shard}, worker {worker})")
    return error


def shared_out(work: Sequence[float], n_workers: int, loads: Sequence[float] | None = None) -> list[int]:
    """Return a worker for each shard: the largest shard first, each to the worker that has least.

    Parameters
    ----------
    work : sequence of float
        Of each shard.
    n_workers : int
    loads : sequence of float, optional
        What each worker has already.

    Examples
    --------
    >>> from bmrm.parallel.base import shared_out
    >>> shared_out([5.0, 1.0, 1.0, 4.0, 1.0], 2)
    [0, 1, 0, 1, 1]
    """
    total = [(load, worker) for worker, load in enumerate([0.0] * n_workers if loads is None else loads)]
    heapq.heapify(total)
    owner = [0] * len(work)
    for shard in sorted(range(len(work)), key=lambda shard: -work[shard]):
        load, owner[shard] = total[0]
        heapq.heapreplace(total, (load + max(float(work[shard]), 1e-9), owner[shard]))
    return owner
