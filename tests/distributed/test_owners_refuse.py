"""What owners and coordinators refuse: strangers, garbage, parties that do not fit together."""

from __future__ import annotations

import errno
import socket
import struct
import threading

import numpy as np
import pytest
from commands import good, run
from parties import certificates, parties, rows, served

import bmrm
from bmrm import LinearRisk, OwnersRisk, solve
from bmrm.owners import TLS, OwnerError, Owners, Refused
from bmrm.owners.session import Session


@pytest.fixture
def data(rng):
    return rows(rng)


def test_both_sides_verify(data, tmp_path):
    pytest.importorskip("cryptography", reason="needs cryptography to make certificates")
    (tmp_path / "other").mkdir()
    certificates(tmp_path, "owner", "coordinator")
    certificates(tmp_path / "other", "stranger")
    own = TLS(tmp_path / "owner.pem", tmp_path / "owner.key", tmp_path / "ca.pem")
    mine = TLS(tmp_path / "coordinator.pem", tmp_path / "coordinator.key", tmp_path / "ca.pem")
    with served(parties(*data), tls=own) as addresses:
        with OwnersRisk(addresses, "hinge", lam=0.1, tls=mine) as risk:
            assert solve(risk.problem).converged
        with pytest.raises(OwnerError, match=f"{addresses[0]}: no TLS connection"):
            Owners(addresses, TLS(ca=tmp_path / "other" / "ca.pem"))
        stranger = TLS(tmp_path / "other" / "stranger.pem", tmp_path / "other" / "stranger.key", tmp_path / "ca.pem")
        for wrong in (TLS(ca=tmp_path / "ca.pem"), stranger):
            with pytest.raises(OwnerError, match=f"{addresses[0]}: (the connection is lost|no TLS connection)"):
                Owners(addresses, wrong)
        with pytest.raises(OwnerError, match="the connection is lost"):
            Owners(addresses)  # no TLS at all


def test_another_host_needs_tls(data, tmp_path):
    owner = parties(*data)[0]
    with pytest.raises(bmrm.DataError, match=r"host 0\.0\.0\.0 can be reached from other machines"):
        bmrm.ShardServer(owner, host="0.0.0.0")
    with bmrm.ShardServer(owner, host="0.0.0.0", insecure=True):
        pass
    with pytest.raises(OwnerError, match=r"192\.0\.2\.1:5000: is another machine"):
        Owners(["192.0.2.1:5000"])
    with pytest.raises(bmrm.DataError, match="certificate and its key go together"):
        TLS(certificate="c.pem")
    with pytest.raises(bmrm.DataError, match=r"absent\.pem.* cannot be used for TLS"):
        bmrm.ShardServer(owner, tls=TLS(tmp_path / "absent.pem", tmp_path / "absent.key"))


def test_few_rows(rng):
    X, y = rows(rng, 50)
    with pytest.raises(bmrm.DataError, match="small: has 50 rows that count; sums over fewer than 100"):
        bmrm.Owner((X, y), "small")
    weight = np.zeros(50)
    weight[:9] = 1.0
    with pytest.raises(bmrm.DataError, match="has 9 rows that count"):
        bmrm.Owner((X, y, None, weight), "small", min_rows=10)


def test_different_numbers_of_features_are_said_once(data):
    X, y = data
    owners = [bmrm.Owner((X[:150], y[:150]), "wide"), bmrm.Owner((X[150:, :3], y[150:]), "narrow")]
    with pytest.warns(UserWarning, match=r"the owners have 3 \(narrow\) to 5 features; taken as 5") as said:
        risk = OwnersRisk(owners, "hinge", lam=0.1)
    with risk:
        whole = X.copy()
        whole[150:, 3:] = 0.0
        assert risk.evaluate(np.ones(5))[0] == pytest.approx(LinearRisk(whole, y, "hinge").evaluate(np.ones(5))[0])
    assert len(said) == 1
    assert owners[1].data.X.shape == (150, 3)


