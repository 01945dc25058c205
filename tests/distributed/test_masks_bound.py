"""Masks are bound to all that must be equal: a coordinator that tells owners different things is left with noise."""

from __future__ import annotations

import numpy as np
import pytest
from commands import good
from coordinators import TERMS, Coordinator, ask, share, total
from parties import OPEN, parties, rows

import bmrm
from bmrm import DataError, OwnersRisk, solve
from bmrm.owners import Identity, Refused
from bmrm.owners.masks import Masks

pytest.importorskip("cryptography", reason="masks need cryptography")

NOISE = 1e3  # masks are spread over 2^34 with the step used here; the numbers below them are about 1


@pytest.fixture
def data(rng):
    return rows(rng)


def run(owners, **lies):
    """Let a coordinator ask about w = 0 and about a line; return both sums."""
    coordinator = Coordinator(owners, **lies)
    try:
        coordinator.begin()
        assert all(answer.header.keys() == {"seconds"} for answer in coordinator.join())
        at_zero = coordinator.evaluate(np.zeros(5))
        on_line = coordinator.slide(1, np.full(5, 0.5), [0.0, 0.1], best=1.0, zero=1.0)
        return at_zero, on_line
    finally:
        coordinator.close()


def test_sums_of_an_honest_coordinator(data):
    at_zero, on_line = run(parties(*data))
    expected = sum(share(*data, np.zeros(5), slice(s, None, 3)) for s in range(3))
    np.testing.assert_allclose(total(at_zero)[:6], expected, atol=1e-8)
    assert total(on_line)[3] == pytest.approx(bmrm.LinearRisk(*data, "hinge").at(np.full(5, 0.05)).value)


LIES = {
    "total": {"join": {"total": 1e300}},
    "step": {"join": {"step": 2.0**-31}},
    "identities": {"join": {"identities": ["ab" * 32, "", ""]}},
    "lam": {"begin": {"terms": {"lam": 0.2}}},
    "loss": {"begin": {"terms": {"loss": "squared_hinge"}}},
    "positive": {"begin": {"terms": {"positive": 0}}},
    "classes": {"begin": {"terms": {"classes": [-1.0, 1.0, 2.0]}}},
    "regularizer": {"begin": {"terms": {"regularizer": "l1"}}},
}
LIES_AT_ZERO = {
    "round": {"ask": {"round": 7}},
    "wants": {"ask": {"wants": ["offset", "subgradient", "value", "rounding"]}},
    "zero": {"ask": {"zero": 1.0}},
    "best": {"ask": {"best": 1.0}},
}
LIES_ON_LINE = {
    "w": {"slide": {"w": np.full(5, 0.4)}},
    "steps": {"slide": {"ts": [0.0, 0.2]}},
    "zero on a line": {"slide": {"zero": 1.5}},
}


@pytest.mark.parametrize("what", [*LIES, *LIES_AT_ZERO, *LIES_ON_LINE])
def test_what_differs_leaves_noise(what, data):
    """With `total=1e300` for the others, the sum was the victim's answer to 1e-12."""
    at_zero, on_line = run(parties(*data), **(LIES | LIES_AT_ZERO | LIES_ON_LINE)[what])
    found = total(on_line) if what in LIES_ON_LINE else total(at_zero)
    assert np.abs(found).min() > NOISE
    if what in LIES:
        assert np.abs(total(on_line)).min() > NOISE


def test_another_w_for_the_others(data):
    coordinator = Coordinator(parties(*data), ask={"w": np.full(5, 0.3)})
    coordinator.begin()
    coordinator.join()
    coordinator.lies = {}
    coordinator.evaluate(np.zeros(5))
    coordinator.lies = {"ask": {"w": np.full(5, 0.3)}}
    assert np.abs(total(coordinator.evaluate(np.full(5, 0.2), 2, best=1.0, zero=1.0))).min() > NOISE
    coordinator.lies = {}
    honest = total(coordinator.evaluate(np.full(5, 0.2), 3, best=1.0, zero=1.0))
    np.testing.assert_allclose(honest[0], bmrm.LinearRisk(*data, "hinge").at(np.full(5, 0.2)).value, atol=1e-8)
    coordinator.close()


def test_terms_stay_as_they_are_in_a_session(data):
    coordinator = Coordinator(parties(*data)[:1])
    (way,) = coordinator.ways
    coordinator.begin()
    again = ask(way, {"method": "begin", "risk": 1, "terms": TERMS | {"lam": 0.2}})
    assert "run 1 has begun already" in again.header["refused"]
    for change in ({"lam": 0.2}, {"masked": False}, {"loss": "logistic"}, {"n_features": 6}, {"intercept": True}):
        other = ask(way, {"method": "begin", "risk": 2, "terms": TERMS | change})
        assert f"another {next(iter(change))}; they stay as they are" in other.header["refused"]
    ask(way, {"method": "drop", "risks": [1]})
    assert "begun already" in ask(way, {"method": "begin", "risk": 1, "terms": TERMS}).header["refused"]
    assert "mass" in ask(way, {"method": "begin", "risk": 2, "terms": TERMS | {"positive": 0}}).header
    coordinator.close()


def test_a_step_that_shows_one_owner_alone(data):
    """A step above an owner's own numbers would round all of them to 0."""
    coordinator = Coordinator(parties(*data))
    coordinator.begin()
    coordinator.lies = {"join": {"step": 4.0}}
    for answer in coordinator.join()[1:]:
        assert "the step of masked sums is 4" in answer.header["refused"]
    coordinator.close()


