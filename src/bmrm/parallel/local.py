"""The engine of one process: shards one after the other, each on all threads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from bmrm.parallel.base import Answer, Engine, Maker, Placed, noted


class LocalEngine(Engine):
    """Keeps all shards in this process. The kernels of each shard run on all threads, so it loses nothing by that.

    Examples
    --------
    >>> from bmrm.parallel import LocalEngine
    >>> with LocalEngine() as engine:
    ...     placed = engine.place([lambda: "one", lambda: "two"])
    ...     placed.call("upper")
    ['ONE', 'TWO']
    """

    name = "local"
    n_workers = 1

    def place(self, makers: Sequence[Maker], work: Sequence[float] | None = None) -> LocalPlaced:
        """Call the makers here."""
        return LocalPlaced([maker() for maker in makers])


class LocalPlaced(Placed):
    """Objects in this process."""

    def __init__(self, objects: list[Any]) -> None:
        super().__init__(len(objects))
        self._objects = objects

    def _ask(
        self, shards: list[int], method: str, arguments: tuple[Any, ...], each: Sequence[tuple[Any, ...]]
    ) -> list[Answer]:
        answers = []
        for shard, own in zip(shards, each):
            began = time.perf_counter()
            try:
                value = getattr(self._objects[shard], method)(*arguments, *own)
            except Exception as error:
                raise noted(error, shard, "here") from None
            answers.append(Answer(value, time.perf_counter() - began))
        return answers

    def release(self) -> None:
        """Forget the objects."""
        self._objects.clear()
