"""The owner's guard: attacks end in a refusal with a reason, honest runs never do."""

from __future__ import annotations

import numpy as np
import pytest
from parties import channel, parties, rows

import bmrm
from bmrm import OwnersRisk, solve
from bmrm.owners import GuardSettings, Refused
from bmrm.owners.wire import Message, packed
from bmrm.problem import missing


@pytest.fixture
def data(rng):
    return rows(rng)


@pytest.mark.parametrize("solver", ["bmrm", "ls_bmrm", "lbfgs", "proximal_bundle", "owlqn", "subgradient_bfgs", "auto"])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "least_squares", "quantile"])
@pytest.mark.parametrize("scale", [0.0, 3.0])
def test_honest_runs_are_answered(solver, loss, scale, rng):
    X, y = rows(rng)
    X = X * np.logspace(0.0, scale, 5)
    y = X @ np.arange(5.0) + 3.0 if loss in ("least_squares", "quantile") else y
    for regularizer in ("l2", "l1", "elastic_net"):
        for lam in (1e-1, 1e-4):
            owners = parties(X, y, 2)
            options = {"lam": lam, "regularizer": regularizer, "intercept": True, "masked": lam == 1e-1 and not scale}
            with OwnersRisk(owners, loss, **options) as risk:
                if missing(bmrm.solvers.get(solver), risk.problem):
                    continue
                solve(risk.problem, solver, tol=1e-4, max_iter=60)
            assert [owner.stopped for owner in owners] == [None, None]


def test_searches_on_lines_stay_in_the_ball(rng):
    """Also with columns so uneven that the first steps are far too long."""
    X, y = rows(rng)
    with OwnersRisk(parties(X * np.logspace(0.0, 3.0, 5), y), "logistic", lam=1e-4) as risk:
        sizes = []
        risk.parts.watchers.append(lambda w, found, shards: sizes.append(0.5e-4 * float(w @ w)))
        solve(risk.problem, "lbfgs", tol=1e-6, max_iter=50)
        assert len(sizes) > 20
        assert max(sizes) <= risk.parts.zero * (1.0 + 1e-6)


def test_oscillating_bmrm_is_no_attack(data):
    owners = parties(*data, guard=GuardSettings(patience=100))
    with OwnersRisk(owners, "hinge", lam=1e-4) as risk:
        result = solve(risk.problem, "bmrm", tol=1e-6)
    assert result.converged
    assert max(record.iteration for record in result.history) > 15


def test_a_w_far_out(data):
    owners = parties(*data)
    with OwnersRisk(owners, "hinge", lam=0.1) as risk:
        risk.evaluate(np.full(5, 0.1))
        with pytest.raises(Refused, match="owner 0 refused: w lies outside 10 times the ball"):
            risk.evaluate(np.full(5, 1e4))
        with pytest.raises(Refused, match="the guard has stopped this owner: w lies outside"):
            risk.evaluate(np.zeros(5))
    assert "w lies outside" in owners[0].stopped
    stops = [entry for entry in owners[0].log.entries if entry["what"] == "stopped"]
    assert len(stops) == 1
    with pytest.raises(Refused, match="the guard has stopped this owner"):
        OwnersRisk(owners, "hinge", lam=0.1)
    for owner in owners:
        owner.resume()
    with OwnersRisk(owners, "hinge", lam=0.1) as risk:
        risk.evaluate(np.zeros(5))


@pytest.mark.parametrize(("regularizer", "inside", "outside"), [("l2", 9.9, 10.1), ("l1", 9.9, 10.1)])
def test_the_ball(regularizer, inside, outside, data):
    """J(0) = 1 for the hinge: |w| <= sqrt(2 / lam), or |w|_1 <= 1 / lam."""
    lam = 0.1
    radius = np.sqrt(2.0 / lam) if regularizer == "l2" else 1.0 / lam
    for times, refused in ((inside, False), (outside, True)):
        with OwnersRisk(parties(*data), "hinge", lam=lam, regularizer=regularizer, intercept=True) as risk:
            w = np.array([0.0, 0.0, -times * radius, 0.0, 0.0, 1e6])  # the intercept is free
            if refused:
                with pytest.raises(Refused, match="outside"):
                    risk.evaluate(w)
            else:
                risk.evaluate(w)


def test_a_trial_on_a_line_far_out(data):
    with OwnersRisk(parties(*data), "hinge", lam=0.1) as risk:
        line = risk.touch(np.zeros(5)).toward(np.ones(5))
        line.evaluate(0.5)
        with pytest.raises(Refused, match="outside"):
            line.evaluate(1e4)


def test_unit_vectors(data):
    """Asking for one coordinate after the other is no way to minimize anything."""
    owners = parties(*data, guard=GuardSettings(patience=20))
    with OwnersRisk(owners, "hinge", lam=0.1) as risk:
        attack = (risk.evaluate((-1.0) ** k * 3.0 * np.eye(5)[k % 5]) for k in range(1000))
        with pytest.raises(Refused, match="has not improved over 20 answers"):
            list(attack)
    assert owners[0].answers < 60