def friends(X, y, n=3, **options):
    """Return owners who know each other's fingerprints."""
    options = {"guard": OPEN} | options
    identities = [Identity() for _ in range(n)]
    peers = [identity.fingerprint for identity in identities]
    return [
        bmrm.Owner((X[s::n], y[s::n]), f"owner {s}", min_rows=10, identity=identities[s], peers=peers, **options)
        for s in range(n)
    ]


def test_owners_who_know_each_other(data):
    owners = friends(*data)
    with OwnersRisk(owners, "hinge", lam=0.1, masked=True) as risk:
        assert solve(risk.problem, tol=1e-5).converged
    assert all(
        "signed by this owner's peers" in entry["reason"]
        for owner in owners
        for entry in owner.log.entries
        if entry["what"] == "masks"
    )
    with pytest.raises(Refused, match="owner 0 refused: this owner answers under masks only"):
        OwnersRisk(friends(*data), "hinge", lam=0.1)


def swapped(begun, place=0, identity=None):
    """Return the keys of all with those of the others exchanged for the coordinator's own."""
    masks = [Masks() for _ in begun]
    own = {name: [owner.get(name, "") for owner in begun] for name in ("key", "identity", "signature")}
    for other, mask in enumerate(masks):
        if other != place:
            own["key"][other] = mask.public.hex()
            if identity is not None:
                own["identity"][other] = identity.fingerprint
                own["signature"][other] = identity.signature(mask.public.hex(), TERMS)
    return {"keys": own["key"], "identities": own["identity"], "signatures": own["signature"]}, masks


def test_exchanged_keys_are_refused(data):
    """Without peers, they take the masks off: that is what the log says then."""
    coordinator = Coordinator(friends(*data))
    keys, _ = swapped(coordinator.begin())
    assert "is not signed by it for these terms" in coordinator.join(keys)[0].header["refused"]
    keys, _ = swapped(coordinator.begun, identity=Identity())
    assert "is not that of one of this owner's peers" in coordinator.join(keys)[0].header["refused"]
    unsigned = {"keys": keys["keys"], "identities": [""] * 3, "signatures": [""] * 3}
    assert "is not that of one of this owner's peers" in coordinator.join(unsigned)[0].header["refused"]
    early = coordinator.evaluate(np.zeros(5))[0]
    assert "after all owners have joined" in early.header["refused"]
    coordinator.close()

    trusting = parties(*data)
    coordinator = Coordinator(trusting)
    keys, _ = swapped(coordinator.begin())
    coordinator.join(keys)
    (note,) = [entry for entry in trusting[0].log.entries if entry["what"] == "masks"]
    assert "keys of all owners, not authenticated" in note["reason"]
    coordinator.close()


def test_a_signature_is_for_one_key_and_its_terms(data):
    owners = friends(*data)
    coordinator = Coordinator(owners)
    coordinator.begin(lam=0.2)
    old = [own["signature"] for own in coordinator.begun], [own["key"] for own in coordinator.begun]
    coordinator.close()
    coordinator = Coordinator(owners)
    coordinator.begin()
    keys = [coordinator.begun[0]["key"], *old[1][1:]]
    signatures = [coordinator.begun[0]["signature"], *old[0][1:]]
    replayed = {"keys": keys, "identities": [own["identity"] for own in coordinator.begun], "signatures": signatures}
    assert "is not signed by it for these terms" in coordinator.join(replayed)[0].header["refused"]
    coordinator.close()


def test_all_peers_are_needed_unless_fewer_are_enough(data):
    """The sums with one owner and without it would say what it alone has answered."""
    owners = friends(*data)
    with pytest.raises(Refused, match="2 owners are in this run, but this owner has agreed with 2 others"):
        OwnersRisk(owners[:2], "hinge", lam=0.1, masked=True)
    owners = friends(*data, masked_only=2)
    with OwnersRisk(owners[:2], "hinge", lam=0.1, masked=True) as risk:
        assert risk.dim == 5
    stranger = bmrm.Owner(data, "stranger", identity=Identity())
    with pytest.raises(Refused, match="owner 0 refused: a key for masks is not that of one of this owner's peers"):
        OwnersRisk([*owners, stranger], "hinge", lam=0.1, masked=True)


def test_wrong_identities_and_peers(data, tmp_path):
    one = Identity.create(tmp_path / "one.pem")
    assert Identity(tmp_path / "one.pem").fingerprint == one.fingerprint
    assert (tmp_path / "one.pem").stat().st_mode & 0o777 == 0o600
    with pytest.raises(DataError, match=r"one\.pem: the key cannot be written"):
        Identity.create(tmp_path / "one.pem")
    (tmp_path / "none.pem").write_text("none")
    for path in ("none.pem", "absent.pem"):
        with pytest.raises(DataError, match=f"{path}: no private key in PEM"):
            Identity(tmp_path / path)
    with pytest.raises(DataError, match="peers has 'north'; expected fingerprints"):
        bmrm.Owner(data, identity=one, peers=["north"])
    with pytest.raises(DataError, match="peers needs an identity"):
        bmrm.Owner(data, peers=["0" * 64])
    with pytest.raises(DataError, match="peers has no fingerprint of another owner"):
        bmrm.Owner(data, identity=one, peers=[one.fingerprint])


def test_command_prints_the_fingerprint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = good("identity", "me.pem").stdout
    assert first == good("identity", "me.pem").stdout
    assert first.strip() == Identity("me.pem").fingerprint
