"""Lower bounds where the normals X'l have few digits: columns that depend on each other, of very different size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

import bmrm
from bmrm.bundle import Bundle
from bmrm.bundle.charges import Errors, charged_dual
from bmrm.problem import missing
from bmrm.risks.normal_error import SlopesError

LAM = 1e-9


def family(seed, loss):
    rng = np.random.default_rng(seed)
    u, V = rng.normal(size=(8, 1)), rng.normal(size=(8, 3))
    y = 300.0 * V[:, 0]
    return np.c_[u, u + 1e-10 * V] * [1e-3, 1e8, 1, 1e7], np.where(y > 0.0, 1.0, -1.0) if loss == "hinge" else y


def _huber(f, y):
    r = abs(f - y)
    return r * r / 2 if r <= 1 else r - Fraction(1, 2)


EXACTLY = {
    "least_absolute": lambda f, y: abs(f - y),
    "least_squares": lambda f, y: (f - y) ** 2 / 2,
    "quantile": lambda f, y: abs(f - y) / 2,
    "huber": _huber,
    "hinge": lambda f, y: max(Fraction(0), 1 - y * f),
}


def exact_objective(X, y, w, loss):
    w = [Fraction(float(v)) for v in w]
    scores = [sum(Fraction(a) * b for a, b in zip(row, w)) for row in X.tolist()]
    value = sum(EXACTLY[loss](f, Fraction(t)) for f, t in zip(scores, y.tolist())) / len(scores)
    return value + Fraction(LAM) * sum(v * v for v in w) / 2


SOLVERS = [name for name in bmrm.solvers.SOLVERS if not name.startswith(("adaptive", "folos"))]


@pytest.mark.parametrize("loss", EXACTLY)
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_lower_bound_exceeds_the_exact_objective(solver, loss):
    for seed in (547, 12, 301, 714):
        X, y = family(seed, loss)
        problem = bmrm.Problem(bmrm.LinearRisk(X, y, loss, n_threads=1), "l2", LAM)
        if missing(bmrm.solvers.get(solver), problem):
            pytest.skip("the solver does not fit")
        result = bmrm.solve(problem, solver, tol=1e-8, max_iter=60)
        assert Fraction(result.certificate.lower) <= exact_objective(X, y, result.w, loss)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_off_by_less_than_they_may(sparse, dtype):
    """Also with slopes and columns for which every rounding goes the same way, and far more rows than a block."""
    rng = np.random.default_rng(0)
    m, d = 200_000 if not sparse else 20_000, 3
    X = np.c_[np.full(m, 0.1), rng.normal(size=m), np.where(np.arange(m) % 7, 0.0, 1e8 / 3.0)].astype(dtype)
    for slopes in (np.full(m, 0.1), rng.normal(size=m), 1.0 / np.arange(1.0, m + 1.0)):
        risk = bmrm.LinearRisk(scipy.sparse.csr_matrix(X) if sparse else X, np.zeros(m), "least_absolute")
        computed = risk.pull_back(slopes, float(np.sum(slopes)))
        exact = X.astype(np.longdouble).T @ slopes.astype(np.longdouble)
        error = np.abs(computed - exact) - 1e-19 * np.abs(X.astype(np.float64)).T @ np.abs(slopes) * m
        assert np.all(error <= np.linalg.norm(slopes) * risk.normal_error.each(1)[:d])


def test_the_norm_is_at_least_that_of_the_errors(rng):
    X = rng.normal(size=(60, 5)) * np.logspace(-8, 8, 5)
    for intercept in (False, True):
        error = bmrm.LinearRisk(X, np.ones(60), "hinge", intercept=intercept).normal_error
        for scaled in (error, error.rescaled(0.5), error.rescaled(np.exp2(np.arange(5.0 + intercept)))):
            assert np.linalg.norm(scaled.each(3)) <= scaled.norm(3) * (1.0 + 1e-12)
            if intercept:
                assert scaled.each(3)[-1] == pytest.approx(scaled.constant(3))


def test_units_change_errors_as_they_change_normals(rng):
    risk = bmrm.LinearRisk(rng.normal(size=(20, 3)), np.ones(20), "hinge")
    c = np.array([0.5, 4.0, 1.0])
    assert isinstance(risk.normal_error, SlopesError)
    bundle = Bundle(3, 0.0, error=risk.normal_error)
    bundle.add_point(risk.touch(np.ones(3)))
    alpha = np.array([0.25, 0.75])
    assert bundle.rescaled(c).errors(alpha).each() == pytest.approx(c * bundle.errors(alpha).each())


REGULARIZERS = [
    bmrm.regularizers.L2(),
    bmrm.regularizers.L2(weights=[1.0, 1e-3, 10.0]),
    bmrm.regularizers.L2(bounds=([-0.5, 0.1, -3.0], [2.0, 5.0, -0.2])),
    bmrm.regularizers.ElasticNet(r=0.3),
    bmrm.regularizers.ElasticNet(r=0.3, bounds=([-0.5, -np.inf, -3.0], [np.inf, 0.7, 4.0])),
]


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
def test_the_charged_dual_is_below_the_dual_of_every_slope_within_the_errors(regularizer, rng):
    regularizer, lam = regularizer.bind(3), 0.3
    for _ in range(200):
        c, e = rng.normal(size=3) * 10.0 ** rng.uniform(-3, 1, 3), 10.0 ** rng.uniform(-4, 0, 3)
        upper = rng.choice([-1e9, 1e9])  # the sharp charge and the rough one
        errors = Errors(float(np.linalg.norm(e)), 0.0, 0, lambda e=e: e)
        bound = charged_dual(regularizer, lam, c, 0.5, np.inf, errors, upper, np.zeros(3)).bound
        corners = [c + e * (np.array(signs) - 1.0) for signs in np.ndindex(3, 3, 3)]
        least = min(0.5 + regularizer.dual(corner, lam)[0] for corner in corners)
        assert bound <= least + 1e-12
        if upper < 0.0 and regularizer.bounds is None:
            assert bound == pytest.approx(least, rel=1e-9)


class _Wrong(bmrm.solvers.get("ls_bmrm").__class__):
    """Proves too much."""

    def steps(self, problem, start):
        yield bmrm.solvers.Step(start.w, problem.objective(start.w), 2.0)


class _Mine:
    dim, floor = 1, 0.0

    def evaluate(self, w):
        return 1.0, np.zeros(1)


def test_a_bound_above_the_objective_is_an_error_that_says_whose_fault_it_is():
    risk = bmrm.LinearRisk([[1.0]], [1.0], "hinge")
    with pytest.raises(bmrm.ContradictionError, match=r"2\.0 .* 1\.0.*report") as caught:
        bmrm.solve(bmrm.Problem(risk, "l2", 1.0), _Wrong())
    assert (caught.value.lower, caught.value.source) == (2.0, "ls_bmrm")
    with pytest.raises(ValueError, match="not convex"):
        bmrm.solve(bmrm.Problem(_Mine(), "l2", 1.0), _Wrong())


def test_a_certificate_hides_no_contradiction():
    with pytest.raises(bmrm.ContradictionError, match="auto"):
        bmrm.Certificate.of(149.710577, 149.710940, "auto")
    assert bmrm.Certificate.of(149.710577, 149.710577 * (1.0 + 1e-12), "auto").gap == 0.0


def test_free_slopes_that_are_taken_for_rounding_are_charged_far_away():
    """A box of length 0 stands for them; errors times 0 were charged, and a bound lay 7e-9 above the objective."""
    regularizer, lam = bmrm.regularizers.L2(weights=np.array([1.0, 0.0])), 1e-3
    c, box, near = np.array([0.01, 1e-17]), np.array([np.inf, 0.0]), np.array([0.0, 1e6])
    e = np.array([0.0, 1e-15])
    errors = Errors(float(np.linalg.norm(e)), 1e-15, 1, lambda: e)
    value = regularizer.dual(c, lam, box)[0]
    bound = charged_dual(regularizer, lam, c, 1.0, box, errors, 1.0 + value, near).bound
    assert bound <= 1.0 + value - (1e-15 + 1e-17) * 1e7
