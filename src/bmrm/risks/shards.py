"""Shards: rows on workers, in place of X."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm._errors import DataError
from bmrm.data.dataset import Dataset, Labels
from bmrm.data.elsewhere import Elsewhere
from bmrm.data.files import read
from bmrm.data.sharded import ShardedMatrix
from bmrm.parallel.base import Engine, EngineError, Maker, Placed
from bmrm.parallel.local import LocalEngine
from bmrm.risks.shard import About, Shard


@dataclass(frozen=True)
class ArrayShard:
    """Makes a shard of arrays, which travel with it."""

    X: Any
    y: Any = None
    groups: Any = None
    weight: Any = None
    name: str = ""
    n_threads: int | None = None

    def __call__(self) -> Shard:
        """Return the shard."""
        return Shard(Dataset(self.X, self.y, self.groups, self.weight), self.name, self.n_threads)


@dataclass(frozen=True)
class FileShard:
    """Makes a shard of a file, which is read where the shard is made."""

    path: str
    zero_based: Any = "auto"
    n_threads: int | None = None

    def __call__(self) -> Shard:
        """Read the file."""
        options = {} if self.path.endswith((".npy", ".npz", ".store")) else {"zero_based": self.zero_based}
        data = read(self.path, **options)
        if data.n_examples == 0:
            raise DataError(f"{self.path}: no examples")
        return Shard(data, self.path, self.n_threads)


class Shards(Elsewhere):
    """Rows on workers: takes the place of X in estimators, `ShardedRisk` and `LinearRisk`.

    Labels, queries and weights of all rows are collected here; the features stay where they are. Where shards have
    different numbers of features the largest is taken, which is said once.

    Parameters
    ----------
    placed : Placed
        `Shard` objects.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X, y = np.array([[2.0], [-1.0], [1.0], [-3.0]]), np.array([1, -1, 1, -1])
    >>> shards = bmrm.Shards.from_arrays([(X[:2], y[:2]), (X[2:], y[2:])])
    >>> shards.shape, bmrm.LinearClassifier(lam=0.1).fit(shards).predict(X)
    ((4, 1), array([ 1, -1,  1, -1]))
    """

    def __init__(self, placed: Placed) -> None:
        self.placed = placed
        self.about: list[About] = _agreed(placed)

    @classmethod
    def from_makers(cls, makers: Sequence[Maker], engine: Engine | None, work: Sequence[float] | None = None) -> Shards:
        """Place what the makers make."""
        return cls((LocalEngine() if engine is None else engine).place(makers, work))

    @classmethod
    def from_arrays(cls, parts: Iterable[Sequence[Any]], engine: Engine | None = None) -> Shards:
        """Send arrays to the workers.

        Parameters
        ----------
        parts : sequence of tuples
            (X, y), (X, y, groups) or (X, y, groups, weight) for each shard.
        engine : Engine, optional
            This process by default.
        """
        makers = []
        for s, part in enumerate(parts):
            X, y, groups, weight = [*map(_as_array, part), None, None, None][:4]
            makers.append(ArrayShard(X, y, groups, weight, f"shard {s}", _threads(engine)))
        return cls.from_makers(makers, engine, [maker.X.shape[0] for maker in makers])

    @classmethod
    def from_files(
        cls,
        files: Sequence[str | os.PathLike[str]],
        engine: Engine | None = None,
        zero_based: Any = "auto",
        n_threads: int | None = None,
    ) -> Shards:
        """Let the workers read files, one shard for each.

        Parameters
        ----------
        files : sequence of paths
            As `bmrm.read` takes them; a store stays on disk. Workers must see them under the same names.
        engine : Engine, optional
            This process by default.
        zero_based : bool or "auto"
            Whether the indices of svmlight text count from 0.
        n_threads : int, optional
            Threads of each worker; as many as the engine says by default.
        """
        threads = n_threads or _threads(engine)
        makers = [FileShard(os.fspath(file), zero_based, threads) for file in files]
        return cls.from_makers(makers, engine, [_size(maker.path) for maker in makers])

    @classmethod
    def empty(cls, n_shards: int, engine: Engine | None = None, n_threads: int | None = None) -> Shards:
        """Place shards without rows: for structured risks, whose examples come later."""
        none, threads = np.zeros((0, 1)), _threads(engine) if n_threads is None else n_threads
        makers = [ArrayShard(none, name=f"shard {s}", n_threads=threads) for s in range(n_shards)]
        return cls.from_makers(makers, engine)

    @classmethod
    def from_dask(
        cls, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, client: Any = None
    ) -> Shards:
        """Make each partition of a Dask array or data frame a shard, on the worker where it is.

        Partitions without rows are left out. Those of a worker that is lost are computed again by Dask.

        Parameters
        ----------
        X : dask array of shape (m, d), or dask data frame
            Its chunks may be dense or sparse; columns of a frame are numbers.
        y, sample_weight, groups : dask array or series, array, or str; optional
            Labels, weights and queries, in partitions like those of X; a str is a column of the frame X, which is then
            no feature.
        client : distributed.Client, optional
            The current one by default; where there is none, the partitions are computed and kept in this process.
        """
        from bmrm.risks.from_dask import current_engine, partitions

        engine = current_engine(client)
        return cls.from_makers(*partitions(X, y, sample_weight, groups, engine))

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return sum(about.rows for about in self.about), self.about[0].columns

    @property
    def source(self) -> str:
        """The names of the first and the last shard."""
        return " ... ".join(dict.fromkeys([self.about[0].name, self.about[-1].name]))

    @cached_property
    def matrix(self) -> ShardedMatrix:
        """The rows as the products see them."""
        return ShardedMatrix(
            self.placed,
            [about.rows for about in self.about],
            self.shape[1],
            sum(about.entries for about in self.about),
        )

    @cached_property
    def _belongings(self) -> list[tuple[Any, Any, Any]]:
        return self.placed.call("belongings")

    @cached_property
    def y(self) -> Labels | None:
        """The targets of all rows."""
        y: Any = self._collected(0, "labels")
        return y  # type: ignore[no-any-return]

    @cached_property
    def groups(self) -> NDArray[np.int64] | None:
        """The query of each row."""
        groups: Any = self._collected(1, "queries")
        return groups  # type: ignore[no-any-return]

    @cached_property
    def weight(self) -> NDArray[np.float64] | None:
        """The weight of each row."""
        weight: Any = self._collected(2, "weights")
        return weight  # type: ignore[no-any-return]

    @property
    def zero_based(self) -> bool | None:
        """Whether indices of svmlight text count from 0."""
        return self.about[0].zero_based

    def _collected(self, column: int, what: str) -> Any:
        found = [own[column] for own in self._belongings]
        without = [about.name for about, own in zip(self.about, found) if own is None]
        if without:
            if len(without) < len(found):
                raise DataError(f"{without[0]}: has no {what}, other shards have")
            return None
        if any(isinstance(own, list) for own in found):
            return [labels if isinstance(labels, tuple) else (labels,) for own in found for labels in own]
        kinds = {np.asarray(own).dtype.kind in "US" for own in found}
        if len(kinds) > 1:
            raise DataError(f"{self.source}: the {what} of some shards are text, those of others numbers")
        return np.concatenate(found)


def _threads(engine: Engine | None) -> int | None:
    return None if engine is None else engine.threads


def _size(path: str) -> float:
    """Return the bytes of a file; 1 where this process does not see it."""
    try:
        return float(os.path.getsize(path))
    except OSError:
        return 1.0


def _as_array(value: Any) -> Any:
    return value if value is None or hasattr(value, "shape") else np.asarray(value)


def _agreed(placed: Placed) -> list[About]:
    """Return what the shards say of themselves, once they have one version and one number of columns."""
    from bmrm import __version__

    about: list[About] = placed.call("about")
    if not about:
        raise DataError("there are no shards")
    for own, worker in zip(about, placed.workers()):
        if own.version != __version__:
            raise EngineError(f"worker {worker} has version {own.version} of bmrm, but this process {__version__}")
    columns = [own.columns for own in about]
    if min(columns) == max(columns):
        return about
    warnings.warn(
        f"the shards have {min(columns)} to {max(columns)} features; taken as {max(columns)}", UserWarning, stacklevel=4
    )
    placed.call("widen", max(columns))
    return placed.call("about")
