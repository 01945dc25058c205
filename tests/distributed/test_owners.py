"""Several owners: the same optimum as with all rows in one place, and no row leaves any of them."""

from __future__ import annotations

import hashlib
import json
import struct

import numpy as np
import pytest
from catalogue import all_losses, sample_for
from parties import OPEN, halves, labels_of, parties, recorded, rows, served
from scipy import sparse

import bmrm
from bmrm import LinearRisk, OwnersRisk, Problem, solve
from bmrm.owners import OwnerError, OwnersScoresRisk, Refused
from bmrm.owners.terms import needs_scores


@pytest.fixture
def data(rng):
    return rows(rng)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", all_losses(), ids=repr)
def test_same_optimum_as_in_one_place(loss, intercept):
    """Every registered loss: as sums, or by scores where all owners allow these and not else."""
    X, y, groups = sample_for(loss)
    if intercept and not loss.takes_offset:
        return
    one = LinearRisk(X, y, loss, groups=groups, intercept=intercept)
    classes = labels_of(loss, y)
    allowed, parts = needs_scores(loss), halves(X, y, groups)
    owners = [
        bmrm.Owner(part, f"owner {s}", min_rows=1, allow_scores=allowed, guard=OPEN) for s, part in enumerate(parts)
    ]
    with OwnersRisk(owners, loss, lam=0.05, intercept=intercept, classes=classes) as risk:
        assert isinstance(risk, OwnersScoresRisk) == allowed
        assert risk.unpenalized == one.unpenalized
        ball = risk.evaluate(np.zeros(risk.dim))[0] > loss.floor  # it is a point, where w = 0 is the best
        w = np.linspace(-0.1, 0.1, risk.dim) if ball else np.zeros(risk.dim)
        value, a = risk.evaluate(w)
        assert value == pytest.approx(one.evaluate(w)[0], rel=1e-12)
        np.testing.assert_allclose(a, one.evaluate(w)[1], atol=1e-12)
        result = solve(risk.problem, tol=1e-6)
    whole = solve(Problem(one, "l2", 0.05), tol=1e-6)
    assert result.converged
    assert result.certificate.lower <= whole.certificate.upper
    assert whole.certificate.lower <= result.certificate.upper


@pytest.mark.parametrize("loss", [loss for loss in all_losses() if needs_scores(loss)], ids=repr)
def test_refused_unless_every_owner_allows_scores(loss, monkeypatch):
    X, y, groups = sample_for(loss)
    parts = halves(X, y, groups)
    owners = [bmrm.Owner(part, f"owner {s}", min_rows=1, allow_scores=s == 0) for s, part in enumerate(parts)]
    with (
        recorded(monkeypatch) as sent,
        pytest.raises(
            OwnerError,
            match=r"owner 1: does not allow scores of single rows, but loss .* all owners must, with --allow-scores",
        ),
    ):
        OwnersRisk(owners, loss, lam=0.05, classes=labels_of(loss, y))
    assert len(sent) == 2  # hello: the one that allows scores is not asked for labels in vain
    allowing = [bmrm.Owner(part, f"owner {s}", min_rows=1, allow_scores=True) for s, part in enumerate(parts)]
    with pytest.raises(ValueError, match="which masks hide"):
        OwnersRisk(allowing, loss, lam=0.05, classes=labels_of(loss, y), masked=True)


@pytest.mark.parametrize("solver", ["bmrm", "ls_bmrm", "lbfgs", "owlqn", "auto"])
@pytest.mark.parametrize("masked", [False, True])
def test_over_sockets(solver, masked, data):
    X, y = data
    regularizer = "l1" if solver == "owlqn" else "l2"
    one = solve(Problem(LinearRisk(X, y, "logistic", intercept=True), regularizer, 0.01), "ls_bmrm", tol=1e-9)
    owners = parties(X, y)
    options = {"lam": 0.01, "regularizer": regularizer, "intercept": True, "masked": masked}
    with served(owners) as addresses, OwnersRisk(addresses, "logistic", **options) as risk:
        result = solve(risk.problem, solver, tol=1e-6)
        assert len(risk.busy) == 3
    assert result.converged
    assert result.certificate.lower <= one.certificate.upper
    assert one.certificate.lower <= result.certificate.upper
    assert all(owner.stopped is None for owner in owners)


def test_weights_text_labels_and_sparse_rows(rng):
    X, y = rows(rng)
    weight, words = rng.uniform(0.0, 2.0, size=300), np.where(y > 0, "yes", "no")
    one = LinearRisk(X, y, "hinge", sample_weight=weight)
    owners = [
        bmrm.Owner((sparse.csr_array(X[:100]), words[:100], None, weight[:100]), "one", guard=OPEN),
        bmrm.Owner((X[100:], words[100:], None, weight[100:]), "two", guard=OPEN),
    ]
    with OwnersRisk(owners, "hinge", lam=0.1) as risk:
        assert risk.evaluate(np.ones(5))[0] == pytest.approx(one.evaluate(np.ones(5))[0], rel=1e-12)
        assert risk.classes.tolist() == ["no", "yes"]


