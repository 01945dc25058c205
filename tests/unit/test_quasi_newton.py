"""What is particular to the quasi-Newton family: matrices, directions at kinks, the problems of Y10 appendix E."""

from __future__ import annotations

import numpy as np
import pytest

from bmrm import LinearRisk, Problem, Risk, Status, linesearch, solve
from bmrm._traits import Trait
from bmrm.bundle import Bundle
from bmrm.losses import Hinge, LeastAbsolute, LeastSquares, Logistic, NuNovelty
from bmrm.regularizers import L1, L2, Zero
from bmrm.solvers import SOLVERS, Hybrid, Subgradient, SubgradientBFGS, SubgradientLBFGS
from bmrm.solvers.direction import descent_direction, shortest_subgradient
from bmrm.solvers.lbfgs import Memory
from bmrm.solvers.metric import Dense

FAMILY = ["subgradient_bfgs", "subgradient_lbfgs", "hybrid", "subgradient", "owlqn", "owlqn_star"]


def two_classes(m=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0)


def test_two_loop_recursion_is_the_dense_update(rng):
    """Y10 eq. 6, written out; L-BFGS scales its first matrix by the newest pair, so only one pair can agree."""
    d = 5
    dense, memory, B = Dense(d), Memory(3), np.eye(d)
    H = np.diag(np.arange(1.0, d + 1))
    s = rng.normal(size=d)
    y = H @ s
    B *= (s @ y) / (y @ y)
    V = np.eye(d) - np.outer(y, s) / (s @ y)
    B = V.T @ B @ V + np.outer(s, s) / (s @ y)
    dense.push(s, y)
    memory.push(s, y)
    for g in rng.normal(size=(4, d)):
        np.testing.assert_allclose(dense.apply(g), B @ g, rtol=1e-12)
        np.testing.assert_allclose(memory.apply(g), B @ g, rtol=1e-12)
    np.testing.assert_allclose(dense.apply(y), s, rtol=1e-12)  # the secant equation


def test_dense_update_keeps_the_secant_equation_and_refuses_bad_curvature(rng):
    dense = Dense(4)
    M = rng.normal(size=(4, 4))
    H = M @ M.T + np.eye(4)
    for s in rng.normal(size=(8, 4)):
        dense.push(s, H @ s)
        np.testing.assert_allclose(dense.apply(H @ s), s, rtol=1e-8)
        assert np.linalg.eigvalsh(dense.B).min() > 0.0
    before = dense.B.copy()
    dense.push(np.ones(4), -np.ones(4))
    np.testing.assert_array_equal(dense.B, before)
    dense.clear()
    np.testing.assert_array_equal(dense.B, np.eye(4))


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_a_direction_of_descent_at_a_kink(scale):
    """10 |x| + |y| at (0, 1): no multiple of -B g descends for g = (10, 1) or (-10, 1), their combination does."""
    X, offset = np.diag([10.0, 1.0]), np.array([0.0, 1.0])
    problem = Problem(LinearRisk(2.0 * X, np.zeros(2), LeastAbsolute()), "zero", 1.0)
    point = problem.risk.at(offset)
    B = np.array([[1.0, 0.5], [0.5, scale]])
    for g in ([10.0, 1.0], [-10.0, 1.0], [3.0, 1.0]):
        bundle = Bundle(2, 0.0)
        found = descent_direction(
            problem, point, np.array(g), lambda v: B @ v, bundle, nearby=1e-10, eps=1e-6, k_max=20
        )
        assert found is not None
        assert found.slope < 0.0
        step = 1e-3 / np.abs(found.p).max()
        assert problem.objective(point.w + step * found.p) < problem.objective(point.w)
        for a, b in zip(bundle.normals, bundle.offsets):
            for w in np.random.default_rng(0).normal(size=(20, 2)):
                assert a @ w + b <= problem.objective(w) + 1e-12


def test_no_direction_of_descent_at_the_optimum():
    problem = Problem(LinearRisk(np.diag([10.0, 1.0]), np.zeros(2), LeastAbsolute()), "zero", 1.0)
    point = problem.risk.at(np.zeros(2))
    found = descent_direction(
        problem, point, np.array([1.0, 0.5]), lambda v: v, Bundle(2, 0.0), nearby=1e-10, eps=0.1, k_max=20
    )
    assert found is None


