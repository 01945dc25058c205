"""Partitions of Dask arrays and data frames as shards."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bmrm._errors import DataError
from bmrm._sparse import rows_of
from bmrm.data.dataset import Dataset
from bmrm.parallel.base import Engine
from bmrm.parallel.dask import DaskEngine, DaskPart, needed
from bmrm.risks.shard import Shard

_NUMBERS = "biuf"


def is_dask(value: Any) -> bool:
    """Whether a value is an array, a frame or a series of Dask, which is not imported to find out."""
    return type(value).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(value, "to_delayed")


def current_engine(client: Any = None) -> DaskEngine | None:
    """Return the engine of a client, by default of the current one; None where there is none."""
    distributed = sys.modules.get("distributed")
    if client is None and distributed is not None:
        with contextlib.suppress(ValueError):
            client = distributed.Client.current()
    return None if client is None else DaskEngine(client)


@dataclass(frozen=True)
class Rows:
    """Makes a shard of rows."""

    name: str
    n_threads: int | None = None

    def __call__(self, rows: Dataset) -> Shard:
        """Return the shard."""
        return Shard(rows, self.name, self.n_threads)


@dataclass(frozen=True)
class Partition:
    """Takes rows out of a partition.

    Parameters
    ----------
    name : str
        For messages.
    features : tuple of str or None
        The columns of a data frame that are features; None for an array.
    columns : dict
        Which column of the frame has the labels ("y"), weights ("weight") and queries ("groups").
    others : tuple of str
        What the further arguments are: of "y", "weight" and "groups".
    """

    name: str
    features: tuple[Any, ...] | None
    columns: dict[str, Any]
    others: tuple[str, ...]

    def __call__(self, block: Any, *others: Any) -> Dataset:
        """Return the features, and what belongs to them."""
        belongings = {what: _column(block[name]) for what, name in self.columns.items()}
        belongings |= {what: _column(values) for what, values in zip(self.others, others)}
        try:
            names = self.features if all(isinstance(name, str) for name in self.features or (0,)) else None
            return Dataset(_matrix(block, self.features), **belongings, feature_names=names)
        except DataError as error:
            raise DataError(f"{self.name}: {error}") from None


def _matrix(block: Any, features: tuple[Any, ...] | None) -> Any:
    if features is None:
        return rows_of(block) if hasattr(block, "tocsr") else np.asarray(block)
    chosen = block[list(features)]
    single = all(dtype == np.float32 for dtype in chosen.dtypes)
    return chosen.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)


def _column(values: Any) -> Any:
    column = np.asarray(values)
    text = column.dtype.kind == "O" and all(isinstance(value, str) for value in column)
    return column.astype(str) if text else column


def partitions(
    X: Any, y: Any, weight: Any, groups: Any, engine: DaskEngine | None
) -> tuple[list[DaskPart], Engine | None, list[float]]:
    """Return what makes the shards, the engine, and the rows of each."""
    if not is_dask(X) or not hasattr(X, "ndim"):
        raise TypeError(f"X must be a Dask array or a Dask data frame, got {type(X).__name__}")
    if X.ndim != 2:
        raise DataError(f"X has {X.ndim} dimensions; expected 2, one row per example")
    given = {what: value for what, value in (("y", y), ("weight", weight), ("groups", groups)) if value is not None}
    columns = {what: value for what, value in given.items() if isinstance(value, str)}
    given = {what: value for what, value in given.items() if what not in columns}
    features = _features(X, columns) if hasattr(X, "columns") else None
    if features is None:
        X = _array(X, columns)
    threads = None if engine is None else engine.threads
    with contextlib.nullcontext() if engine is None else engine.client.as_current():
        blocks, rows = _blocks(X)
        others = {what: _parts(what, value, rows) for what, value in given.items()}
        makers = []
        for k in [k for k, size in enumerate(rows) if size > 0]:
            taken = Partition(f"partition {k}", features, columns, tuple(others))
            part = needed("dask").delayed(taken)(blocks[k], *(parts[k] for parts in others.values()))
            makers.append(DaskPart(Rows(taken.name, threads), [part]))
    return makers, engine, [float(size) for size in rows if size > 0]


def _features(X: Any, columns: dict[str, Any]) -> tuple[Any, ...]:
    """Return the columns of a frame that are features; raise if they are not numbers."""
    names = list(X.columns)
    for what, name in columns.items():
        if name not in names:
            raise DataError(f"the data frame has no column {name!r} for {what}; it has {', '.join(map(str, names))}")
    features = tuple(name for name in names if name not in columns.values())
    text = [str(name) for name in features if getattr(X.dtypes[name], "kind", "O") not in _NUMBERS]
    if text:
        raise DataError(f"columns that are no numbers: {', '.join(text)}; drop them, or make numbers of them")
    if not features:
        raise DataError("the data frame has no column for features")
    return features


def _array(X: Any, columns: dict[str, Any]) -> Any:
    """Return the array with whole rows in each chunk."""
    for what, name in columns.items():
        raise DataError(f"{what}={name!r} names a column of a data frame, but X is an array")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _blocks(X: Any) -> tuple[list[Any], list[int]]:
    """Return the partitions and their rows; where these are not known, the partitions are computed for that."""
    blocks = list(np.ravel(X.to_delayed()))
    known = getattr(X, "chunks", ((math.nan,),))[0]
    if not any(math.isnan(size) for size in known):
        return blocks, [int(size) for size in known]
    dask = needed("dask")
    blocks = list(dask.persist(*(dask.delayed(_itself)(block) for block in blocks)))
    return blocks, list(dask.compute(*(dask.delayed(_length)(block) for block in blocks)))


def _itself(block: Any) -> Any:
    return block


def _length(block: Any) -> int:
    return int(block.shape[0])


def _parts(what: str, values: Any, rows: Sequence[int]) -> list[Any]:
    """Return values in partitions of so many rows."""
    total, dask = sum(rows), needed("dask")
    length = len(values) if not is_dask(values) else None
    if is_dask(values) and hasattr(values, "chunks") and not math.isnan(values.shape[0]):
        length = values.shape[0]
    if length is not None and length != total:
        raise DataError(f"{what} has length {length}, but X has {total} rows")
    if not is_dask(values):
        ends = np.cumsum([0, *rows])
        return [dask.delayed(np.asarray(values[a:b])) for a, b in pairwise(ends)]
    if length is not None:
        values = values.rechunk({0: tuple(rows), **dict.fromkeys(range(1, values.ndim), -1)})
    parts = list(np.ravel(values.to_delayed()))
    if len(parts) != len(rows):
        raise DataError(f"{what} has {len(parts)} partitions, but X has {len(rows)}: repartition one like the other")
    return parts