def test_classes_of_several_owners(rng):
    X = rng.normal(size=(300, 4))
    y = np.argmax(X[:, :3], axis=1) + 5
    one = LinearRisk(X, y - 5, "softmax", intercept=True)
    ordered = np.argsort(y, kind="stable")  # the first owner has no row of the last class
    parts = [ordered[:190], ordered[190:]]
    owners = [bmrm.Owner((X[part], y[part]), f"owner {s}", guard=OPEN) for s, part in enumerate(parts)]
    with OwnersRisk(owners, "softmax", lam=0.01, intercept=True) as risk:
        assert risk.unpenalized == one.unpenalized
        w = rng.normal(size=risk.dim)
        assert risk.evaluate(w)[0] == pytest.approx(one.evaluate(w)[0], rel=1e-12)
        assert solve(risk.problem, tol=1e-5).converged
    with pytest.raises(Refused, match=r"owner 1 refused: .* labels that are not among the 2 classes"):
        OwnersRisk(owners, "softmax", lam=0.01, classes=[5, 6])
    with pytest.raises(ValueError, match="3 classes and loss 'hinge' is for two"):
        OwnersRisk(owners, "hinge", lam=0.01)
    with OwnersRisk(owners, "hinge", lam=0.01, positive=6) as risk:
        other = LinearRisk(X, np.where(y == 6, 1.0, -1.0), "hinge")
        assert risk.evaluate(np.ones(4))[0] == pytest.approx(other.evaluate(np.ones(4))[0], rel=1e-12)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("loss", "solver"), [("hinge", "ls_bmrm"), ("logistic", "lbfgs"), ("least_squares", "bmrm")])
def test_no_row_leaves_an_owner(loss, solver, masked, rng, monkeypatch):
    X, y = rows(rng, 150, 6)
    y = y if loss != "least_squares" else X @ np.arange(6.0) + rng.normal(size=150)
    owners = parties(X, y, 2)
    with recorded(monkeypatch) as sent, OwnersRisk(owners, loss, lam=0.01, masked=masked, intercept=True) as risk:
        assert solve(risk.problem, solver, tol=1e-6).converged
    everything = b"".join(sent)
    assert len(sent) > 10
    for row in X:
        assert row.tobytes() not in everything
        for at in range(4):  # three entries of a row one after the other
            assert row[at : at + 3].tobytes() not in everything
            assert row[at : at + 3].astype(np.float32).tobytes() not in everything
    for entry in X.ravel():
        assert struct.pack("<d", entry) not in everything
        assert repr(float(entry)).encode() not in everything
    for s in range(2):  # labels: three rows one after the other, or any real one
        own = y[s::2]
        for at in range(len(own) - 3):
            assert own[at : at + 3].tobytes() not in everything
        if loss == "least_squares":
            assert all(struct.pack("<d", label) not in everything for label in own)


def test_scores_of_rows_do_not_leave_an_owner(rng, monkeypatch):
    X, y = rows(rng, 150, 6)
    owners = parties(X, y, 2)
    asked = []
    with recorded(monkeypatch) as sent, OwnersRisk(owners, "logistic", lam=0.01) as risk:
        risk.parts.watchers.append(lambda w, found, shards: asked.append(w))
        solve(risk.problem, "lbfgs", tol=1e-6)
    everything = b"".join(sent)
    for w in asked:
        assert all(struct.pack("<d", score) not in everything for score in X @ w if score != 0.0)
    assert risk.at(np.ones(6)).remembered == ()


def test_answers_do_not_grow_with_the_rows(rng, monkeypatch):
    sizes = []
    for m in (200, 2000):
        X, y = rows(rng, m, 4)
        with recorded(monkeypatch) as sent, OwnersRisk(parties(X, y, 2), "hinge", lam=0.1) as risk:
            point = risk.touch(np.ones(4))
            point.toward(np.zeros(4)).evaluate(0.5)
            sizes.append(max(map(len, sent)))
    assert abs(sizes[1] - sizes[0]) < 20  # digits of times in the header


def test_log_of_all_that_left(data, tmp_path, monkeypatch):
    X, y = data
    owner = bmrm.Owner((X, y), "owner", log=tmp_path / "left.jsonl")
    with recorded(monkeypatch) as sent, served([owner]) as addresses, OwnersRisk(addresses, "hinge", lam=0.1) as risk:
        risk.evaluate(np.ones(5))
    entries = [json.loads(line) for line in (tmp_path / "left.jsonl").read_text().splitlines()]
    left = [entry for entry in entries if "sha256" in entry]
    assert [entry["sha256"] for entry in left] == [hashlib.sha256(payload).hexdigest() for payload in sent]
    assert all(entry["peer"].startswith("127.0.0.1:") and entry["time"].endswith("Z") for entry in left)
    assert [entry["what"] for entry in left[:4]] == ["hello", "classes", "begin", "join"]
    assert max(entry["numbers"] for entry in left) == 8  # value, subgradient, offset, rounding


def test_interrupted_while_waiting(data, monkeypatch):
    """The answer that nobody has waited for is not taken for the next one."""
    X, y = data
    with served(parties(X, y)) as addresses, OwnersRisk(addresses, "logistic", lam=0.1) as risk:
        one = LinearRisk(X, y, "logistic")
        submit = risk.owners.placed._thread.submit

        class Interrupted:
            def result(self):
                raise KeyboardInterrupt

        def interrupted(*arguments):
            submit(*arguments)
            return Interrupted()

        with monkeypatch.context() as patch:
            patch.setattr(risk.owners.placed._thread, "submit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                risk.evaluate(np.ones(5))
        w = np.full(5, 0.3)
        assert risk.evaluate(w)[0] == pytest.approx(one.evaluate(w)[0], rel=1e-12)
