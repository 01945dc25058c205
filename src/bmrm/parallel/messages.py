"""Values as bytes: pickled, with large arrays laid beside the pickle, so that the receiver need not copy them."""

from __future__ import annotations

import pickle
import struct
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm.parallel.base import EngineError

Bytes: TypeAlias = npt.NDArray[np.uint8]

_ALIGNED = 64  # bytes: where arrays begin in a message
_SMALL = 1024  # bytes: arrays that stay within the pickle
_HEAD = struct.Struct("<qqq")  # a number of the sender's, the length of the pickle, how many arrays follow it
_SIZE = struct.Struct("<q")


def packed(number: int, value: Any) -> Bytes:
    """Return a message of a number and a value.

    The arrays of the value are copied once, into the message; `unpacked` makes arrays that lie within it.

    Parameters
    ----------
    number : int
        Can be read even where the value cannot.
    value : object
        Whatever pickle takes.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.parallel.messages import number_of, packed, unpacked
    >>> message = packed(7, ("sum", np.arange(3.0)))
    >>> number_of(message), unpacked(message)
    (7, ('sum', array([0., 1., 2.])))
    """
    arrays: list[memoryview] = []

    def beside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _SMALL:
            arrays.append(raw)
        return raw.nbytes < _SMALL

    text = pickle.dumps(value, protocol=5, buffer_callback=beside)
    head = _HEAD.pack(number, len(text), len(arrays)) + b"".join(_SIZE.pack(raw.nbytes) for raw in arrays) + text
    ends = [len(head)]
    for raw in arrays:
        ends.append(_aligned(ends[-1]) + raw.nbytes)
    message = np.empty(ends[-1], np.uint8)
    message[: len(head)] = np.frombuffer(head, np.uint8)
    for end, raw in zip(ends[1:], arrays):
        message[end - raw.nbytes : end] = np.frombuffer(raw, np.uint8)
    return message


def number_of(message: Bytes) -> int:
    """Return the number of a message."""
    return _head(message)[0]


def unpacked(message: Bytes) -> Any:
    """Return the value of a message; EngineError if its parts do not fit it."""
    view = message.data
    _, length, n_arrays = _head(message)
    start = _HEAD.size + n_arrays * _SIZE.size
    sizes = [_SIZE.unpack_from(view, place)[0] for place in range(_HEAD.size, start, _SIZE.size)]
    arrays, end = [], start + length
    for size in sizes:
        begin = _aligned(end)
        end = begin + size
        arrays.append(view[begin:end])
    if min(sizes, default=0) < 0 or end != len(view):
        raise EngineError(f"a message of {len(view)} bytes; its parts should end at {end}")
    try:
        return pickle.loads(view[start : start + length], buffers=arrays)
    except (pickle.UnpicklingError, EOFError, ValueError) as error:  # where a part ends too early for another
        raise EngineError(f"a message whose parts do not fit each other ({error})") from error


def _head(message: Bytes) -> tuple[int, int, int]:
    """Return the number, the length of the pickle and the number of arrays, which have room in the message."""
    room = message.size - _HEAD.size
    number, length, n_arrays = _HEAD.unpack_from(message.data) if room >= 0 else (0, -1, 0)
    if length < 0 or not 0 <= n_arrays <= room // _SIZE.size or length > room:
        raise EngineError(f"a message of {message.size} bytes that says it has {length} and {n_arrays} arrays")
    return number, length, n_arrays


def _aligned(place: int) -> int:
    return -(-place // _ALIGNED) * _ALIGNED
