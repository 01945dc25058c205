"""Planes by their slopes: on data wider than long they must do all that planes by their normals do."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from catalogue import as_csr, data_for
from reference import models

import bmrm
from bmrm import LinearRisk, Problem
from bmrm.bundle import Bundle, master_for, storage
from bmrm.losses import Hinge, Logistic, NuNovelty, Quantile
from bmrm.regularizers import L1, L2
from bmrm.risks.scaled import ScaledRisk
from bmrm.solvers import BMRM, LsBMRM, ProximalBundle, base
from bmrm.testing import check_solver

M, D, LAM = 12, 40, 0.02
LOSSES = [Hinge(), Logistic(), Quantile(0.3)]
SOLVERS = [LsBMRM(), BMRM(), ProximalBundle(), ProximalBundle(line_search=False)]
WEIGHTS = {"plain": None, "weights": np.linspace(0.5, 2.0, D)}

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
every_solver = pytest.mark.parametrize(
    "solver", SOLVERS, ids=lambda solver: solver.name + ("" if getattr(solver, "line_search", True) else "+plain")
)
every_weighting = pytest.mark.parametrize("weights", WEIGHTS)


def risk_of(loss, **options):
    X, y = data_for(loss, M, D)
    return LinearRisk(as_csr(X, np.int32), y, loss, n_threads=1, **options)


def problem_of(loss, weights="plain", lam=LAM, **options):
    return Problem(risk_of(loss, **options), L2(WEIGHTS[weights]), lam)


@cache
def optimum(loss, weights="plain"):
    X, y = data_for(loss, M, D)
    return models.optimum(loss, X, y, L2(WEIGHTS[weights]).bind(D, ()), LAM)


@pytest.fixture
def by_normals(monkeypatch):
    """Return a function that switches slopes off."""
    return lambda: monkeypatch.setattr(base, "_ENTRIES", 0.0)


def pair(risk, rng, count=6, **options):
    """Return two bundles of the same planes, by slopes and by normals."""
    bundles = [Bundle(risk.dim, risk.floor, space=space, **options) for space in (risk.space(), None)]
    for w in rng.normal(size=(count, risk.dim)):
        for bundle in bundles:
            bundle.add_point(risk.at(w))
    return bundles


def assert_same_planes(one, other, rng):
    np.testing.assert_allclose(one.normals, other.normals, atol=1e-14)
    np.testing.assert_allclose(one.offsets, other.offsets, atol=1e-13)
    v, alpha, inverse = rng.normal(size=one.dim), rng.random(len(one)), rng.random(one.dim)
    np.testing.assert_allclose(one.products(v), other.products(v), atol=1e-13)
    np.testing.assert_allclose(one.combine(alpha), other.combine(alpha), atol=1e-13)
    assert one.value(v) == pytest.approx(other.value(v), abs=1e-13)
    for k in range(len(one)):
        row = one.gram_row(k, inverse)
        assert row.size == k + 1
        np.testing.assert_allclose(row, other.gram_row(k, inverse), atol=1e-13)
        np.testing.assert_allclose(one.normal(k - len(one)), other.normal(k), atol=1e-14)


@every_loss
@pytest.mark.parametrize("offset", [False, True])
def test_the_planes_are_the_same(loss, offset, rng):
    risk = risk_of(loss, offset=np.linspace(-1.0, 1.0, M) if offset else None, sample_weight=np.arange(1.0, M + 1))
    slopes, normals = pair(risk, rng)
    assert slopes.space is not None
    assert normals.space is None
    assert_same_planes(slopes, normals, rng)
    for w in 3.0 * rng.normal(size=(20, D)):
        assert slopes.value(w) <= risk.at(w).value


def test_planes_with_slopes_and_without_live_together(rng):
    risk = risk_of(Hinge())
    slopes, normals = pair(risk, rng)
    for w in rng.normal(size=(3, D)):
        for bundle in (slopes, normals):
            bundle.add(w, *risk.evaluate(w))
            bundle.add_point(risk.at(-w))
    assert_same_planes(slopes, normals, rng)
    copy = slopes.copy()
    assert_same_planes(copy, normals, rng)
    alpha = np.full(len(slopes), 1.0 / len(slopes))
    for bundle in (slopes, normals):
        bundle.max_cuts = 6
        bundle.record(alpha)
    assert len(slopes) == len(normals) < 6
    assert_same_planes(slopes, normals, rng)
    slopes.add_point(risk.at(np.ones(D)))
    assert len(copy) == alpha.size


def test_the_budget_counts_planes_without_slopes(rng, monkeypatch):
    monkeypatch.setattr(storage, "BYTE_BUDGET", 8 * D * 30)
    risk = risk_of(Hinge())
    bundle = Bundle(D, 0.0, space=risk.space())
    for w in rng.normal(size=(100, D)):
        bundle.add(w, *risk.evaluate(w))
        bundle.record(np.full(len(bundle), 1.0 / len(bundle)))
        assert len(bundle) <= 32
    assert bundle.max_cuts > 32


def test_storage_moves_from_one_form_to_the_other(rng):
    risk = risk_of(Hinge())
    slopes, normals = pair(risk, rng)
    other = slopes.copy()
    other.keep_in(None)
    assert other.space is None
    assert other.max_cuts == Bundle(D).max_cuts
    assert_same_planes(other, normals, rng)
    before = risk.products
    other.keep_in(risk.space())
    assert risk.products == before
    other.add_point(risk.at(np.ones(D)))
    normals.add_point(risk.at(np.ones(D)))
    assert_same_planes(other, normals, rng)


def test_what_does_not_fit_as_normals_is_aggregated(rng):
    risk = risk_of(Logistic())
    slopes, _ = pair(risk, rng, 30)
    slopes.max_cuts = 10
    slopes.record(np.full(31, 1.0 / 31))
    slopes.keep_in(None)
    assert slopes.space is None
    assert len(slopes) < 10
    for w in rng.normal(size=(20, D)):
        assert slopes.value(w) <= risk.at(w).value


@every_weighting
def test_masters_agree(weights, rng):
    risk, regularizer = risk_of(Hinge()), L2(WEIGHTS[weights]).bind(D, ())
    bundles, master = pair(risk, rng), master_for(regularizer)
    for w in rng.normal(size=(30, D)):
        one, other = (master.solve(bundle, LAM, 10.0) for bundle in bundles)
        np.testing.assert_allclose(one.w, other.w, atol=1e-9)
        assert one.lower == pytest.approx(other.lower, rel=1e-9)
        near = [master.solve_near(bundle, LAM, 10.0, w, 0.1) for bundle in bundles]
        np.testing.assert_allclose(near[0].w, near[1].w, atol=1e-9)
        for bundle in bundles:
            bundle.add_point(risk.at(one.w + 0.1 * w))


def test_units_change_nothing(rng):
    risk, c = risk_of(Hinge()), 2.0 ** rng.integers(-5, 6, D)
    slopes, normals = pair(ScaledRisk(risk, c), rng)
    assert_same_planes(slopes, normals, rng)
    back, c_inverse = slopes.rescaled(1.0 / c), normals.rescaled(1.0 / c)
    assert_same_planes(back, c_inverse, rng)
    np.testing.assert_array_equal(back.rescaled(c).normals, slopes.normals)


@every_solver
@every_loss
@every_weighting
def test_solvers_on_wide_data(loss, weights, solver):
    problem = problem_of(loss, weights)
    assert base.space_for(problem) is not None
    plain = isinstance(solver, ProximalBundle) and not solver.line_search
    check_solver(solver, problem, optimum(loss, weights), tol=1e-3 if plain else 1e-6)
    assert bmrm.solve(problem, solver, max_iter=3).state.bundle.space is not None


@every_solver
@every_loss
def test_runs_are_the_same(loss, solver, by_normals):
    problem = problem_of(loss)
    steps = {ProximalBundle: 4, LsBMRM: 5}.get(
        type(solver), 8
    )  # later on, rows come to lie on a kink: rounding decides
    one = bmrm.solve(problem, solver, tol=0.0, max_iter=steps)
    by_normals()
    other = bmrm.solve(problem, solver, tol=0.0, max_iter=steps)
    assert one.state.bundle.space is not None
    assert other.state.bundle.space is None
    np.testing.assert_allclose(
        [(r.upper, r.lower) for r in one.history], [(r.upper, r.lower) for r in other.history], rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("solver", [LsBMRM(max_cuts=6), BMRM(max_cuts=6)], ids=lambda solver: solver.name)
def test_few_planes_are_aggregated_and_still_bound(solver):
    problem, exact = problem_of(Hinge()), optimum(Hinge())
    result = bmrm.solve(problem, solver, tol=1e-3, max_iter=300)
    assert result.certificate.relative_gap < 0.05
    assert result.passes <= 3 * result.iterations  # Gram rows of planes that stay are not computed again
    assert len(result.state.bundle) <= 6
    assert all(record.lower <= exact + 1e-7 for record in result.history)


def test_a_run_goes_on_to_the_last_digit():
    problem = problem_of(Hinge())
    whole = bmrm.solve(problem, "ls_bmrm", tol=0.0, max_iter=12)
    part = bmrm.solve(problem, "ls_bmrm", tol=0.0, max_iter=5)
    rest = bmrm.solve(problem, "ls_bmrm", tol=0.0, max_iter=7, start=part)
    np.testing.assert_array_equal(rest.w, whole.w)
    assert [r.lower for r in rest.history] == [r.lower for r in whole.history[5:]]


@pytest.mark.parametrize(
    "other", ["newton", "lbfgs", "dual_coordinate", "semismooth_newton", "hybrid", "auto", "bmrm_line"]
)
def test_other_solvers_take_the_planes_and_give_theirs(other):
    loss = Logistic() if other in ("newton", "lbfgs") else Hinge()
    problem, exact = problem_of(loss), optimum(loss)
    tol = 1e-2 if other == "bmrm_line" else 1e-6
    first = bmrm.solve(problem, "ls_bmrm", max_iter=4)
    second = bmrm.solve(problem, other, tol=tol, start=first)
    third = bmrm.solve(problem.with_lam(0.7 * LAM), "ls_bmrm", tol=1e-6, start=second)
    assert second.converged
    assert third.converged
    assert second.certificate.lower <= exact + 1e-7
    assert exact <= second.certificate.upper + 1e-7
    assert third.state.bundle.space is not None


def test_another_regularizer_gets_normals():
    problem = problem_of(Hinge())
    first = bmrm.solve(problem, "ls_bmrm", max_iter=4)
    sparse = Problem(problem.risk, L1(), LAM)
    second = bmrm.solve(sparse, "ls_bmrm", tol=1e-6, start=first)
    assert second.converged
    assert second.state.bundle.space is None
    assert second.certificate.upper == pytest.approx(
        bmrm.solve(sparse, "ls_bmrm", tol=1e-6).certificate.upper, rel=1e-5
    )
    third = bmrm.solve(problem, "ls_bmrm", tol=1e-6, start=second)
    assert third.converged
    assert third.state.bundle.space is not None
    assert third.certificate.upper == pytest.approx(optimum(Hinge()), rel=1e-5)


def test_a_path_shares_planes(by_normals):
    lams = [0.1, 0.03, 0.01]
    one = bmrm.path(risk_of(Hinge()), "l2", lams, "ls_bmrm", tol=1e-6)
    assert one[-1].state.bundle.space is not None
    by_normals()
    other = bmrm.path(risk_of(Hinge()), "l2", lams, "ls_bmrm", tol=1e-6)
    for first, second in zip(one, other):
        assert first.converged
        assert first.certificate.upper == pytest.approx(second.certificate.upper, rel=1e-6)


def test_slopes_only_where_they_fit():
    wide = risk_of(Hinge())
    assert base.space_for(Problem(wide, "l2", LAM)) is not None
    assert base.space_for(Problem(wide, "l1", LAM)) is None
    assert base.space_for(Problem(wide, L2(bounds=(-1.0, 1.0)), LAM)) is None
    assert base.space_for(Problem(risk_of(Hinge(), intercept=True), "l2", LAM)) is None
    assert base.space_for(Problem(risk_of(Hinge(), intercept=True), L2(np.ones(D + 1)), LAM)) is not None
    X, y = data_for(Hinge())
    assert base.space_for(Problem(LinearRisk(X, y, Hinge()), "l2", LAM)) is None
    assert LinearRisk(X, None, NuNovelty()).space() is None


def test_the_penalized_constant_is_part_of_the_product(rng):
    risk = risk_of(Hinge(), intercept=True)
    assert_same_planes(*pair(risk, rng), rng)
    result = bmrm.solve(Problem(risk, L2(np.ones(D + 1)), LAM), "ls_bmrm", tol=1e-6)
    X, y = data_for(Hinge(), M, D)
    exact = models.optimum(Hinge(), np.c_[X, np.ones(M)], y, L2().bind(D + 1, ()), LAM)
    assert result.converged
    assert result.certificate.lower <= exact + 1e-7
    assert exact <= result.certificate.upper + 1e-7
