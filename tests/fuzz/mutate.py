"""Mutations of bytes and of JSON."""

from __future__ import annotations

import json
import random
import re
from typing import Any

LONGEST = 1 << 16  # bytes of an input; what is larger cannot be justified by "the file is large"
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
NUMBERS = (
    *(b"0", b"1", b"-1", b"2", b"3", b"127", b"255", b"256", b"65535", b"2147483647", b"2147483648", b"-2147483649"),
    *(b"4294967296", b"1099511627776", b"9223372036854775806", b"9223372036854775807", b"-9223372036854775808"),
    *(b"9223372036854775808", b"18446744073709551615", b"99999999999999999999999", b"1e308", b"1e309", b"-1e309"),
    *(b"5e-324", b"nan", b"inf", b"-0", b"1.5", b"1e-400", b"0x10", b"1_0"),
)
_BYTES = (0, 1, 9, 10, 13, 32, 35, 44, 45, 48, 57, 58, 92, 127, 128, 192, 237, 254, 255)
HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30),
    *(0.5, 1e308, -1e308, 1e-320, "", "x", "\x00", "ä" * 50, "nan", [], {}, [[]], [0], {"": 0}, [1, 2, 3], "0" * 5000),
)


def havoc(rng: random.Random, data: bytes, other: bytes, words: tuple[bytes, ...] = ()) -> bytes:
    """Return the data after one to eight changes."""
    changed = bytearray(data)
    for _ in range(1 << rng.randrange(4)):
        rng.choice(_CHANGES)(rng, changed, other, words)
    return bytes(changed[:LONGEST])


def _flip(rng: random.Random, data: bytearray, other: bytes, words: tuple[bytes, ...]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(rng: random.Random, data: bytearray, other: bytes, words: tuple[bytes, ...]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice(_BYTES)


def _insert(rng: random.Random, data: bytearray, other: bytes, words: tuple[bytes, ...]) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = bytes([rng.choice(_BYTES)]) * rng.choice((1, 1, 2, 5, 50))


def _word(rng: random.Random, data: bytearray, other: bytes, words: tuple[bytes, ...]) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice(words or NUMBERS)


def _number(rng: random.Random, data: bytearray, other: bytes, words: tuple[bytes, ...]) -> None:
    places = list(_NUMBER.finditer(data))
    if places:
        found = rng.choice(places)
        data[found.start() : found.end()] = rng.choice(NUMBERS)


def _span(rng: random.Random, data: bytes | bytearray) -> slice:
    start = rng.randrange(len(data) + 1)
    return slice(start, min(len(data), start + rng.choice((1, 2, 4, 8, 16, 64, 512))))


def _delete(rng: random.Random, data: bytearray, other: bytes, words: tuple[bytes, ...]) -> None:
    del data[_span(rng, data)]


def _repeat(rng: random.Random, data: bytearray, other: bytes, words: tuple[bytes, ...]) -> None:
    part = data[_span(rng, data)]
    at = rng.randrange(len(data) + 1)
    data[at:at] = part * rng.choice((1, 2, 30))


def _splice(rng: random.Random, data: bytearray, other: bytes, words: tuple[bytes, ...]) -> None:
    data[_span(rng, data)] = other[_span(rng, other)]


def _lines(rng: random.Random, data: bytearray, other: bytes, words: tuple[bytes, ...]) -> None:
    lines = bytes(data).split(b"\n")
    rng.shuffle(lines)
    data[:] = b"\n".join(lines[: rng.randrange(1, len(lines) + 1)])


def _cut(rng: random.Random, data: bytearray, other: bytes, words: tuple[bytes, ...]) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _integer(rng: random.Random, data: bytearray, other: bytes, words: tuple[bytes, ...]) -> None:
    """Put a number where a binary format may have one."""
    size = rng.choice((2, 4, 8))
    if len(data) >= size:
        at = rng.randrange(len(data) - size + 1)
        number = rng.choice((0, 1, -1, 2**15, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, len(data), len(data) + 1))
        data[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")


_CHANGES = (_flip, _set, _insert, _word, _number, _delete, _repeat, _splice, _lines, _cut, _integer)


def havoc_json(rng: random.Random, text: bytes) -> bytes:
    """Return JSON with one to four values replaced, removed or doubled; at times text that is no JSON."""
    if rng.random() < 0.1:
        return havoc(rng, text, text)
    try:
        root = [json.loads(text)]
    except ValueError:
        return havoc(rng, text, text)
    for _ in range(1 << rng.randrange(3)):
        _change_json(rng, root)
    return json.dumps(root[0] if root else None).encode()


def _change_json(rng: random.Random, root: list[Any]) -> None:
    places = _places(root)
    if not places:
        return
    inside, key = rng.choice(places)
    how = rng.randrange(10)
    if how < 5:
        inside[key] = _copy(rng.choice(HOSTILE))
    elif how < 7:
        container, other = rng.choice(places)
        inside[key] = _copy(container[other])
    elif how == 7 and isinstance(inside, list) and inside is not root:
        inside.insert(key, _copy(inside[key]))
    elif how == 8 and inside is not root:
        del inside[key]
    elif type(inside[key]) in (int, float):
        inside[key] += rng.choice((-1, 1, 2**31, 1 << 60))


def _copy(value: Any) -> Any:
    """Return a value of its own: none may hold itself, and the constants stay what they are."""
    return json.loads(json.dumps(value))


def _places(root: list[Any]) -> list[tuple[Any, Any]]:
    found, waiting = [], [root]
    while waiting:
        inside = waiting.pop()
        for key in list(inside) if isinstance(inside, dict) else range(len(inside)):
            found.append((inside, key))
            if isinstance(inside[key], dict | list):
                waiting.append(inside[key])
    return found
