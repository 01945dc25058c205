"""The score of a regressor: the loss's own, against scikit-learn's measures and against brute force."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn import metrics
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from bmrm import LinearRegressor, losses
from bmrm.estimators.skill import least_by_constant, skill

WEIGHTS = [False, True]


def r2(y, f, weight):
    return metrics.r2_score(y, f, sample_weight=weight)


def d2_absolute(y, f, weight):
    return metrics.d2_absolute_error_score(y, f, sample_weight=weight)


PEERS = {
    losses.LeastSquares(): r2,
    losses.SquaredEpsilonInsensitive(eps=50.0): r2,
    losses.LeastAbsolute(): d2_absolute,
    losses.EpsilonInsensitive(eps=50.0): d2_absolute,
    losses.NuEpsilonInsensitive(nu=0.3): d2_absolute,
    losses.Quantile(tau=0.9): lambda y, f, w: metrics.d2_pinball_score(y, f, sample_weight=w, alpha=0.9),
    losses.Poisson(): lambda y, f, w: metrics.d2_tweedie_score(y, np.exp(f), sample_weight=w, power=1),
    losses.Huber(delta=1e9): r2,
}


def drawn(rng, m=101):
    y = rng.poisson(3.0, size=m).astype(float)
    return y, np.log(1.0 + y) + 0.3 * rng.normal(size=m)


@pytest.mark.parametrize("weighted", WEIGHTS)
@pytest.mark.parametrize("loss", PEERS, ids=repr)
def test_scores_are_scikit_learn_s(loss, weighted, rng):
    y, f = drawn(rng)
    weight = rng.uniform(size=y.size) if weighted else None
    assert skill(loss, y, f, weight) == pytest.approx(PEERS[loss](y, f, weight), rel=1e-10)


@pytest.mark.parametrize("loss", [losses.Huber(delta=0.7), losses.LeastAbsolute(), losses.Quantile(0.3)], ids=repr)
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-6, 0.0), (1e6, -1e9), (1.0, 1e6)])
def test_the_best_constant_is_the_best_of_many(loss, scale, shift, rng):
    y, p = shift + scale * rng.normal(size=51), np.full(51, 1.0 / 51.0)
    found = least_by_constant(loss, y, p)
    many = [loss.evaluate(np.full(51, c), y, p)[0] for c in np.r_[y, np.linspace(y.min(), y.max(), 4001)]]
    assert found <= min(many) * (1.0 + 1e-9)
    assert found >= min(many) * (1.0 - 1e-3)


def test_a_loss_of_one_s_own_has_its_own_score(rng):
    class Expectile(losses.Loss):
        floor = 0.0

        def evaluate(self, scores, targets, weight):
            r = scores - targets
            c = weight * np.where(r > 0.0, 0.2, 0.8)
            return 0.5 * float(c @ r**2), c * r

    y, f = drawn(rng)
    errors = [Expectile().evaluate(np.full(y.size, c), y, np.ones(y.size))[0] for c in np.linspace(0.0, 9.0, 90_001)]
    expected = 1.0 - Expectile().evaluate(f, y, np.ones(y.size))[0] / min(errors)
    assert skill(Expectile(), y, f, None) == pytest.approx(expected, rel=1e-7)

    class Unbounded(Expectile):
        floor = -np.inf

    assert skill(Unbounded(), y, f, None) == r2(y, f, None)


def test_targets_that_a_constant_predicts():
    same = np.full(4, 2.0)
    assert skill(losses.Huber(), same, same, None) == 1.0
    assert skill(losses.Huber(), same, same + 1.0, None) == 0.0
    assert skill(losses.Poisson(), np.zeros(4), np.zeros(4), None) == 0.0


@pytest.mark.parametrize(("loss", "params"), [("poisson", {}), ("quantile", {"tau": 0.8}), ("huber", {})])
def test_the_estimator_takes_offsets_and_weights(loss, params, rng):
    X = rng.normal(size=(200, 2))
    exposure, weight = rng.uniform(1.0, 9.0, size=200), rng.uniform(size=200)
    y = rng.poisson(exposure * np.exp(X @ [0.5, -0.5])).astype(float)
    shift = np.log(exposure)
    model = LinearRegressor(loss=loss, loss_params=params).fit(X, y, offset=shift)
    scores = X @ model.coef_ + model.intercept_ + shift
    assert model.score(X, y, weight, shift) == pytest.approx(skill(model.loss_, y, scores, weight))
    assert model.score(X, y, offset=shift) != model.score(X, y)
    with pytest.raises(ValueError, match="offset"):
        model.score(X, y, offset=shift[1:])
    with pytest.raises(ValueError, match="sample_weight of row 0 is -1"):
        model.score(X, y, sample_weight=-np.ones(200))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, y[1:])


def test_several_numbers(rng):
    X = rng.normal(size=(60, 3))
    Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(60, 2))
    model = LinearRegressor(loss="multivariate_regression").fit(X, Y)
    assert model.score(X, Y) == pytest.approx(metrics.r2_score(Y, model.predict(X)))


def test_scores_are_routed(rng):
    """Weights and offsets reach every fold's fit and score."""
    X, exposure, weight = rng.normal(size=(150, 2)), rng.uniform(1.0, 9.0, size=150), rng.uniform(size=150)
    y, shift = rng.poisson(exposure * np.exp(X @ [0.5, -0.5])).astype(float), np.log(exposure)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LinearRegressor(loss="poisson", lam=1e-3, tol=1e-8)
        model.set_fit_request(sample_weight=True, offset=True).set_score_request(sample_weight=True, offset=True)
        given = {"sample_weight": weight, "offset": shift}
        found = cross_val_score(model, X, y, cv=KFold(3), params=given)
        search = GridSearchCV(model, {"lam": [1e-3, 10.0]}, cv=KFold(3)).fit(X, y, **given)
    expected = []
    for train, test in KFold(3).split(X):
        one = LinearRegressor(loss="poisson", lam=1e-3, tol=1e-8).fit(X[train], y[train], weight[train], shift[train])
        means = one.predict(X[test], offset=shift[test])
        expected.append(metrics.d2_tweedie_score(y[test], means, sample_weight=weight[test], power=1))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert search.best_params_ == {"lam": 1e-3}
    assert search.best_score_ == pytest.approx(np.mean(expected))