def test_an_improvement_that_cannot_be(data):
    with OwnersRisk(parties(*data), "hinge", lam=0.1, checked=False) as risk:
        risk.evaluate(np.full(5, 0.01))
        risk.parts.best = 1e-3  # announced, but nobody's rows allow it
        with pytest.raises(Refused, match=r"the objective announced, 0\.001, is lower than this owner's own share"):
            risk.evaluate(np.full(5, 0.02))


def test_a_large_objective_at_zero_is_not_believed(data):
    with OwnersRisk(parties(*data), "hinge", lam=0.1) as risk:
        risk.parts.zero = 1e12
        with pytest.raises(Refused, match="outside"):
            risk.evaluate(np.full(5, 1e5))


def test_the_budget_counts_over_all_runs(data):
    owners = parties(*data, guard=GuardSettings(budget=10))
    with OwnersRisk(owners, "hinge", lam=0.1) as risk:
        assert [risk.at(np.full(5, 0.01 * k)).value for k in range(6)]
    with OwnersRisk(owners, "hinge", lam=0.1) as risk, pytest.raises(Refused, match="10 answers have been given"):
        [risk.at(np.full(5, 0.01 * k)).value for k in range(6)]
    assert owners[0].answers == 10


def test_a_penalty_too_weak(data):
    owners = parties(*data, guard=GuardSettings(min_lam=1e-3))
    with pytest.raises(Refused, match=r"owner 0 refused: lam is 0\.0001; this owner accepts 0\.001"):
        OwnersRisk(owners, "hinge", lam=1e-4)
    with pytest.raises(Refused, match="without a regularizer nothing bounds w"):
        OwnersRisk(owners, "hinge", lam=1.0, regularizer="zero")
    with OwnersRisk(parties(*data, guard=GuardSettings(min_lam=0.0)), "logistic", lam=1.0, regularizer="zero") as risk:
        risk.evaluate(np.ones(5))


def test_settings_out_of_range():
    with pytest.raises(bmrm.DataError, match="patience of the guard must be at least 1, got 0"):
        GuardSettings(patience=0)


def ask(way, header, *arrays):
    way.send(packed(Message(header, arrays)))
    return way.receive()


def test_requests_by_hand(data):
    """What a coordinator of another make might try."""
    owner = parties(*data)[0]
    way = channel(owner)
    for method in ("rows", "belongings", "dot", "__init__", "_runs", None, 7, "remembered", "extreme"):
        assert "unknown method" in ask(way, {"method": method}).header["refused"]
    terms = {
        "loss": "hinge", "loss_parameters": {}, "regularizer": "l2", "regularizer_parameters": {}, "lam": 0.1,
        "n_features": 5, "intercept": False, "classes": [-1.0, 1.0], "positive": 1, "masked": False,
    }  # fmt: skip
    for wrong in (
        {"loss": "no_such"},
        {"loss": 3},
        {"n_features": 2},
        {"n_features": 10**7},
        {"n_features": 10**12},
        {"positive": 9},
        {"loss_parameters": {"x": 1}},
    ):
        assert "refused" in ask(way, {"method": "begin", "risk": 1, "terms": terms | wrong}).header
    assert ask(way, {"method": "begin", "risk": 1, "terms": terms}).header["mass"] == 100.0
    point = {"number": 1, "w": 0, "line": None, "t": 0.0}
    request = {"method": "ask", "risk": 1, "gone": [[], []], "best": None, "zero": None, "round": 1, "point": point}
    early = ask(way, request | {"wants": ["value"]}, np.zeros(5))
    assert "after all owners have joined" in early.header["refused"]
    join = {"method": "join", "risk": 1, "keys": None, "step": None, "place": 0}
    assert "counts 100" in ask(way, join | {"total": 50.0}).header["refused"]
    ask(way, join | {"total": 300.0})
    assert "has begun already" in ask(way, join | {"total": 400.0}).header["refused"]
    for wants in (["remembered"], ["scores"], [], ["value", "value"], "value", ["slopes"]):
        assert "is asked for" in ask(way, request | {"wants": wants}, np.zeros(5)).header["refused"]
    assert ask(way, request | {"wants": ["value"]}, np.zeros(5)).arrays[0] == pytest.approx(1.0)
    point = point | {"number": 2}
    assert (
        "first w of a run must be 0"
        in ask(way, request | {"point": point, "wants": ["value"]}, np.ones(5)).header["refused"]
    )
    way.close()


@pytest.mark.parametrize("w", [np.ones(4), np.full(5, np.nan), np.ones(5, dtype=np.int64)])
def test_vectors_that_are_none(w, data):
    owner = parties(*data)[0]
    way = channel(owner)
    with OwnersRisk([parties(*data)[1]], "hinge", lam=0.1) as risk:
        terms = risk.parts._added[1][0].header()
    ask(way, {"method": "begin", "risk": 1, "terms": terms})
    ask(way, {"method": "join", "risk": 1, "keys": None, "step": None, "place": 0, "total": 300.0})
    point = {"number": 1, "w": 0, "line": None, "t": 0.0}
    request = {"method": "ask", "risk": 1, "gone": [[], []], "best": 1.0, "zero": 1.0, "round": 1, "point": point}
    with pytest.raises(bmrm.owners.wire.WireError, match="a vector of"):
        ask(way, request | {"wants": ["value"]}, w)
