"""What the parts of owners must do together: guard, masks, scores, privacy, memory and checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
from commands import bad
from parties import channel, given_back, parties, rows, served

import bmrm
from bmrm import Checkpoint, DataError, LinearRisk, OwnersRisk, Privacy, Problem, solve, solve_owners
from bmrm.owners import GuardSettings, Refused
from bmrm.owners.client import OwnerLost
from bmrm.owners.guard import OwnerError
from bmrm.owners.session import Session
from bmrm.owners.wire import Message, packed, unpacked

BUDGET = Privacy(2.0, 1e-6, 2.0)
CLEAR = {
    "loss": "hinge", "loss_parameters": {}, "regularizer": "l2", "regularizer_parameters": {}, "lam": 0.1,
    "n_features": 5, "intercept": False, "classes": [-1.0, 1.0], "positive": 1, "masked": False,
}  # fmt: skip


@pytest.fixture
def data(rng):
    return rows(rng, 1200)


def ask(way, header, *arrays):
    way.send(packed(Message(header, arrays)))
    return way.receive()


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_run_of_coarse_answers_goes_on(loss, anew, data, tmp_path):
    """The owners may tell another value within the rounding error: that is no other data."""
    one = solve(Problem(LinearRisk(*data, loss), "l2", 0.01), "ls_bmrm", tol=1e-8)
    guard, file = GuardSettings(coarse=1e-3, resolution=0.05, changed=0.01), tmp_path / "run"
    owners = parties(*data, guard=guard)
    with OwnersRisk(owners, loss, lam=0.01) as risk:
        part = solve(risk.problem, "bmrm", tol=1e-9, max_iter=6, checkpoint=file)
    again = parties(*data, guard=guard)[::-1] if anew else owners
    with OwnersRisk(again, loss, lam=0.01) as risk:
        rest = solve(risk.problem, "bmrm", tol=1e-9, max_iter=12, checkpoint=Checkpoint(file, resume=True))
    assert rest.history[: part.iterations] == part.history
    assert rest.certificate.lower <= one.certificate.upper
    assert one.certificate.lower <= rest.certificate.upper
    X, y = data
    X[0] *= 1.5
    with OwnersRisk(parties(X, y, guard=guard), loss, lam=0.01) as risk, pytest.raises(DataError, match="another run"):
        solve(risk.problem, "bmrm", checkpoint=Checkpoint(file, resume=True))


def test_runs_with_noise_have_no_checkpoint(data, tmp_path):
    with OwnersRisk(parties(*data, 1, privacy=Privacy(2.0, 1e-6, 2.0, answers=5)), "hinge", lam=0.1) as risk:
        with pytest.raises(DataError, match=r"answer with noise .* have no checkpoints"):
            solve(risk.problem, checkpoint=tmp_path / "run")
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("other", [{"allow_scores": True}, {"masked_only": 2}], ids=str)
def test_privacy_excludes(other, data):
    with pytest.raises(DataError, match=f"{next(iter(other))}.*( both|exclude each other)"):
        bmrm.Owner(data, privacy=BUDGET, **other)


def test_a_private_owner_tells_no_scores_and_nothing_of_single_rows(data):
    """The step of the guard's grid follows from R_s(0): with noise it is not told."""
    X, y = data
    said = []
    for rows_of in (X, np.vstack([X[:1] * 100.0, X[1:]])):
        way = channel(bmrm.Owner((rows_of, y), privacy=BUDGET))
        hello = ask(way, {"method": "hello"}).header
        begun = ask(way, {"method": "begin", "risk": 1, "terms": CLEAR}).header
        assert begun["grid"] == 0.0
        said.append([{name: told[name] for name in told if name != "seconds"} for told in (hello, begun)])
        for method in ("gather", "scores", "pull", "sizes", "checksum"):
            assert "answers with noise" in ask(way, {"method": method, "columns": 5}, np.ones(5)).header["refused"]
        way.close()
    assert said[0] == said[1]


def test_what_the_guard_remembers_is_part_of_the_memory(rng):
    """Planes of 20 000 slopes: the oldest ones are forgotten, and half of the memory is left for runs."""
    X, y = rows(rng, 20_000)
    open_guard = GuardSettings(resolution=0.0, per_line=10**6, changed=0.0)
    owner = bmrm.Owner((X, y), "owner", max_memory="17MB", guard=open_guard)
    with OwnersRisk([owner], "logistic", lam=0.1, checked=False) as risk:
        for k in range(120):
            assert risk.evaluate(np.full(5, 1e-3 * k))[0] > 0.0
            assert owner.records.n_bytes <= 8_500_000
    assert owner.answers == 120
    assert owner.records.n_bytes > 8_000_000
    assert given_back(owner)


