"""Dual coordinate descent: settled rows, orders, seeds, weights, offsets, layouts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from bmrm import LinearRisk, Problem, solve
from bmrm.losses import EpsilonInsensitive, Hinge, LeastAbsolute, Logistic, Poisson, Quantile, SquaredHinge
from bmrm.regularizers import L2
from bmrm.risks.dual import DualRows
from bmrm.solvers import DualCoordinate

LAM = 0.02


@pytest.fixture
def data(rng):
    X = rng.normal(size=(200, 6)) * (rng.random((200, 6)) < 0.6)
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=200) > 0, 1.0, -1.0)


def solved(X, y, loss, regularizer=None, **options):
    risk = LinearRisk(X, y, loss, n_threads=1, **options)
    return solve(Problem(risk, regularizer or "l2", LAM), "dual_coordinate", tol=1e-8, max_seconds=30)


LOSSES = [Hinge(), SquaredHinge(), Logistic(), EpsilonInsensitive(eps=0.2), Quantile(tau=0.8), LeastAbsolute()]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_agrees_with_the_bundle_method(loss, data):
    X, y = data
    problem = Problem(LinearRisk(X, y, loss, n_threads=1), "l2", LAM)
    ours, other = (solve(problem, name, tol=1e-7, max_seconds=30) for name in ("dual_coordinate", "ls_bmrm"))
    assert ours.converged
    assert other.converged
    assert ours.certificate.upper == pytest.approx(other.certificate.upper, rel=2e-7)


@pytest.mark.parametrize("loss", [Hinge(), Logistic(), Poisson()], ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
def test_offsets_and_weights(loss, intercept, data, rng):
    """Known shifts of the scores and weights of rows and coordinates, against the bundle method."""
    X, y = data
    y = np.abs(y) if isinstance(loss, Poisson) else y
    risk = LinearRisk(
        X, y, loss, sample_weight=rng.uniform(0.0, 2.0, size=y.size), offset=rng.normal(size=y.size),
        intercept=intercept, n_threads=1,
    )  # fmt: skip
    problem = Problem(risk, L2(weights=np.linspace(0.5, 4.0, risk.dim)), LAM)
    ours, other = (solve(problem, name, tol=1e-7, max_seconds=30) for name in ("dual_coordinate", "ls_bmrm"))
    assert ours.converged
    assert max(record.lower for record in ours.history) <= other.certificate.upper * (1 + 1e-12)
    assert ours.certificate.upper == pytest.approx(other.certificate.upper, rel=2e-7)


def test_offsets_with_a_free_constant(data, rng):
    X, y = data
    risk = LinearRisk(X, y, Hinge(), offset=rng.normal(size=y.size), intercept=True, n_threads=1)
    problem = Problem(risk, "l2", LAM)
    ours, other = (solve(problem, name, tol=1e-6, max_seconds=30) for name in ("dual_coordinate", "ls_bmrm"))
    assert ours.converged
    assert ours.certificate.upper == pytest.approx(other.certificate.upper, rel=2e-6)


def test_layouts_agree(data):
    """One order of the rows, sums in another order: the same optimum, and nearly the same run."""
    X, y = data
    X = X.astype(np.float32).astype(np.float64)
    narrow = sparse.csr_array(X.astype(np.float32))
    narrow.indices, narrow.indptr = narrow.indices.astype(np.int64), narrow.indptr.astype(np.int64)
    results = [solved(layout, y, Hinge()) for layout in (X, X.astype(np.float32), sparse.csr_array(X), narrow)]
    for result in results:
        assert result.converged
        assert result.certificate.upper == pytest.approx(results[0].certificate.upper, rel=1e-8)


def test_the_seed_decides_the_order(data):
    X, y = data
    problem = Problem(LinearRisk(X, y, Logistic(), n_threads=1), "l2", LAM)
    first, again, other = (solve(problem, "dual_coordinate", tol=1e-6, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.w, again.w)
    assert not np.array_equal(first.w, other.w)
    assert first.certificate.upper == pytest.approx(other.certificate.upper, rel=2e-6)


def dual(X, y, loss, lam=LAM):
    risk = LinearRisk(X, y, loss, n_threads=1)
    return DualRows(risk, np.ones(risk.dim), lam)


def test_settled_rows_are_left_out_and_come_back(data):
    rows = dual(*data, Hinge())
    point = rows.flat()
    first = rows.epoch(point, key=1, reach=np.inf)
    assert point.n_active == 200
    assert first.changed > 0
    for key in range(2, 30):
        last = rows.epoch(point, key, reach=0.01)
    assert point.n_active < 200
    assert np.array_equal(np.sort(point.active), np.arange(200))
    assert last.entries < first.entries
    at_an_end = np.isin(point.s[point.active[point.n_active :]] * data[1][point.active[point.n_active :]], [0.0, -1.0])
    assert at_an_end.all()
    point.w += 10.0  # all scores move: rows wake up
    before = point.n_active
    rows.check(point, 0.0)
    assert point.n_active != before


def test_smooth_losses_leave_no_row_out(data):
    rows = dual(*data, Logistic())
    point = rows.flat()
    for key in range(10):
        rows.epoch(point, key, reach=0.0)
    assert point.n_active == 200


@pytest.mark.parametrize("loss", [Hinge(), Logistic(), LeastAbsolute()], ids=repr)
def test_w_is_that_of_the_slopes(loss, data):
    """What is added up row by row equals the product, within the error that is charged to the bound."""
    rows = dual(*data, loss)
    point = rows.flat()
    for key in range(50):
        rows.epoch(point, key, reach=np.inf)
    kept, error = point.w.copy(), point.error
    rows.renew(point, np.zeros(6))
    assert rows.norm(kept - point.w) <= error + point.error
    assert error < 1e-9


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_sum_of_terms_is_the_gap(loss, data):
    rows = dual(*data, loss)
    point = rows.flat()
    for key in range(5):
        rows.epoch(point, key, reach=np.inf)
    check = rows.check(point, np.inf)
    half = 0.5 * LAM * rows.norm(point.w) ** 2
    assert check.gap == pytest.approx(check.value + half - (check.offset - half), rel=1e-9, abs=1e-12)


def test_duplicate_and_zero_rows():
    X = np.vstack([np.ones((5, 2)), np.zeros((3, 2)), -np.ones((5, 2))])
    y = np.array([1.0] * 5 + [1.0, -1.0, 1.0] + [-1.0] * 5)
    for loss in LOSSES:
        assert solved(X, y, loss).converged


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_one_row_with_any_step(size):
    result = solved(np.array([[size]]), [1.0], Hinge())
    assert result.converged
    assert result.certificate.upper <= 1.0


def test_a_start_near_the_optimum_is_used(data):
    X, y = data
    problem = Problem(LinearRisk(X, y, SquaredHinge(), n_threads=1), "l2", LAM)
    cold = solve(problem, "dual_coordinate", tol=1e-6)
    warm = solve(problem, "dual_coordinate", tol=1e-6, start=cold.w)
    assert warm.converged
    assert warm.passes < cold.passes
    path = solve(problem.with_lam(0.9 * LAM), "dual_coordinate", tol=1e-3, start=cold)
    assert path.converged


def test_rows_that_do_not_exist_are_refused(data):
    rows = dual(*data, Hinge())
    point = rows.flat()
    point.active[0] = 200
    with pytest.raises(ValueError, match="row 200 does not exist"):
        rows.epoch(point, key=1, reach=np.inf)


def test_checks_are_a_small_part_of_the_work(data):
    """Few checks for many epochs, and the estimate is what calls for them."""
    X, y = data
    problem = Problem(LinearRisk(X, y, Hinge(), n_threads=1), "l2", 1e-3)
    often = solve(problem, DualCoordinate(fraction=1.0), tol=1e-6, max_seconds=30)
    seldom = solve(problem, DualCoordinate(fraction=0.05), tol=1e-6, max_seconds=30)
    assert often.converged
    assert seldom.converged
    assert seldom.iterations < often.iterations


@pytest.fixture(scope="module")
def many_rows():
    """Enough entries for two blocks of rows side by side."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(6000, 50)) / 7.0 + 0.1
    return X, np.where(X[:, 0] + 0.1 * rng.normal(size=6000) > 0.1, 1.0, -1.0)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=repr)
