"""Files with a tree of classes: lines of `parent child`, or nested JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bmrm._errors import DataError
from bmrm.losses import Tree


def read_tree(path: Path) -> Tree:
    """Read a tree of classes.

    Text has one pair ``parent child`` on each line; blank lines and what follows ``#`` do not count. JSON has nested
    objects of names, ``{"animal": {"cat": {}, "dog": {}}, "plant": {}}``; a list of names stands for leaves.

    Raises
    ------
    DataError
        With the line of a class that has two parents or closes a cycle, or of what is no pair.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise DataError(f"{path}: not a text file ({error})") from error
    above = _nested(path, text) if text.lstrip()[:1] in ("{", "[") else _pairs(path, text)
    try:
        return Tree.from_parents(above)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


def _pairs(path: Path, text: str) -> dict[str, str | None]:
    """Return child -> parent."""
    above: dict[str, str | None] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        names = line.partition("#")[0].split()
        if not names:
            continue
        where = f"{path}, line {number}"
        if len(names) != 2:
            raise DataError(f"{where}: {' '.join(names)!r}; expected two names, parent and child")
        parent, child = names
        if above.get(child, parent) != parent:
            raise DataError(
                f"{where}: {child!r} has two parents, {above[child]!r} (line {lines[child]}) and {parent!r}"
            )
        node: str | None = parent
        while node is not None:
            if node == child:
                raise DataError(f"{where}: {child!r} below {parent!r} closes a cycle")
            node = above.get(node)
        above[child] = parent
        lines[child] = number
    if not above:
        raise DataError(f"{path}: has no classes")
    return above


def _nested(path: Path, text: str) -> dict[str, str | None]:
    """Return child -> parent, None at the top."""
    try:
        nested = json.loads(text, object_pairs_hook=lambda pairs: pairs)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise DataError(f"{path}{f', line {line}' if line else ''}: not JSON ({error})") from error
    except RecursionError:
        raise DataError(f"{path}: nested too deeply") from None
    above: dict[str, str | None] = {}
    waiting: list[tuple[str | None, Any]] = [(None, nested)]
    while waiting:
        parent, below = waiting.pop(0)
        for name, rest in _children(path, below):
            if name in above:
                raise DataError(
                    f"{path}, line {_second_line(text, name)}: {name!r} has two parents, "
                    f"{above[name] or 'the top'!r} and {parent or 'the top'!r}"
                )
            above[name] = parent
            waiting.append((name, rest))
    return above


def _children(path: Path, below: Any) -> list[tuple[str, Any]]:
    """Return names with what is below them, of an object (a list of pairs by now), a list of names, or null."""
    pairs = [item if isinstance(item, tuple) else (item, None) for item in below] if isinstance(below, list) else None
    if below is None:
        return []
    if pairs is None or not all(isinstance(name, str) for name, _ in pairs):
        raise DataError(f"{path}: {json.dumps(below)[:40]} stands where names of classes are expected")
    return pairs


def _second_line(text: str, name: str) -> int:
    """Return the line where a name occurs a second time."""
    quoted = json.dumps(name, ensure_ascii=False)
    first = text.find(quoted)
    second = text.find(quoted, first + 1)
    return text.count("\n", 0, max(second, first, 0)) + 1
