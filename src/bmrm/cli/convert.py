"""``bmrm convert``: files of any size come in, a store goes out that training reads block by block."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import click

from bmrm.cli.outputs import check_writable
from bmrm.data.convert import Conversion
from bmrm.data.convert import convert as convert_files
from bmrm.data.memory import show_bytes
from bmrm.data.source_options import FORMATS

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("sources", nargs=-1, required=True, type=_PATH)
@click.argument("store", type=_PATH)
@click.option("--float32", is_flag=True, help="Round values to float32, which halves the reading.")
@click.option("--format", type=click.Choice(FORMATS), help="Of all files.  [default: by their names]")
@click.option("--block-bytes", help="Size of a block, such as 64MB.  [default: 16 MiB, less with little --memory]")
@click.option("--target", help="The column of a table with the labels; without it, there are none.")
@click.option("--group", help="The column of a table with the query of each row.")
@click.option("--weight", help="The column of a table with the weight of each row.")
@click.option("--labels", type=_PATH, help="A .npy file with the labels, for a .npy or .npz file without.")
@click.option("--zero-based", type=click.Choice(["auto", "true", "false"]), default="auto", show_default=True,
              help="Whether feature indices of svmlight text start at 0.")  # fmt: skip
@click.option("--memory", help="Limit of resident memory, such as 500MB.")
@click.option("--skip-bad", is_flag=True,
              help="Leave out lines, rows and blocks that cannot be read, and count them.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Write nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to standard output.")
def convert(sources: tuple[Path, ...], store: Path, quiet: bool, as_json: bool, **options: Any) -> int:
    """Write the rows of all SOURCES, one file after the other, to STORE, a file that need not fit into memory.

    SOURCES are svmlight text (also .gz, .bz2, .xz, .zst), .parquet, .arrow, .feather, .csv, .npy, .npz or other
    stores. Only .npz is read as a whole. The store appears complete or not at all. 'bmrm train STORE --memory 2GB'
    trains from it.
    """
    check_writable(store, [*sources, options["labels"]])
    options["zero_based"] = {"auto": "auto", "true": True, "false": False}[options["zero_based"]]
    with ended_by_terminate():
        done = convert_files(sources, store, **options)
    if as_json:
        click.echo(json.dumps(_report(done)))
    elif not quiet:
        click.echo(_summary(done))
    return 0


@contextlib.contextmanager
def ended_by_terminate() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that what is half written is taken away."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: Any) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _report(done: Conversion) -> dict[str, Any]:
    header = done.header
    return {
        "store": str(done.path),
        "n_examples": header.rows,
        "n_features": header.columns,
        "kind": header.kind,
        "dtype": "float32" if header.dtype == "<f4" else "float64",
        "blocks": len(header.blocks),
        "bytes": done.path.stat().st_size,
        "labels": "y" in header.arrays,
        "n_features_of_files": done.widths,
        "n_skipped": done.skipped.rows,
        "skipped": done.skipped.first,
    }


def _summary(done: Conversion) -> str:
    found = _report(done)
    lines = [
        f"{found['n_examples']} rows, {found['n_features']} features, {found['kind']} {found['dtype']}"
        f"{'' if found['labels'] else ', no labels'}; {found['blocks']} blocks, {show_bytes(found['bytes'])}",
        f"store saved to {done.path}",
    ]
    narrowest = min(done.widths.values())
    if narrowest < done.header.columns:
        lines.insert(1, f"files have from {narrowest} to {done.header.columns} features; the most are taken for all")
    if done.skipped.rows:
        lines.insert(1, str(done.skipped))
    return "\n".join(lines)
