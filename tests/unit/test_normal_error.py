"""Lower bounds where the normals X'l have few digits: columns that depend on each other, of very different size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

import bmrm
from bmrm.bundle import Bundle
from bmrm.bundle.box import _polytope, inside_polytope
from bmrm.bundle.charges import Errors, charged_dual
from bmrm.bundle.master import master_for
from bmrm.problem import missing
from bmrm.risks.normal_error import SlopesError
from bmrm.solvers.base import new_bundle
from bmrm.solvers.bounds import FlatBound
from bmrm.solvers.constant_box import constant_box
from bmrm.solvers.row_box import RowBox

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
        bound = charged_dual(regularizer, lam, c, 0.5, np.inf, errors, upper, 0.0).bound
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


def test_a_flat_plane_is_charged_for_a_minimizer_far_away():
    """J is 0 at 2^20 and only there; the solver's point is 0, which no multiple of reaches it."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        x, s = rng.normal(size=6), rng.uniform(-1.0, 1.0, size=6) / 12.0
        s[-1] = -(x[:-1] @ s[:-1]) / x[-1]
        if abs(s[-1]) > 0.15:
            continue
        risk = bmrm.LinearRisk(x[:, None], 2.0**20 * x, "least_absolute", n_threads=1)
        problem = bmrm.Problem(risk, "zero", 1.0)
        a, b = risk.pull_back(s, float(s.sum())), -float(s @ (2.0**20 * x))
        upper = float(problem.objective(np.zeros(1)))
        assert FlatBound(problem).of(new_bundle(problem, None), a, b, s, np.zeros(1), upper) <= 0.0


def test_absolute_values_are_charged_without_a_point_near_the_minimizer():
    """A normal that is lam to the last digit but may be off by e proves 1 - e / lam of its offset, not all of it."""
    lam = 1e-9
    risk = bmrm.LinearRisk(np.array([[1.0], [1.0 / 3.0], [-4.0 / 3.0]]), np.ones(3), "hinge", n_threads=1)
    bundle = Bundle(1, 0.0, error=risk.normal_error)
    bundle.add_plane(np.array([-lam]), 1.0, 1.0)
    lower = master_for(bmrm.regularizers.L1().bind(1)).solve(bundle, lam, 1.0).lower
    e = risk.normal_error.each(1)[0]
    assert lower <= lam / (lam + e) < 1.0 - 1e-9


def _vertices(E, errors, room):
    """The largest |v_j| at points of E v <= room, of many directions and slopes within the errors."""
    rng = np.random.default_rng(1)
    far = np.zeros(E.shape[1])
    for _ in range(400):
        true = E + errors * rng.choice([-1.0, 1.0], size=E.shape)
        direction = rng.normal(size=E.shape[1])
        along = true @ direction
        t = np.min(room[along > 0.0] / along[along > 0.0])
        far = np.maximum(far, np.abs(t * direction))
    return far


def test_the_box_of_planes_holds_for_their_true_slopes(rng):
    for _ in range(20):
        E = np.vstack([rng.normal(size=(12, 3)), -rng.uniform(0.5, 1.5, size=(1, 3))])
        errors, room = 1e-3 * rng.uniform(size=E.shape), rng.uniform(0.5, 2.0, size=len(E))
        for found in (inside_polytope(E, errors, room), _polytope(E, errors, room)):
            assert np.all(found >= _vertices(E, errors, room))


@pytest.mark.parametrize("loss", ["hinge", "logistic", "least_squares", "softmax", "multiclass_hinge"])
@pytest.mark.parametrize("regularizer", ["l2", "l1"])
def test_the_box_of_constants_holds_the_minimizer(loss, regularizer, rng):
    X = rng.normal(size=(60, 3))
    y = {"least_squares": 50.0 + X[:, 0], "softmax": np.arange(60) % 4, "multiclass_hinge": np.arange(60) % 4}
    y = y.get(loss, np.where(X[:, 0] + rng.normal(size=60) > 0.5, 1.0, -1.0))
    risk = bmrm.LinearRisk(X, y, loss, intercept=True, n_threads=1)
    problem = bmrm.Problem(risk, regularizer, 1e-2)
    w = bmrm.solve(problem, tol=1e-6).w
    box = constant_box(problem)
    assert np.isfinite(box).all()
    assert np.all(np.abs(w[problem.regularizer.free]) <= box)


@pytest.mark.parametrize("loss", EXACTLY)
@pytest.mark.parametrize("dependence", [1.0, 1e-6, 1e-9])
def test_the_box_of_rows_holds_the_minimizer(loss, dependence, rng):
    """Also of columns that nearly depend on each other, and from a point that is not the minimizer."""
    X = rng.normal(size=(40, 3))
    X[:, 2] = X[:, 0] + dependence * X[:, 2]
    y = np.where(rng.normal(size=40) > 0.0, 1.0, -1.0) if loss == "hinge" else rng.normal(size=40)
    risk = bmrm.LinearRisk(X, y, loss, n_threads=1)
    problem = bmrm.Problem(risk, bmrm.regularizers.L2(weights=[0.0, 1.0, 0.0]), 1e-3)
    result = bmrm.solve(problem, tol=1e-9, max_iter=300)
    rows, point = RowBox(problem), risk.at(result.w)
    bundle, w = new_bundle(problem, None), result.w * np.array([0.9, 1.0, 0.9])
    errors = bundle.errors_of(float(np.linalg.norm(point.slopes)))
    box = rows.around(point.plane, point.slopes, errors, w, result.certificate.upper)
    assert not rows.dependent
    assert np.all(np.abs(result.w[[0, 2]]) <= box)


@pytest.mark.parametrize("regularizer", ["l1", "elastic_net", "zero", "free"])
@pytest.mark.parametrize("loss", EXACTLY)
def test_no_lower_bound_exceeds_the_exact_objective_without_squares(regularizer, loss):
    chosen = bmrm.regularizers.L1(weights=[1.0, 0.0, 1.0, 0.0]) if regularizer == "free" else regularizer
    for seed, lam in ((547, 1e-9), (12, 1e-4)):
        X, y = family(seed, loss)
        problem = bmrm.Problem(bmrm.LinearRisk(X, y, loss, n_threads=1), chosen, lam)
        for solver in ("auto", "ls_bmrm"):
            result = bmrm.solve(problem, solver, tol=1e-8, max_iter=40, max_seconds=10.0)
            w, least = [Fraction(float(v)) for v in result.w], Fraction(result.certificate.lower)
            exact = exact_objective(X, y, result.w, loss) - Fraction(LAM) * sum(v * v for v in w) / 2
            if regularizer != "zero":
                absolute, squares = (np.broadcast_to(part, 4).tolist() for part in problem.regularizer.parts)
                terms = zip(absolute, squares, w)
                exact += Fraction(lam) * sum(Fraction(u) * abs(x) + Fraction(v) * x * x / 2 for u, v, x in terms)
            assert least <= exact
