"""The owner's guard: attacks get no row, honest runs reach their tolerance, and certificates stay proofs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from parties import OPEN, channel, parties, rows

import bmrm
from bmrm import LinearRisk, OwnersRisk, Problem, solve
from bmrm.owners import GuardSettings, Refused
from bmrm.owners.wire import Message, packed
from bmrm.problem import missing

_spec = importlib.util.spec_from_file_location(
    "guard_attacks", Path(__file__).parents[2] / "benchmarks" / "guard_attacks.py"
)
attacks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(attacks)


@pytest.fixture
def data(rng):
    return rows(rng)


@pytest.mark.parametrize("name", ["bisection", "trials", "neighbors", "one_hot", "lams", "descent"])
def test_attacks_get_no_row(name):
    """Of 1 000 rows; without the limits each of these attacks gets between 8 and 41 within as many requests."""
    found, answers, _, _ = attacks.run(name, most=120)
    assert found == 0
    assert answers > 3  # it was answered at all


def test_without_the_limits_rows_leave():
    found, *_ = attacks.run("bisection", guard=OPEN, most=120)
    assert found > 20


@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        ("bmrm", "hinge"), ("bmrm", "logistic"), ("bmrm", "least_squares"), ("ls_bmrm", "hinge"), ("lbfgs", "logistic"),
        ("lbfgs", "least_squares"), ("owlqn", "logistic"), ("owlqn", "least_squares"), ("auto", "hinge"),
        ("auto", "logistic"), ("auto", "least_squares"),
    ],
)  # fmt: skip
def test_honest_runs_reach_their_tolerance(solver, loss, rng):
    """With default settings, also where columns differ in size, for two owners."""
    X, y = rows(rng, 800)
    X = X * np.logspace(0.0, 0.5, 5)
    y = X @ np.arange(5.0) + 3.0 * rng.normal(size=800) if loss == "least_squares" else y
    for regularizer in ("l2",) if loss == "hinge" else ("l2", "l1"):
        owners = [bmrm.Owner((X[s::2], y[s::2]), n_threads=1) for s in range(2)]
        with OwnersRisk(owners, loss, lam=1e-2, regularizer=regularizer, intercept=True) as risk:
            if missing(bmrm.solvers.get(solver), risk.problem):
                continue
            result = solve(risk.problem, solver, tol=1e-3)
        assert result.converged
        assert [owner.stopped for owner in owners] == [None, None]


def test_owners_that_differ(rng):
    """Each has nearly one class alone: what one gains the other loses."""
    X, y = rows(rng, 800)
    order = np.argsort(y + 0.5 * rng.normal(size=800))
    owners = [bmrm.Owner((X[part], y[part])) for part in (order[:400], order[400:])]
    with OwnersRisk(owners, "hinge", lam=1e-2, intercept=True) as risk:
        assert solve(risk.problem, tol=1e-3).converged


@pytest.mark.parametrize("regularizer", ["l2", "l1", "elastic_net"])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "quantile"])
@pytest.mark.parametrize("coarse", [1e-6, 1e-2])
def test_certificates_of_coarse_answers_are_proofs(loss, regularizer, coarse, rng):
    X, y = rows(rng, 200)
    y = X @ np.arange(5.0) + rng.normal(size=200) if loss == "quantile" else y
    one = solve(Problem(LinearRisk(X, y, loss, intercept=True), regularizer, 0.01), "ls_bmrm", tol=1e-8)
    guard = GuardSettings(coarse=coarse, changed=0.05, resolution=1e-2)
    owners = [bmrm.Owner((X[s::2], y[s::2]), guard=guard) for s in range(2)]
    with OwnersRisk(owners, loss, lam=0.01, regularizer=regularizer, intercept=True) as risk:
        result = solve(risk.problem, "ls_bmrm", tol=1e-6, max_iter=30)
    assert result.certificate.lower <= one.certificate.upper
    assert one.certificate.lower <= result.certificate.upper


def test_without_the_charge_they_would_be_none(rng):
    """Rounded planes as they come exclude the optimum."""
    wrong = 0
    for seed in range(6):
        X, y = rows(np.random.default_rng(seed), 200)
        one = solve(Problem(LinearRisk(X, y, "hinge"), "l2", 0.01), "ls_bmrm", tol=1e-8)
        with OwnersRisk(
            [bmrm.Owner((X, y), guard=GuardSettings(coarse=0.3))], "hinge", lam=0.01, checked=False
        ) as risk:
            assert risk.parts.lowered > 0.0
            risk.parts.lowered = 0.0
            try:
                result = solve(risk.problem, "ls_bmrm", tol=1e-6, max_iter=15)
            except (ValueError, bmrm.ContradictionError) as error:
                assert "lower bound" in str(error)  # noqa: PT017
                wrong += 1
                continue
        wrong += not result.certificate.lower <= one.certificate.upper
    assert wrong >= 1


def test_numbers_are_on_a_grid(data):
    """All but the intercept's; the same w gets the same answer."""
    X, y = data
    owner = bmrm.Owner((X, y), guard=GuardSettings(coarse=1e-3))
    with OwnersRisk([owner], "logistic", lam=0.1, intercept=True) as risk:
        (q,) = risk.parts.steps
        assert 1e-6 < q < 1e-2
        w = np.linspace(0.1, 0.3, 6)
        value, a = risk.evaluate(w)
        assert value / q == round(value / q)
        assert (a[:5] / q == np.round(a[:5] / q)).all()
        assert a[5] / q != round(a[5] / q)
        again, b = risk.evaluate(w)
        assert again == value
        np.testing.assert_array_equal(a, b)
        assert owner.answers == 2  # that at 0, and this one
        exact = LinearRisk(X, y, "logistic", intercept=True).evaluate(w)
        np.testing.assert_allclose(a, exact[1], atol=0.51 * q)
        assert risk.touch(w).rounding >= exact[0] - value


