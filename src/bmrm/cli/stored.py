"""What a run trains from: arrays in memory, or a store, which other files are converted to where they may be large."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from bmrm.cli.application import plain_warnings
from bmrm.cli.convert import ended_by_terminate
from bmrm.cli.files import read_data, with_weights
from bmrm.cli.options import TrainOptions
from bmrm.data.convert import convert
from bmrm.data.dataset import Dataset
from bmrm.data.sources import TABLES, SourceOptions, format_of
from bmrm.data.store import Store


@contextlib.contextmanager
def training_data(options: TrainOptions) -> Iterator[Dataset]:
    """Give the data of a run; files that are not read into memory become a store that is deleted in the end."""
    files = [options.file, *options.more]
    stored = [file for file in files if file.suffix.lower() == ".store"]
    if stored and len(files) > 1:
        raise click.UsageError(f"{stored[0]}: one store is trained from at a time, without other files")
    if options.skip_bad and not stored:
        raise click.UsageError("--skip-bad is for stores, whose blocks have checksums")
    tables = [file for file in files if not stored and format_of(file, SourceOptions()) in TABLES]
    if options.target is not None and not tables:
        raise click.UsageError(f"--target is for tables (Parquet, Arrow, CSV), which {options.file} is not")
    if stored:
        yield with_weights(_opened(options.file, options), options.weights)
    elif len(files) == 1 and not tables and options.memory is None:
        yield with_weights(read_data(options.file, options.zero_based, threads=options.threads), options.weights)
    else:
        with tempfile.TemporaryDirectory(prefix="bmrm-") as folder, ended_by_terminate():
            path = Path(folder) / "data.store"
            first: Any = {"auto": "auto", "true": True, "false": False}[options.zero_based]
            convert(files, path, zero_based=first, target=options.target)
            yield with_weights(_opened(path, options), options.weights)


def _opened(path: Path, options: TrainOptions) -> Dataset:
    with plain_warnings(options.quiet):
        return Store(path, options.memory, options.skip_bad).dataset()
