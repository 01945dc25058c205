"""Shards: rows on workers, in place of X."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm._cached import cached_property
from bmrm._errors import DataError
from bmrm.data.balance import cuts, entries_of, row_work
from bmrm.data.columns import Columns
from bmrm.data.dataset import Dataset, Labels
from bmrm.data.elsewhere import Elsewhere
from bmrm.data.memory import parse_bytes
from bmrm.data.part_reader import PartReader
from bmrm.data.parts import planned
from bmrm.data.sharded import ShardedMatrix
from bmrm.parallel.base import Engine, EngineError, Maker, Placed
from bmrm.parallel.local import LocalEngine
from bmrm.risks.file_shard import FileShard
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
    feature_names: Sequence[str] | None = None

    def __call__(self) -> Shard:
        """Return the shard."""
        data = Dataset(self.X, self.y, self.groups, self.weight, feature_names=self.feature_names)
        return Shard(data, self.name, self.n_threads)


class Shards(Elsewhere):
    """Rows on workers: takes the place of X in estimators, `ShardedRisk` and `LinearRisk`.

    Labels, queries and weights of all rows are collected here; the features stay where they are. Where shards have
    different numbers of features the largest is taken, which is said once.

    Parameters
    ----------
    placed : Placed
        `Shard` objects.
    memory : int or str, optional
        A limit on the resident memory of this process, where planes are kept.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X, y = np.array([[2.0], [-1.0], [1.0], [-3.0]]), np.array([1, -1, 1, -1])
    >>> shards = bmrm.Shards.from_arrays([(X[:2], y[:2]), (X[2:], y[2:])])
    >>> shards.shape, bmrm.LinearClassifier(lam=0.1).fit(shards).predict(X)
    ((4, 1), array([ 1, -1,  1, -1]))
    """

    def __init__(self, placed: Placed, memory: int | str | None = None) -> None:
        self.placed = placed
        self.memory = None if memory is None else parse_bytes(memory)
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
    def from_data(cls, data: Dataset, engine: Engine | None = None, n_shards: int | None = None) -> Shards:
        """Send rows in memory to the workers, in shards of about equal work: nonzeros, and the sorting of queries.

        Parameters
        ----------
        data : Dataset
        engine : Engine, optional
            This process by default.
        n_shards : int, optional
            By default one for each worker. Neighboring rows of a query stay together.

        Examples
        --------
        >>> import numpy as np, bmrm
        >>> data = bmrm.Dataset(X=np.eye(6), y=np.ones(6))
        >>> [about.rows for about in bmrm.Shards.from_data(data, n_shards=3).about]
        [2, 2, 2]
        """
        engine = LocalEngine() if engine is None else engine
        X: Any = data.X
        work = row_work(entries_of(X), data.groups)
        places = cuts(work, n_shards or engine.n_workers, data.groups)
        makers = []
        for a, b in pairwise(places):
            y, groups, weight = (None if v is None else v[a:b] for v in (data.y, data.groups, data.weight))
            name = f"rows {a} to {b}"
            makers.append(ArrayShard(X[a:b], y, groups, weight, name, feature_names=data.feature_names))
        return cls.from_makers(makers, engine, [float(work[a:b].sum()) for a, b in pairwise(places)])

    @classmethod
    def from_files(
        cls,
        files: Sequence[str | os.PathLike[str]],
        engine: Engine | None = None,
        zero_based: Any = "auto",
        n_threads: int | None = None,
        *,
        n_shards: int | None = None,
        target: str | None = None,
        group: str | None = None,
        weight: str | None = None,
        memory: int | str | None = None,
        skip_bad: bool = False,
    ) -> Shards:
        """Let the workers read files, in shards of about equal work: several files, or parts of a large one.

        Parameters
        ----------
        files : sequence of paths
            svmlight text, also compressed, .npy, .npz, stores, and tables, as `convert` takes them. Rows keep the
            order of the files. Workers must see them under the same names.
        engine : Engine, optional
            This process by default.
        zero_based : bool or "auto"
            Whether the indices of svmlight text count from 0. With "auto", an index 0 in any file says so for all.
        n_threads : int, optional
            Threads of each worker; as many as the engine says by default.
        n_shards : int, optional
            By default 4 for each worker; one for each file, at most, where there is one worker or little data. There
            are fewer where files cannot be cut: compressed ones and CSV are read as a whole, stores cut between
            blocks, Arrow files between batches, all others between rows, but not within a query.
        target, group, weight : str, optional
            The columns of tables with the labels, queries and weights. All others are features, in the order of the
            first file: later ones are put in order by name.
        memory : int or str, optional
            A limit on the resident memory of each process: workers convert what they read to temporary stores.
        skip_bad : bool
            Leave out what cannot be read, and count it in a warning.
        """
        engine = LocalEngine() if engine is None else engine
        plan = planned(files, engine.n_workers, n_shards)
        reader = PartReader(zero_based, target, group, weight, memory, skip_bad, n_threads or _threads(engine))
        work = [own.work for own in plan]
        placed = engine.place([FileShard(own.parts, reader) for own in plan], work)
        about: list[About] = placed.call("about")
        once_more = reader
        if zero_based == "auto" and len({own.zero_based for own in about} - {None}) == 2:
            once_more = replace(once_more, zero_based=True)
        names = [own.feature_names for own in about]
        if None not in names and len(set(names)) > 1 and len({frozenset(own or ()) for own in names}) == 1:
            once_more = replace(once_more, features=names[0])  # the same columns in another order
        if once_more is not reader:
            placed.release()
            placed = engine.place([FileShard(own.parts, once_more) for own in plan], work)
        return cls(placed, memory)

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
            self.memory,
            self.source,
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
    def feature_names(self) -> tuple[str, ...] | None:
        """The name of each column, or None."""
        return self.about[0].feature_names

    @property
    def zero_based(self) -> bool | None:
        """Whether indices of svmlight text count from 0."""
        return next((own.zero_based for own in self.about if own.zero_based is not None), None)

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


def _as_array(value: Any) -> Any:
    return value if value is None or hasattr(value, "shape") else np.asarray(value)


def _check_names(about: list[About]) -> None:
    """Raise unless all shards have the same names of columns, in the same order, or none."""
    first = about[0]
    for own in about:
        if own.feature_names == first.feature_names:
            continue
        if own.feature_names is None or first.feature_names is None:
            has, lacks = (own, first) if first.feature_names is None else (first, own)
            raise DataError(f"{lacks.name}: has no names of columns, but {has.name} has; expected all shards to agree")
        Columns(first.feature_names).of(own.feature_names, own.name)
        others = [name for name in own.feature_names if name not in set(first.feature_names)]
        wrong = f"has the column {others[0]!r}, which" if others else "has its columns in another order than"
        raise DataError(f"{own.name}: {wrong} {first.name} {'lacks' if others else 'has them'}")


def _agreed(placed: Placed) -> list[About]:
    """Return what the shards say of themselves, once they have one version and one number of columns."""
    from bmrm import __version__

    about: list[About] = placed.call("about")
    if not about:
        raise DataError("there are no shards")
    for own, worker in zip(about, placed.workers()):
        if own.version != __version__:
            raise EngineError(f"worker {worker} has version {own.version} of bmrm, but this process {__version__}")
    for remark in [remark for own in about for remark in own.remarks]:
        warnings.warn(remark, UserWarning, stacklevel=4)
    _check_names(about)
    columns = [own.columns for own in about]
    if min(columns) == max(columns):
        return about
    warnings.warn(
        f"the shards have {min(columns)} to {max(columns)} features; taken as {max(columns)}", UserWarning, stacklevel=4
    )
    placed.call("widen", max(columns))
    return placed.call("about")
