"""Losses that compare scores, at scores so large that their differences are rounding errors, and directions unseen."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from catalogue import all_losses
from reference import exact, sets

import bmrm
from bmrm import LinearRisk, OrdinalRegressor, Problem, ScoreClassifier, solve
from bmrm.losses import RocArea, StructuredHinge, StructuredLog, VectorLoss
from bmrm.regularizers import L1, L2, ElasticNet, Zero

COMPARING = [loss for loss in all_losses() if loss.name in sets.TERMS or loss.name in exact.LOSSES_OF_ROWS]
SEES_SHIFTS = ("fbeta", "precision_at_k", "recall_at_k", "nu_hinge", "nu_epsilon_insensitive")
SHIFT_FREE = [loss for loss in COMPARING if not isinstance(loss, VectorLoss) and loss.name not in SEES_SHIFTS]
VECTOR = [loss for loss in COMPARING if isinstance(loss, VectorLoss)]


def by_name(loss):
    return repr(loss)


def far_problem(loss, rng):
    """Columns that are equal, constant or constant in each query, and weights up to 1e18 that cancel or are shared."""
    m = 5 if loss.name.startswith("nu_") else 8 if loss.couples == "group" else 6
    y, groups = loss.draw(rng, m)
    x, one = rng.normal(size=(m, 1)), np.ones((m, 1))
    by_query = one if groups is None else 1.7 * groups[:, None] + 0.3
    kinds = [[x, 3.0 * x, x], [x + 10.0 ** rng.uniform(0, 12), one, one], [x, by_query, one], [x, 1e-7 * x, 1e5 * one]]
    kind = int(rng.integers(len(kinds)))
    risk = LinearRisk(np.hstack(kinds[kind]), y, loss, groups=groups, n_threads=1)
    W = 10.0 ** rng.uniform(-1, 18) * rng.normal(size=(3, risk.n_outputs))
    W[:] = W[:, :1] if rng.random() < 0.5 else W
    if kind == 0:
        W[2] = -(W[0] + 3.0 * W[1])
    if rng.random() < 0.5:
        W[0] = 10.0 ** rng.uniform(-1, 3) * rng.normal(size=risk.n_outputs)
    return risk, np.hstack(kinds[kind]), y, groups, W.reshape(-1)


def test_every_loss_that_compares_scores_is_here():
    coupled = {loss.name for loss in all_losses() if loss.couples != "row" or isinstance(loss, VectorLoss)}
    assert coupled == {loss.name for loss in COMPARING} | {"multivariate_regression"}


@pytest.mark.parametrize("loss", COMPARING, ids=by_name)
@pytest.mark.filterwarnings("ignore:loss")
def test_the_true_objective_is_at_most_the_upper_bound(loss):
    rng = np.random.default_rng(1)
    for _ in range(40):
        risk, X, y, groups, w = far_problem(loss, rng)
        truth = exact.risk(loss, risk.targets, X, y, groups, w)
        point = risk.at(w)
        assert Fraction(point.value + point.rounding) >= truth - abs(truth) / 10**15


@pytest.mark.parametrize("loss", all_losses(), ids=by_name)
def test_nothing_is_rounded_where_all_scores_are_0(loss, rng):
    y, groups = loss.draw(rng, 8)
    risk = LinearRisk(np.eye(8), y, loss, groups=groups, n_threads=1)
    point = risk.at(np.zeros(risk.dim))
    assert 0.0 <= point.rounding <= 1e-13 * abs(point.value)  # what the loss itself rounds, at most


@pytest.mark.parametrize("loss", COMPARING, ids=by_name)
@pytest.mark.filterwarnings("ignore:loss")
def test_planes_that_touch_far_away_lie_below(loss):
    rng = np.random.default_rng(2)
    for _ in range(10):
        risk, X, y, groups, w = far_problem(loss, rng)
        a, b = risk.at(w).plane
        for v in (np.zeros(w.size), rng.normal(size=w.size)):
            height = sum((Fraction(x) * Fraction(z) for x, z in zip(a.tolist(), v.tolist())), Fraction(b))
            truth = exact.risk(loss, risk.targets, X, y, groups, v)
            assert height <= truth + (1 + abs(truth)) / 10**13


def test_sums_over_many_pairs_keep_their_digits(rng):
    f, y = 2.0 * rng.normal(size=20_000), np.repeat([-1.0, 1.0], 10_000)
    low, high = np.sort(f[:10_000]), [Fraction(x) for x in np.sort(f[10_000:]).tolist()]
    before = [Fraction(0)]
    for x in high:
        before.append(before[-1] + x)
    ends = np.searchsorted(np.array(high, float), low + 1.0)
    truth = sum(n * (1 + Fraction(x)) - before[n] for n, x in zip(ends.tolist(), low.tolist())) / 10**8
    value, _ = RocArea().evaluate(f, RocArea().encode(y), np.ones(y.size))
    assert abs(Fraction(value) / truth - 1) < Fraction(5, 10**16)


@pytest.mark.parametrize("loss", SHIFT_FREE, ids=by_name)
@pytest.mark.parametrize("shift", [1e17, -1e17, 1e300])
@pytest.mark.filterwarnings("ignore:loss")
def test_a_huge_constant_in_all_scores_changes_nothing(loss, shift):
    rng = np.random.default_rng(3)
    y, groups = loss.draw(rng, 8)
    risk = LinearRisk(np.ones((8, 1)), y, loss, groups=groups, n_threads=1)
    there, here = risk.at(np.array([shift])), risk.at(np.zeros(1))
    assert there.value == pytest.approx(here.value, rel=1e-14)
    assert np.array_equal(there.slopes, here.slopes)


@pytest.mark.parametrize("loss", VECTOR, ids=by_name)
def test_a_huge_constant_in_the_scores_of_all_classes_changes_nothing(loss):
    rng = np.random.default_rng(3)
    if loss.name == "multilabel_hinge":
        y = np.array([[1, 0, 0], [0, 1, 1], [1, 0, 1]])
    else:
        y, _ = loss.draw(rng, 8)
    risk = LinearRisk(np.ones((len(y), 1)), y, loss, n_threads=1)
    there = risk.at(np.full(risk.dim, 1e17) if "tree" not in vars(loss) else np.zeros(risk.dim))
    assert there.value == pytest.approx(risk.at(np.zeros(risk.dim)).value, rel=1e-14)


def test_an_ordinary_upper_bound_is_the_objective(rng):
    for loss in COMPARING:
        y, groups = loss.draw(rng, 200 if loss.name not in ("nu_hinge",) else 40)
        risk = LinearRisk(rng.normal(size=(len(y), 4)), y, loss, groups=groups, n_threads=1)
        w = rng.normal(size=risk.dim)
        assert 0.0 <= risk.at(w).rounding <= 1e-12


@pytest.mark.parametrize("loss", [loss for loss in COMPARING if np.isfinite(loss.floor)], ids=by_name)
@pytest.mark.parametrize("make", [L1, L2, ElasticNet, None], ids=["l1", "l2", "elastic_net", "zero"])
def test_a_free_constant_column_stays_at_0_and_stops_nothing(loss, make):
    rng = np.random.default_rng(5)
    y, groups = loss.draw(rng, 24)
    X = np.c_[rng.normal(size=(24, 2)), np.ones(24)]
    risk = LinearRisk(X, y, loss, groups=groups, n_threads=1)
    weights = None if make is None else np.repeat([1.0, 1.0, 0.0], risk.n_outputs)
    regularizer = Zero() if make is None else make(weights=weights)
    result = solve(Problem(risk, regularizer, 0.1), tol=1e-6, max_iter=300)
    assert result.converged
    assert np.abs(result.w).max() < 1e4
    again = LinearRisk(X[:, :2], y, loss, groups=groups, intercept=not loss.shift_slope(risk.targets), n_threads=1)
    other = solve(Problem(again, Zero() if make is None else make(), 0.1), tol=1e-6, max_iter=300).certificate
    assert result.certificate.lower <= other.upper
    assert other.lower <= result.certificate.upper


def test_estimators_with_a_constant_column_of_weight_0():
    X, y = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]] * 4), np.array([1, 2] * 4)
    for estimator in (OrdinalRegressor, ScoreClassifier):
        fitted = estimator(regularizer=L1(weights=[1.0, 1.0, 0.0]), lam=0.5, tol=1e-6).fit(X, y)
        assert fitted.status_.name == "CONVERGED"
        assert fitted.certificate_.upper == pytest.approx(0.5, rel=1e-5)
        assert np.abs(fitted.coef_).max() <= 1.0


@pytest.mark.parametrize("query", [None, np.repeat(np.arange(6), 4)])
def test_constants_of_queries_are_unseen(query, rng):
    y = np.tile([0.0, 1.0, 2.0, 1.0], 6)
    loss = "ordinal" if query is None else "pairwise_rank"
    X = np.c_[rng.normal(size=24), np.full(24, 0.1), np.repeat(rng.normal(size=6), 4), np.zeros(24)]
    risk = LinearRisk(X, y, loss, groups=query, n_threads=1)
    problem = Problem(risk, "zero", 1.0)
    assert problem.regularizer.held.tolist() == ([1, 3] if query is None else [1, 2, 3])
    assert 0 in problem.regularizer.free


@pytest.mark.parametrize("make", [L1, L2, ElasticNet, None], ids=["l1", "l2", "elastic_net", "zero"])
@pytest.mark.parametrize("loss", ["ordinal", "roc_area", "pairwise_rank"])
def test_indicators_that_add_up_to_1(loss, make):
    rng = np.random.default_rng(4)
    X = np.c_[rng.normal(size=(40, 2)), np.eye(3)[rng.integers(0, 3, 40)]]
    y = np.sign(rng.normal(size=40)) if loss == "roc_area" else rng.integers(0, 3, 40).astype(float)
    risk = LinearRisk(X, y, loss, groups=np.arange(40) % 5 if loss == "pairwise_rank" else None, n_threads=1)
    regularizer = Zero() if make is None else make(weights=[1.0, 1.0, 0.0, 0.0, 0.0])
    problem = Problem(risk, regularizer, 0.01)
    assert problem.regularizer.held.tolist() == [4]
    result = solve(problem, tol=1e-6, max_iter=300)
    assert result.converged
    assert np.abs(result.w).max() < 100.0


def test_what_is_unseen_depends_on_what_is_free():
    risk = LinearRisk(np.eye(3), [0, 1, 2], "multiclass_hinge", n_threads=1)
    assert Problem(risk, "l2", 1.0).regularizer.held is None
    assert Problem(risk, L2(weights=np.repeat([1.0, 0.0, 1.0], 3)), 1.0).regularizer.held.tolist() == [5]
    part = np.repeat([1.0, 0.0, 1.0], 3)
    part[4] = 1.0
    assert Problem(risk, L2(weights=part), 1.0).regularizer.held is None
    bounds = (np.full(9, -1.0), np.full(9, 1.0))
    assert Problem(risk, Zero(bounds=bounds), 1.0).regularizer.held is None


@pytest.mark.parametrize("loss", ["exponential", "poisson"])
def test_exponentials_are_finite_where_a_double_holds_them(loss):
    risk = LinearRisk([[1.0], [0.5]], [1.0, 1.0], loss, n_threads=1)
    w = np.array([500.0 if loss == "poisson" else -500.0])
    assert risk.at(w).value == pytest.approx(0.5 * np.exp(500.0), rel=1e-12)
    assert np.isfinite(Problem(risk, "l2", 1.0).at_most(w))
    assert risk.at(2.0 * w).value == np.inf


@pytest.mark.parametrize("make", [StructuredHinge, StructuredLog])
def test_scores_of_labels_that_are_never_true_are_charged(make):
    rng, model = np.random.default_rng(6), bmrm.ChainModel(3, 2)
    below = 0
    for _ in range(60):
        x = rng.normal(size=(2, 1))
        X, y, w = [np.hstack([x, 3.0 * x])], [np.zeros(2, np.int32)], np.zeros(model.dim)
        w[1:3] = 10.0 ** rng.uniform(6, 17) * rng.normal(size=2)
        w[4:6] = -w[1:3] / 3.0
        exactly = [Fraction(v) for v in w.tolist()]
        values = []
        for other in model.outputs(X[0]):
            indices, features = model.joint_feature(X[0], other)
            score = sum((exactly[j] * Fraction(v) for j, v in zip(indices.tolist(), features.tolist())), Fraction(0))
            values.append(score + (Fraction(model.delta(y[0], other)) if make is StructuredHinge else 0))
        truth = max(values) if make is StructuredHinge else exact.log_sum(values)
        point = bmrm.StructuredRisk(X, y, make(model), n_threads=1).at(w)
        assert Fraction(point.value + point.rounding) >= truth * (1 - Fraction(1, 10**15))
        below += Fraction(point.value) < truth * (1 - Fraction(1, 10**12))
    assert below  # else the test says nothing


def test_a_loss_of_ones_own_that_compares_scores_is_charged():
    class Pairs(bmrm.losses.RocArea):
        def largest_slopes(self, targets, weight):
            return np.inf

        def growth(self, scores, targets, weight, e):
            return bmrm.losses.Loss.growth(self, scores, targets, weight, e)

    class Rows(bmrm.losses.MulticlassHinge):
        def largest_slopes(self, targets, weight):
            return np.inf

        def adverse(self, scores, targets, e):
            return None

        def compiled(self, targets):
            return None

        def evaluate(self, scores, targets, weight):
            rows = bmrm.losses.MulticlassHinge().compiled(targets)
            slopes = np.empty_like(scores)
            return rows.evaluate(scores, weight, 1.0, slopes), slopes

    pairs = LinearRisk([[1.0, 1.0], [1.0, 2.0]], [-1.0, 1.0], Pairs(), n_threads=1)
    assert pairs.at(np.array([1e17, 20.0])).rounding >= 1.0
    rows = LinearRisk([[1.0]], [0.0], Rows(), n_threads=1)
    point = rows.at(np.array([1e17, 1e17 - 32.0]))
    assert point.value == 0.0
    assert point.rounding >= 1.0


@pytest.mark.parametrize(
    ("method", "says", "sentence"),
    [
        ("adverse", lambda self, scores, targets, e: scores, "grows by more than its growth says"),
        ("largest_slopes", lambda self, targets, weight: 0.5, "exceed its largest_slopes"),
    ],
    ids=["adverse", "largest_slopes"],
)
def test_check_loss_finds_what_hides_rounding(method, says, sentence):
    wrong = type("Wrong", (bmrm.losses.MulticlassHinge,), {method: says})
    with pytest.raises(AssertionError, match=sentence):
        bmrm.testing.check_loss(wrong())
