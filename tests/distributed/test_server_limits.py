"""Denial of service: what coordinators may take of an owner's time and memory. All on 127.0.0.1, a few connections."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
import tracemalloc

import numpy as np
import pytest
from commands import bad
from coordinators import TERMS, ask
from parties import OPEN, certificates, channel, given_back, parties, rows, served
from scipy import sparse

import bmrm
from bmrm import OwnersRisk
from bmrm.owners import TLS, Limits, OwnerError, Owners, Refused
from bmrm.owners.wire import Message, packed, receive

BRIEF = Limits(handshake=1.0, message=1.0, idle=1.0)
CLEAR = TERMS | {"masked": False}
HELLO = packed(Message({"method": "hello"}))
SECONDS = 20.0  # for what takes a second, on a machine that has much else to do


@pytest.fixture
def data(rng):
    return rows(rng)


def connect(address):
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=SECONDS)


def until(condition):
    """Wait for something that another thread does soon."""
    ends = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


def trains(address):
    with OwnersRisk([address], "hinge", lam=0.1) as risk:
        return risk.evaluate(np.zeros(5))[0] == pytest.approx(1.0)


@pytest.mark.parametrize("says_hello", [False, True])
def test_silent_connections_lock_nobody_out(says_hello, data):
    """One of them locked everybody out for an hour, and eight closed the port."""
    with served(parties(*data)[:1], limits=Limits(connections=4)) as (address,), contextlib.ExitStack() as stack:
        for _ in range(12):
            silent = stack.enter_context(connect(address))
            if says_hello:
                silent.sendall(HELLO)
                assert "version" in receive(silent, 0, SECONDS, SECONDS).header
        assert trains(address)


def test_a_coordinator_at_work_is_never_displaced(data):
    with (
        served(parties(*data)[:1], limits=Limits(connections=2)) as (address,),
        OwnersRisk([address], "hinge", lam=0.1) as risk,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(6):
            stack.enter_context(connect(address))
        assert risk.evaluate(np.full(5, 0.1))[0] > 0.0


def test_silent_connections_end(data):
    with served(parties(*data)[:1], limits=BRIEF) as (address,):
        with connect(address) as silent:
            assert silent.recv(1) == b""
        with connect(address) as polite:
            polite.sendall(HELLO)
            assert "version" in receive(polite, 0, SECONDS, SECONDS).header
            assert polite.recv(1) == b""  # idle
        with OwnersRisk([address], "hinge", lam=0.1) as risk:
            until(lambda: trains_elsewhere(address))
            with pytest.raises(OwnerError, match="the connection is lost"):
                risk.evaluate(np.ones(5))


def trains_elsewhere(address):
    try:
        return trains(address)
    except OwnerError:
        return False  # the idle one is still at work


def drip(connection, data):
    """Send a byte every tenth of a second; return how many were sent before the other side had enough."""
    sent = 0
    with contextlib.suppress(OSError):
        connection.settimeout(0.1)
        for byte in data:
            connection.sendall(bytes([byte]))
            sent += 1
            try:
                if connection.recv(100) == b"":
                    break
            except TimeoutError:
                pass
    return sent


def test_a_byte_now_and_then(data):
    """Each of them started the timeout anew: 2 s were held for 25 s."""
    with served(parties(*data)[:1], limits=BRIEF) as (address,):
        with connect(address) as slow:
            assert drip(slow, HELLO) < len(HELLO) - 10
        with connect(address) as slow:
            slow.sendall(HELLO)
            receive(slow, 0, SECONDS, SECONDS)
            assert drip(slow, HELLO) < len(HELLO) - 10


def test_a_byte_of_a_handshake_now_and_then(data, tmp_path):
    pytest.importorskip("cryptography", reason="needs cryptography to make certificates")
    certificates(tmp_path, "owner")
    tls = TLS(tmp_path / "owner.pem", tmp_path / "owner.key")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = TLS(ca=tmp_path / "ca.pem").of_coordinator().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    hello = outgoing.read()
    assert len(hello) > 100
    with served(parties(*data)[:1], limits=BRIEF, tls=tls) as (address,), connect(address) as slow:
        assert drip(slow, hello) < 50


def test_a_peer_that_does_not_read(rng):
    """An answer of 16 MB does not fit into the buffers of a connection."""
    X = sparse.csr_array(rows(rng)[0])
    owner = bmrm.Owner((X, np.sign(rng.normal(size=300))))
    terms = CLEAR | {"n_features": 2_000_000}
    with served([owner], limits=Limits(message=1.0)) as (address,), connect(address) as deaf:

        def answered(header, *arrays):
            deaf.sendall(packed(Message(header, arrays)))
            return receive(deaf, 0, SECONDS, SECONDS).header

        assert "version" in answered({"method": "hello"})
        assert "mass" in answered({"method": "begin", "risk": 1, "terms": terms})
        answered({"method": "join", "risk": 1, "keys": None, "step": None, "place": 0, "total": 300.0})
        request = {"method": "ask", "risk": 1, "gone": [[], []], "best": None, "zero": None, "round": 1}
        request |= {"point": {"number": 1, "w": 0, "line": None, "t": 0.0}, "wants": ["subgradient"]}
        deaf.sendall(packed(Message(request, (np.zeros(2_000_000),))))
        until(lambda: any(entry["what"] == "disconnected" for entry in owner.log.entries))
        until(lambda: given_back(owner))
    assert trains_here(owner)


def trains_here(owner):
    with OwnersRisk([owner], "hinge", lam=0.1) as risk:
        return risk.evaluate(np.zeros(risk.dim))[0] == pytest.approx(1.0)


def test_small_requests_for_much_memory(rng):
    """41 of them took 6.5 GB, because the coordinator chooses the number of features."""
    X = sparse.csr_array(rows(rng)[0])
    owner = bmrm.Owner((X, np.sign(rng.normal(size=300))), max_memory="64MB")
    way = channel(owner)
    tracemalloc.start()
    try:
        found = [
            ask(way, {"method": "begin", "risk": k, "terms": CLEAR | {"n_features": n}}).header
            for k, n in enumerate([2**20, 2**24] * 20 + [10**40], start=1)
        ]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "mass" not in found[1]
    assert all("--max-memory" in each["refused"] or "another n_features" in each["refused"] for each in found[1:])
    assert peak < 64_000_000
    way.close()
    assert given_back(owner)


def test_dense_rows_are_not_copied_without_end(data):
    owner = bmrm.Owner(data, max_memory="64MB")
    way = channel(owner)
    for n in (10**5, 10**6, 10**7):
        refused = ask(way, {"method": "begin", "risk": 1, "terms": CLEAR | {"n_features": n}}).header["refused"]
        assert "are free of the 64.0 MB that this owner has for coordinators (--max-memory)" in refused
    assert "mass" in ask(way, {"method": "begin", "risk": 1, "terms": CLEAR | {"n_features": 6}}).header
    way.close()


@pytest.mark.parametrize("terms", [
    {"loss": "softmax", "classes": list(range(3000)), "positive": None},
    {"loss": "softmax", "loss_parameters": {"n_classes": 10**9}, "positive": None},
])  # fmt: skip
def test_classes_without_end(terms, data):
    way = channel(bmrm.Owner(data))
    assert "classes; expected" in ask(way, {"method": "begin", "risk": 1, "terms": CLEAR | terms}).header["refused"]
    way.close()


def test_large_bodies_are_refused_by_their_announced_size(data):
    """Eight of 256 MB were read from connections that were refused anyway."""
    owner = parties(*data)[0]
    with served([owner]) as (address,):
        for says_hello in (False, True):
            with connect(address) as large:
                if says_hello:
                    large.sendall(HELLO)
                    receive(large, 0, SECONDS, SECONDS)
                large.sendall(struct.pack("<4sIQ", b"bmr1", 100, 2**28))  # and nothing of what it announces
                reason = receive(large, 0, SECONDS, SECONDS).header["refused"]
                assert reason == "a message with 268435456 bytes of numbers; at most 0 are accepted here"
                assert large.recv(1) == b""
        with connect(address) as large:
            large.sendall(struct.pack("<4sIQ", b"bmr1", 2**20, 0))
            assert "a first message has at most" in receive(large, 0, SECONDS, SECONDS).header["refused"]
        with OwnersRisk([address], "hinge", lam=0.1) as risk:
            channel_of_it = risk.owners.placed.channels[0]
            channel_of_it.send(struct.pack("<4sIQ", b"bmr1", 100, 8 * 5 * 17 + 8))
            with pytest.raises(Refused, match="at most 680 are accepted here"):
                risk.owners.placed.call("hello")
    assert given_back(owner)


def keep(risk, kept):
    """Ask about one w after the other, and let none of them go."""
    for k in range(1100):
        kept.append(risk.touch(np.full(5, 1e-5 * k)))


def test_points_that_are_kept_are_counted(rng):
    X, y = rows(rng, 20_000)
    owner = bmrm.Owner((X, y), "owner", max_memory="17MB")
    kept = []
    with OwnersRisk([owner], "hinge", lam=0.1) as risk:
        with pytest.raises(Refused, match=r"of memory, and .* are free of the 17\.0 MB"):
            keep(risk, kept)
        assert 20 < len(kept) < 100
        assert owner.stopped is None
        kept.clear()
        assert risk.evaluate(np.full(5, 0.1))[0] > 0.0
        assert owner.room.left > 10_000_000
    assert given_back(owner)


def test_trials_on_a_line_are_counted(rng):
    """Smooth losses keep the scores of each trial."""
    X, y = rows(rng, 20_000)
    owner = bmrm.Owner((X, y), "owner", max_memory="17MB", guard=OPEN)
    with OwnersRisk([owner], "logistic", lam=0.1, checked=False) as risk:
        line = risk.touch(np.zeros(5)).toward(np.full(5, 0.1))
        for k in range(100):
            line.evaluate_all([1e-3 * (8 * k + t) for t in range(8)])
        (session,) = [way._session for way in risk.owners.placed.channels]
        (kept,) = session.shard._risks[risk.parts.number].lines.values()
        assert len(kept.known) <= 1 + 4 + 8
        with pytest.raises(Refused, match="--max-memory"):
            line.evaluate_all([1e-4 * (k + 0.5) for k in range(64)])
        assert line.evaluate(0.2)[0] == pytest.approx(bmrm.LinearRisk(X, y, "logistic").at(np.full(5, 0.02)).value)


def test_points_by_the_thousand_are_no_training(data):
    owner = bmrm.Owner(data, "owner")
    with OwnersRisk([owner], "hinge", lam=0.1, checked=False) as risk, pytest.raises(Refused, match="more than 1000"):
        keep(risk, [])
    assert "more than 1000 points" in owner.stopped


def test_an_owner_that_never_ends_its_handshake(data, monkeypatch):
    """Coordinators have deadlines, too."""
    monkeypatch.setattr("bmrm.owners.client._CONNECT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(OwnerError, match=f"{address}: no TLS connection"):
            Owners([address], TLS())
        with pytest.raises(OwnerError, match=f"{address}: has not answered in time"):
            Owners([address], timeout=0.5)


def test_what_coordinators_say_does_not_fill_the_log(data, tmp_path):
    owner = bmrm.Owner(data, log=tmp_path / "log.jsonl")
    way = channel(owner)
    said = len(ask(way, {"method": "x" * 10**6}).header["refused"])
    assert said < 200
    with pytest.raises(bmrm.owners.wire.WireError):
        ask(way, {"method": "begin", "risk": ["x" * 10**6], "terms": CLEAR})
    owner.log.noted("peer", "disconnected", "x" * 10**6)
    assert (tmp_path / "log.jsonl").stat().st_size < 20_000


def test_wrong_limits(data, tmp_path, monkeypatch):
    for wrong in ({"idle": 0.0}, {"message": np.inf}, {"handshake": "1"}, {"connections": 1}):
        with pytest.raises(bmrm.DataError, match=f"{next(iter(wrong))} of the limits must be"):
            Limits(**wrong)
    for wrong in ("1MB", 7, "much", -1):
        with pytest.raises(bmrm.DataError, match="max_memory"):
            bmrm.Owner(data, max_memory=wrong)
    monkeypatch.chdir(tmp_path)
    bmrm.write("a.svm", *data)
    assert "max_memory must be at least" in bad("serve-shard", "a.svm", "--max-memory", "1MB")
    assert "no private key in PEM" in bad("serve-shard", "a.svm", "--identity", "absent.pem")
    assert "peers needs an identity" in bad("serve-shard", "a.svm", "--peers", "0" * 64)


def test_closing_a_server_ends_coordinators_with_tls(data, tmp_path):
    """Threads of TLS connections were waited for in vain."""
    pytest.importorskip("cryptography", reason="needs cryptography to make certificates")
    certificates(tmp_path, "owner")
    tls = TLS(tmp_path / "owner.pem", tmp_path / "owner.key")
    server = bmrm.ShardServer(parties(*data)[0], tls=tls).start()
    with Owners([server.address], TLS(ca=tmp_path / "ca.pem")):
        server.close()
        assert not any(thread.is_alive() for thread in server._threads)
