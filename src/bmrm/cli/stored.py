"""What a run trains from: arrays in memory, or a store, which other files are converted to where they may be large."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from bmrm.cli.application import plain_warnings
from bmrm.cli.convert import ended_by_terminate
from bmrm.cli.files import named_columns, read_data, with_weights
from bmrm.cli.options import TrainOptions
from bmrm.data.dataset import Dataset
from bmrm.data.part_reader import PartReader
from bmrm.data.source_options import FilePart, SourceOptions
from bmrm.data.sources import TABLES, format_of
from bmrm.data.store import Store


@contextlib.contextmanager
def training_data(options: TrainOptions) -> Iterator[Dataset]:
    """Give the data of a run; files that are not read into memory become a store that is deleted in the end."""
    files = [options.file, *options.more]
    stored = [file for file in files if file.suffix.lower() == ".store"]
    if stored and len(files) > 1:
        raise click.UsageError(
            f"{stored[0]}: one store is trained from at a time, without other files; several with --engine local"
        )
    tables = [file for file in files if not stored and format_of(file, SourceOptions()) in TABLES]
    given = named_columns(options)
    if given and not tables:
        raise click.UsageError(f"--{given[0]} is for tables (Parquet, Arrow, CSV), which {options.file} is not")
    if stored:
        yield with_weights(_opened(options.file, options), options.weights)
    elif len(files) == 1 and not tables and options.memory is None and not options.skip_bad:
        yield with_weights(read_data(options.file, options.zero_based, threads=options.threads), options.weights)
    else:
        first: Any = {"auto": "auto", "true": True, "false": False}[options.zero_based]
        reader = PartReader(
            first, options.target, options.group, options.weight, options.memory, options.skip_bad, on_disk=True
        )
        with ended_by_terminate():
            data, remarks = reader.read([FilePart(str(file)) for file in files])
        say(remarks, options.quiet)
        yield with_weights(data, options.weights)


def say(remarks: Iterable[str], quiet: bool) -> None:
    """Write what was left out, or agreed on, to standard error."""
    for remark in remarks:
        if not quiet:
            click.echo(f"warning: {remark}", err=True)


def _opened(path: Path, options: TrainOptions) -> Dataset:
    with plain_warnings(options.quiet):
        return Store(path, options.memory, options.skip_bad).dataset()
