"""Training on shards: which engine, which data, and how long its workers were busy."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence

import click
import numpy as np

from bmrm._errors import DataError
from bmrm.cli.application import plain_warnings
from bmrm.cli.convert import ended_by_terminate
from bmrm.cli.files import plain_label, with_weights
from bmrm.cli.options import TrainOptions
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.parallel import Engine, EngineError, engine
from bmrm.result import Record
from bmrm.risks import Shards


@contextlib.contextmanager
def engine_of(options: TrainOptions) -> Iterator[Engine | None]:
    """Give the engine that is asked for; None where none is, and on ranks that have served another one."""
    if options.shards and options.engine is None:
        raise click.UsageError("--shards is for --engine")
    if options.engine != "dask" and (options.scheduler or options.workers):
        raise click.UsageError("--scheduler and --workers are for --engine dask")
    if options.engine is None:
        yield None
        return
    try:
        with engine(options.engine, options.scheduler, options.workers) as found:
            yield found
    except EngineError as error:
        raise DataError(str(error)) from error


@contextlib.contextmanager
def sharded_data(options: TrainOptions, engine: Engine) -> Iterator[Dataset]:
    """Give the data of a run as shards of about equal work, which the workers read."""
    first = {"auto": "auto", "true": True, "false": False}[options.zero_based]
    with plain_warnings(options.quiet), ended_by_terminate():
        shards = Shards.from_files(
            [options.file, *options.more], engine, first, options.threads,
            n_shards=options.shards, target=options.target, group=options.group, weight=options.weight,
            memory=options.memory, skip_bad=options.skip_bad,
        )  # fmt: skip
    try:
        data = shards.dataset()
        if LOSSES[options.loss].task == "classification":
            with plain_warnings(options.quiet):
                _say_classes(shards, data)
        yield with_weights(data, options.weights)
    finally:
        shards.placed.release()


def _say_classes(shards: Shards, data: Dataset) -> None:
    """Warn, once, if a shard has not all classes: they may be written in different ways."""
    if not isinstance(data.y, np.ndarray) or data.y.ndim != 1:
        return
    classes = np.unique(data.y)
    for about, part in zip(shards.about, shards.matrix.parts):
        own = np.unique(data.y[part])
        if 1 < own.size < classes.size:
            few = ", ".join(str(plain_label(label)) for label in own[:5]) + (", ..." if own.size > 5 else "")
            warnings.warn(
                f"{about.name}: has the classes {few}, but all shards together have {classes.size}; taken as "
                f"{classes.size} classes",
                UserWarning,
                stacklevel=2,
            )
            return


def busy_times(workers: Sequence[str], histories: Sequence[Sequence[Record]]) -> dict[str, dict[str, float]]:
    """Return how long each worker computed and which share of the time it was idle; empty without shards.

    A worker's shards compute one after the other: idle = 1 - sum of its shards' seconds / seconds of the run.

    Parameters
    ----------
    workers : sequence of str
        The worker that has each shard.
    histories : sequence of histories
        Of runs on the same shards, one after the other.
    """
    total = sum(history[-1].seconds for history in histories if history)
    last = next((history[-1] for history in reversed(histories) if history), None)  # times add up
    times: dict[str, float] = {}
    for worker, seconds in zip(workers, () if last is None else last.busy):
        times[worker] = times.get(worker, 0.0) + seconds
    return {
        worker: {"busy_seconds": seconds, "idle": max(1.0 - seconds / total, 0.0) if total > 0.0 else 0.0}
        for worker, seconds in times.items()
    }


def busy_line(workers: dict[str, dict[str, float]], n_shards: int) -> list[str]:
    """Return the same in a line, where there are shards."""
    if not workers:
        return []
    busy, idle = ([own[name] for own in workers.values()] for name in ("busy_seconds", "idle"))
    mean = sum(busy) / len(busy)
    return [
        f"{n_shards} shards on {len(busy)} workers: each computed {mean:.3g} s, the longest {max(busy):.3g} s; "
        f"idle {100 * sum(idle) / len(idle):.0f}%"
    ]
