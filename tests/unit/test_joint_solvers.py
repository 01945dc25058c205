"""Dual coordinate descent for label sets and classes of a tree, with and without free constants."""

from __future__ import annotations

import numpy as np
import pytest
from reference import models

from bmrm import LinearRisk, Problem, solve
from bmrm._traits import Trait
from bmrm.losses import HierarchicalHinge, MultilabelHinge, Tree
from bmrm.regularizers import L2
from bmrm.risks.dual import Dual
from bmrm.risks.joint_dual import LabelDual, TreeDual

TREE = Tree((-1, 0, 0, -1, 3, 3))
COSTS = tuple(tuple(float(a != b) * (1.0 + a + 2.0 * b) for b in range(4)) for a in range(4))
LOSSES = [
    MultilabelHinge(n_classes=5),
    MultilabelHinge(margin=3.0, n_classes=5),
    HierarchicalHinge(TREE),
    HierarchicalHinge(TREE, nodes="all"),
    HierarchicalHinge(TREE, COSTS),
]
IDS = ["labels", "margin", "leaves", "all", "costs"]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=IDS)


def targets(loss, rng, m):
    if isinstance(loss, MultilabelHinge):
        return (rng.random((m, 5)) < [0.1, 0.3, 0.5, 0.7, 0.9]).astype(float)
    return loss.draw(rng, m)[0]


def plain(rng, loss):
    return rng.normal(size=(40, 4)), targets(loss, rng, 40)


def ties(rng, loss):
    """Rows that occur several times, small whole numbers."""
    X = rng.integers(-1, 2, size=(40, 4)).astype(float)
    return np.repeat(X[:10], 4, axis=0), targets(loss, rng, 40)


def dependent(rng, loss):
    """A column twice, and one that is constant beside the constant."""
    X = rng.normal(size=(40, 3))
    return np.column_stack([X, X[:, 0], np.full(40, 2.0)]), targets(loss, rng, 40)


def missing(rng, loss):
    """A label that no row has, one that all rows have; classes without rows."""
    X, y = plain(rng, loss)
    if isinstance(loss, MultilabelHinge):
        y[:, 0], y[:, 4] = 0.0, 1.0
        return X, y
    return X, np.where(y == loss.classes()[0], loss.classes()[1], y)


def uneven(rng, loss):
    """No row has a mean of 0: constants and columns pull at each other."""
    X, y = plain(rng, loss)
    return 20.0 + X, y


DATA = [plain, ties, dependent, missing, uneven]


def optimum(risk, X, regularizer, lam):
    wide = np.column_stack([X, np.ones(len(X))]) if risk.design.intercept else X
    bound = Problem(risk, regularizer, lam).regularizer
    return models.optimum(risk.loss, wide, risk.targets, bound, lam, risk.weight)


@each_loss
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("draw", DATA, ids=lambda draw: draw.__name__)
@pytest.mark.parametrize("lam", [1.0, 0.03])
def test_the_bounds_hold_the_optimum(loss, intercept, draw, lam, rng):
    X, y = draw(rng, loss)
    weight = rng.uniform(0.0, 2.0, size=40) * (rng.random(40) < 0.9)
    risk = LinearRisk(X, y, loss, sample_weight=weight, intercept=intercept, n_threads=1)
    result = solve(Problem(risk, "l2", lam), "dual_coordinate", tol=1e-4, max_seconds=1 if draw is uneven else 10)
    best = optimum(risk, X, "l2", lam)
    slack = 1e-7 * max(1.0, best)
    assert max(record.lower for record in result.history) <= best + slack
    assert min(record.upper for record in result.history) >= best - slack
    if draw is not uneven:
        assert result.converged


@pytest.mark.parametrize("regularizer", ["l1", "elastic_net"])
@pytest.mark.parametrize("draw", [plain, missing])
def test_the_bounds_of_other_regularizers_hold_the_optimum(regularizer, draw, rng):
    for loss in (LOSSES[0], LOSSES[2]):
        X, y = draw(rng, loss)
        risk = LinearRisk(X, y, loss, intercept=True, n_threads=1)
        result = solve(Problem(risk, regularizer, 0.05), tol=1e-3, max_seconds=2)
        best = optimum(risk, X, regularizer, 0.05)
        assert result.certificate.lower <= best + 1e-7
        assert result.certificate.upper >= best - 1e-7


@each_loss
def test_weights_that_differ_between_scores(loss, rng):
    X, y = plain(rng, loss)
    risk = LinearRisk(X, y, loss, intercept=True, n_threads=1)
    for s in (np.linspace(0.3, 3.0, risk.dim), np.where(np.arange(risk.dim) < 3, 0.0, 2.0)):
        result = solve(Problem(risk, L2(weights=s), 0.1), "dual_coordinate", tol=1e-4, max_seconds=5)
        best = optimum(risk, X, L2(weights=s), 0.1)
        assert result.certificate.lower <= best + 1e-7
        assert s[0] == 0.0 or result.certificate.upper == pytest.approx(best, rel=2e-4)


def dual(rng, loss, intercept=False):
    risk = LinearRisk(*plain(rng, loss), loss, intercept=intercept, n_threads=1)
    kind = LabelDual if isinstance(loss, MultilabelHinge) else TreeDual
    weights = np.ones(risk.dim)
    weights[list(risk.unpenalized)] = 1e-3
    return kind(risk, weights, 0.02)


