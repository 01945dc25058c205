"""Whatever a coordinator sends, an owner answers with a refusal or ends the connection, and gives its memory back."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from parties import channel, given_back, parties, rows

from bmrm import OwnersRisk
from bmrm.owners import client
from bmrm.owners.wire import Message, WireError, packed, unpacked

VALUES = (
    None, True, -1, 0, 1, 7, 2**40, 10**40, 0.5, 1e308, -1e308, "", "x", "ab" * 32, [], [[]], [None], [1, "a"], {},
    {"a": 1},
)  # fmt: skip


def honest(owners, masked, monkeypatch):
    """Return the requests of a short run to the first of the owners, as a coordinator sends them."""
    seen = []
    send = client.DirectChannel.send

    def noted(self, payload):
        if self.name == owners[0].name:
            seen.append(unpacked(payload))
        send(self, payload)

    with monkeypatch.context() as patch:
        patch.setattr(client.DirectChannel, "send", noted)
        with OwnersRisk(owners, "hinge", lam=0.1, masked=masked) as risk:
            line = risk.touch(np.full(5, 0.1)).toward(np.full(5, 0.2))
            line.evaluate_all([0.5, 1.5])
            line.at(0.5).find("subgradient")
    return seen


def leaves(value, path=()):
    """Return the way to each entry of a header, found and not listed."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        found += leaves(inner, (*path, name))
    return found


def changed(header, path, value):
    """Return the header with one entry changed, or taken away."""
    header = copy.deepcopy(header)
    inner = header
    for name in path[:-1]:
        inner = inner[name]
    if value is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return header


def replies(session, message):
    """Let a session answer; say whether the connection goes on."""
    try:
        answer = unpacked(session.reply(unpacked(packed(message))))
    except WireError:
        return False
    return bool(answer.header)


@pytest.mark.parametrize("masked", [False, True])
def test_every_entry_of_every_request(masked, rng, monkeypatch):
    if masked:
        pytest.importorskip("cryptography", reason="masks need cryptography")
    data = rows(rng, 150)
    requests = honest(parties(*data), masked, monkeypatch)
    assert {"hello", "begin", "join", "ask", "slide"} <= {request.header["method"] for request in requests}
    tried = 0
    for place, request in enumerate(requests):
        for path in leaves(request.header):
            owner = parties(*data)[0]
            for value in (*VALUES, KeyError):
                way = channel(owner)
                go_on = all(replies(way._session, earlier) for earlier in requests[:place])
                go_on = go_on and replies(way._session, Message(changed(request.header, path, value), request.arrays))
                if go_on:
                    replies(way._session, request)
                assert owner.room.left >= 0
                way.close()
                assert given_back(owner)
                owner.resume()
                tried += 1
    assert tried > 500


@pytest.mark.parametrize("arrays", [
    (), (np.ones(5),) * 3, (np.ones(4),), (np.full(5, np.nan),), (np.ones(5, dtype=np.int64),), (np.zeros(0),),
])  # fmt: skip
def test_all_kinds_of_vectors(arrays, rng, monkeypatch):
    data = rows(rng, 150)
    requests = honest(parties(*data), False, monkeypatch)
    for place, request in enumerate(requests):
        owner = parties(*data)[0]
        way = channel(owner)
        assert all(replies(way._session, earlier) for earlier in requests[:place])
        replies(way._session, Message(request.header, arrays))
        way.close()
        assert given_back(owner)