def test_scores_take_the_owner_and_its_memory(data):
    owner = bmrm.Owner(data, "owner", max_memory="17MB", allow_scores=True)
    first, second = channel(owner), channel(owner)
    assert "of memory" in ask(first, {"method": "gather", "columns": 10**6}).header["refused"]
    assert given_back(owner)
    assert "refused" not in ask(second, {"method": "gather", "columns": 6}).header  # the first one has left
    assert "another coordinator" in ask(first, {"method": "gather", "columns": 6}).header["refused"]
    assert "stay as they are" in ask(second, {"method": "gather", "columns": 7}).header["refused"]
    assert "stay as they are" in ask(second, {"method": "begin", "risk": 1, "terms": CLEAR}).header["refused"]
    second.close()
    assert given_back(owner)
    assert "refused" not in ask(first, {"method": "gather", "columns": 6}).header
    first.close()


def test_no_checksum_for_guesses_about_an_owner_with_peers(data):
    pytest.importorskip("cryptography", reason="identities need cryptography")
    identity, other = bmrm.owners.Identity(), bmrm.owners.Identity()
    owner = bmrm.Owner(data, identity=identity, peers=[other.fingerprint])
    way = channel(owner)
    assert "tells no checksum" in ask(way, {"method": "checksum", "columns": 5}).header["refused"]
    way.close()
    with pytest.raises(DataError, match="allow_scores and peers exclude each other"):
        bmrm.Owner(data, identity=identity, peers=[other.fingerprint], allow_scores=True)
    with pytest.raises(DataError, match=r"under masks only \(peers\), not both"):
        bmrm.Owner(data, identity=identity, peers=[other.fingerprint], privacy=BUDGET)


def test_losses_of_all_rows_do_not_survive(data, tmp_path):
    owners = parties(*data, 4, allow_scores=True)
    with OwnersRisk(owners, "roc_area", lam=0.1) as risk:
        with pytest.raises(OwnerError, match="'roc_area' looks at all rows together: start again without it"):
            risk.go_on_without(OwnerLost("owner 3: is lost", ["owner 3"]))
        with pytest.raises(ValueError, match="checkpoint is not for solve_owners"):
            solve_owners(risk, checkpoint=tmp_path / "run")
    with served(owners) as addresses:
        train = ("train", "--owners", ",".join(addresses), "--model", str(tmp_path / "m.bmrm"), "--survive")
        assert "leave --survive out" in bad(*train, "--loss", "roc_area")
        assert "exclude each other" in bad(*train, "--checkpoint", str(tmp_path / "run"))


def test_without_an_owner_its_rows_are_gone_everywhere(data):
    owners = parties(*data, 4)
    with OwnersRisk(owners, "hinge", lam=0.1) as risk:
        risk.evaluate(np.ones(5))
        before = risk.memory
        with pytest.warns(UserWarning, match="owner 3 is lost"):
            risk.go_on_without(OwnerLost("owner 3: is lost", ["owner 3"]))
        assert (len(risk.owners.rows), len(risk.owners.n_targets), len(risk.owners.tell_scores)) == (3, 3, 3)
        assert risk.memory is None
        risk.evaluate(np.ones(5))
        assert risk.memory["session"] != before["session"]


def test_texts_of_scores_are_checked(data, monkeypatch):
    """Control characters of an owner's labels would be obeyed by terminals."""
    X, y = data
    owner = bmrm.Owner((X, np.where(y > 0, "yes", "no")), "owner", allow_scores=True)
    reply = Session.reply

    def bad_answer(self, request):
        payload = reply(self, request)
        if request.header["method"] != "gather":
            return payload
        message = unpacked(payload)
        return packed(Message(message.header | {"text": ["\x1b[2J", "no"]}, message.arrays))

    monkeypatch.setattr(Session, "reply", bad_answer)
    with pytest.raises(OwnerError, match=r"owner: an answer to 'gather' without .* of the right types"):
        OwnersRisk([owner], "roc_area", lam=0.1)


def test_a_second_loss_is_refused_by_default(data):
    owners = parties(*data, guard=GuardSettings())
    for loss, refused in (("hinge", False), ("logistic", True), ("hinge", False)):
        if refused:
            with pytest.raises(Refused, match="--guard-losses"):
                OwnersRisk(owners, loss, lam=0.1)
        else:
            OwnersRisk(owners, loss, lam=0.1).close()