def test_few_rows_get_no_plane_of_their_own(data):
    """Of the hinge: where few rows are active, and where few rows differ from an earlier answer."""
    X, y = data
    owner = bmrm.Owner((X, y), guard=GuardSettings(changed=0.05, slack=1e6, coarse=0.0))
    exact, w = LinearRisk(X, y, "hinge"), np.arange(1.0, 6.0) / 10.0
    active = [y * (X @ (far * w)) < 1.0 for far in (1.0, 1.05)]
    assert np.count_nonzero(active[0]) > 15
    assert 0 < np.count_nonzero(active[0] != active[1]) < 15
    with OwnersRisk([owner], "hinge", lam=0.1, checked=False) as risk:
        base, a = risk.evaluate(w)
        assert base == pytest.approx(exact.evaluate(w)[0])
        told = owner.answers
        near, b = risk.evaluate(1.05 * w)
        assert owner.answers == told
        np.testing.assert_allclose(a, b, rtol=1e-12)
        assert near < exact.evaluate(1.05 * w)[0] <= near + risk.touch(1.05 * w).rounding


def test_few_active_rows_get_no_plane_of_their_own(rng):
    """Of two classes far apart but for three rows, these are active at a long w: nothing is told of them."""
    X = np.sign(rng.normal(size=(300, 1))) * 3.0 + 0.3 * rng.normal(size=(300, 4))
    y = np.sign(X[:, 0])
    y[:3] *= -1.0
    owner = bmrm.Owner((X, y), guard=GuardSettings(changed=0.02, coarse=0.0))
    w = np.ones(4)
    assert np.count_nonzero(y * (X @ w) < 1.0) == 3
    with OwnersRisk([owner], "hinge", lam=0.01, checked=False) as risk:
        value, a = risk.evaluate(w)
        assert not (np.abs(300.0 * a + X[:3].T @ y[:3]) < 1e-6).all()
        assert value <= LinearRisk(X, y, "hinge").evaluate(w)[0] <= value + risk.touch(w).rounding
    assert owner.answers == 1


