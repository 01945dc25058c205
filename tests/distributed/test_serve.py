"""`bmrm serve-shard` in processes of its own: two owners and a coordinator, as on the page about owners."""

from __future__ import annotations

import json
import re
import signal

import pytest
from commands import bad, good
from parties import certificates, rows, serving

import bmrm

SECONDS = 60


@pytest.fixture
def files(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    X, y = rows(rng)
    for name, part in (("north.svm", slice(0, 140)), ("south.svm", slice(140, None)), ("both.svm", slice(None))):
        bmrm.write(name, X[part], y[part])
    return tmp_path


def peered(identity, *peers):
    return ("--identity", identity, "--peers", ",".join(peers))


@pytest.mark.timeout(4 * SECONDS)
def test_two_owners_and_a_coordinator(files):
    pytest.importorskip("cryptography", reason="needs cryptography to make certificates")
    certificates(files, "owner", "me")
    secured = ("--certificate", "owner.pem", "--key", "owner.key", "--ca", "ca.pem")
    mine = ("--ca", "ca.pem", "--certificate", "me.pem", "--key", "me.key")
    known = [good("identity", f"{name}.key").stdout.strip() for name in ("north", "south")]
    common = ("--loss", "logistic", "--lam", "1e-2", "--tol", "1e-6")
    with (
        serving("north.svm", "--log", "north.log", *peered("north.key", known[1]), *secured) as (one, first),
        serving("south.svm", "--masked-only", "2", *peered("south.key", known[0]), *secured) as (two, _),
    ):
        owners = f"{one},{two}"
        good("train", "--owners", owners, *mine, *common, "--masked", "--model", "masked.bmrm")
        assert "under masks only" in bad("train", "--owners", owners, *mine, *common, "--model", "clear.bmrm")
        assert "no TLS" in bad("train", "--owners", owners, *common, "--ca", "owner.pem", "--model", "x.bmrm")
        first.send_signal(signal.SIGTERM)
        _, said = first.communicate(timeout=SECONDS)
        assert first.returncode == 0
        assert re.fullmatch(r"\d+ answers were given, \d+ of them new\n", said)
        assert f"{one}: cannot be reached" in bad("train", "--owners", owners, *mine, "--model", "y.bmrm")
    good("train", "both.svm", *common, "--model", "both.bmrm")
    masked, both = bmrm.load("masked.bmrm"), bmrm.load("both.bmrm")
    assert masked.certificate.lower <= both.certificate.upper
    assert both.certificate.lower <= masked.certificate.upper
    assert not any((files / name).exists() for name in ("clear.bmrm", "x.bmrm", "y.bmrm"))
    entries = [json.loads(line) for line in (files / "north.log").read_text().splitlines()]
    assert {"hello", "begin", "join", "ask"} <= {entry["what"] for entry in entries}
    assert ["signed by this owner's peers" in entry["reason"] for entry in entries if entry["what"] == "masks"] == [
        True
    ]


def test_wrong_usage(files):
    assert "has 140 rows that count" in bad("serve-shard", "north.svm", "--min-rows", "500")
    assert "can be reached from other machines" in bad("serve-shard", "north.svm", "--host", "0.0.0.0")
    assert "go together" in bad("serve-shard", "north.svm", "--key", "k.pem")
    assert "absent.svm" in bad("serve-shard", "absent.svm")
    assert "the log cannot be written" in bad("serve-shard", "north.svm", "--log", "no/such/folder.log")
