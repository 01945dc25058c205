"""Objects on Dask workers: actors that are called all at once, and made anew elsewhere when they are lost."""

from __future__ import annotations

import asyncio
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bmrm.parallel.base import Answer, EngineError, Maker, Placed, WorkerLost, noted

_LOOK = 0.2  # seconds between two looks at whether an actor that does not answer is still there
_TIMES = 4  # how often a shard may be lost within one call until it is held to be the cause


def packed(value: Any) -> bytes:
    """Return the pickled value; classes and functions of a script travel with it."""
    from distributed.protocol.pickle import dumps

    data: bytes = dumps(value)
    return data


def unpacked(data: bytes) -> Any:
    """Return the value; its arrays are its own and may be written to."""
    from distributed.protocol.pickle import loads

    return loads(data)


class Holder:
    """The actor: has an object, and can call those of all actors of its worker.

    So a worker is sent one message for all its shards, with one w. What goes wrong in an object is an answer, not a
    lost worker.

    Parameters
    ----------
    name : str
        The key of the actor.
    *parts
        Arguments of the function that makes the object.
    """

    def __init__(self, name: str, *parts: Any) -> None:
        self._parts: tuple[Any, ...] = parts
        self._object: Any = None
        _here[name] = self

    def call(self, function: str, common: bytes, own: bytes) -> bytes:
        """Let actors of this worker do something; return, pickled, the replies of those that are here.

        If this worker cannot read the message, for it lacks a module, that exception is returned.

        Parameters
        ----------
        function : {"made", "asked"}
        common : bytes
            Pickled: the method to call, and the arguments that all objects get.
        own : bytes
            Pickled: by name, what each actor gets beside: the function that makes its object, or further arguments.
        """
        try:
            shared = unpacked(common)
            found = {name: (_here.get(name), more) for name, more in unpacked(own).items()}
        except Exception as error:
            return packed(_portable(error))
        return packed(
            {name: _replied(getattr(actor, function), shared, more) for name, (actor, more) in found.items() if actor}
        )

    def made(self, shared: Any, maker: Callable[..., Any]) -> None:
        """Make the object."""
        self._object, self._parts = maker(*self._parts), ()

    def asked(self, shared: tuple[str, tuple[Any, ...]], own: tuple[Any, ...]) -> Any:
        """Call a method of the object."""
        method, arguments = shared
        return getattr(self._object, method)(*arguments, *own)


_here: weakref.WeakValueDictionary[str, Holder] = weakref.WeakValueDictionary()


def _replied(work: Callable[..., Any], *arguments: Any) -> bytes:
    """Return whether it ended well, the value or the exception, and the seconds, pickled."""
    began = time.perf_counter()
    try:
        value = work(*arguments)
        return packed((True, value, time.perf_counter() - began))
    except Exception as error:
        return packed((False, _portable(error), 0.0))


def _portable(error: Exception) -> Exception:
    """Return the exception, or one with its words where it cannot be pickled."""
    try:
        unpacked(packed(error))
    except Exception:
        return EngineError(f"{type(error).__name__}: {error}")
    return error


class Recipe:
    """What an actor is made of.

    Parameters
    ----------
    client : distributed.Client
    maker : callable
    parts : sequence of distributed.Future
        Its arguments, which are also where the actor is made.
    """

    def __init__(self, client: Any, maker: Maker, parts: Sequence[Any] = ()) -> None:
        self.client, self.maker, self.parts = client, maker, parts

    def submitted(self, address: str) -> Any:
        """Return the future of a new actor, without its object: near its parts, else on that worker if possible."""
        where = {} if self.parts else {"workers": [address], "allow_other_workers": True}
        name = f"bmrm_shard-{uuid.uuid4().hex}"
        return self.client.submit(Holder, name, *self.parts, key=name, actor=True, pure=False, **where)


class _Cluster(Protocol):
    """What is asked of a `DaskEngine`."""

    client: Any
    direct: bool

    def workers(self) -> dict[str, int]:
        """Return workers, of which there is one at least."""


