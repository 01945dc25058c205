"""Weights of a model of sequences by name, as tables."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

Row = TypeVar("Row", bound=tuple[Any, ...])


class Feature(NamedTuple):
    """The weight of an attribute for a label."""

    attribute: str
    label: Any
    weight: float


class Transition(NamedTuple):
    """The weight of a label that follows another; "(start)" and "(end)" stand for the ends of a sequence."""

    source: Any
    target: Any
    weight: float


class Table(tuple[Row, ...]):
    """Named tuples of one kind; as text, a table with a line for each.

    Examples
    --------
    >>> from bmrm.structured.tables import Table, Transition
    >>> print(Table([Transition("B", "I", 2.5), Transition("(start)", "I", -10.0)]))
    source   target     weight
    B        I         2.50000
    (start)  I       -10.00000
    """

    __slots__ = ()

    def __str__(self) -> str:
        if not self:
            return "(empty)"
        names = type(self[0])._fields  # type: ignore[attr-defined]
        cells = [list(names), *([_text(value) for value in row] for row in self)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
        lines = [
            [cell.rjust(w) if name == "weight" else cell.ljust(w) for name, cell, w in zip(names, row, widths)]
            for row in cells
        ]
        return "\n".join("  ".join(line).rstrip() for line in lines)


def _text(value: Any) -> str:
    return f"{value:.5f}" if isinstance(value, float) else str(value)
