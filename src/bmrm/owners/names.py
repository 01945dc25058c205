"""Names of points and lines as plain values: vectors travel beside them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm.owners.wire import WireError
from bmrm.risks.base import Array
from bmrm.risks.shard import LineName, PointName

_DEEPEST = 16  # a point on a line from a point on a line ...


def point_header(name: PointName, arrays: list[npt.NDArray[Any]]) -> dict[str, Any]:
    """Return a point's name; its w is appended to the arrays and named by its place."""
    line = None if name.line is None else line_header(name.line, arrays)
    return {"number": name.number, "w": _put(name.w, arrays), "line": line, "t": float(name.t)}


def line_header(name: LineName, arrays: list[npt.NDArray[Any]]) -> dict[str, Any]:
    """Return a line's name; its end is appended to the arrays."""
    start = None if name.start is None else point_header(name.start, arrays)
    return {"number": name.number, "start": start, "end": _put(name.end, arrays)}


def _put(array: Array | None, arrays: list[npt.NDArray[Any]]) -> int | None:
    if array is None:
        return None
    arrays.append(array)
    return len(arrays) - 1


def point_name(header: Any, arrays: tuple[Array, ...], dim: int, depth: int = 0) -> PointName:
    """Return the name that `point_header` made, checked: vectors are finite and of the right length."""
    entries = _entries(header, ("number", "w", "line", "t"), depth)
    line = None if entries["line"] is None else line_name(entries["line"], arrays, dim, depth + 1)
    return PointName(whole(entries["number"]), _vector(entries["w"], arrays, dim), line, number(entries["t"]))


def line_name(header: Any, arrays: tuple[Array, ...], dim: int, depth: int = 0) -> LineName:
    """Return the name that `line_header` made, checked."""
    entries = _entries(header, ("number", "start", "end"), depth)
    start = None if entries["start"] is None else point_name(entries["start"], arrays, dim, depth + 1)
    return LineName(whole(entries["number"]), start, _vector(entries["end"], arrays, dim))


def _entries(header: Any, names: tuple[str, ...], depth: int) -> dict[str, Any]:
    if not isinstance(header, dict) or set(header) != set(names) or depth > _DEEPEST:
        raise WireError(f"a name of a point or a line that is none; expected {', '.join(names)}")
    return header


def _vector(place: Any, arrays: tuple[Array, ...], dim: int) -> Array | None:
    if place is None:
        return None
    if whole(place) >= len(arrays):
        raise WireError(f"vector {place} of {len(arrays)}")
    array: Array = arrays[place]
    if array.dtype != np.float64 or array.shape != (dim,) or not np.isfinite(array).all():
        raise WireError(f"a vector of {array.size} numbers of type {array.dtype}; expected {dim} finite float64")
    return array


def whole(value: Any) -> int:
    """Return a whole number >= 0, checked."""
    if type(value) is not int or value < 0:
        raise WireError(f"{value!r}; expected a whole number")
    return value


def number(value: Any) -> float:
    """Return a finite number, checked."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise WireError(f"{value!r}; expected a finite number")
    return float(value)


def gone(value: Any) -> tuple[Any, Any]:
    """Return the two lists of numbers of points and lines, checked."""
    if not (isinstance(value, list) and len(value) == 2 and all(isinstance(part, list) for part in value)):
        raise WireError("points and lines that are gone must be two lists")
    points, lines = (tuple(whole(n) for n in part) for part in value)
    return points, lines
