"""Problems that must have the same answer, because algebra says so; and bounds that must hold, whatever is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import (
    all_losses,
    all_regularizers,
    all_solvers,
    data_for,
    is_bounded_below,
    sample_for,
    scalar_losses,
    tolerance,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import models

from bmrm import LinearRisk, Problem, path, solve
from bmrm.bundle import master_for
from bmrm.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    LeastAbsolute,
    LeastSquares,
    Logistic,
    PiecewiseQuadratic,
    Quantile,
    SquaredHinge,
)
from bmrm.problem import missing
from bmrm.regularizers import L1, L2

TOL = 1e-8
SOME = [Hinge(), Logistic(), LeastSquares(), Quantile(tau=0.9), Huber(delta=1.0)]
some_losses = pytest.mark.parametrize("loss", SOME, ids=repr)
both_kinds = pytest.mark.parametrize("kind", [L2, L1])


def optimum(risk, kind, lam, **options):
    result = solve(Problem(risk, kind() if isinstance(kind, type) else kind, lam), "ls_bmrm", tol=TOL, **options)
    assert result.converged
    return result


def assert_equal(one, other, scale=1.0):
    """The intervals [lower, upper] of both overlap."""
    slack = 1e-10 * (1.0 + abs(one.certificate.upper))
    assert one.certificate.lower * scale <= other.certificate.upper + slack
    assert other.certificate.lower <= one.certificate.upper * scale + slack


@some_losses
@both_kinds
def test_repeated_rows_are_weights(loss, kind, rng):
    X, y = data_for(loss)
    weight = rng.integers(0, 4, size=y.size)
    one = optimum(LinearRisk(X, y, loss, sample_weight=weight, intercept=True), kind, 0.02)
    repeated = LinearRisk(np.repeat(X, weight, axis=0), np.repeat(y, weight), loss, intercept=True)
    other = optimum(repeated, kind, 0.02)
    assert_equal(one, other)
    if kind is L2:
        np.testing.assert_allclose(one.w, other.w, atol=2e-3)


@some_losses
@both_kinds
def test_permuted_rows(loss, kind, rng):
    X, y = data_for(loss)
    order = rng.permutation(y.size)
    assert_equal(optimum(LinearRisk(X, y, loss), kind, 0.02), optimum(LinearRisk(X[order], y[order], loss), kind, 0.02))


@some_losses
@both_kinds
def test_permuted_columns(loss, kind, rng):
    X, y = data_for(loss)
    order = rng.permutation(X.shape[1])
    one, other = (optimum(LinearRisk(Z, y, loss), kind, 0.02) for Z in (X, X[:, order]))
    assert_equal(one, other)
    if kind is L2:
        np.testing.assert_allclose(one.w[order], other.w, atol=2e-3)


@some_losses
def test_doubled_columns(loss):
    """[X, X] / 2 with w = (v, v): the scores are X v; |w|^2 = 2 |v|^2 halves lam for l2, and so does l1."""
    X, y = data_for(loss)
    doubled = LinearRisk(np.hstack([X, X]) / 2.0, y, loss)
    for kind in (L2, L1):
        one, other = optimum(LinearRisk(X, y, loss), kind, 0.04), optimum(doubled, kind, 0.02)
        assert_equal(one, other)
        if kind is L2:
            np.testing.assert_allclose(other.w[:4], other.w[4:], atol=2e-3)


@pytest.mark.parametrize(
    ("loss", "scaled", "degree"),
    [
        (LeastSquares(), LeastSquares(), 2),
        (LeastAbsolute(), LeastAbsolute(), 1),
        (Quantile(tau=0.9), Quantile(tau=0.9), 1),
        (EpsilonInsensitive(eps=0.1), EpsilonInsensitive(eps=0.3), 1),
        (Huber(delta=1.0), Huber(delta=3.0), 2),
    ],
    ids=repr,
)
@both_kinds
def test_scaled_targets(loss, scaled, degree, kind):
    """y -> 3 y makes w -> 3 w if J scales as a whole: lam follows the degrees of loss and regularizer."""
    X, y = data_for(loss)
    c, power = 3.0, 2 if kind is L2 else 1
    one = optimum(LinearRisk(X, y, loss, intercept=True), kind, 0.02)
    other = optimum(LinearRisk(X, c * y, scaled, intercept=True), kind, 0.02 * c ** (degree - power))
    assert_equal(one, other, scale=c**degree)


@some_losses
@both_kinds
def test_regularizer_weights_are_scaled_columns(loss, kind):
    """Weight s on w_j is the same as dividing column j by s (l1) or by its root (l2)."""
    X, y = data_for(loss)
    s = np.array([0.5, 1.0, 2.0, 4.0])
    columns = X / (s if kind is L1 else np.sqrt(s))
    one = optimum(LinearRisk(X, y, loss), kind(weights=s), 0.02)
    assert_equal(one, optimum(LinearRisk(columns, y, loss), kind, 0.02))


@some_losses
@both_kinds
def test_flipped_labels_or_signs(loss, kind):
    """A column with the other sign has a coefficient with the other sign."""
    X, y = data_for(loss)
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    assert_equal(optimum(LinearRisk(X, y, loss), kind, 0.02), optimum(LinearRisk(X * signs, y, loss), kind, 0.02))


@some_losses
@both_kinds
@pytest.mark.parametrize("solver", ["bmrm", "ls_bmrm", "auto"])
def test_a_path_is_its_separate_solves(loss, kind, solver):
    X, y = data_for(loss)
    risk = LinearRisk(X, y, loss, intercept=True)
    lams = [1.0, 0.3, 0.1, 0.03, 0.01]
    results = path(risk, kind(), lams, solver=solver, tol=1e-6)
    assert len(results) == len(lams)
    for lam, result in zip(lams, results):
        assert result.converged
        assert_equal(result, solve(Problem(risk, kind(), lam), solver, tol=1e-6))


@pytest.mark.parametrize("loss", all_losses(), ids=repr)
def test_all_solvers_agree(loss):
    X, y, groups = sample_for(loss)
    risk = LinearRisk(X, y, loss, groups=groups, n_threads=1)
    for regularizer in all_regularizers(risk.dim) if loss in scalar_losses() else [L2(), L1()]:
        if not is_bounded_below(loss, regularizer):
            continue
        problem = Problem(risk, regularizer, 0.1)
        fitting = [solver for solver in all_solvers() if not missing(solver, problem)]
        results = [solve(problem, solver, tol=max(1e-5, tolerance(solver))) for solver in fitting]
        assert all(result.converged for result in results)
        for result in results[1:]:
            assert_equal(results[0], result)


@pytest.mark.parametrize(
    ("built_in", "given"),
    [
        (Hinge(), PiecewiseQuadratic([1.0], [(0, -1, 1), (0, 0, 0)], of="margin")),
        (SquaredHinge(), PiecewiseQuadratic([1.0], [(0.5, -1, 0.5), (0, 0, 0)], of="margin")),
        (Huber(delta=0.5), PiecewiseQuadratic([-0.5, 0.5], [(0, -0.5, -0.125), (0.5, 0, 0), (0, 0.5, -0.125)])),
        (Quantile(tau=0.75), PiecewiseQuadratic([0.0], [(0, -0.75, 0), (0, 0.25, 0)])),
        (
            EpsilonInsensitive(eps=0.5),
            PiecewiseQuadratic([-0.5, 0.5], [(0, -1, -0.5), (0, 0, 0), (0, 1, -0.5)]),
        ),
    ],
    ids=lambda loss: loss.name,
)
@both_kinds
def test_a_given_loss_has_the_optimum_of_the_built_in(built_in, given, kind):
    X, y = data_for(built_in)
    assert_equal(optimum(LinearRisk(X, y, built_in), kind, 0.02), optimum(LinearRisk(X, y, given), kind, 0.02))


@some_losses
def test_planes_hold_for_every_lam_and_regularizer(loss, rng):
    """A bundle found for one problem bounds every other problem of the same risk."""
    X, y = data_for(loss)
    risk = LinearRisk(X, y, loss)
    bundle = solve(Problem(risk, "l2", 0.05), "bmrm", tol=1e-6).state.bundle
    for w in 3.0 * rng.normal(size=(50, risk.dim)):
        assert bundle.value(w) <= risk.evaluate(w)[0] + 1e-10
    for lam in (1e-3, 0.05, 1.0):
        for kind in (L2, L1):
            regularizer = kind().bind(risk.dim)
            lower = master_for(regularizer).solve(bundle, lam, np.inf).lower
            best = models.optimum(loss, X, risk.targets, regularizer, lam)
            assert lower <= best + models.ERROR * (1.0 + abs(best))


@settings(max_examples=300)
@given(
    loss=st.sampled_from(all_losses()),
    example=st.integers(0, 5),
    power=st.floats(-6.0, 2.0),
    seed=st.integers(0, 10**6),
    m=st.integers(1, 12),
    d=st.integers(1, 5),
    intercept=st.booleans(),
    solver=st.sampled_from(all_solvers()),
)
def test_no_bound_exceeds_any_objective(loss, example, power, seed, m, d, intercept, solver):
    """Whatever the problem and however early the run ends: lower <= J(w) for every w, and the gap is not negative."""
    rng = np.random.default_rng(seed)
    m = m if loss.couples == "row" else m + 3  # a pair, or a query
    X = rng.normal(size=(m, d)) * rng.choice([1e-2, 1.0, 10.0])
    y, groups = loss.draw(rng, m)
    intercept = intercept and not loss.shift_slope(loss.encode(y, groups))
    risk = LinearRisk(X, y, loss, groups=groups, intercept=intercept, n_threads=1)
    regularizer = all_regularizers(risk.dim)[example]
    if not is_bounded_below(loss, regularizer):
        return
    problem = Problem(risk, regularizer, 10.0**power)
    if missing(solver, problem):
        return
    result = solve(problem, solver, tol=1e-6, max_iter=int(rng.integers(1, 60)))
    certificate = result.certificate
    scale = 1.0 + abs(certificate.upper)
    assert certificate.gap >= -1e-12 * scale
    rounding = risk.at(result.w).rounding  # far out on a coordinate without a penalty, many digits of J
    assert certificate.upper == pytest.approx(problem.objective(result.w), rel=1e-9, abs=1e-12 + 2.0 * rounding)
    drawn = rng.normal(size=(10, risk.dim)) * rng.choice([0.01, 0.1, 1.0, 10.0], size=(10, 1))
    near = result.w + 1e-3 * rng.normal(size=(10, risk.dim))
    for w in [*drawn, *near, np.zeros(risk.dim)]:
        inside = problem.regularizer.clip(w)
        assert certificate.lower <= problem.objective(inside) + 1e-11 * scale