class DaskPlaced(Placed):
    """Objects on Dask workers.

    Parameters
    ----------
    engine : DaskEngine
    recipes : sequence of Recipe
    addresses : sequence of str
        The worker that each is meant for.

    Attributes
    ----------
    remade : int
        How many shards were lost and made anew.
    """

    def __init__(self, engine: _Cluster, recipes: Sequence[Recipe], addresses: Sequence[str]) -> None:
        super().__init__(len(recipes))
        self.remade = 0
        self._engine, self._client, self._recipes = engine, engine.client, list(recipes)
        self._where = list(addresses)
        self._futures: list[Any] = [None] * self.n_shards
        self._losses: Counter[int] = Counter()
        self._replace(self._made(list(range(self.n_shards))))

    def workers(self) -> list[str]:
        """Return the address of the worker that has each shard."""
        return list(self._where)

    def release(self) -> None:
        """Let the actors go."""
        self._futures, self._recipes = [], []

    def _ask(
        self, shards: list[int], method: str, arguments: tuple[Any, ...], each: Sequence[tuple[Any, ...]]
    ) -> list[Answer]:
        if len(self._recipes) != self.n_shards:
            raise EngineError("these shards have been released: place them again")
        common, own = packed((method, arguments)), dict(zip(shards, each))
        replies: dict[int, bytes] = {}
        self._losses.clear()
        while left := [shard for shard in shards if shard not in replies]:
            answered, lost = self._round("asked", common, {shard: own[shard] for shard in left})
            replies |= answered
            self._replace(lost)
        return [self._answer(shard, replies[shard]) for shard in shards]

    def _answer(self, shard: int, reply: bytes) -> Answer:
        fine, value, seconds = unpacked(reply)
        if not fine:
            raise noted(value, shard, self._where[shard])
        return Answer(value, seconds)

    def _round(self, function: str, common: bytes, own: dict[int, Any]) -> tuple[dict[int, bytes], dict[int, str]]:
        """Call the actors of some shards, all at once; return their replies, and why others gave none."""
        together: dict[str, dict[int, Any]] = {}
        for shard, more in own.items():
            together.setdefault(self._where[shard], {})[shard] = more
        messages = {
            address: (function, common, packed({self._futures[shard].key: more for shard, more in shards.items()}))
            for address, shards in together.items()
        }
        answers, failures = self._client.sync(self._sent, messages, {a: list(s) for a, s in together.items()})
        lost = {shard: reason for address, reason in failures.items() for shard in together[address]}
        replies: dict[int, bytes] = {}
        for address, answer in answers.items():
            found = unpacked(answer)
            if isinstance(found, Exception):
                raise noted(found, next(iter(together[address])), address)
            for shard in together[address]:
                if (name := self._futures[shard].key) in found:
                    replies[shard] = found[name]
                else:
                    lost[shard] = f"the worker {address} does not have it"
        return replies, lost

    async def _sent(
        self, messages: dict[str, tuple[str, bytes, bytes]], shards: dict[str, list[int]]
    ) -> tuple[dict[str, bytes], dict[str, str]]:
        """Send a message to each worker; return the answers, and why others gave none."""
        calls = {
            asyncio.ensure_future(self._request(address, self._futures[shards[address][0]].key, message)): address
            for address, message in messages.items()
        }
        answers: dict[str, bytes] = {}
        failures: dict[str, str] = {}
        waiting = set(calls)
        while waiting:
            done, waiting = await asyncio.wait(waiting, timeout=_LOOK)
            for call in done:
                error = call.exception()
                if error is None:
                    answers[calls[call]] = call.result()
                else:
                    failures[calls[call]] = f"{type(error).__name__}: {error}"
            for call in list(waiting):
                if any(self._futures[shard].status != "finished" for shard in shards[calls[call]]):
                    call.cancel()  # connecting to a worker that is gone would be tried for half a minute
                    waiting.discard(call)
                    failures[calls[call]] = "the scheduler has lost its worker"
        return answers, failures

    async def _request(self, address: str, name: str, message: tuple[str, bytes, bytes]) -> bytes:
        """Return what an actor answers."""
        from distributed.protocol import to_serialize

        what = {"function": "call", "actor": name, "args": [to_serialize(part) for part in message]}
        if self._engine.direct:
            answer = await self._client.rpc(address).actor_execute(**what)
        else:
            answer = await self._client.scheduler.proxy(worker=address, msg={"op": "actor_execute", **what})
        if answer["status"] != "OK":
            raise answer["exception"]
        reply: bytes = answer["result"]
        return reply

    def _replace(self, lost: dict[int, str]) -> None:
        """Make lost shards anew, each on the worker that has fewest."""
        while lost:
            for shard, reason in lost.items():
                self._losses[shard] += 1
                if self._losses[shard] == _TIMES:
                    raise WorkerLost(f"shard {shard}: lost {_TIMES} times in one call, at last because {reason}")
            self.remade += len(lost)
            alive = list(self._engine.workers())
            has = Counter(where for shard, where in enumerate(self._where) if shard not in lost)
            for shard in lost:
                self._where[shard] = min(alive, key=lambda address: has[address])
                has[self._where[shard]] += 1
            lost = self._made(list(lost))

    def _made(self, shards: list[int]) -> dict[int, str]:
        """Make the actors of these shards and let them make their objects; return those that were lost meanwhile."""
        for shard in shards:
            self._futures[shard] = self._recipes[shard].submitted(self._where[shard])
        self._settle(shards)
        lost = {shard: reason for shard in shards if (reason := self._failure(shard))}
        holders = self._client.who_has([self._futures[shard] for shard in shards if shard not in lost])
        for shard in [shard for shard in shards if shard not in lost]:
            found = holders.get(self._futures[shard].key)
            if found:
                self._where[shard] = found[0]
            else:
                lost[shard] = "the scheduler has lost its worker"
        made = [shard for shard in shards if shard not in lost]
        makers = {shard: self._recipes[shard].maker for shard in made}
        replies, silent = self._round("made", packed(None), makers)
        for shard, reply in replies.items():
            self._answer(shard, reply)
        self._check_reachable(silent)
        return {**lost, **silent}

    def _settle(self, shards: list[int]) -> None:
        """Wait until the actors are made or have failed; raise if there are no workers for too long."""
        pause = 0.002
        while any(self._futures[shard].status in ("pending", "lost") for shard in shards):
            time.sleep(pause)
            pause = min(1.5 * pause, _LOOK)
            if pause == _LOOK:
                self._engine.workers()

    def _failure(self, shard: int) -> str:
        """Return why there is no actor, "" where there is one; raise what another worker would not change."""
        from distributed import KilledWorker

        future = self._futures[shard]
        if future.status == "finished":
            return ""
        if future.status == "cancelled":
            self._engine.workers()  # says so if the scheduler is gone
            raise EngineError(f"the Dask scheduler has cancelled shard {shard}")
        error = future.exception()
        if isinstance(error, KilledWorker):
            raise WorkerLost(f"shard {shard}: every worker that made it was lost ({error})") from error
        if "deserialization of the task graph" in str(error):
            raise EngineError("the Dask scheduler cannot import bmrm: install it where the scheduler runs") from error
        if "Worker holding Actor was lost" in str(error):
            return "the scheduler has lost its worker"
        raise noted(error, shard, "of Dask")

    def _check_reachable(self, silent: dict[int, str]) -> None:
        """Raise if workers that the scheduler holds to be alive do not answer."""
        deadline = time.monotonic() + 2.0
        while still := [shard for shard in silent if self._futures[shard].status == "finished"]:
            if time.monotonic() > deadline:
                advice = "; DaskEngine(client, direct=False) calls through the scheduler" if self._engine.direct else ""
                raise EngineError(f"the Dask worker {self._where[still[0]]} is alive, but {silent[still[0]]}{advice}")
            time.sleep(0.05)
