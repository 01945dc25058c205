"""Owners with a budget of privacy: planes with noise, certificates that hold with a probability, and an end."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re

import numpy as np
import pytest
from commands import bad, good
from parties import channel, parties, rows, served, serving
from scipy import sparse

import bmrm
from bmrm import DataError, LinearRisk, OwnersRisk, Privacy, Problem, Status, solve
from bmrm.owners import Owners, Refused
from bmrm.owners.privacy import clipped
from bmrm.owners.terms import Terms
from bmrm.owners.wire import Message, packed
from bmrm.regularizers import get
from bmrm.risks.remote import RemoteLine

SETTINGS = {"epsilon": 2.0, "delta": 1e-6, "row_norm": 2.0}


@pytest.fixture
def data(rng):
    return rows(rng, 3000)


def private(data, n=1, **changed):
    X, y = data
    return parties(X, y, n, privacy=Privacy(**(SETTINGS | changed)))


def in_one_place(data, loss, lam, regularizer="l2", intercept=False):
    """Return the problem that private owners solve: rows of bounded norm, a constant that is penalized."""
    X = clipped(data[0], SETTINGS["row_norm"])
    X = np.hstack([X, np.ones((len(X), 1))]) if intercept else X
    return Problem(LinearRisk(X, data[1], loss), regularizer, lam)


# Accuracy and certificates.


@pytest.mark.parametrize("regularizer", ["l2", "l1", "elastic_net"])
@pytest.mark.parametrize(("loss", "epsilon"), [("hinge", 0.2), ("hinge", 5.0), ("logistic", 1.0)])
def test_the_certificate_holds(loss, epsilon, regularizer, data):
    one = in_one_place(data, loss, 0.01, regularizer, intercept=True)
    optimum = solve(one, tol=1e-7).certificate
    for _ in range(6):
        owners = private(data, 2, epsilon=epsilon, answers=40)
        with OwnersRisk(owners, loss, lam=0.01, regularizer=regularizer, intercept=True) as risk:
            result = solve(risk.problem)
        certificate = result.certificate
        assert certificate.lower <= optimum.upper
        assert one.objective(result.w) <= certificate.upper
        assert certificate.failure == 1e-3
        assert str(certificate).endswith(", with probability 0.999")
        assert (result.status, result.iterations, result.solver) == (Status.SPENT, 40, "auto")
        assert one.risk.floor <= certificate.lower


def test_a_certificate_that_charges_no_noise_would_not_hold(data, monkeypatch):
    """So the test above can fail: without the charges, bounds are wrong in most runs."""
    monkeypatch.setattr("bmrm.risks.noise.Noise.deviation", lambda self, *arguments: 0.0)
    monkeypatch.setattr("bmrm.risks.noise.Noise.quantile", staticmethod(lambda failure: -3.0))
    one = in_one_place(data, "hinge", 0.01)
    optimum, wrong = solve(one, tol=1e-7).certificate, 0
    for _ in range(6):
        with OwnersRisk(private(data, 2, epsilon=0.5, answers=40), "hinge", lam=0.01) as risk:
            result = solve(risk.problem)
        wrong += result.certificate.lower > optimum.upper or one.objective(result.w) > result.certificate.upper
    assert wrong >= 1


@pytest.mark.parametrize("loss", ["hinge", "logistic", "huber_hinge"])
def test_accuracy_is_near_that_without_noise(loss, data):
    X, y = data
    best = solve(in_one_place(data, loss, 0.01), tol=1e-6)
    with OwnersRisk(private(data, 3, epsilon=8.0), loss, lam=0.01) as risk:
        result = solve(risk.problem)
    right, most = (float(np.mean(np.sign(X @ w) == y)) for w in (result.w, best.w))
    assert right >= most - 0.03
    assert in_one_place(data, loss, 0.01).objective(result.w) <= 1.1 * best.certificate.upper
    assert result.certificate.relative_gap < 0.6


def test_classes_numbers_and_novelties(rng):
    X = rng.normal(size=(2000, 3)) + 0.5
    labels, numbers = np.argmax(X, axis=1), np.clip(X @ np.arange(3.0), -5.0, 5.0)
    for y, loss in ((labels, "softmax"), (labels, "multiclass_hinge"), (numbers, "huber"), (None, "novelty")):
        bound = 5.0 if y is numbers else None
        owner = bmrm.Owner((X, y), privacy=Privacy(8.0, 1e-6, 2.0, answers=30, target_bound=bound))
        with OwnersRisk([owner], loss, lam=0.01) as risk:
            result = solve(risk.problem)
            assert result.iterations == 30
        one = Problem(LinearRisk(clipped(X, 2.0), y, loss), "l2", 0.01)
        assert one.objective(result.w) <= result.certificate.upper
        assert one.objective(result.w) < 0.9 * one.objective(np.zeros(risk.dim))
        assert result.certificate.lower <= solve(one, tol=1e-6).certificate.upper


def test_a_model_keeps_the_probability(data, tmp_path):
    with OwnersRisk(private(data, answers=5), "hinge", lam=0.1) as risk:
        certificate = solve(risk.problem).certificate
    model = bmrm.Model(
        coef=np.ones((1, 5)), intercept=np.zeros(1), classes=np.array([-1.0, 1.0]), loss=bmrm.losses.Hinge(),
        regularizer="l2", lam=0.1, solver="auto", tol=1e-3, certificates=[certificate],
        statuses=[Status.SPENT],
    )  # fmt: skip
    model.save(tmp_path / "private.bmrm")
    again = bmrm.load(tmp_path / "private.bmrm")
    assert str(again.certificate) == str(certificate)
    assert again.certificate.failure == 1e-3
    assert again.status is Status.SPENT


# What is answered, and what is not.


def test_only_planes_are_answered_and_each_once(data):
    owner = private(data, answers=3)[0]
    with OwnersRisk([owner], "hinge", lam=0.1) as risk:
        assert owner.answers == 0  # a run begins without a question
        point = risk.at(np.ones(5))
        a, b = point.plane
        assert (point.value, owner.answers) == (float(a @ np.ones(5)) + b, 1)
        point._known.clear()
        np.testing.assert_array_equal(point.plane[0], a)  # asked again: the same plane, at no cost
        assert owner.answers == 1
        assert np.any(risk.at(np.ones(5)).plane[0] != a)  # the same w under another name
        with pytest.raises(Refused, match="asked for its subgradient and offset"):
            point.find("steepness")
        line = RemoteLine(point, np.zeros(5))
        with pytest.raises(Refused, match="steps on a line are refused"):
            risk.parts.ask("slide", lambda whole: (line.name(True), (1.0,), ((), ())))
        with pytest.raises(Refused, match=r"w has the norm .*; with privacy this owner answers up to"):
            risk.evaluate(np.full(5, 1e6))
        assert owner.answers == 2


def test_other_solvers_are_refused(data):
    with OwnersRisk(private(data), "hinge", lam=0.1) as risk:
        for solver in ("bmrm", "ls_bmrm", "lbfgs", "proximal_bundle"):
            with pytest.raises(ValueError, match="cannot handle answers with noise"):
                solve(risk.problem, solver)
    problem = Problem(LinearRisk([[1.0], [-1.0]], [1, -1], "hinge"), "l2", 1.0)
    with pytest.raises(ValueError, match="needs answers with noise"):
        solve(problem, "heavy_ball")


def test_what_does_not_go_with_privacy(data):
    X, y = data
    with pytest.raises(Refused, match=r"'squared_hinge' does not bound .* with privacy these work: .*hinge"):
        OwnersRisk(private(data), "squared_hinge", lam=0.1)
    with pytest.raises(Refused, match="answers with noise; ask it without masks"):
        OwnersRisk(private(data, 2), "hinge", lam=0.1, masked=True)
    mixed = [*private(data, 1), bmrm.Owner((X, y), "clear")]
    with pytest.raises(bmrm.owners.OwnerError, match="owner 0 answers with noise, clear without"):
        OwnersRisk(mixed, "hinge", lam=0.1)
    with pytest.raises(DataError, match="not both"):
        bmrm.Owner(data, privacy=Privacy(**SETTINGS), masked_only=2)
    with pytest.raises(ValueError, match="penalizes every coordinate"):
        OwnersRisk(private(data), "hinge", lam=0.1, regularizer=get("l2", weights=[1.0, 1.0, 0.0, 1.0, 1.0]))
    with pytest.raises(Refused, match="needs a bound of the targets"):
        OwnersRisk(private((X, X[:, 0])), "huber", lam=0.1)


def test_targets_that_are_numbers_are_not_counted(rng):
    """What is refused must not say how many different targets there are."""
    X = rng.normal(size=(300, 2))
    for bound in (None, 3.0):
        owner = bmrm.Owner((X, X[:, 0]), privacy=Privacy(**SETTINGS, target_bound=bound))
        with Owners([owner]) as owners, pytest.raises(Refused, match=r"refused: this owner's [^0-9]*$"):
            _ = owners.classes


def test_more_classes_in_the_loss_than_in_the_terms_are_refused(rng):
    """The noise is for so many classes: a loss of more would say more about a row."""
    X = rng.normal(size=(300, 2))
    owner = bmrm.Owner((X, np.argmax(X, axis=1)), privacy=Privacy(**SETTINGS))
    terms = Terms("softmax", {"n_classes": 9}, "l2", {}, 0.1, 2, False, [0, 1])
    talk = channel(owner)
    talk.send(packed(Message({"method": "begin", "risk": 1, "terms": terms.header()})))
    assert "expected those of the loss" in talk.receive().header["refused"]
    talk.send(packed(Message({"method": "join", "risk": 1, "total": 300.0, "keys": None, "step": None, "place": 0})))
    assert "no run 1" in talk.receive().header["refused"]


def test_a_run_that_cannot_begin_leaves_no_other_behind(data):
    """Else the risk of a second begin could be asked about with the noise of the first."""
    talk = channel(private(data)[0])
    for classes, said in (([-1.0, 1.0], None), ([5.0, 6.0], "run 1 has begun already")):
        terms = Terms("hinge", {}, "l2", {}, 0.1, 5, False, classes, 1)
        talk.send(packed(Message({"method": "begin", "risk": 1, "terms": terms.header()})))
        answer = talk.receive().header
        assert ("noise" in answer) if said is None else (said in answer["refused"])
    talk.send(packed(Message({"method": "join", "risk": 1, "total": 3e3, "keys": None, "step": None, "place": 0})))
    assert "no run 1" in talk.receive().header["refused"]


def test_nothing_else_depends_on_the_rows(rng, monkeypatch):
    """Two neighbors whose noise is the same differ in the plane alone, by no more than the sensitivity."""
    X, y = rows(rng, 400)
    other = X.copy()
    other[0] *= -100.0
    monkeypatch.setattr("bmrm.owners.privacy.steps_of_noise", lambda n: np.zeros(n))
    said = []
    for rows_of in (X, other):
        owner, heard = bmrm.Owner((rows_of, y), privacy=Privacy(**SETTINGS)), []
        with OwnersRisk([owner], "hinge", lam=0.1) as risk:
            heard.append(risk.planes_noise)
            planes = [risk.at(w).plane for w in (np.zeros(5), np.ones(5))]
        said.append((heard, planes))
    assert said[0][0] == said[1][0]
    sigma = said[0][0][0].normal
    for (a, b), (a2, b2) in zip(said[0][1], said[1][1]):
        assert 0.0 < np.linalg.norm(a - a2) < sigma  # the noise is larger than what one row does
        assert abs(b - b2) < said[0][0][0].offset


# The end of the budget.


def test_the_owner_stops_when_the_budget_is_spent(data):
    owners = private(data, 2, answers=4)
    with served(owners) as addresses:
        with OwnersRisk(addresses, "hinge", lam=0.1) as risk:
            assert solve(risk.problem, max_iter=3).status is Status.ITERATION_LIMIT
            risk.evaluate(np.zeros(5))
            with pytest.raises(Refused, match="the budget of privacy is spent, after 4 answers"):
                risk.evaluate(np.zeros(5))
        with pytest.raises(Refused, match="the budget of privacy is spent"):
            OwnersRisk(addresses, "hinge", lam=0.1)
    assert owners[0].ledger.answers == 4
    assert any("budget" in entry.get("reason", "") for entry in owners[0].log.entries)


def test_a_second_run_takes_what_is_left(data):
    owners = private(data, answers=10)
    for expected in (6, 4):
        with OwnersRisk(owners, "hinge", lam=0.1) as risk:
            assert solve(risk.problem, max_iter=6).iterations == expected


def test_runs_of_one_risk_share_what_is_left(data):
    with OwnersRisk(private(data, answers=10), "hinge", lam=0.1) as risk:
        first = solve(risk.problem, max_iter=6)
        # a bound of the run before is not taken over: it would add to the probability of failure
        planted = dataclasses.replace(first, certificate=bmrm.Certificate.of(9.0, 9.0, ""))
        second = solve(risk.problem, start=planted)
        assert second.certificate.lower < 1.0
        assert (first.iterations, second.iterations) == (6, 4)
        assert second.status is Status.SPENT
        with pytest.raises(DataError, match="there is no answer left to train with"):
            solve(risk.problem)


def test_the_certificate_of_a_w_of_one_s_own(data):
    with OwnersRisk(private(data, answers=10), "hinge", lam=0.1) as risk:
        certificate = bmrm.certify(risk.problem, np.zeros(5))
    assert certificate.failure == 2e-3  # one for each bound: they come from different answers
    assert certificate.lower <= 1.0 <= certificate.upper


def test_what_is_spent_survives_a_restart(data, tmp_path):
    path = tmp_path / "rows.svm"
    bmrm.write(path, *data)
    for expected in (5, 3):
        owner = bmrm.Owner(path, privacy=Privacy(**SETTINGS, answers=8))
        with OwnersRisk([owner], "hinge", lam=0.1) as risk:
            assert solve(risk.problem, max_iter=5).iterations == expected
    entry = json.loads((tmp_path / "rows.svm.privacy").read_text())
    assert entry["answers"] == 8
    with pytest.raises(Refused, match="spent"):
        OwnersRisk([bmrm.Owner(path, privacy=Privacy(**SETTINGS, answers=8))], "hinge", lam=0.1)


def test_an_answer_is_written_down_before_it_is_given(data, monkeypatch):
    owner = private(data, answers=3)[0]

    def fails(self, a, b):
        raise RuntimeError("power cut")

    with OwnersRisk([owner], "hinge", lam=0.1) as risk:
        monkeypatch.setattr("bmrm.owners.privacy.Mechanism.noisy", fails)
        with pytest.raises(Refused, match="failed"):
            risk.evaluate(np.zeros(5))
    assert owner.ledger.answers == 1


def test_sparse_rows_and_an_intercept(data):
    X, y = data
    owner = bmrm.Owner((sparse.csr_array(X), y), privacy=Privacy(**SETTINGS, answers=20))
    with OwnersRisk([owner], "logistic", lam=0.01, intercept=True) as risk:
        assert risk.unpenalized == ()
        assert solve(risk.problem).w.size == 6


# The command line.


@pytest.mark.timeout(240)
def test_commands(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bmrm.write("rows.svm", *data)
    options = ("--privacy", "4,1e-6", "--row-norm", "2", "--answers", "50")
    with serving("rows.svm", *options) as (address, process):
        train = ("train", "--owners", address)
        assert process.stdout.readline() == "privacy: 50 answers are left of 50 (rows.svm.privacy)\n"
        said = good(*train, "--loss", "hinge", "--lam", "1e-2", "--model", "m.bmrm", code=3).output
        assert re.search(r"objective .*, with probability 0.999", said)
        assert "budgets of privacy are spent" in said
        assert "budget of privacy is spent" in bad(*train, "--model", "n.bmrm")
    assert bmrm.load("m.bmrm").certificate.failure == 1e-3
    X, y = data
    assert np.mean(bmrm.load("m.bmrm").predict(X) == y) > 0.8
    with serving("rows.svm", *options) as (_, process):
        assert process.stdout.readline() == "privacy: 0 answers are left of 50 (rows.svm.privacy)\n"


def test_wrong_usage(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bmrm.write("rows.svm", *data)
    assert "--privacy needs --row-norm" in bad("serve-shard", "rows.svm", "--privacy", "1,1e-6")
    assert "expected EPSILON,DELTA" in bad("serve-shard", "rows.svm", "--privacy", "1", "--row-norm", "1")
    assert "--ledger goes with --privacy" in bad("serve-shard", "rows.svm", "--ledger", "x")
    assert "delta must lie between 0 and 1" in bad("serve-shard", "rows.svm", "--privacy", "1,2", "--row-norm", "1")
    with contextlib.suppress(FileNotFoundError):
        assert not (tmp_path / "rows.svm.privacy").exists()
