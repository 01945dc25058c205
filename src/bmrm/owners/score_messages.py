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
METHODS = frozenset(_KINDS)


def score_request(method: str, arguments: tuple[Any, ...]) -> Message:
    """Return a request: numbers of columns go into the header, vectors beside it."""
    columns = [argument for argument in arguments if isinstance(argument, int)]
    vectors = tuple(np.asarray(argument) for argument in arguments if not isinstance(argument, int))
    return Message({"method": method, "columns": columns[0] if columns else 0}, vectors)


def score_answer(method: str, message: Message, name: str) -> tuple[dict[str, Any], tuple[npt.NDArray[Any], ...]]:
    """Return the header and the arrays of an answer."""
    header, kinds = message.header, _KINDS[method]
    if not all(type(header.get(entry)) in types for entry, types in _ENTRIES.get(method, {}).items()):
        raise OwnerError(f"{name}: an answer to '{method}' without {', '.join(_ENTRIES[method])} of the right types")
    came = tuple(array.dtype.newbyteorder("<").str for array in message.arrays)
    if kinds is None:
        kinds = ("<f8",) * (header["labels"] + header["weighted"])
    if came != kinds:
        raise OwnerError(f"{name}: an answer to '{method}' with arrays {list(came)}; expected {list(kinds)}")
    return header, message.arrays


def sized(name: str, what: str, array: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """Return an array of an answer, checked to have n numbers."""
    if array.size != n:
        raise OwnerError(f"{name}: {array.size} {what}; expected {n}")
    return array