def test_unreachable_and_wrong_addresses(data):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(OwnerError, match=f"127.0.0.1:{port}: cannot be reached"):
        Owners([parties(*data)[0], f"127.0.0.1:{port}"])
    for wrong in ("nohost", "host:", "host:99999", ":5"):
        with pytest.raises(OwnerError, match="expected host:port"):
            Owners([wrong])
    with pytest.raises(ValueError, match="a list of addresses"):
        Owners("127.0.0.1:5000")
    owner = parties(*data)[0]
    with pytest.raises(ValueError, match="owner 0 is given twice"):
        Owners([owner, owner])


def test_versions_must_agree(data, monkeypatch):
    hello = Session._hello
    monkeypatch.setattr(Session, "_hello", lambda self, *given: hello(self, *given) | {"version": "9.9"})
    with pytest.raises(OwnerError, match=r"owner 0: has version 9\.9 of bmrm"):
        Owners(parties(*data))


def test_labels_of_one_kind_and_at_least_two(data):
    X, y = data
    owners = [bmrm.Owner((X[:150], y[:150]), "numbers"), bmrm.Owner((X[150:], np.repeat("a", 150)), "words")]
    with pytest.raises(OwnerError, match="the labels of words are text, those of numbers numbers"):
        OwnersRisk(owners, "hinge", lam=0.1)
    with pytest.raises(OwnerError, match=r"all labels of .* are \[1\.0\]; at least two"):
        OwnersRisk(parties(X, np.ones(300)), "hinge", lam=0.1)
    with pytest.raises(Refused, match="labels are no classes"):
        OwnersRisk(parties(X, X[:, 0]), "hinge", lam=0.1)


def test_what_is_wrong_with_a_row_is_not_told(data):
    X, y = data
    y = y.copy()
    y[7] = -3.25
    owner = bmrm.Owner((X, y), "counts")
    with pytest.raises(
        Refused, match=r"counts refused: 'begin' failed \(ValueError\); the owner's log says why"
    ) as found:
        OwnersRisk([owner], "poisson", lam=0.1)
    assert "row" not in str(found.value)
    (failure,) = [entry for entry in owner.log.entries if entry["what"] == "failed"]
    assert "target of row" in failure["reason"]


def test_a_second_coordinator(data):
    owner = parties(*data)[0]
    with served([owner]) as addresses, Owners(addresses) as other:
        with (
            OwnersRisk(addresses, "hinge", lam=0.1) as risk,
            pytest.raises(Refused, match="another coordinator is at work"),
        ):
            OwnersRisk(other, "hinge", lam=0.1)
        assert risk.dim == 5
    with served([owner]) as addresses, Owners(addresses) as owners:
        assert owners.n_rows == 100


def test_an_owner_that_goes_away_is_named(data):
    owners = parties(*data)
    server = bmrm.ShardServer(owners[2]).start()
    with Owners([owners[0], owners[1], server.address]) as together:
        risk = OwnersRisk(together, "hinge", lam=0.1)
        server.close()
        with pytest.raises(OwnerError, match=f"{server.address}: the connection is lost"):
            risk.evaluate(np.ones(5))


def message(header, body=b""):
    return struct.pack("<4sIQ", b"bmr1", len(header), len(body)) + header + body


GARBAGE = [
    b"GET / HTTP/1.1\r\n\r\n" + bytes(100),
    struct.pack("<4sIQ", b"bmr1", 10, 2**60),
    struct.pack("<4sIQ", b"bmr1", 2**31, 0),
    message(b"{{{"),
    message(b"[]"),
    message(b'{"method": "hello", "arrays": [["<f8", 1]]}', bytes(16)),
    message(b'{"method": "hello", "arrays": [["<f8", -1]]}'),
    message(b'{"method": "hello", "arrays": [["|O8", 1]]}', bytes(8)),
    message(b'{"arrays": 1}'),
    message(b'{"method": "ask", "arrays": [], "best": NaN}'),
    message(b'{"method": "ask", "arrays": []}'),
    message(b"[" * 100_000),
    message(b'{"method": "hello", "arrays": []}')[:-3],
    b"\x80\x04\x95" + bytes(40),
]


