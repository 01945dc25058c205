"""The coordinator's messages for labels, scores and checksums, and what is checked of the answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm.owners.guard import OwnerError
from bmrm.owners.wire import Message

# What is asked for, and the kinds of arrays that come; None where that depends on the owner's data.
_KINDS: dict[str, tuple[str, ...] | None] = {
    "gather": None, "scores": ("<f8",), "pull": ("<f8",), "sizes": ("<f8", "<i8", "<f8"), "checksum": (),
}  # fmt: skip
_ENTRIES: dict[str, dict[str, tuple[type, ...]]] = {
    "gather": {"labels": (bool,), "weighted": (bool,), "text": (list, type(None))}, "checksum": {"checksum": (str,)},
}  # fmt: skip
_MOST_TEXT = 1000  # characters of a label
METHODS = frozenset(_KINDS)


def score_request(method: str, arguments: tuple[Any, ...]) -> Message:
    """Return a request: numbers of columns go into the header, vectors beside it."""
    columns = [argument for argument in arguments if isinstance(argument, int)]
    vectors = tuple(np.asarray(argument) for argument in arguments if not isinstance(argument, int))
    return Message({"method": method, "columns": columns[0] if columns else 0}, vectors)


def score_answer(method: str, message: Message, name: str) -> tuple[dict[str, Any], tuple[npt.NDArray[Any], ...]]:
    """Return the header and the arrays of an answer."""
    kinds, entries = _KINDS[method], _ENTRIES.get(method, {})
    header: dict[str, Any] = {entry: message.header.get(entry) for entry in entries}
    if not all(type(header[entry]) in types for entry, types in entries.items()) or not _are_texts(header):
        raise OwnerError(f"{name}: an answer to '{method}' without {', '.join(entries)} of the right types")
    came = tuple(array.dtype.newbyteorder("<").str for array in message.arrays)
    if kinds is None:
        kinds = ("<f8",) * (header["labels"] + header["weighted"])
    if came != kinds:
        raise OwnerError(f"{name}: an answer to '{method}' with arrays {list(came)}; expected {list(kinds)}")
    if not all(bool(np.isfinite(array).all()) for array in message.arrays):
        raise OwnerError(f"{name}: its answer to '{method}' has numbers that are not finite")
    return header, message.arrays


def _are_texts(header: dict[str, Any]) -> bool:
    """Whether labels and checksums can be printed and saved: no control characters, no text without an end."""
    texts = [*(header.get("text") or ()), header.get("checksum", "")]
    return all(type(text) is str and len(text) <= _MOST_TEXT and text.isprintable() for text in texts)


def sized(name: str, what: str, array: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """Return an array of an answer, checked to have n numbers."""
    if array.size != n:
        raise OwnerError(f"{name}: {array.size} {what}; expected {n}")
    return array
