"""Whatever an owner answers, the coordinator gets what it asked for or an OwnerError with the owner's name."""

from __future__ import annotations

import contextlib
import json
import math
import struct
import warnings

import numpy as np
import pytest
from parties import certificates, parties, rows, served

import bmrm
from bmrm import OwnersRisk, solve
from bmrm.owners import TLS, OwnerError, Owners
from bmrm.owners.session import Session
from bmrm.owners.wire import Message, packed, unpacked
from bmrm.risks.liars import LiarError

METHODS = ("hello", "classes", "begin", "join", "ask", "slide")
ALSO = {"hello": ("names", "columns"), "ask": ("missing",), "begin": ("identity", "signature")}  # may be there
VALUES = (
    None, True, False, 0, -1, 7, 2**63, 10**400, 0.5, -0.0, 1e308, -1e308, 5e-324,
    "", "x", "\ud800", "\x1b[2J\n", "9" * 5000,
    "ab" * 32, [], [[]], [None], [[1]], [1, "a"], ["a", 1], [1e308, 2], [10**30], ["x"] * 2000, {}, {"a": 1}, [{}],
)  # fmt: skip
ARRAYS = (
    (), (np.zeros(0),), (np.ones(1),), (np.ones(8), np.ones(8)), (np.ones(1000),), (np.full(8, np.nan),),
    (np.full(8, np.inf),), (np.full(8, -np.inf),), (np.full(8, 1e308),), (np.full(8, -1e308),),
    (np.array([1.0, 1.0, np.nan, 1.0, 1.0, 1.0, 1.0, 1.0]),), (np.ones(8, dtype=np.int64),),
    (np.ones(8, dtype=np.uint64),), (np.full(8, 2**64 - 1, dtype=np.uint64),),
    (np.full(3, np.nan),), (np.full(3, -1e308),),
)  # fmt: skip


@pytest.fixture
def data(rng):
    return rows(rng, 150)


@contextlib.contextmanager
def answering(monkeypatch, owner, method, change):
    """Let an owner's answers to one method be what `change` makes of the honest ones."""
    reply = Session.reply

    def bad(self, request):
        payload = reply(self, request)
        return change(payload) if self.owner is owner and request.header["method"] == method else payload

    with monkeypatch.context() as patch:
        patch.setattr(Session, "reply", bad)
        yield


