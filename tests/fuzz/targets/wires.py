"""Messages: those of owners, whoever sends them, and those between ranks."""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.owners import wire
from bmrm.owners.session import Session
from bmrm.parallel import messages
from bmrm.parallel.base import EngineError
from fuzz.mutate import havoc, havoc_json
from fuzz.target import Target
from fuzz.targets.files import X, Y

_HEAD = struct.Struct("<4sIQ")


class Owners(Target):
    """A conversation of one coordinator with an owner: messages one after the other."""

    name = "owners"
    allowed = (EngineError, ValueError)

    def seeds(self) -> list[bytes]:
        """Return conversations that have happened, in the clear and under masks."""
        return [_conversation(masked) for masked in (False, True)]

    def mutate(self, rng: random.Random, data: bytes, other: bytes) -> bytes:
        """Change bytes of one message, or its header with the lengths made right; drop, double or reorder messages."""
        parts = frames(data)
        if len(parts) < 2 or rng.random() < 0.1:
            return havoc(rng, data, other)
        at = rng.randrange(len(parts))
        how = rng.randrange(8)
        if how == 0:
            del parts[at]
        elif how == 1:
            parts.insert(rng.randrange(len(parts)), parts[at])
        elif how == 2:
            parts[at] = havoc(rng, parts[at], other)
        else:
            parts[at] = _other_header(rng, parts[at])
        return b"".join(parts)

    def run(self, data: bytes) -> None:
        """Let an owner answer; what fails must not be for want of memory, nor within the interpreter."""
        session = Session(_owner(), "peer")
        session.owner.log.noted = _noted  # type: ignore[method-assign]
        for part in frames(data):
            session.reply(wire.unpacked(part))


def _noted(peer: str, kind: str, text: str) -> None:
    for name in ("MemoryError", "SystemError", "RecursionError"):
        if text.startswith(name):
            raise MemoryError(text)


def _owner() -> bmrm.Owner:
    return bmrm.Owner(Dataset(X=X, y=Y), "one", min_rows=1)


def _conversation(masked: bool) -> bytes:
    """Return what a coordinator says to one of two owners in a training."""
    heard: dict[int, list[bytes]] = {}
    reply = Session.reply

    def listening(self: Session, message: wire.Message) -> bytes:
        heard.setdefault(id(self), []).append(wire.packed(message))
        return reply(self, message)

    Session.reply = listening  # type: ignore[method-assign]
    try:
        with bmrm.OwnersRisk([_owner(), _owner()], "absolute_error", lam=0.1, masked=masked) as risk:
            bmrm.solve(risk.problem, "ls_bmrm", max_iter=3)
    finally:
        Session.reply = reply  # type: ignore[method-assign]
    return b"".join(next(iter(heard.values())))


def frames(data: bytes) -> list[bytes]:
    """Cut the data where messages end, by what their heads say; the rest is one more."""
    parts, at = [], 0
    while at + _HEAD.size <= len(data):
        _, header, body = _HEAD.unpack_from(data, at)
        size = min(_HEAD.size + header + body, len(data) - at)
        parts.append(data[at : at + size])
        at += size
    return [*parts, data[at:]] if at < len(data) else parts


def _other_header(rng: random.Random, part: bytes) -> bytes:
    if len(part) < _HEAD.size:
        return part
    magic, length, _ = _HEAD.unpack_from(part)
    text, body = part[_HEAD.size : _HEAD.size + length], bytearray(part[_HEAD.size + length :])
    if rng.random() < 0.2 and body:
        at = rng.randrange(len(body) // 8 or 1) * 8
        body[at : at + 8] = struct.pack("<d", rng.choice((np.nan, np.inf, 1e308, -1e308, 0.0, 1e-320)))
    text = havoc_json(rng, text)
    return _HEAD.pack(magic, len(text), len(body)) + text + bytes(body)


class Messages(Target):
    """Messages between ranks. Their pickles are left alone: peers are trusted, the frames around them are not."""

    name = "ranks"
    allowed = (EngineError,)
    _numbers = struct.Struct("<q")

    def seeds(self) -> list[bytes]:
        """Return a message with arrays beside the pickle, and one without."""
        values: tuple[Any, ...] = (("sum", np.arange(300.0), np.ones((20, 20))), ("end", 1))
        return [messages.packed(7, value).tobytes() for value in values]

    def mutate(self, rng: random.Random, data: bytes, other: bytes) -> bytes:
        """Change one of the numbers in front, or cut the message."""
        changed = bytearray(data)
        if rng.random() < 0.3:
            del changed[rng.randrange(len(changed)) :]
        count = self._numbers.unpack_from(data, 16)[0] if len(data) >= 24 else 0
        at = 8 * rng.randrange(3 + min(max(count, 0), 4))
        if len(changed) >= at + 8:
            near = self._numbers.unpack_from(changed, at)[0] + rng.choice((-1, 1, 8, -8, 64))
            number = rng.choice((near, 0, -1, 1, 2**31, 2**62, 2**63 - 1, -(2**63)))
            self._numbers.pack_into(changed, at, max(-(2**63), min(number, 2**63 - 1)))
        return bytes(changed)

    def run(self, data: bytes) -> None:
        """Take the message apart."""
        message = np.frombuffer(data, np.uint8)
        messages.number_of(message)
        messages.unpacked(message)