@each_loss
def test_the_sum_of_terms_is_the_gap(loss, rng):
    """The dual value never falls, and w stays that of the slopes."""
    rows = dual(rng, loss)
    point = rows.flat()
    before = rows.value(point)
    for key in range(20):
        rows.epoch(point, key, reach=np.inf)
        after = rows.value(point)
        assert after >= before - 1e-12
        before = after
    check = rows.check(point, np.inf)
    half = 0.5 * rows.lam * rows.norm(point.w) ** 2
    assert check.gap == pytest.approx(check.value + half - (check.offset - half), rel=1e-9, abs=1e-12)
    assert check.value == pytest.approx(rows.risk.at(point.w).value, rel=1e-12)
    kept, error = point.w.copy(), point.error
    rows.renew(point, np.zeros_like(kept))
    assert rows.norm(kept - point.w) <= error + point.error


@each_loss
def test_points_near_scores_have_their_slopes(loss, rng):
    rows = dual(rng, loss)
    w = rng.normal(size=rows.risk.dim)
    at = rows.risk.at(w)
    point = rows.near(at.remembered)
    check = rows.check(point, np.inf)
    value, slopes, _ = rows.risk.loss_and_slopes(at.remembered)
    np.testing.assert_allclose(rows._slopes(point), slopes, atol=1e-15)
    assert check.offset == pytest.approx(value - slopes @ at.remembered, abs=1e-12)


@each_loss
def test_level_planes_lie_below_the_risk(loss, rng):
    """No slope in the free constants of a tree, and below R wherever the slopes allow it."""
    rows = dual(rng, loss, intercept=True)
    free = list(rows.risk.unpenalized)
    point = rows.flat()
    for key in range(30):
        rows.epoch(point, key, reach=np.inf)
        level = rows.levelled(point)
        for size in (0.1, 1.0, 10.0):
            w = size * rng.normal(size=rows.risk.dim)
            w[free] = 0.0 if np.abs(level.a[free]).max() > 1e-14 else w[free]
            assert level.a @ w + level.b <= rows.risk.at(w).value + 1e-12
    if not isinstance(loss, MultilabelHinge):  # there some rows may have no place for what has to move
        assert np.abs(level.a[free]).max() <= 1e-14


def test_costs_of_pairs_of_labels_need_another_solver(rng):
    """Their planes are no function of the slopes alone."""
    loss = MultilabelHinge(delta=((0.0, 1.0, 2.0), (0.5, 0.0, 1.0), (3.0, 1.0, 0.0)))
    X, y = rng.normal(size=(30, 3)), loss.draw(rng, 30)[0]
    problem = Problem(LinearRisk(X, y, loss, intercept=True, n_threads=1), "l2", 0.1)
    assert Trait.DUAL_ROWS not in problem.traits
    with pytest.raises(ValueError, match="dual_coordinate"):
        solve(problem, "dual_coordinate")
    assert solve(problem, tol=1e-3, max_seconds=5).converged


@pytest.mark.parametrize("kind", ["labels", "leaves"])
def test_many_free_constants_cost_few_products(kind, rng):
    """A bundle method would have no bound before it had a plane for each constant."""
    k, m, d = 60, 400, 30
    X = rng.random((m, d)) * (rng.random((m, d)) < 0.3)
    affinity = X @ rng.normal(size=(d, k)) + np.linspace(0.0, 2.0, k)
    if kind == "labels":
        y, loss = (affinity >= np.sort(affinity, axis=1)[:, -3:-2]).astype(float), MultilabelHinge()
    else:
        y = 6 + np.argmax(affinity, axis=1)
        loss = HierarchicalHinge(Tree((-1,) * 6 + tuple(c % 6 for c in range(k))))
    products = []
    for intercept in (False, True):
        risk = LinearRisk(X, y, loss, intercept=intercept, n_threads=1)
        result = solve(Problem(risk, "l2", 1e-2), tol=1e-2, max_seconds=60)
        assert result.converged
        products.append(risk.products)
    assert products[1] <= 4 * products[0]


@pytest.mark.parametrize("kind", ["labels", "tree"])
def test_free_constants_take_at_most_twice_the_epochs(kind, monkeypatch):
    """Columns of one sign, whose mean the constants can stand for."""
    k, m, d = (40, 600, 20) if kind == "labels" else (24, 400, 10)
    rng = np.random.default_rng(1)
    X = np.abs(rng.normal(size=(m, d)))
    affinity = X @ rng.normal(size=(d, k)) + np.linspace(0.0, 3.0, k)
    if kind == "labels":
        affinity += rng.gumbel(size=(m, k))
        y, loss = (affinity >= np.sort(affinity, axis=1)[:, -3:-2]).astype(float), MultilabelHinge()
    else:
        y = 12 + np.argmax(affinity + 2.0 * rng.gumbel(size=(m, k)), axis=1)
        loss = HierarchicalHinge(Tree((-1,) * 3 + tuple(c % 3 for c in range(9)) + tuple(3 + c % 9 for c in range(k))))
    keys, epoch = [], Dual.epoch

    def counted(self, point, key, reach):
        keys[-1].append(key)
        return epoch(self, point, key, reach)

    monkeypatch.setattr(Dual, "epoch", counted)
    for intercept in (False, True):
        keys.append([])
        risk = LinearRisk(X, y, loss, intercept=intercept, n_threads=1)
        assert solve(Problem(risk, "l2", 0.1), "dual_coordinate", tol=1e-3).converged
    assert len(keys[1]) <= 2 * len(keys[0])
