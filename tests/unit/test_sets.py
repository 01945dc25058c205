"""Losses of whole sets and of queries: larger cases than brute force allows, bad input, weights, groups, solvers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from bmrm import LinearRisk, Problem, linesearch, losses, solve
from bmrm.losses import (
    BreakEven,
    ExpectedRankUtility,
    FBeta,
    Mrr,
    Ndcg,
    NdcgPairs,
    Ordinal,
    PairwiseRank,
    PrecisionAtK,
    RecallAtK,
    RocArea,
)
from bmrm.testing import check_loss

EVERY = [
    RocArea(),
    Ordinal(),
    FBeta(),
    FBeta(beta=0.3),
    PrecisionAtK(k=20),
    RecallAtK(k=0.1),
    BreakEven(),
    PairwiseRank(),
    NdcgPairs(),
    Ndcg(),
    Mrr(),
    ExpectedRankUtility(half_life=3.0),
]
BY_QUERY = [loss for loss in EVERY if loss.couples == "group"]
every = pytest.mark.parametrize("loss", EVERY, ids=repr)
by_query = pytest.mark.parametrize("loss", BY_QUERY, ids=repr)


def ones(f):
    return np.ones(len(f))


def test_the_worked_value_of_fbeta():
    loss = FBeta()
    value, slopes = loss.evaluate(np.array([1.0, 0.0, 0.0]), loss.encode([1, 1, -1]), np.ones(3))
    assert value == pytest.approx(2.0 / 3.0, rel=1e-15)
    np.testing.assert_allclose(slopes[:2], -1.0 / 3.0)


@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("size", [0.1, 3.0, 30.0])
def test_fbeta_is_the_best_of_all_tables(beta, size, rng):
    """Where beta < 1 the best number of false positives is not monotone in that of the true ones."""
    m = 90
    for share in (0.1, 0.5, 0.9):
        y = np.where(np.arange(m) < share * m, 1.0, -1.0)
        f = size * rng.normal(size=m)
        plus, minus = np.sort(f[y > 0]), np.sort(f[y < 0])[::-1]
        dropped, taken = np.r_[0.0, np.cumsum(plus)][::-1], np.r_[0.0, np.cumsum(minus)]
        a, b = np.arange(plus.size + 1.0)[:, None], np.arange(minus.size + 1.0)
        tables = 1.0 - (1 + beta**2) * a / (a + b + beta**2 * plus.size) + (taken - dropped[:, None]) / m
        loss = FBeta(beta=beta)
        assert loss.evaluate(f, loss.encode(y), ones(f))[0] == pytest.approx(tables.max(), rel=1e-12)


@pytest.mark.parametrize("n_grades", [2, 60, 2400])
@pytest.mark.parametrize("grid", [True, False])
def test_pairs_of_many_rows(n_grades, grid, rng):
    """Enough rows for the radix sort; all pairs as a matrix."""
    m = 2400
    y, p = rng.integers(0, n_grades, size=m).astype(float), rng.uniform(size=m)
    y[:2] = [0.0, n_grades - 1.0]
    f = rng.integers(-4, 5, size=m) / 2.0 if grid else rng.normal(size=m)
    pairs = (y[:, None] > y) * p[:, None] * p
    hinge = 1.0 - (f[:, None] - f)
    expected = (pairs * np.maximum(hinge, 0.0)).sum() / pairs.sum()
    counted = pairs * (hinge > 0.0)
    loss = Ordinal()
    value, slopes = loss.evaluate(f, loss.encode(y), p)
    assert value == pytest.approx(expected, rel=1e-12)
    if grid:
        np.testing.assert_allclose(slopes, (counted.sum(axis=0) - counted.sum(axis=1)) / pairs.sum(), atol=1e-15)
    assert abs(slopes.sum()) < 1e-14
    if n_grades == 2:
        signs = RocArea()
        assert signs.evaluate(f, signs.encode(y), p)[0] == value


@pytest.mark.parametrize("n_grades", [2, 30, 2400])
@pytest.mark.parametrize("k", [3, 200, 10_000])
def test_pairs_by_their_gains_of_many_rows(n_grades, k, rng):
    """All pairs as a matrix; so many grades that several, or one alone, lie on both sides of rank k."""
    m = 2400
    y, f = 8.0 * rng.integers(0, n_grades, size=m) / n_grades, rng.integers(-4, 5, size=m) / 2.0
    order = np.argsort(-y, kind="stable")
    discount = np.where(np.arange(m) < k, 1.0 / np.log2(np.arange(m) + 2.0), 0.0)
    d = np.array([discount[y[order] == grade].mean() for grade in y])
    gain = 2.0**y - 1.0
    pairs = np.maximum(gain[:, None] - gain, 0.0) * (d[:, None] - d) / (gain[order] @ discount)
    hinge = 1.0 - (f[:, None] - f)
    counted = pairs * (hinge > 0.0)
    loss = NdcgPairs(k=k)
    value, slopes = loss.evaluate(f, loss.encode(y, np.zeros(m, int)), ones(f))
    assert value == pytest.approx((counted * hinge).sum(), rel=1e-11)
    np.testing.assert_allclose(slopes, counted.sum(axis=0) - counted.sum(axis=1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 4, 10])
def test_pairs_by_their_gains_bound_ndcg(k, rng):
    """Scores that are at least 1 apart: a pair in the right order costs nothing, so nothing makes the bound loose."""
    loss = NdcgPairs(k=k)
    for _ in range(300):
        y = np.r_[0.0, 3.0, rng.integers(0, 4, size=rng.integers(1, 6))]
        f, discount = rng.permutation(len(y)).astype(float), 1.0 / np.log2(np.arange(len(y)) + 2.0)
        gain, discount[k:] = 2.0**y - 1.0, 0.0
        lost = 1.0 - gain[np.argsort(-f)] @ discount / (np.sort(gain)[::-1] @ discount)
        value = loss.evaluate(f, loss.encode(y, np.zeros(len(y), int)), ones(f))[0]
        assert value >= lost - 1e-12
        right = np.argsort(np.argsort(y)).astype(float)
        assert loss.evaluate(right, loss.encode(y, np.zeros(len(y), int)), ones(f))[0] == 0.0


def test_no_digits_are_lost_far_from_zero():
    """All scores are shifted by a power of two: their differences are the same numbers."""
    loss, f = RocArea(), np.arange(64.0) / 64.0
    targets = loss.encode(np.arange(64) % 3 == 0)
    value, slopes = loss.evaluate(f, targets, np.ones(64))
    far, far_slopes = loss.evaluate(f + 2.0**40, targets, np.ones(64))
    assert far == value
    np.testing.assert_array_equal(far_slopes, slopes)


def margins(loss, y):
    """c, for grades in falling order."""
    c = (np.arange(len(y)) + 1.0) ** -0.25
    return c if loss.ties == "rows" else np.array([c[y == grade].mean() for grade in y])


@pytest.mark.parametrize(
    "loss", [Ndcg(), Ndcg(k=3), Ndcg(k=3, ties="together"), ExpectedRankUtility(half_life=4.0)], ids=repr
)
@pytest.mark.parametrize("n", [2, 5, 40, 120])
@pytest.mark.parametrize("size", [0.01, 0.3, 5.0])
def test_gain_losses_by_scipy_s_assignment(loss, n, size, rng):
    for grid in (False, True):
        y = np.sort(rng.integers(0, 4, size=n))[::-1].astype(float)
        y[0], y[-1] = 3.0, 0.0
        f = size * (np.round(2 * rng.normal(size=n)) if grid else rng.normal(size=n))
        r = np.arange(n)
        if isinstance(loss, Ndcg):
            gain, discount = 2.0**y - 1.0, np.where(r < loss.k, 1.0 / np.log2(r + 2.0), 0.0)
        else:
            gain, discount = y, 0.5 ** (r / (loss.half_life - 1.0))
        gain, c = gain / (gain @ discount), margins(loss, y)
        cost = np.outer(c, f) - np.outer(discount, gain)
        ranks, documents = linear_sum_assignment(cost, maximize=True)
        expected = cost[ranks, documents].sum() - c @ f + 1.0
        value, slopes = loss.evaluate(f, loss.encode(y, np.zeros(n, int)), ones(f))
        assert value == pytest.approx(expected, rel=1e-11, abs=1e-11)
        assert np.allclose(np.sort(slopes + c), np.sort(c))


@pytest.mark.parametrize("size", [0.01, 0.3, 5.0])
def test_mrr_by_assignment_for_each_rank_of_the_first_relevant_one(size, rng):
    n = 14
    for _ in range(10):
        y = np.sort(rng.integers(0, 2, size=n))[::-1].astype(float)
        y[0], y[-1] = 1.0, 0.0
        loss = Mrr(ties="together" if rng.random() < 0.5 else "rows")
        f, c = size * rng.normal(size=n), margins(loss, y)
        best = -np.inf
        for first in range(int(np.sum(y == 0)) + 1):
            cost = np.outer(c, f)
            cost[:first, y > 0] = -1e6
            ranks, documents = linear_sum_assignment(cost, maximize=True)
            best = max(best, cost[ranks, documents].sum() - c @ f + 1.0 - 1.0 / (first + 1))
        assert loss.evaluate(f, loss.encode(y, ["q"] * n), ones(f))[0] == pytest.approx(best, rel=1e-12)


@by_query
def test_queries_may_have_any_names_in_any_order(loss, rng):
    y, codes = loss.draw(rng, 24)
    f = rng.normal(size=24)
    value, slopes = loss.evaluate(f, loss.encode(y, codes), ones(f))
    words = np.array(["b", "a", "c", "ü", "e", "f"])[codes]
    tuples = [("site", int(q)) for q in codes]
    mixed = [[1, "one", (2, 3), 2.5, b"x", frozenset({4})][q] for q in codes]
    for names in (words, list(words), tuples, mixed, codes.astype(float) / 3.0, words.astype(object)):
        again, other = loss.evaluate(f, loss.encode(y, names), ones(f))
        assert again == pytest.approx(value, rel=1e-14)
        np.testing.assert_allclose(other, slopes, atol=1e-15)
    together = np.argsort(codes, kind="stable")
    assert loss.evaluate(f[together], loss.encode(y[together], codes[together]), ones(f))[0] == pytest.approx(value)


@by_query
def test_a_mean_over_queries(loss, rng):
    y, groups = loss.draw(rng, 24)
    f, weight = rng.normal(size=24), np.array([0.0, 1.0, 2.0, 3.0, 1.0, 5.0])[groups]
    value, slopes = loss.evaluate(f, loss.encode(y, groups), weight)
    parts = [(groups == q, weight[groups == q][0]) for q in range(6)]
    alone = [loss.evaluate(f[q], loss.encode(y[q], groups[q]), ones(f[q]))[0] for q, _ in parts]
    assert value == pytest.approx(np.average(alone, weights=[share for _, share in parts]), rel=1e-13)
    assert not slopes[groups == 0].any()


@by_query
def test_queries_without_an_order_are_left_out(loss, rng):
    y, groups = loss.draw(rng, 12)
    f = rng.normal(size=16)
    value, slopes = loss.evaluate(f[:12], loss.encode(y, groups), np.ones(12))
    more = np.r_[y, 1.0, 2.0, 2.0, 2.0], np.r_[groups, 7, 8, 8, 8]
    with pytest.warns(UserWarning, match=f"{loss.name}' leaves out 2 of 5 queries"):
        targets = loss.encode(*more)
    again, other = loss.evaluate(f, targets, np.ones(16))
    assert again == value
    np.testing.assert_array_equal(other, np.r_[slopes, np.zeros(4)])
    with pytest.raises(ValueError, match="no query is left, all 2 have"):
        loss.encode([1.0, 2.0, 2.0], [1, 2, 2])


def test_k_beyond_a_query_is_the_whole_query(rng):
    f, y, groups = rng.normal(size=8), [0, 1, 2, 0, 1, 0, 0, 1], [0, 0, 0, 0, 0, 1, 1, 1]
    for kind in (Ndcg, NdcgPairs):
        values = [kind(k=k).evaluate(f, kind(k=k).encode(y, groups), np.ones(8))[0] for k in (5, 100)]
        assert values[0] == values[1]


@pytest.mark.parametrize(
    ("loss", "y", "groups", "message"),
    [
        (RocArea(), [1, 1, 1], None, "roc_area' needs positive and negative targets, but all 3 are 1"),
        (RocArea(), [0, 0], None, "all 2 are -1"),
        (RocArea(), [1, 2, 3], None, "takes -1 and 1"),
        (RocArea(), [1, -1], [0, 0], "takes no groups"),
        (FBeta(), [-1, -1], None, "needs positive and negative"),
        (BreakEven(), [1, 1], None, "needs positive and negative"),
        (PrecisionAtK(k=4), [1, -1, 1], None, "k = 4 needs at least as many rows, but there are 3"),
        (RecallAtK(k=4), [1, -1, 1], None, "k = 4"),
        (Ordinal(), [2, 2, 2], None, "needs rows of different grades"),
        (Ordinal(), [1, np.nan], None, "row 1 is nan"),
        (PairwiseRank(), [1, 2], None, "give groups"),
        (Ndcg(), [1, 2], None, "give groups"),
        (Mrr(), [1, 0], [0], "2 targets, but 1 groups"),
        (PairwiseRank(), [1, 2], [0, None], "row 1 has no group"),
        (PairwiseRank(), [1, 2], np.array([0.0, np.nan]), "row 1 has no group"),
        (PairwiseRank(), [1, 2], [0, []], "group of row 1 must be"),
        (Ndcg(), [1, -1], [0, 0], "row 1 is -1.*grades from 0 to 1000"),
        (Ndcg(), [1, 2000], [0, 0], "row 1 is 2000"),
        (NdcgPairs(), [1, -1], [0, 0], "row 1 is -1.*ndcg_pairs' takes grades from 0 to 1000 .'pairwise_rank' takes"),
        (ExpectedRankUtility(), [1, -1], [0, 0], "grades of at least 0"),
        (Mrr(), [0, -1], [0, 0], "no query is left"),
        (PairwiseRank(), [], [], "there are none"),
    ],
    ids=str,
)
def test_bad_targets(loss, y, groups, message):
    with pytest.raises(ValueError, match=message):
        loss.encode(y, groups)


def test_bad_weights():
    X, y = np.eye(4), [1, 1, -1, -1]
    with pytest.raises(ValueError, match="all of one grade"):
        LinearRisk(X, y, RocArea(), sample_weight=[1, 1, 0, 0])
    for loss in (FBeta(), PrecisionAtK(k=1), RecallAtK(k=1), BreakEven()):
        with pytest.raises(ValueError, match="takes no sample weights"):
            LinearRisk(X, y, loss, sample_weight=[1, 2, 1, 1])
        LinearRisk(X, y, loss, sample_weight=[3, 3, 3, 3])
    with pytest.raises(ValueError, match="rows 1 and 3 of one query have different weights"):
        LinearRisk(X, y, PairwiseRank(), sample_weight=[1, 1, 1, 2], groups=[0, 1, 0, 1])
    with pytest.warns(UserWarning, match="leaves out 2 of 3"), pytest.raises(ValueError, match="has the weight 0"):
        LinearRisk(X, [2, 1, 0, 0], Ndcg(), sample_weight=[0, 1, 0, 1], groups=[0, 1, 0, 2])


def test_scores_that_are_not_finite_have_no_loss(rng):
    for loss in EVERY:
        y, groups = loss.draw(rng, 24)
        f = rng.normal(size=24)
        for bad in (np.nan, np.inf):
            f[3] = bad
            assert np.isnan(loss.evaluate(f, loss.encode(y, groups), np.ones(24))[0])


def test_shares_are_rounded_to_at_least_one_row(rng):
    y, f = np.where(np.arange(30) < 7, 1.0, -1.0), rng.normal(size=30)
    for share, k in ((0.5, 15), (0.1, 3), (0.001, 1)):
        values = [loss.evaluate(f, loss.encode(y), ones(f))[0] for loss in (PrecisionAtK(k=share), PrecisionAtK(k=k))]
        assert values[0] == values[1]


def learnable(loss, m=400, d=8):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(m, d))
    score = X @ rng.normal(size=d) + rng.normal(size=m)
    y = np.digitize(score, [0.0, 1.0, 3.0]).astype(float)
    groups = rng.integers(0, 12, size=m) if loss.couples == "group" else None
    return X, np.where(y > 1, 1.0, -1.0) if loss.task == "classification" else y, groups


@every
@pytest.mark.parametrize("solver", ["ls_bmrm", "auto"])
def test_certified_to_a_small_gap(loss, solver):
    X, y, groups = learnable(loss)
    for intercept in (False, True):
        if intercept and loss.shift_slope(loss.encode(y, groups)):
            continue
        problem = Problem(LinearRisk(X, y, loss, groups=groups, intercept=intercept), "l2", 1e-3)
        result = solve(problem, solver, tol=1e-4, max_iter=500)
        assert result.converged
        assert result.certificate.upper < problem.objective(np.zeros(problem.risk.dim))


@every
def test_a_search_has_a_budget_of_evaluations(loss, monkeypatch):
    X, y, groups = learnable(loss)
    calls = []
    real = type(loss).evaluate
    monkeypatch.setattr(type(loss), "evaluate", lambda *args, **options: calls.append(1) or real(*args, **options))
    problem = Problem(LinearRisk(X, y, loss, groups=groups), "l2", 1e-3)
    line = problem.risk.at(np.zeros(8)).toward(-problem.risk.at(np.zeros(8)).subgradient)
    calls.clear()
    t = linesearch.minimize(problem, line)
    assert t > 0.0
    assert len(calls) <= 8 + (2 if np.isfinite(loss.floor) else 12)
    before = len(calls)
    assert line.at(t).value < problem.risk.at(np.zeros(8)).value
    assert len(calls) == before + 1  # that of the new point at 0


class ForgetsToNormalize(losses.Loss):
    couples = "all"

    def evaluate(self, scores, targets, weight):
        return float(weight @ np.abs(scores)), weight * np.sign(scores)


class TakesAnyWeight(ForgetsToNormalize):
    weighted_by = "none"

    def evaluate(self, scores, targets, weight):
        return super().evaluate(scores, targets, weight / weight.sum())


@pytest.mark.parametrize(
    ("broken", "message"),
    [(ForgetsToNormalize, "changes with the scale of the weights"), (TakesAnyWeight, "takes a weight for each row")],
)
def test_broken_losses_of_sets_are_found_out(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(broken())
