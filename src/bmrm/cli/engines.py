"""Training on shards: which engine, which data, and how long its workers were busy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import click

from bmrm._errors import DataError
from bmrm.cli.application import plain_warnings
from bmrm.cli.files import with_weights
from bmrm.cli.options import TrainOptions
from bmrm.data.dataset import Dataset
from bmrm.parallel import Engine, EngineError, engine
from bmrm.result import Record
from bmrm.risks import Shards


@contextlib.contextmanager
def engine_of(options: TrainOptions) -> Iterator[Engine | None]:
    """Give the engine that is asked for; None where none is, and on ranks that have served another one."""
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
    """Give the data of a run as shards, one for each file."""
    for name in ("memory", "skip_bad", "target"):
        if getattr(options, name):
            raise click.UsageError(f"--{name.replace('_', '-')} is not for --engine: shards are read by the workers")
    first = {"auto": "auto", "true": True, "false": False}[options.zero_based]
    with plain_warnings(options.quiet):
        shards = Shards.from_files([options.file, *options.more], engine, first, options.threads)
    try:
        yield with_weights(shards.dataset(), options.weights)
    finally:
        shards.placed.release()


def busy_times(histories: Sequence[Sequence[Record]]) -> list[str]:
    """Return a line on how long the shards computed and were idle, where there are shards."""
    last = next((history[-1] for history in reversed(histories) if history), None)
    if last is None or not last.busy:
        return []
    total = sum(history[-1].seconds for history in histories if history)
    most, mean = max(last.busy), sum(last.busy) / len(last.busy)
    idle = 1.0 - mean / total if total > 0.0 else 0.0
    return [f"{len(last.busy)} shards: each computed {mean:.3g} s, the longest {most:.3g} s; idle {100 * idle:.0f}%"]
