"""``bmrm list``: what is registered under which name."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

import click

from bmrm._registry import first_line
from bmrm._traits import Trait
from bmrm.losses import LOSSES, STRUCTURED_LOSSES
from bmrm.model_file import plain, plain_parameters
from bmrm.regularizers import REGULARIZERS
from bmrm.solvers import SOLVERS

_KINDS = ("losses", "regularizers", "solvers")
_WIDTH_OF_FILES = 160


@click.command("list")
@click.argument("kind", type=click.Choice(_KINDS), required=False)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to standard output.")
def listing(kind: str | None, as_json: bool) -> int:
    """Show losses, regularizers and solvers with their parameters and defaults."""
    rows = {"losses": _losses, "regularizers": _regularizers, "solvers": _solvers}
    chosen = {name: rows[name]() for name in ([kind] if kind else _KINDS)}
    if as_json:
        click.echo(json.dumps(chosen))
    else:
        for name, entries in chosen.items():
            _print_table(name, entries)
    return 0


def _losses() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "parameters": _defaults(cls),
            "task": str(cls.task),
            "smooth": Trait.SMOOTH_RISK in cls.traits,
            "piecewise": Trait.PIECEWISE in cls.traits,
            "description": first_line(cls),
        }
        for name, cls in sorted(LOSSES.items())
    ] + [
        {
            "name": name,
            "parameters": {parameter: value for parameter, value in _defaults(cls).items() if parameter != "model"},
            "task": "sequences",
            "smooth": Trait.SMOOTH_RISK in cls.traits,
            "piecewise": Trait.PIECEWISE in cls.traits,
            "description": first_line(cls),
        }
        for name, cls in sorted(STRUCTURED_LOSSES.items())
    ]


def _regularizers() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "parameters": _defaults(cls),
            "smooth": Trait.SMOOTH_REGULARIZER in cls.traits,
            "strongly_convex": Trait.STRONGLY_CONVEX in cls.traits,
            "description": first_line(cls),
        }
        for name, cls in sorted(REGULARIZERS.items())
    ]


def _solvers() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "parameters": _defaults(cls),
            "needs": sorted(trait.value for trait in cls.needs),
            "refuses": sorted(trait.value for trait in cls.refuses),
            "description": first_line(cls),
        }
        for name, cls in sorted(SOLVERS.items())
    ]


def _defaults(cls: type) -> dict[str, Any]:
    """Return parameters with their defaults; None stands for those that must be given, too."""
    if not dataclasses.is_dataclass(cls):
        return {}
    required = [
        f.name
        for f in dataclasses.fields(cls)
        if f.init and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if not required:
        return plain_parameters(cls())
    given = {
        f.name: plain(f.default) for f in dataclasses.fields(cls) if f.init and f.default is not dataclasses.MISSING
    }
    return dict.fromkeys(required) | given


def _print_table(title: str, entries: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for column in entries[0]:
        table.add_column(column.replace("_", " "), no_wrap=column == "name")
    for entry in entries:
        table.add_row(*(Text(_cell(value)) for value in entry.values()))
    width = None if sys.stdout.isatty() else _WIDTH_OF_FILES
    Console(file=sys.stdout, width=width).print(table)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name}={json.dumps(default)}" for name, default in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)