def named(owners, masked, checked=True):
    """Train; return the error with a name, None for a result. Anything else, warnings of numbers too, is a failure."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="the owners have")
            risk = OwnersRisk(owners, "hinge", lam=0.05, masked=masked, checked=checked)
        with risk:
            risk.touch(np.zeros(risk.dim)).toward(np.full(risk.dim, 0.1)).evaluate(0.5)
            result = solve(risk.problem, "ls_bmrm", tol=1e-3, max_iter=3)
    except (OwnerError, LiarError) as error:
        return str(error)
    return None if np.isfinite(result.w).all() else "a result that is not finite"


def check_named(said, masked=False, checked=True):
    """Look for the name. Sums of masked numbers, and numbers nobody checks, may be what another owner refuses."""
    assert said is None or (said.isprintable() and ("the liar" in said or masked or not checked)), said


def entries_of(data, method, masked, monkeypatch):
    """Return the names in the header of an honest answer: what there is to change is found, not listed."""
    seen = []
    owners = parties(*data)
    with answering(monkeypatch, owners[0], method, lambda payload: seen.append(payload) or payload):
        named(owners, masked)
    assert seen
    return sorted({name for payload in seen for name in unpacked(payload).header})


def liars(X, y):
    owners = parties(X, y)
    owners[1].name = "the liar"
    return owners


def changed(name, value):
    def change(payload):
        message = unpacked(payload)
        header = {key: own for key, own in message.header.items() if key != name}
        try:
            return packed(Message(header if value is KeyError else header | {name: value}, message.arrays))
        except ValueError:  # a number that cannot even be sent
            return payload

    return change


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_every_entry_of_every_answer(method, masked, data, monkeypatch):
    """23 of 150 ended in KeyError, TypeError or OverflowError."""
    if masked:
        pytest.importorskip("cryptography", reason="masks need cryptography")
    names = [*entries_of(data, method, masked, monkeypatch), "refused", *ALSO.get(method, ())]
    found = 0
    for name in names:
        for value in (*VALUES, KeyError):
            owners = liars(*data)
            with answering(monkeypatch, owners[1], method, changed(name, value)):
                said = named(owners, masked)
            check_named(said)
            found += said is not None
    assert found > len(VALUES)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("method", ["ask", "slide"])
def test_all_kinds_of_numbers(method, checked, masked, data, monkeypatch):
    if masked:
        pytest.importorskip("cryptography", reason="masks need cryptography")
    for arrays in ARRAYS:
        owners = liars(*data)
        with answering(monkeypatch, owners[1], method, lambda p, a=arrays: packed(Message(unpacked(p).header, a))):
            check_named(named(owners, masked, checked), masked, checked)


RAW = [
    b"", b"\0", b"bmr1", b"HTTP/1.1 200 OK\r\n\r\n" * 10, struct.pack("<4sIQ", b"bmr1", 2**31, 0),
    struct.pack("<4sIQ", b"bmr1", 2, 2**40) + b"{}", struct.pack("<4sIQ", b"bmr1", 2, 0) + b"{}",
    struct.pack("<4sIQ", b"bmr1", 2, 0) + b"[]", struct.pack("<4sIQ", b"bmr1", 4, 0) + b"null",
    struct.pack("<4sIQ", b"bmr1", 50_000, 0) + b"[" * 50_000,
    *(struct.pack("<4sIQ", b"bmr1", len(text), 8) + text + bytes(8) for text in (
        b'{"arrays": [["<f8", 1.0]]}', b'{"arrays": [[["<f8"], 1]]}', b'{"arrays": {"a": 1}}',
        b'{"arrays": [["<f8", true]]}',
        b'{"arrays": 1, "mass": NaN}', b'{"arrays": [["<f8", 1]], "mass": Infinity}', b'{"\xff": 1}',
    )),
]  # fmt: skip


def evaluated(owners):
    with OwnersRisk(owners, "hinge", lam=0.05, timeout=0.2) as risk:
        risk.touch(np.zeros(5)).toward(np.full(5, 0.1)).evaluate(0.5)


@pytest.mark.parametrize("method", ["hello", "begin", "ask"])
def test_what_is_no_message(method, data, monkeypatch):
    for raw in RAW:
        owners = liars(*data)
        with (
            served(owners[1:2]) as (address,),
            answering(monkeypatch, owners[1], method, lambda p, r=raw: r),
            pytest.raises(OwnerError, match=address),
        ):
            evaluated([owners[0], address])


def test_an_answer_that_comes_a_byte_at_a_time(data, monkeypatch):
    """The whole of it must come in time."""
    from bmrm.owners import server

    owner = parties(*data)[0]

    def slowly(connection, payload, seconds):
        with contextlib.suppress(OSError):
            for byte in payload:
                connection.sendall(bytes([byte]))
                server.threading.Event().wait(0.1)

    monkeypatch.setattr(server, "send_all", slowly)
    with served([owner]) as (address,), pytest.raises(OwnerError, match=f"{address}: has not answered in time"):
        Owners([address], timeout=0.5)


def test_names_of_columns_are_those_of_their_checksum(data, monkeypatch):
    X, y = data
    frames = [bmrm.data.dataset.Dataset(X[s::2], y[s::2], feature_names=tuple("abcde")) for s in range(2)]
    owners = [bmrm.Owner(frame, f"owner {s}", min_rows=10) for s, frame in enumerate(frames)]
    with (
        answering(monkeypatch, owners[0], "hello", changed("names", list("edcba"))),
        pytest.raises(OwnerError, match="owner 0: answers 'hello' with names of columns that are not those"),
    ):
        Owners(owners)


def test_features_without_end(data, monkeypatch):
    for features, says in ((10**15, "expected a whole number, at most"), (2**24, "so that w would have")):
        owners = liars(*data)
        with (
            answering(monkeypatch, owners[1], "hello", changed("features", features)),
            pytest.warns(UserWarning, match="features; taken as") if features == 2**24 else contextlib.nullcontext(),
            pytest.raises(OwnerError, match=f"the liar: .*{says}"),
        ):
            OwnersRisk(owners, "softmax", lam=0.1, classes=[-1, 1, 2, 3])


def test_reasons_do_not_steer_terminals(data, monkeypatch):
    owners = liars(*data)
    with (
        answering(monkeypatch, owners[1], "hello", changed("refused", "\x1b[2Jgone\n" + "x" * 10**5)),
        pytest.raises(OwnerError, match=r"the liar refused:  .2Jgone x") as found,
    ):
        Owners(owners)
    assert len(str(found.value)) < 1100


def test_numbers_too_large_for_floats_are_no_lie(data):
    """Far out, exponential losses are inf: that is what they are."""
    X, y = data
    with OwnersRisk(parties(X * 1e3, y), "exponential", lam=1e-9) as risk:
        assert math.isinf(risk.touch(np.full(5, -0.5)).value)


def test_a_ca_is_the_only_authority(data, tmp_path, monkeypatch):
    """It was added to those of the system."""
    pytest.importorskip("cryptography", reason="needs cryptography to make certificates")
    (tmp_path / "system").mkdir()
    certificates(tmp_path, "owner")
    certificates(tmp_path / "system", "impostor")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system" / "ca.pem"))
    assert len(TLS(ca=tmp_path / "ca.pem").of_coordinator().get_ca_certs()) == 1
    impostor = TLS(tmp_path / "system" / "impostor.pem", tmp_path / "system" / "impostor.key")
    with served(parties(*data)[:1], tls=impostor) as (address,):
        with pytest.raises(OwnerError, match="no TLS connection"):
            Owners([address], TLS(ca=tmp_path / "ca.pem"))
        with Owners([address], TLS()) as trusting:  # the system's, which is all that there is to believe
            assert trusting.n_rows == 50


def test_json_of_answers_has_no_secrets(data):
    """An honest answer passes the schema as it is."""
    with Owners(parties(*data)) as owners:
        (first, *_) = owners.placed.call("hello")
    assert json.loads(json.dumps(first)) == {"version": bmrm.__version__, "rows": 50, "features": 5} | {
        "targets": 1,
        "scores": False,
    }
