"""Run by test_mpi_faults on all ranks: what goes wrong there, by the name in the first argument."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np

import bmrm
import bmrm.parallel.mpi
from bmrm import Problem, Shards, solve
from bmrm.parallel import EngineError, WorkerLost, engine
from bmrm.risks import linear_risk
from bmrm.risks.shards import ArrayShard

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")))


class Moody:
    """A shard that does what it is told to."""

    def do(self, what: str, ranks: tuple[int, ...] = ()) -> int:
        if ranks and RANK not in ranks:
            return RANK
        if what == "raise":
            raise bmrm.DataError(f"rank {RANK} does not like this")
        if what == "exit":
            sys.exit(7)
        if what == "nap":
            time.sleep(1.0)
        if what == "sleep":
            time.sleep(600.0)
        if what == "vanish":
            os._exit(0)
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "crash":
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGSEGV)
        return RANK if what in ("nothing", "nap") else lambda: RANK  # which cannot be sent


class Stubborn(Moody):
    def __reduce__(self):
        raise TypeError("this cannot be pickled")


class Old(ArrayShard):
    """Makes a shard of another version, but on rank 0."""

    def __call__(self):
        if RANK:
            bmrm.__version__ = "9.9"
        return super().__call__()


class Unreadable:
    """Can be pickled, but not made again elsewhere."""

    def __call__(self) -> Moody:
        return Moody()

    def __setstate__(self, state: object) -> None:
        if RANK:
            raise ImportError("another version")

    def __getstate__(self) -> object:
        return 1


class Dying(ArrayShard):
    """Makes a shard whose rank dies when it is asked for the n-th time; those made in its place do not."""

    def __call__(self):
        shard = super().__call__()
        kill_at = int(os.environ.get(f"KILL_{RANK}", "0"))
        ask, count = shard.ask, iter(range(1, 10**9))

        def asked(*arguments):
            if next(count) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return ask(*arguments)

        shard.ask = asked
        return shard


def caught(work) -> BaseException:
    try:
        work()
    except Exception as error:
        return error
    raise AssertionError("no error")


def interrupted(work) -> None:
    """Do something, and raise KeyboardInterrupt in the middle of it."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        work()
    except KeyboardInterrupt:
        return
    raise AssertionError("no interrupt")


def errors() -> None:
    """All of these are raised on rank 0, and the next call goes on as if nothing had been."""
    with engine("mpi") as ranks:
        if ranks is None:
            return
        placed = ranks.place([Moody] * 3)
        last = placed.workers()[-1]
        rank = int(last.split()[1])
        found = caught(lambda: placed.call("do", "raise", (rank,)))
        assert type(found) is bmrm.DataError, found
        assert str(found) == f"rank {rank} does not like this"
        assert found.__notes__[-1] == f"(shard 2, worker {last})", found.__notes__
        found = caught(lambda: placed.call("do", "exit"))
        assert isinstance(found, EngineError)
        assert "SystemExit(7)" in str(found)
        found = caught(lambda: placed.call("do", "lambda", (1, 2)))
        assert "an answer cannot be sent" in str(found), found
        assert "rank" in found.__notes__[-1]
        found = caught(lambda: ranks.place([Unreadable()] * 3))
        assert "another version" in str(found), found
        assert "cannot be pickled" in str(caught(lambda: placed.call("do", Stubborn())))
        assert placed.call("do", "nothing", (9,)) == [int(worker.split()[1]) for worker in placed.workers()]
        found = caught(lambda: Shards.from_makers([Old(np.ones((2, 2)))] * 3, ranks))
        assert isinstance(found, EngineError)
        assert "has version 9.9 of bmrm, but this process" in str(found), found
        interrupted(lambda: placed.call("do", "nap", (1, 2)))
        assert placed.call("do", "nothing") == [int(worker.split()[1]) for worker in placed.workers()]
        print("all caught")
        placed.call("do", "raise", (rank,))


def problem(ranks, maker=ArrayShard):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = np.sign(X[:, 0] + rng.normal(size=200))
    parts = np.array_split(np.arange(200), 5)
    shards = Shards.from_makers([maker(X[part], y[part], name=str(s)) for s, part in enumerate(parts)], ranks)
    return Problem(linear_risk(shards, y, "logistic"), "l2", 1e-3), shards


def killed() -> None:
    """Ranks die on the way; the answer is that of a run where they do not."""
    with engine("mpi") as ranks:
        if ranks is None:
            return
        undisturbed, _ = problem(None)
        lossy, shards = problem(ranks, Dying)
        one, other = (solve(each, "ls_bmrm", tol=1e-8) for each in (undisturbed, lossy))
        print("lost", ranks.n_workers - len(ranks.alive), "of", ranks.n_workers)
        assert other.converged
        assert other.certificate.lower <= one.certificate.upper
        assert one.certificate.lower <= other.certificate.upper
        np.testing.assert_allclose(other.w, one.w, atol=1e-3)
        assert set(shards.placed.workers()) <= {f"rank {rank}" for rank in ranks.alive}


def lost() -> None:
    """A rank ends in the middle of a call."""
    with engine("mpi") as ranks:
        if ranks is not None:
            try:
                print("went on", ranks.place([Moody] * 3).call("do", sys.argv[2], (1,)))
            except WorkerLost as error:
                print("typed", error)
                raise


def first() -> None:
    """Rank 0 fails, in the middle of things."""
    with engine("mpi") as ranks:
        if ranks is not None:
            ranks.place([Moody] * 3)
            raise LookupError("rank 0 has lost its way")
    raise AssertionError("ranks must not go on")


def stuck() -> None:
    """Rank 0 is interrupted while another rank is busy for a long time."""
    with engine("mpi") as ranks:
        if ranks is not None:
            placed = ranks.place([Moody] * 3)
            interrupted(lambda: placed.call("do", "sleep", (1,)))
            raise LookupError("enough")


def start() -> None:
    """A rank fails before it comes to the engine."""
    bmrm.parallel.mpi._START = 3.0
    if "started" in sys.argv:
        import mpi4py.MPI  # noqa: F401
    if int(sys.argv[2]) == RANK:
        raise ImportError("this rank has no such module")
    with engine("mpi"):
        pass


if __name__ == "__main__":
    {"errors": errors, "killed": killed, "lost": lost, "first": first, "stuck": stuck, "start": start}[sys.argv[1]]()