def test_two_blocks_of_rows(loss, many_rows):
    """The number of threads changes nothing, and the optimum is that of the bundle method."""
    X, y = many_rows
    one, two = (
        solve(Problem(LinearRisk(X, y, loss, n_threads=n), "l2", 1e-3), "dual_coordinate", tol=1e-6) for n in (1, 2)
    )
    assert one.converged
    np.testing.assert_array_equal(one.w, two.w)
    assert [record.lower for record in one.history] == [record.lower for record in two.history]
    other = solve(Problem(LinearRisk(X, y, loss, n_threads=1), "l2", 1e-3), "ls_bmrm", tol=1e-5, max_seconds=30)
    assert max(record.lower for record in one.history) <= other.certificate.upper * (1 + 1e-12)
    assert one.certificate.upper == pytest.approx(other.certificate.upper, rel=2e-5)


def test_two_blocks_keep_w_that_of_the_slopes(many_rows):
    rows = dual(*many_rows, SquaredHinge(), 1e-3)
    point = rows.flat()
    before = rows.value(point)
    for key in range(8):
        rows.epoch(point, key, reach=np.inf)
        assert rows.value(point) > before
        before = rows.value(point)
    assert 1.0 <= point.pace[1] <= point.pace[0] <= 2.0
    assert point.pace[0] != 1.0
    kept, error = point.w.copy(), point.error
    rows.renew(point, np.zeros(50))
    assert rows.norm(kept - point.w) <= error + point.error


def test_two_blocks_can_be_taken_up_again(many_rows):
    X, y = many_rows
    problem = Problem(LinearRisk(X, y, Logistic(), n_threads=2), "l2", 1e-3)
    whole = solve(problem, "dual_coordinate", tol=1e-9)
    part = solve(problem, "dual_coordinate", tol=1e-9, max_iter=2)
    assert not part.converged
    rest = solve(problem, "dual_coordinate", tol=1e-9, start=part)
    np.testing.assert_array_equal(whole.w, rest.w)