def test_points_on_a_line(data):
    X, y = data
    for along, told in ((np.ones(5), 4), (None, 12)):
        owner = bmrm.Owner((X, y), guard=GuardSettings(per_line=4, changed=0.0))
        with OwnersRisk([owner], "logistic", lam=0.1, checked=False) as risk:
            rng = np.random.default_rng(3)
            for k in range(1, 12):
                risk.evaluate(0.1 * k * along if along is not None else rng.normal(size=5))
        assert owner.answers == told


def test_slopes_of_both_sides_of_a_kink_are_not_told(data):
    X, y = data
    with OwnersRisk([bmrm.Owner((X, y))], "hinge", lam=0.1) as risk:
        line = risk.touch(np.zeros(5)).toward(np.ones(5))
        kinks = y / (X @ np.ones(5))
        for t in kinks[(kinks > 0.1) & (kinks < 3.0)][:20]:
            _, left, right = line.evaluate(t)
            assert left == right


def test_no_progress(data):
    """Announcements are not believed: the owner's own portion must fall."""
    owner = bmrm.Owner(data, guard=GuardSettings(patience=20))
    rng = np.random.default_rng(0)
    with OwnersRisk([owner], "logistic", lam=0.1, checked=False) as risk:
        for k in range(1000):
            risk.parts.best = 0.5 - 1e-6 * k
            try:
                risk.evaluate(rng.normal(size=5))
            except Refused as error:
                assert "no progress over 20 new answers" in str(error)  # noqa: PT017
                break
    assert 20 <= owner.answers < 40


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
    """J(0) = 1 for the hinge: |w| <= sqrt(2 / lam), or |w|_1 <= 1 / lam. Nothing announced makes it larger."""
    lam = 0.1
    radius = np.sqrt(2.0 / lam) if regularizer == "l2" else 1.0 / lam
    for times, refused in ((inside, False), (outside, True)):
        with OwnersRisk(parties(*data), "hinge", lam=lam, regularizer=regularizer, intercept=True) as risk:
            risk.parts.zero = 1e12
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


def test_the_budget_counts_over_all_runs_and_connections(data):
    """And over all lam: the same w again is no new answer."""
    owner = bmrm.Owner(data, guard=GuardSettings(budget=10))
    rng = np.random.default_rng(0)
    for lam in (0.1, 0.01):
        with OwnersRisk([owner], "logistic", lam=lam, checked=False) as risk:
            for _ in range(4):
                risk.evaluate(rng.normal(size=5))
    assert owner.answers == 9  # w = 0 once for both lam
    with (
        OwnersRisk([owner], "logistic", lam=0.1, checked=False) as risk,
        pytest.raises(Refused, match="10 new answers have been given"),
    ):
        [risk.evaluate(rng.normal(size=5)) for _ in range(4)]


def test_requests_without_end(data):
    owner = bmrm.Owner(data, guard=GuardSettings(budget=2, repeats=4))
    with OwnersRisk([owner], "logistic", lam=0.1) as risk, pytest.raises(Refused, match="10 requests"):
        [risk.evaluate(np.zeros(5)) for _ in range(20)]


def test_another_loss_is_no_second_budget(data):
    """Nor are other numbers of columns or an intercept: the rows' slopes are compared with all that was told."""
    owner = bmrm.Owner(data, guard=GuardSettings(losses=1))
    w = np.full(5, 0.1)
    with OwnersRisk([owner], "logistic", lam=0.1, checked=False) as risk:
        value, _ = risk.evaluate(w)
        assert owner.answers == 2
    with OwnersRisk([owner], "logistic", lam=0.01, intercept=True, checked=False) as risk:
        assert risk.evaluate(np.append(w, 0.0))[0] == pytest.approx(value, abs=1e-4)
    assert owner.answers == 2
    for loss in ("hinge", bmrm.losses.HuberHinge(h=0.5)):
        with pytest.raises(Refused, match="answers for 1 loss, with the same parameters"):
            OwnersRisk([owner], loss, lam=0.1)


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