def ended(connection, bad):
    """Whether the other side ends the connection on these bytes: while they are sent, or after."""
    try:
        connection.sendall(bad)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(100):  # a reason may come first
            pass
        return True
    except TimeoutError:
        return False
    except OSError as error:  # ended before we were done: which of these it is depends on who is faster
        return error.errno in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN)


def test_garbage_ends_the_connection_not_the_server(data):
    owner = parties(*data)[0]
    with served([owner]) as (address,):
        host, port = address.split(":")
        for bad in GARBAGE:
            with socket.create_connection((host, int(port)), timeout=10) as connection:
                assert ended(connection, bad)
        with OwnersRisk([address], "hinge", lam=0.1) as risk:
            assert risk.evaluate(np.zeros(5))[0] == pytest.approx(1.0)
    assert sum(entry["what"] in ("disconnected", "refused") for entry in owner.log.entries) == len(GARBAGE)


def test_no_threads_are_left(data):
    before = threading.active_count()
    for _ in range(3):
        with served(parties(*data)) as addresses, OwnersRisk(addresses, "hinge", lam=0.1) as risk:
            risk.evaluate(np.ones(5))
        with pytest.raises(OwnerError, match="closed"):
            risk.evaluate(np.ones(5))
    assert threading.active_count() == before


def test_command_line(data, tmp_path, monkeypatch):
    X, y = data
    monkeypatch.chdir(tmp_path)
    bmrm.write("all.svm", X, y)
    with served(parties(X, y)) as addresses:
        owners = ",".join(addresses)
        good("train", "--owners", owners, "--loss", "logistic", "--lam", "1e-2", "--tol", "1e-6", "--model", "a.bmrm")
        good("train", "--owners", owners, "--loss", "hinge", "--lam", "1e-2", "--masked", "--model", "m.bmrm")
        for wrong, says in [
            (["--loss", "roc_area"], "looks at all rows together"),
            (["--C", "1"], "give --lam"),
            (["--engine", "local"], "--engine is not for --owners"),
            (["all.svm"], "either FILE or --owners"),
            (["--weights", "w.npy"], "--weights is not for --owners"),
            (["--regularizer", "zero", "--masked"], "masked sums need a regularizer"),
        ]:
            result = run("train", "--owners", owners, "--model", "none.bmrm", *wrong)
            assert result.exit_code == 2
            assert says in result.stderr
    assert not (tmp_path / "none.bmrm").exists()
    good("train", "all.svm", "--loss", "logistic", "--lam", "1e-2", "--tol", "1e-6", "--model", "b.bmrm")
    one, other = bmrm.load("a.bmrm"), bmrm.load("b.bmrm")
    assert one.certificate.upper == pytest.approx(other.certificate.upper, rel=3e-6)
    assert one.classes.tolist() == [-1.0, 1.0]
    np.testing.assert_array_equal(one.predict(X) == y, other.predict(X) == y)


def test_command_line_of_classes(rng, tmp_path, monkeypatch):
    X = rng.normal(size=(300, 4))
    y = np.argmax(X[:, :3], axis=1).astype(float)
    monkeypatch.chdir(tmp_path)
    with served(parties(X, y)) as addresses:
        for options in (["--loss", "softmax"], ["--loss", "squared_hinge", "--multiclass", "one_vs_rest"]):
            good("train", "--owners", ",".join(addresses), "--lam", "1e-4", "--model", "m.bmrm", *options)
            assert np.mean(bmrm.load("m.bmrm").predict(X) == y) > 0.9
