"""Engines: where the shards of the data live, and how they are asked.

An engine knows nothing of losses, risks or w. It places objects, one for each shard, where their data can be read,
calls a method of all of them, and returns the answers in the order of the shards: what is summed from them is the same
to the last bit, whoever answered first.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from bmrm.parallel.base import Engine, EngineError, Placed, WorkerLost
from bmrm.parallel.dask import DaskEngine
from bmrm.parallel.local import LocalEngine
from bmrm.parallel.mpi import MPIEngine, mpi_engine

__all__ = [
    "ENGINES",
    "DaskEngine",
    "Engine",
    "EngineError",
    "LocalEngine",
    "MPIEngine",
    "Placed",
    "WorkerLost",
    "engine",
]

ENGINES = ("local", "mpi", "dask")


def engine(
    name: str = "local", scheduler: str | None = None, n_workers: int | None = None
) -> AbstractContextManager[Engine | None]:
    """Return an engine by its name, for a ``with`` statement.

    Parameters
    ----------
    name : {"local", "mpi", "dask"}
        This process; the ranks that ``mpiexec`` has started; the workers of a Dask scheduler.
    scheduler : str, optional
        The address of a Dask scheduler, such as tcp://host:8786. A cluster on this machine by default.
    n_workers : int, optional
        Of a cluster on this machine.

    Returns
    -------
    context manager
        What it gives is None on the ranks of MPI but the first: they serve until the first one leaves.

    Examples
    --------
    >>> import bmrm.parallel
    >>> with bmrm.parallel.engine("local") as engine:
    ...     engine.n_workers
    1
    """
    if name == "local":
        return nullcontext(LocalEngine())
    if name == "dask":
        return DaskEngine(scheduler, n_workers)
    if name == "mpi":
        return mpi_engine()
    raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {name!r}")
