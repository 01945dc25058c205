"""Messages between a coordinator and an owner: a JSON header and plain numbers, never objects.

A message is 16 bytes (b"bmr1", the length of the header as uint32, that of the numbers as uint64, both little-endian),
the header, a JSON object whose "arrays" say of what kind and how long each array is, and then these arrays.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm.owners.limits import Deadline
from bmrm.parallel.base import EngineError

_HEAD = struct.Struct("<4sIQ")
_MAGIC = b"bmr1"
_KINDS = {"<f8": np.dtype("<f8"), "<i8": np.dtype("<i8"), "<u8": np.dtype("<u8")}
_MOST_HEADER = 1 << 20
_PIECE = 1 << 20
MOST_BYTES = 1 << 28  # of numbers in one message, unless told otherwise


class WireError(EngineError):
    """What has come over the wire is no message, or the connection has ended."""


class Closed(WireError):
    """The other side has closed the connection between two messages."""


@dataclass(frozen=True)
class Message:
    """A header of plain values and arrays of float64, int64 or uint64.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.owners.wire import Message, packed, unpacked
    >>> unpacked(packed(Message({"method": "hello"}, (np.ones(2),)))).arrays
    (array([1., 1.]),)
    """

    header: dict[str, Any]
    arrays: tuple[npt.NDArray[Any], ...] = ()


def packed(message: Message) -> bytes:
    """Return a message as bytes."""
    arrays = [_plain(array) for array in message.arrays]
    header = message.header | {"arrays": [[array.dtype.str, int(array.size)] for array in arrays]}
    text = json.dumps(header, allow_nan=False).encode()
    body = b"".join(array.tobytes() for array in arrays)
    return _HEAD.pack(_MAGIC, len(text), len(body)) + text + body


def _plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array little-endian."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def unpacked(data: bytes, most: int = MOST_BYTES) -> Message:
    """Return the message that bytes hold."""
    if len(data) < _HEAD.size:
        raise WireError(f"a message of {len(data)} bytes; expected at least {_HEAD.size}")
    header, body = _lengths(data[: _HEAD.size], most)
    if len(data) != _HEAD.size + header + body:
        raise WireError(f"a message of {len(data)} bytes; expected {_HEAD.size + header + body}")
    return _message(data[_HEAD.size : _HEAD.size + header], data[_HEAD.size + header :])


def receive(
    connection: socket.socket,
    most: int = MOST_BYTES,
    wait: float | None = None,
    whole: float | None = None,
    admit: Callable[[int, int], None] | None = None,
) -> Message:
    """Read one message from a connection; what is announced is not given room before it comes.

    Parameters
    ----------
    connection : socket
    most : int
        The largest number of bytes of numbers.
    wait : float, optional
        Seconds until the first byte; for ever by default.
    whole : float, optional
        Seconds from then on for the message as a whole, however many pieces it comes in.
    admit : callable, optional
        Called with the announced lengths of header and numbers before these are read; it may raise.
    """
    connection.settimeout(wait)
    first = connection.recv(1)
    if not first:
        raise Closed("the connection was closed")
    deadline = None if whole is None else Deadline(whole)
    header, body = _lengths(first + _exactly(connection, _HEAD.size - 1, deadline), most)
    if admit is not None:
        admit(header, body)
    return _message(_exactly(connection, header, deadline), _exactly(connection, body, deadline))


def _exactly(connection: socket.socket, n: int, deadline: Deadline | None) -> bytes:
    parts, left = [], n
    while left:
        connection.settimeout(None if deadline is None else deadline.left)
        part = connection.recv(min(left, _PIECE))
        if not part:
            raise WireError(f"the connection ended within a message ({n - left} of {n} bytes)")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _lengths(head: bytes, most: int) -> tuple[int, int]:
    magic, header, body = _HEAD.unpack(head)
    if magic != _MAGIC:
        raise WireError(f"not a message of bmrm: it begins with {magic!r}, expected {_MAGIC!r}")
    if header > _MOST_HEADER or body > most:
        raise WireError(f"a message of {header} + {body} bytes; at most {_MOST_HEADER} + {most} are accepted")
    return header, body


def _message(text: bytes, body: bytes) -> Message:
    try:
        header = json.loads(text, parse_constant=_refuse_constant)
        kinds = header.pop("arrays")
        sizes = [(_KINDS[kind], _count(n)) for kind, n in kinds]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise WireError(f"a message with a wrong header ({type(error).__name__}: {error})") from None
    if sum(8 * n for _, n in sizes) != len(body):
        raise WireError(f"a message with {len(body)} bytes of numbers; its header says {sum(8 * n for _, n in sizes)}")
    arrays, at = [], 0
    for kind, n in sizes:
        arrays.append(np.frombuffer(body, kind, n, at).astype(kind.newbyteorder("=")))
        at += 8 * n
    return Message(header, tuple(arrays))


def _count(n: Any) -> int:
    if type(n) is not int or n < 0:
        raise ValueError(f"an array of length {n!r}")
    return n


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} in a header")