def test_shortest_subgradient(rng):
    X, y = two_classes()
    problem = Problem(LinearRisk(X, y, Logistic()), L1(weights=[1.0, 1.0, 1.0, 1.0, 0.0, 2.0]), 0.05)
    w = np.array([0.0, 0.3, 0.0, -0.2, 0.0, 0.0])
    a = problem.risk.evaluate(w)[1]
    g = shortest_subgradient(problem, w, a)
    s = np.asarray(problem.regularizer.s)
    for signs in rng.uniform(-1.0, 1.0, size=(200, 6)):
        other = a + 0.05 * s * np.where(w == 0.0, signs, np.sign(w))
        assert g @ g <= other @ other + 1e-15
    assert g[4] == a[4]


class Planar(Risk):
    """A function of the plane from a formula, with no lower bound unless one is given."""

    dim, floor, traits = 2, -np.inf, frozenset({Trait.UNBOUNDED_RISK})

    def evaluate(self, w):
        self.products += 2
        return self.function(*w)


class Largest(Planar):
    """The largest of affine functions."""

    def function(self, x, y):
        values = [a * x + b * y + c for a, b, c in self.pieces]
        k = int(np.argmax(values))
        return values[k], np.array(self.pieces[k][:2], dtype=float)


class Wolfe(Planar):
    """Y10 eq. 112."""

    def function(self, x, y):
        if x >= abs(y):
            root = np.sqrt(9 * x * x + 16 * y * y)
            gradient = np.array([9.0, 16.0]) if root == 0 else np.array([45.0 * x, 80.0 * y]) / root
            return 5 * root, gradient
        return 9 * x + 16 * abs(y), np.array([9.0, 16.0 * (1.0 if y >= 0 else -1.0)])


class HiriartUrruty(Largest):
    """Y10 eq. 113; -100 is its least value."""

    floor, traits = -100.0, frozenset()
    pieces = ((0, 0, -100), (2, 3, 0), (-2, 3, 0), (5, 2, 0), (-5, 2, 0))


class LewisOverton(Largest):
    """Y10 eq. 114."""

    pieces = ((2, 1, 0), (-2, 1, 0), (0, 3, 0))


@pytest.fixture
def exact_search(monkeypatch):
    """As many evaluations for a search as it takes."""
    monkeypatch.setattr(linesearch, "_BUDGET", 200)
    monkeypatch.setattr(linesearch, "_ENOUGH", 1e-12)


def planar(risk):
    return Problem(risk, "zero", lam=1.0)


@pytest.mark.usefixtures("exact_search")
def test_steepest_descent_stops_short_where_bfgs_does_not():
    """Y10 appendix E.1: gradient descent goes to (0, 0), which is not optimal; there is no minimum."""
    start = np.array([2.0, 1.0])
    stalled = solve(planar(Wolfe()), Subgradient(steepest=False), start=start, max_iter=200)
    assert not stalled.converged
    assert stalled.certificate.upper > -1e-3
    assert stalled.certificate.lower == -np.inf
    for solver in (SubgradientBFGS(), SubgradientLBFGS()):
        found = solve(planar(Wolfe()), solver, start=start, max_iter=50)
        assert found.status is Status.UNBOUNDED
        assert found.certificate.upper < -1e30
        assert found.w[0] < 0.0


@pytest.mark.usefixtures("exact_search")
@pytest.mark.parametrize("solver", [SubgradientBFGS(), SubgradientLBFGS(), Hybrid(), Subgradient()])
def test_a_counterexample_for_steepest_subgradients(solver):
    """Y10 appendix E.2: zigzag to (0, 0) for the shortest subgradient at the point itself; the least value is -100."""
    found = solve(planar(HiriartUrruty()), solver, start=np.array([9.0, -3.0]), tol=1e-6, max_iter=300)
    assert found.converged
    assert found.certificate.upper == pytest.approx(-100.0)


@pytest.mark.usefixtures("exact_search")
@pytest.mark.parametrize("solver", [SubgradientBFGS(), SubgradientLBFGS(), Hybrid()])
def test_a_counterexample_for_bfgs(solver):
    """Y10 appendix E.3: the first step lands on a kink, where -B g need not descend; there is no minimum."""
    found = solve(planar(LewisOverton()), solver, start=np.array([1.0, 0.5]), max_iter=100)
    assert found.status is Status.UNBOUNDED
    assert found.certificate.lower == -np.inf
    assert "regularizer" in found.status.advice


