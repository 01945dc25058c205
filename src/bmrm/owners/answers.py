"""Answers of owners, checked: whatever an owner sends becomes what the request asked for, or an OwnerError.

Owners are not trusted here. Types, shapes, ranges and missing entries are looked at in this file and nowhere else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm.owners.columns import told
from bmrm.owners.guard import OwnerError, Refused
from bmrm.owners.labels import MOST_SCORES
from bmrm.owners.score_messages import METHODS as SCORE_METHODS
from bmrm.owners.score_messages import score_answer
from bmrm.owners.wire import MOST_BYTES, Message
from bmrm.parallel.base import Answer
from bmrm.risks.shard import Missing

_MOST_WHOLE = 1 << 53  # beyond, a float is not the number that was sent
_MOST_MASS = 1e150  # sums and shares of such numbers do not overflow
_MOST_SECONDS = 1e9
_MOST_FEATURES = MOST_BYTES // 8  # a w of them fits into one message
_MOST_TEXT = 1000  # characters of a reason
_KEY, _SIGNATURE = re.compile(r"[0-9a-f]{64}\Z"), re.compile(r"[0-9a-f]{128}\Z")
Check = Callable[[Any], bool]


def answer_of(method: str, arguments: tuple[Any, ...], message: Message, name: str) -> Answer:
    """Return an owner's answer to a request, with every part of it checked.

    Parameters
    ----------
    method : str
    arguments : tuple
        Of the request.
    message : Message
        What came.
    name : str
        The owner's.

    Examples
    --------
    >>> from bmrm.owners.answers import answer_of
    >>> from bmrm.owners.wire import MOST_BYTES, Message
    >>> answer_of("hello", (), Message({"version": 7}), "north")
    Traceback (most recent call last):
    bmrm.owners.guard.OwnerError: north: answers 'hello' with version 7; expected text
    """
    header = message.header
    seconds = header.get("seconds", 0.0)
    if not _is_number(seconds) or not 0.0 <= seconds < _MOST_SECONDS:
        raise OwnerError(f"{name}: answers '{method}' with seconds {_shown(seconds)}; expected a number, at least 0")
    if "refused" in header:
        raise Refused(f"{name} refused: {_plain(header['refused'], method, name)}")
    if method in ("ask", "slide"):
        if "missing" in header:
            return Answer(Missing(_plain(header["missing"], method, name)), float(seconds))
        return Answer(_numbers(method, arguments, message, name), float(seconds))
    if method in SCORE_METHODS:
        return Answer(score_answer(method, message, name), float(seconds))
    needed: tuple[str, ...] = ()
    if method == "begin":
        needed = ("key", "size") if arguments[1].masked else ("grid",)
    return Answer(_entries(method, header, name, needed), float(seconds))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= 1e300


def _is_text(value: Any) -> bool:
    if type(value) is not str or len(value) > _MOST_TEXT:
        return False
    return value.isprintable()  # control characters are obeyed by terminals, lone surrogates cannot be saved


def _is_label(value: Any) -> bool:
    if type(value) is str:
        return _is_text(value)
    return type(value) in (int, float) and abs(value) <= _MOST_WHOLE


def _are_labels(value: Any) -> bool:
    if not isinstance(value, list) or not 0 < len(value) <= MOST_SCORES or not all(map(_is_label, value)):
        return False
    return len({type(label) is str for label in value}) == 1


def _is_power(value: float) -> bool:
    return 1.0 / _MOST_MASS < value < _MOST_MASS and math.frexp(value)[0] == 0.5


def _matches(pattern: re.Pattern[str]) -> Check:
    return lambda value: type(value) is str and bool(pattern.match(value))


# Of each answer that is no row of numbers: its entries, what each is, how to tell, and whether it may be missing.
_SCHEMA: dict[str, dict[str, tuple[str, Check, bool]]] = {
    "hello": {
        "version": ("text", _is_text, False),
        "rows": ("a whole number", lambda value: type(value) is int and 0 <= value <= _MOST_WHOLE, False),
        "features": (f"a whole number, at most {_MOST_FEATURES}",
                     lambda value: type(value) is int and 0 <= value <= _MOST_FEATURES, False),
        "targets": ("a whole number", lambda value: type(value) is int and 0 <= value <= _MOST_WHOLE, False),
        "scores": ("true or false", lambda value: type(value) is bool, False),
        "columns": ("a SHA-256", _matches(_KEY), True),
        "names": ("a list of names", lambda value: isinstance(value, list) and all(map(_is_text, value)), True),
    },
    "classes": {"labels": (f"a list of at most {MOST_SCORES} numbers or texts", _are_labels, False)},
    "begin": {
        "mass": ("a number above 0", lambda value: _is_number(value) and 0.0 < value <= _MOST_MASS, False),
        "grid": ("a number, at least 0", lambda value: _is_number(value) and 0.0 <= value <= _MOST_MASS, True),
        "size": ("a power of two", lambda value: _is_number(value) and _is_power(value), True),
        "noise": ("numbers by name", lambda value: isinstance(value, dict), True),
        "key": ("a public key", _matches(_KEY), True),
        "identity": ("a fingerprint", _matches(_KEY), True),
        "signature": ("a signature", _matches(_SIGNATURE), True),
    },
}  # fmt: skip


def _entries(method: str, header: dict[str, Any], name: str, needed: Sequence[str]) -> dict[str, Any]:
    """Return the entries of an answer that belong to it; others are left out."""
    found = {}
    for entry, (expected, is_one, optional) in _SCHEMA.get(method, {}).items():
        if entry not in header:
            if optional and entry not in needed:
                continue
            raise OwnerError(f"{name}: answers '{method}' without {entry}; expected {expected}")
        if not is_one(header[entry]):
            raise OwnerError(f"{name}: answers '{method}' with {entry} {_shown(header[entry])}; expected {expected}")
        found[entry] = header[entry]
    if "names" in found and told(found["names"])["columns"] != found.get("columns"):
        raise OwnerError(f"{name}: answers '{method}' with names of columns that are not those of their SHA-256")
    return found


def _shown(value: Any) -> str:
    text = ascii(value) if not isinstance(value, int) or abs(value) < 1 << 64 else "a number of many digits"
    return text if len(text) <= 60 else f"{text[:60]}..."


def _plain(value: Any, method: str, name: str) -> str:
    """Return a text to be printed: no control characters, which terminals would obey, and no end of it."""
    if type(value) is not str:
        raise OwnerError(f"{name}: answers '{method}' with a reason that is no text, {_shown(value)}")
    return "".join(letter if letter.isprintable() else " " for letter in value[:_MOST_TEXT])


def _numbers(method: str, arguments: tuple[Any, ...], message: Message, name: str) -> Any:
    """Return masked words as they are, and numbers in the clear as the parts that were asked for."""
    if len(message.arrays) != 1:
        raise OwnerError(f"{name}: an answer with {len(message.arrays)} arrays; expected 1")
    numbers, what = message.arrays[0], arguments[2]
    if numbers.dtype == np.uint64:
        return numbers
    if numbers.dtype != np.float64:
        raise OwnerError(f"{name}: an answer of numbers of type {numbers.dtype}; expected float64 or masked uint64")
    parts = split_numbers(method, what, numbers, name)
    for values in parts if method == "slide" else [_value_first(what, parts)]:
        _check_finite(values, name)
    return parts


def _value_first(what: Sequence[str], parts: list[Any]) -> list[Any]:
    order = sorted(range(len(what)), key=lambda place: what[place] != "value")
    return [parts[place] for place in order] if "value" in what else [0.0, *parts]


def _check_finite(values: Sequence[Any], name: str) -> None:
    """Raise OwnerError for numbers that are not finite, unless the value, the first, is too large for floats."""
    value, *others = values
    if value == math.inf:
        return
    if not all(bool(np.isfinite(part).all()) for part in (value, *others)):
        raise OwnerError(f"{name}: its answer has numbers that are not finite")
    if not all(bool((np.abs(part) <= _MOST_MASS).all()) for part in others):
        raise OwnerError(f"{name}: its answer has numbers above {_MOST_MASS:g}, whose squares overflow")


def split_numbers(method: str, what: Sequence[Any], numbers: npt.NDArray[np.float64], name: str) -> list[Any]:
    """Return the parts of an answer: what a point was asked for, or three numbers for each trial on a line."""
    if method == "slide":
        if numbers.size != 3 * len(what):
            raise OwnerError(f"{name}: {numbers.size} numbers for {len(what)} trials; expected three each")
        return [tuple(row) for row in numbers.reshape(-1, 3).tolist()]
    singles = sum(want != "subgradient" for want in what)
    dim = numbers.size - singles
    if dim < 0 or ("subgradient" not in what and dim):
        raise OwnerError(f"{name}: {numbers.size} numbers, expected {singles}")
    parts, at = [], 0
    for want in what:
        n = dim if want == "subgradient" else 1
        parts.append(numbers[at : at + n] if want == "subgradient" else float(numbers[at]))
        at += n
    return parts
