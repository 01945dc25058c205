"""Feature templates: which columns of which neighbors of a token make its attributes, as CRF++ writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from bmrm._cached import cached_property
from bmrm._errors import DataError
from bmrm.data.text import read_lines

_MACRO = re.compile(r"%x\[\s*(-?\d+)\s*,\s*(\d+)\s*\]")
_FARTHEST = 100

Rows = Sequence[Sequence[str]]
Place = tuple[int, int]


@dataclass(frozen=True)
class Pattern:
    """One line of a template: texts[0] %x[places[0]] texts[1] %x[places[1]] ... texts[-1].

    Parameters
    ----------
    texts : tuple of str
        One more than places.
    places : tuple of (int, int)
        Rows before (negative) or after the token, and columns.
    line : int
        Where it stands in its file.
    """

    texts: tuple[str, ...]
    places: tuple[Place, ...]
    line: int


@dataclass(frozen=True)
class Template:
    """What the attributes of a token are made of.

    Lines that begin with U make one attribute each: their text, with every ``%x[row,column]`` replaced by what stands
    in that column, so many rows after the token (before it, if negative); beyond the ends of the sequence it is
    ``_B-1``, ``_B-2``, ... and ``_B+1``, ``_B+2``, ... A line ``B`` asks for weights of transitions. Blank lines and
    those that begin with # do not count.

    Parameters
    ----------
    patterns : tuple of Pattern
    transitions : bool
        Whether there is a line B.
    text : str
        The lines as they were.
    source : str
        The name of the file, for messages.

    Examples
    --------
    >>> from bmrm.data.template import Template
    >>> template = Template.parse(["U0:%x[0,0]", "U1:%x[-1,1]/%x[0,1]", "B"])
    >>> template.attributes([["the", "DT"], ["cat", "NN"]])
    [('U0:the', 'U1:_B-1/DT'), ('U0:cat', 'U1:DT/NN')]
    """

    patterns: tuple[Pattern, ...]
    transitions: bool
    text: str
    source: str = "template"

    @classmethod
    def read(cls, path: Path) -> Template:
        """Read a template file."""
        return cls.parse(read_lines(path), str(path))

    @classmethod
    def parse(cls, lines: Sequence[str], source: str = "template") -> Template:
        """Make a template from its lines.

        Raises
        ------
        DataError
            With the source and the line, if one cannot be read.
        """
        patterns: list[Pattern] = []
        transitions = False
        for number, line in enumerate(lines, 1):
            stripped = line.strip()
            if not stripped or stripped.startswith("#"):
                continue
            where = f"{source}, line {number}"
            if stripped.startswith("U"):
                patterns.append(_pattern(stripped, number, where))
            elif stripped == "B":
                transitions = True
            elif stripped.startswith("B"):
                raise DataError(f"{where}: {stripped!r} joins attributes to pairs of labels; expected 'B' alone")
            else:
                raise DataError(f"{where}: {stripped!r}; expected a line that begins with U, B or #")
        if not patterns:
            raise DataError(f"{source}: has no line that begins with U, so tokens would have no attributes")
        return cls(tuple(patterns), transitions, "\n".join(lines), source)

    def check_columns(self, n_columns: int, path: object) -> None:
        """Raise DataError if a pattern asks for a column that a file does not have."""
        for pattern in self.patterns:
            for row, column in pattern.places:
                if column >= n_columns:
                    raise DataError(
                        f"{self.source}, line {pattern.line}: %x[{row},{column}] asks for column {column}, but {path} "
                        f"has {n_columns} beside the label, numbered from 0"
                    )

    def attributes(self, rows: Rows) -> list[tuple[str, ...]]:
        """Return the attributes of each token of one sequence."""
        reach = self._reach
        before = [f"_B-{k}" for k in range(reach, 0, -1)]
        after = [f"_B+{k}" for k in range(1, reach + 1)]
        padded = [[*before, *column, *after] for column in zip(*rows)]
        return list(zip(*(_applied(pattern, padded, reach, len(rows)) for pattern in self.patterns)))

    @cached_property
    def _reach(self) -> int:
        return max((abs(row) for pattern in self.patterns for row, _ in pattern.places), default=0)


class Templated(Sequence[list[tuple[str, ...]]]):
    """Sequences whose attributes are made when they are asked for, which saves memory.

    Parameters
    ----------
    template : Template
    sequences : list of lists of rows
        Each row has the columns of a token.
    """

    def __init__(self, template: Template, sequences: Sequence[Rows]) -> None:
        self.template, self.sequences = template, sequences

    def __len__(self) -> int:
        return len(self.sequences)

    @overload
    def __getitem__(self, i: int) -> list[tuple[str, ...]]: ...

    @overload
    def __getitem__(self, i: slice) -> Sequence[list[tuple[str, ...]]]: ...

    def __getitem__(self, i: int | slice) -> list[tuple[str, ...]] | Sequence[list[tuple[str, ...]]]:
        if isinstance(i, slice):
            return Templated(self.template, self.sequences[i])
        return self.template.attributes(self.sequences[i])

    def __iter__(self) -> Iterator[list[tuple[str, ...]]]:
        return map(self.template.attributes, self.sequences)


def _pattern(text: str, number: int, where: str) -> Pattern:
    places = [(int(found[1]), int(found[2])) for found in _MACRO.finditer(text)]
    texts = tuple(_MACRO.split(text)[::3])
    if any("%x" in part for part in texts):
        raise DataError(f"{where}: {text!r}; expected macros of the form %x[row,column]")
    for row, _ in places:
        if abs(row) > _FARTHEST:
            raise DataError(f"{where}: row {row} is too far from the token; at most {_FARTHEST}")
    return Pattern(texts, tuple(places), number)


def _applied(pattern: Pattern, padded: list[list[str]], reach: int, n: int) -> list[str]:
    """Return the attribute that a pattern makes for each of n tokens, which stand behind `reach` others."""
    first, *others = pattern.texts
    made = [first] * n
    for (row, column), text in zip(pattern.places, others):
        values = padded[column][reach + row : reach + row + n]
        made = [f"{head}{value}{text}" for head, value in zip(made, values)]
    return made
