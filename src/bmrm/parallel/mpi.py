"""The engine of MPI: rank 0 asks, all ranks hold shards, and survivors take over those of a rank that is lost."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import importlib
import itertools
import os
import signal
import threading
import time
import warnings
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from bmrm.parallel.base import Answer, Engine, EngineError, Maker, Placed, noted, shared_out
from bmrm.parallel.held import Call, Drop, Failure, Held, Make, Outcome, Told, told
from bmrm.parallel.messages import Bytes, number_of, packed, unpacked
from bmrm.parallel.wire import Pause, RankLost, Wire

_START = 120.0  # seconds until a rank that has not come is missed
_END = 5.0  # seconds that a failed run waits for its ranks
_TOLERANT = "OMPI_MCA_mpi_ft_enable"
# Before the barrier of its launcher, which now and then waits for a rank that is gone (open-mpi/ompi#11404), Open MPI
# with fault tolerance lets the ranks that are left agree on the end by themselves.
_NO_BARRIER = "OMPI_MCA_async_mpi_finalize"
_HELLO, _LEFT = 0, -1  # numbers of messages that belong to no request
_NOBODY = -1  # the owner of a shard that is not made yet


class End:
    """The request to leave."""

    def __init__(self, failed: bool) -> None:
        self.failed = failed


@contextlib.contextmanager
def mpi_engine() -> Iterator[MPIEngine | None]:
    """Give the engine to rank 0; the other ranks serve it meanwhile, and get None once it has left.

    If rank 0 leaves by an exception the other ranks end as well; the exception is raised on rank 0 only, so that it is
    told once and the exit code is that of rank 0. Ctrl-C, SIGTERM and SIGUSR1 concern rank 0 alone, where SIGUSR1,
    which ``mpiexec`` passes on and does not follow up with SIGKILL, counts as SIGTERM.

    Examples
    --------
    >>> from bmrm.parallel.mpi import mpi_engine
    >>> with mpi_engine() as engine:  # doctest: +SKIP
    ...     shards = None if engine is None else bmrm.Shards.from_files(["1.svm", "2.svm"], engine)
    """
    wire = _started()
    if wire.rank != 0:
        with _signals(SIGINT=signal.SIG_IGN, SIGTERM=signal.SIG_IGN, SIGUSR1=signal.SIG_IGN):
            failed = _serve(wire)
        if failed:
            raise SystemExit(0)
        yield None
        return
    with _signals(SIGUSR1=lambda *_: signal.raise_signal(signal.SIGTERM)):
        engine = MPIEngine(wire)
        try:
            yield engine
        except BaseException:
            engine.close(failed=True)
            raise
        engine.close()


def _started() -> Wire:
    """Start MPI, which waits for all ranks: if one has failed before, a process with fault tolerance would for ever."""
    if os.environ.get(_TOLERANT) == "1":
        os.environ.setdefault(_NO_BARRIER, "1")
    faulthandler.dump_traceback_later(_START, exit=True, file=2)  # sys.stderr may be no file
    try:
        return Wire(importlib.import_module("mpi4py.MPI"))
    except (ImportError, RuntimeError) as error:
        raise EngineError(f"the engine mpi needs mpi4py and MPI: pip install 'bmrm[mpi]' ({error})") from error
    finally:
        faulthandler.cancel_dump_traceback_later()


@contextlib.contextmanager
def _signals(**handlers: Any) -> Iterator[None]:
    """Handle signals, by their names, in the block; only the main thread can."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        numbers = {getattr(signal, name): handler for name, handler in handlers.items() if hasattr(signal, name)}
        before = {number: signal.signal(number, handler) for number, handler in numbers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _serve(wire: Wire) -> bool:
    """Do what rank 0 asks for, until it says that this is the end; return whether the run has failed."""
    held = Held()
    try:
        wire.send(0, packed(_HELLO, None))
        if wire.wait(0, _START) is None:  # rank 0 has failed before it came here, and waits for this rank to end
            wire.abort()
        while not isinstance(last := _served(wire, held), End):
            pass
        wire.send(0, packed(_LEFT, None))
        _flush(wire, 0)
    except RankLost:
        raise SystemExit(1) from None
    return last.failed


def _served(wire: Wire, held: Held) -> End | None:
    """Answer the next request; return it if it is the last."""
    message = wire.wait(0)
    assert message is not None
    number, request = number_of(message), _readable(message)
    if isinstance(request, End):
        return request
    reply = request if isinstance(request, Failure) else told(held, request)
    if not isinstance(request, Drop):
        wire.send(0, _reply(number, reply))
    return None


def _readable(message: Bytes) -> Any:
    try:
        return unpacked(message)
    except Exception as error:
        return Failure(EngineError(f"a message cannot be read: {type(error).__name__}: {error}"))


def _reply(number: int, reply: Told | Failure) -> Bytes:
    try:
        return packed(number, reply)
    except Exception as error:
        return packed(number, Failure(EngineError(f"an answer cannot be sent: {type(error).__name__}: {error}")))


def _flush(wire: Wire, rank: int) -> None:
    pause = Pause()
    while not wire.sent(rank):
        pause()


class MPIEngine(Engine):
    """The ranks that ``mpiexec`` has started, seen from rank 0, which holds shards as well.

    Where MPI has fault tolerance (Open MPI with ``mpiexec --with-ft ulfm``), the shards of a rank that is lost are made
    anew on the others, and asked again. Without, ``mpiexec`` ends the run.

    Parameters
    ----------
    wire : Wire

    Attributes
    ----------
    alive : list of int
        The ranks that are there.
    """

    name = "mpi"

    def __init__(self, wire: Wire) -> None:
        self._wire, self._held, self._numbers = wire, Held(), itertools.count(1)
        self.n_workers, self.alive = wire.size, list(range(wire.size))
        self._dropped: list[int] = []
        self._welcome()

    def place(self, makers: Sequence[Maker], work: Sequence[float] | None = None) -> MPIPlaced:
        """Call the makers on the ranks, rank 0 among them."""
        return MPIPlaced(self, next(self._numbers), makers, [1.0] * len(makers) if work is None else work)

    def ask(self, requests: dict[int, Any]) -> dict[int, dict[int, Outcome]]:
        """Send each rank its request and return the outcomes of each; those of ranks that are lost are not there.

        Parameters
        ----------
        requests : dict
            A request for each rank. One that several ranks share is packed once.
        """
        if not self.alive:
            raise EngineError("the engine is closed, so its shards cannot be asked any more")
        self.flush_dropped()
        number = next(self._numbers)
        messages = {id(request): request for rank, request in requests.items() if rank}
        messages = {key: packed(number, request) for key, request in messages.items()}
        others = [rank for rank in requests if rank]
        for rank in others:
            self._or_lost(rank, self._wire.send, messages[id(requests[rank])])
        del messages
        self._until(others, self._wire.sent)  # before this rank computes: large messages need both sides
        found = {0: self._held.outcomes(requests[0])} if 0 in requests else {}
        replies: dict[int, Told | Failure] = {}

        def answered(rank: int) -> bool:
            message = self._wire.received(rank)
            if message is None or number_of(message) != number:  # of a call that was interrupted
                return False
            replies[rank] = _readable(message)
            return True

        self._until(others, answered)
        for rank in sorted(replies):
            found[rank] = self._heard(rank, replies[rank])
        return found

    def flush_dropped(self) -> None:
        """Tell the ranks which sets of objects nobody has any more."""
        if self._dropped:
            request = Drop(tuple(self._dropped))
            self._dropped.clear()
            self._held.outcomes(request)
            message = packed(next(self._numbers), request)
            for rank in self.alive[1:]:
                self._or_lost(rank, self._wire.send, message)

    def close(self, failed: bool = False) -> None:
        """Let the other ranks go; after a failure they end.

        Parameters
        ----------
        failed : bool
            Then a rank that does not hear within some seconds is ended by MPI when this process ends.
        """
        message, until = packed(_LEFT, End(failed)), time.monotonic() + _END
        for rank in self.alive[1:]:
            self._or_lost(rank, self._wire.send, message)

        def left(rank: int) -> bool:
            message = self._wire.received(rank)
            return message is not None and number_of(message) == _LEFT

        if not self._until(self.alive[1:], left, until if failed else None):
            atexit.register(self._wire.abort)
        self._held = Held()
        self.alive = []

    def drop(self, number: int) -> None:
        """Forget a set of objects, before the next request: safe where nothing may be sent now."""
        self._dropped.append(number)

    def _welcome(self) -> None:
        missing = dict.fromkeys(self.alive[1:])

        def here(rank: int) -> bool:
            message = self._wire.received(rank)
            if message is None or number_of(message) != _HELLO:
                return False
            del missing[rank]
            return True

        if not self._until(list(missing), here, time.monotonic() + _START):
            atexit.register(self._wire.abort)
            ranks = ", ".join(map(str, missing))
            raise EngineError(f"these ranks have not come to the engine within {_START:g} s: {ranks}")
        for rank in self.alive[1:]:
            self._or_lost(rank, self._wire.send, packed(_HELLO, None))

    def _until(self, ranks: Sequence[int], done: Any, until: float | None = None) -> bool:
        """Look at the ranks until all are done, or lost; return False if the time is over before."""
        pause, waiting = Pause(), list(ranks)
        while True:
            waiting = [rank for rank in waiting if rank in self.alive and not self._or_lost(rank, done)]
            if not waiting:
                return True
            if until is not None and time.monotonic() > until:
                return False
            pause()

    def _or_lost(self, rank: int, work: Any, *arguments: Any) -> Any:
        """Do something with a rank; True if that shows that it is lost."""
        try:
            return work(rank, *arguments)
        except RankLost:
            if rank in self.alive:
                self.alive.remove(rank)
            self._wire.forget(rank)
            return True

    def _heard(self, rank: int, reply: Told | Failure) -> dict[int, Outcome]:
        if isinstance(reply, Failure):
            reply.error.add_note(f"(rank {rank})")
            raise reply.error
        for category, text in reply.warnings:
            warnings.warn(text, category, stacklevel=2)
        return reply.outcomes


class MPIPlaced(Placed):
    """Objects on the ranks.

    Parameters
    ----------
    engine : MPIEngine
    number : int
        Of this set of objects.
    makers : sequence of callables
    work : sequence of float
    """

    def __init__(self, engine: MPIEngine, number: int, makers: Sequence[Maker], work: Sequence[float]) -> None:
        super().__init__(len(makers))
        self._engine, self._number, self._makers, self._work = engine, number, list(makers), list(work)
        self._owner = [_NOBODY] * len(makers)
        self._let_go = weakref.finalize(self, engine.drop, number)
        self._let_go.atexit = False
        self._settle(range(len(makers)))

    def workers(self) -> list[str]:
        """Return the rank of each shard."""
        return [f"rank {rank}" for rank in self._owner]

    def release(self) -> None:
        """Let the ranks forget the objects."""
        if self._let_go.detach() is not None:
            self._engine.drop(self._number)
            self._engine.flush_dropped()

    def _ask(
        self, shards: list[int], method: str, arguments: tuple[Any, ...], each: Sequence[tuple[Any, ...]]
    ) -> list[Answer]:
        if not self._let_go.alive:
            raise EngineError("the shards have been let go, so they cannot be asked any more")
        answers: dict[int, Answer] = {}
        own = dict(zip(shards, each))
        while left := [shard for shard in shards if shard not in answers]:
            self._settle(left)
            plan = _by_rank(left, [self._owner[shard] for shard in left])
            if len(left) == self.n_shards and not any(each):
                whole = Call(self._number, method, arguments)
                requests = dict.fromkeys(plan, whole)
            else:
                requests = {
                    rank: Call(self._number, method, arguments, [(shard, own[shard]) for shard in mine])
                    for rank, mine in plan.items()
                }
            answers.update(self._answers(plan, self._engine.ask(requests)))
        return [answers[shard] for shard in shards]

    def _settle(self, shards: Sequence[int]) -> None:
        """Make the objects that no living rank has, on ranks with little work."""
        while homeless := [shard for shard in shards if self._owner[shard] not in self._engine.alive]:
            alive = self._engine.alive
            loads = [sum(w for w, owner in zip(self._work, self._owner) if owner == rank) for rank in alive]
            places = shared_out([self._work[shard] for shard in homeless], len(alive), loads)
            plan = _by_rank(homeless, [alive[place] for place in places])
            makers = {rank: [(shard, self._makers[shard]) for shard in mine] for rank, mine in plan.items()}
            found = self._engine.ask({rank: Make(self._number, mine) for rank, mine in makers.items()})
            self._answers(plan, found)
            for rank in found:
                for shard in plan[rank]:
                    self._owner[shard] = rank

    def _answers(self, plan: dict[int, list[int]], found: dict[int, dict[int, Outcome]]) -> dict[int, Answer]:
        """Return the answers by shard; raise the error of the first shard that has one."""
        outcomes = {shard: (rank, found[rank][shard]) for rank in found for shard in plan[rank]}
        for shard in sorted(outcomes):
            rank, outcome = outcomes[shard]
            if isinstance(outcome, Failure):
                raise noted(outcome.error, shard, f"rank {rank}")
        return {shard: outcome for shard, (_, outcome) in outcomes.items() if isinstance(outcome, Answer)}


def _by_rank(shards: Sequence[int], ranks: Sequence[int]) -> dict[int, list[int]]:
    plan: dict[int, list[int]] = {}
    for shard, rank in zip(shards, ranks):
        plan.setdefault(rank, []).append(shard)
    return plan