@pytest.mark.parametrize("name", ["subgradient_bfgs", "subgradient_lbfgs", "subgradient", "hybrid", "ls_bmrm"])
def test_a_linear_risk_without_a_minimum(name):
    """Novelty detection with all rows on one side and nothing that penalizes w."""
    X = np.abs(two_classes()[0]) + 0.1
    found = solve(Problem(LinearRisk(X, None, NuNovelty(nu=0.5)), Zero(), 1.0), name, max_iter=100)
    assert found.status is Status.UNBOUNDED
    assert found.certificate.upper < -1e30


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("kind", [L2, L1])
def test_bounds_are_refused(name, kind):
    X, y = two_classes()
    problem = Problem(LinearRisk(X, y, Logistic()), kind(bounds=(-1.0, 1.0)), 0.1)
    with pytest.raises(ValueError, match=Trait.BOUNDS.value):
        solve(problem, name)


@pytest.mark.parametrize("name", ["owlqn", "owlqn_star"])
def test_orthant_methods_set_coordinates_to_zero(name):
    X, y = two_classes(d=20)
    result = solve(Problem(LinearRisk(X, y, Logistic()), "l1", 0.05), name, tol=1e-8)
    assert result.converged
    assert 10 <= int(np.sum(result.w == 0.0)) < 20


@pytest.mark.parametrize("name", ["owlqn", "owlqn_star"])
def test_orthant_methods_refuse_kinked_risks(name):
    X, y = two_classes()
    with pytest.raises(ValueError, match=Trait.SMOOTH_RISK.value):
        solve(Problem(LinearRisk(X, y, Hinge()), "l1", 0.05), name)


def test_the_hybrid_hands_its_planes_over():
    """The bundle method begins with all planes of the first phase, and not with its own first plane."""
    X, y = two_classes(m=2000, d=20)
    problem = Problem(LinearRisk(X, y, Hinge()), "l2", 1e-5)
    hybrid = solve(problem, "hybrid", tol=1e-6, max_seconds=30)
    assert hybrid.converged
    switch = next(k for k in range(len(hybrid.history)) if solve(problem, "hybrid", tol=1e-6, max_iter=k + 1)
                  .state.memory[0] is None)  # fmt: skip
    part = solve(problem, "hybrid", tol=1e-6, max_iter=switch + 1)
    assert 5 <= switch < hybrid.iterations - 1
    assert len(part.state.bundle) >= switch
    rest = solve(problem, "hybrid", tol=1e-6, start=part, max_seconds=30)
    assert rest.certificate.upper == pytest.approx(hybrid.certificate.upper, rel=2e-6)


def one_hot(m, groups, seed=0):
    """Return indicators of categories, some of them rare, and noisy labels: columns of very different use."""
    rng = np.random.default_rng(seed)
    X = np.hstack([np.eye(6)[np.minimum(rng.geometric(0.4, size=m) - 1, 5)] for _ in range(groups)])
    f = X @ rng.normal(size=X.shape[1])
    return X, np.where(f - np.median(f) + 0.8 * rng.normal(size=m) > 0, 1.0, -1.0)


@pytest.mark.parametrize("name", ["subgradient_bfgs", "subgradient_lbfgs", "hybrid"])
def test_a_certificate_soon_after_the_objective(name):
    """Y10 section 9's open question: the proof costs at most three times the passes of the fact."""
    X, y = one_hot(3000, 10)
    problem = Problem(LinearRisk(X, y, Hinge()), "l2", 1e-5)
    optimum = solve(problem, "ls_bmrm", tol=1e-8).certificate.lower
    run = solve(problem, name, tol=1e-3)
    assert run.converged
    true = next(record.passes for record in run.history if record.upper <= optimum * (1 + 1e-3))
    assert run.passes <= 3.0 * true


def test_gradient_descent_is_honest_about_kinks():
    """Any subgradient at the start w = 0 of a median: the run stops at a kink and does not claim more."""
    X, y = two_classes()
    problem = Problem(LinearRisk(X, y, LeastAbsolute()), "l2", 1e-3)
    result = solve(problem, Subgradient(steepest=False), tol=1e-6, max_iter=3000)
    optimum = solve(problem, "ls_bmrm", tol=1e-9).certificate.upper
    assert result.status in (Status.STALLED, Status.CONVERGED)
    assert result.certificate.lower <= optimum * (1 + 1e-9)
    assert result.certificate.upper >= optimum * (1 - 1e-9)


def test_smooth_problems_need_no_second_subgradient():
    """On a smooth problem a step costs two products, as in L-BFGS."""
    X = two_classes()[0]
    problem = Problem(LinearRisk(X, X @ np.arange(6.0), LeastSquares()), "l2", 1e-3)
    ours, plain = (solve(problem, name, tol=1e-9) for name in ("subgradient_lbfgs", "lbfgs"))
    assert ours.converged
    assert ours.passes <= plain.passes + 2


def test_the_family_is_registered():
    assert set(FAMILY) <= set(SOLVERS)
