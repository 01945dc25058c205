"""The engine of a Dask cluster: one actor for each shard."""

from __future__ import annotations

import importlib
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from bmrm.parallel.base import Engine, EngineError, Maker, WorkerLost, shared_out
from bmrm.parallel.dask_placed import DaskPlaced, Holder, Recipe

_LOOK = 0.2  # seconds between two looks for workers, where there are none
_CONNECT = 5.0  # seconds until a scheduler must have answered


def needed(module: str) -> Any:
    """Return a module of Dask, or raise an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise EngineError(f"Dask needs the package {error.name or module}: pip install 'bmrm[dask]'") from error


class DaskPart:
    """A maker whose arguments Dask computes, on its cluster where there is one, anew if their worker is lost.

    Parameters
    ----------
    make : callable
    parts : sequence of dask.delayed objects
        Its arguments.

    Examples
    --------
    >>> import dask
    >>> from bmrm.parallel.dask import DaskPart
    >>> DaskPart(max, [dask.delayed(2), dask.delayed(3)])()
    3
    """

    def __init__(self, make: Callable[..., Any], parts: Sequence[Any]) -> None:
        self.make, self.parts = make, list(parts)

    def __call__(self) -> Any:
        """Compute the arguments and make the object, in this process."""
        return self.make(*needed("dask").compute(*self.parts))


class DaskEngine(Engine):
    """The workers of a Dask cluster.

    Each shard is an actor: its data stay on its worker, which nothing pins it to. If the worker is lost, the shard is
    made anew on another one by its maker, and only what it was asked for is asked again.

    Parameters
    ----------
    client : distributed.Client or str, optional
        A client, which stays open in the end, or the address of a scheduler such as tcp://host:8786. By default
        workers are started on this machine, for as long as the engine is open.
    n_workers : int, optional
        How many of them: processes of one thread each; one for each core by default.
    direct : bool, default=True
        Whether calls go straight to the workers. Where those cannot be reached from here, False sends them through
        the scheduler.
    patience : float, default=8.0
        Seconds to wait for a worker where there is none, and for a scheduler that does not answer any more.

    Examples
    --------
    >>> import bmrm
    >>> with bmrm.parallel.DaskEngine(n_workers=2) as engine:  # doctest: +SKIP
    ...     shards = bmrm.Shards.from_files(["part-0.svm", "part-1.svm"], engine)
    ...     model = bmrm.LinearClassifier(loss="logistic").fit(shards)
    """

    name = "dask"

    def __init__(
        self, client: Any = None, n_workers: int | None = None, direct: bool = True, patience: float = 8.0
    ) -> None:
        if client is not None and n_workers is not None:
            raise ValueError(f"n_workers={n_workers} is for workers on this machine; a scheduler has its own")
        self.direct, self.patience = direct, patience
        self._placed: weakref.WeakSet[DaskPlaced] = weakref.WeakSet()
        self._checked: set[str] = set()
        self._own = client is None or isinstance(client, str)
        self._cluster = _local_cluster(n_workers) if client is None else None
        self.client: Any = _connected(self._cluster or client, patience) if self._own else client
        if self.client.asynchronous:
            raise EngineError("an asynchronous Client cannot be used here: make one without asynchronous=True")
        try:
            if self._cluster is not None:
                self.client.register_plugin(needed("bmrm.parallel.dask_worker").Uninterrupted())
            self.threads = min(self.workers().values())
        except BaseException:
            self.close()
            raise

    @property
    def n_workers(self) -> int:  # type: ignore[override]
        """How many workers there are now."""
        return len(self.known_workers())

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return str(getattr(self.client.scheduler, "address", "that was closed"))

    def known_workers(self) -> dict[str, int]:
        """Return the threads of each worker by its address; there may be none."""

        async def asked() -> dict[str, int]:
            return dict(await self.client.scheduler.ncores())

        try:
            found: dict[str, int] = self.client.sync(asked, callback_timeout=self.patience)
        except (OSError, AttributeError, ValueError, RuntimeError) as error:
            raise WorkerLost(f"the Dask scheduler {self.address} does not answer any more ({error})") from error
        return found

    def workers(self) -> dict[str, int]:
        """Return the threads of each worker by its address; wait a while for the first."""
        deadline = time.monotonic() + self.patience
        while not (found := self.known_workers()):
            if time.monotonic() > deadline:
                raise WorkerLost(f"the Dask scheduler {self.address} has no workers; waited {self.patience:g} s")
            time.sleep(_LOOK)
        self._check(set(found) - self._checked)
        return found

    def _check(self, addresses: set[str]) -> None:
        """Raise if new workers cannot import what they need: an actor that they do not know would end them."""
        if not addresses:
            return
        answers = self.client.run(exec, f"import {Holder.__module__}", workers=list(addresses), on_error="return")
        for address, error in answers.items():
            if isinstance(error, ImportError):
                raise EngineError(
                    f"the Dask worker {address} cannot import bmrm ({error}): install it there"
                ) from error
            if error is None:
                self._checked.add(address)

    def place(self, makers: Sequence[Maker], work: Sequence[float] | None = None) -> DaskPlaced:
        """Make an actor for each shard: where Dask has its parts, else on the workers by work."""
        addresses = list(self.workers())
        owner = shared_out([1.0] * len(makers) if work is None else work, len(addresses))
        placed = DaskPlaced(self, [self._recipe(maker) for maker in makers], [addresses[worker] for worker in owner])
        self._placed.add(placed)
        return placed

    def _recipe(self, maker: Maker) -> Recipe:
        if isinstance(maker, DaskPart):
            return Recipe(self.client, maker.make, self.client.compute(maker.parts))
        return Recipe(self.client, maker)

    def close(self) -> None:
        """Let all shards go, and close the client and the workers, if they were made here."""
        for placed in list(self._placed):
            placed.release()
        if self._own:
            self.client.close()
        if self._cluster is not None:
            self._cluster.close()


def _local_cluster(n_workers: int | None) -> Any:
    """Start workers on this machine, whose ports and dashboard no other machine reaches."""
    return needed("distributed").LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs="CRITICAL",
    )


def _connected(cluster: Any, patience: float) -> Any:
    """Return a client of a cluster or of the scheduler at an address, which does not become the default one."""
    distributed = needed("distributed")
    try:
        if isinstance(cluster, str):
            needed("distributed.comm").resolve_address(cluster)
        return distributed.Client(cluster, timeout=min(patience, _CONNECT), set_as_default=False)
    except (OSError, TypeError, ValueError) as error:
        raise EngineError(f"the Dask scheduler {cluster} cannot be reached: {error}") from error
