"""Masters against an interior-point method: the minimum of regularizer plus planes, and a bound never above it."""

from __future__ import annotations

import numpy as np
import pytest
from reference.models import master_optimum

from bmrm import LinearRisk, Problem, solve
from bmrm.bundle import Bundle, master_for
from bmrm.bundle.qp import L2Master
from bmrm.regularizers import L1, L2, ElasticNet, Zero

DIM = 5
SHAPES = {
    "plain": {},
    "weights": {"weights": np.linspace(0.5, 2.0, DIM)},
    "one free": {"weights": np.r_[np.ones(DIM - 1), 0.0]},
    "two free": {"weights": np.r_[0.0, np.ones(DIM - 2), 0.0]},
    "three free": {"weights": np.r_[0.0, 1.0, 0.0, 2.0, 0.0]},
    "bounds": {"bounds": (np.full(DIM, -0.1), np.full(DIM, 0.2))},
    "half-bounds": {"bounds": (np.zeros(DIM), np.full(DIM, np.inf))},
    "bounds and free": {
        "weights": np.r_[np.ones(DIM - 1), 0.0],
        "bounds": (np.r_[np.full(DIM - 1, -0.2), -np.inf], np.r_[np.full(DIM - 1, 0.1), np.inf]),
    },
    "bounded free": {
        "weights": np.r_[np.ones(DIM - 1), 0.0],
        "bounds": (np.full(DIM, -0.2), np.full(DIM, 0.3)),
    },
}
every_shape = pytest.mark.parametrize("shape", SHAPES)
every_kind = pytest.mark.parametrize("kind", [L2, L1, ElasticNet])


def planes(rng, count, size=1.0):
    """Return planes that touch 1/2 |Mw - y|^2: together they are bounded in every direction once they are many."""
    M, y = rng.normal(size=(8, DIM)), rng.normal(size=8)
    points = size * rng.normal(size=(count, DIM))
    residuals = points @ M.T - y
    normals = residuals @ M
    return normals, 0.5 * (residuals**2).sum(axis=1) - (normals * points).sum(axis=1)


def filled(normals, offsets):
    bundle = Bundle(DIM, 0.0)
    for a, b in zip(normals, offsets):
        bundle.add_plane(a, b)
    return bundle


def solve_and_compare(regularizer, bundle, lam, rel=1e-8):
    """Solve until intervals for free coordinates are wide enough; compare with the reference."""
    master = master_for(regularizer)
    upper = lam * regularizer.value(regularizer.prox(np.zeros(DIM), 1.0)) + 1e3
    exact = master_optimum(bundle.normals, bundle.offsets, regularizer, lam)
    for _ in range(8):
        solution = master.solve(bundle, lam, upper)
        assert solution.lower <= exact + rel * (1.0 + abs(exact))
    assert solution.lower == pytest.approx(exact, rel=rel, abs=rel)
    attained = lam * regularizer.value(solution.w) + bundle.value(solution.w)
    assert attained == pytest.approx(exact, rel=1e-6, abs=1e-7)
    return solution


@every_kind
@every_shape
@pytest.mark.parametrize("lam", [1e-3, 0.3, 10.0])
def test_against_the_reference(kind, shape, lam, rng):
    regularizer = kind(**SHAPES[shape]).bind(DIM)
    solve_and_compare(regularizer, filled(*planes(rng, 40)), lam)


@every_kind
@every_shape
def test_duplicate_planes(kind, shape, rng):
    normals, offsets = planes(rng, 15)
    bundle = filled(np.repeat(normals, 3, axis=0), np.repeat(offsets, 3))
    solve_and_compare(kind(**SHAPES[shape]).bind(DIM), bundle, 0.1)


@every_kind
@pytest.mark.parametrize("lam", [1e-8, 1e-6, 1e4, 1e8])
def test_extreme_lam(kind, lam, rng):
    bundle = filled(*planes(rng, 40))
    for shape in ("plain", "bounds"):
        solve_and_compare(kind(**SHAPES[shape]).bind(DIM), bundle, lam, rel=1e-7)


@every_kind
def test_one_plane_and_the_floor(kind):
    bundle = filled([np.ones(DIM)], [1.0])
    solution = solve_and_compare(kind().bind(DIM), bundle, 0.5)
    assert solution.lower >= 0.0


@every_kind
@every_shape
def test_planes_that_come_and_go(kind, shape, rng):
    """A warm master that follows a bundle gives what a new one gives."""
    regularizer = kind(**SHAPES[shape]).bind(DIM)
    bundle = Bundle(DIM, 0.0, max_cuts=12, max_idle=3)
    warm = master_for(regularizer)
    for number, (a, b) in enumerate(zip(*planes(rng, 60))):
        bundle.add_plane(a, b)
        normals, offsets = bundle.normals.copy(), bundle.offsets.copy()
        lower = warm.solve(bundle, 0.2, 1e3).lower
        if number % 12 == 11:
            exact = master_optimum(normals, offsets, regularizer, 0.2)
            assert lower <= exact + 1e-8 * (1.0 + abs(exact))
            assert lower >= exact - 1e-6 * (1.0 + abs(exact))


@every_kind
def test_lam_may_change_between_solves(kind, rng):
    regularizer, bundle = kind().bind(DIM), filled(*planes(rng, 30))
    master = master_for(regularizer)
    for lam in (1.0, 1e-3, 0.1):
        exact = master_optimum(bundle.normals, bundle.offsets, regularizer, lam)
        assert master.solve(bundle, lam, 1e3).lower == pytest.approx(exact, rel=1e-8)


@every_kind
def test_the_risk_without_a_floor_and_a_free_offset(kind, rng):
    """Planes like those of the nu-trick: only both signs of the free slope together bound the minimum."""
    if kind is L1:
        return
    regularizer = L2(weights=SHAPES["one free"]["weights"]).bind(DIM)
    normals, offsets = planes(rng, 20)
    bundle = Bundle(DIM, -np.inf)
    for a, b in zip(normals, offsets):
        bundle.add_plane(a, b)
    exact = master_optimum(bundle.normals, bundle.offsets, regularizer, 0.2)
    master = master_for(regularizer)
    lowers = [master.solve(bundle, 0.2, 1e3).lower for _ in range(5)]
    assert max(lowers) <= exact + 1e-8
    assert lowers[-1] == pytest.approx(exact, rel=1e-8)


@every_kind
def test_no_bound_without_planes_on_both_sides_of_a_free_coordinate(kind):
    regularizer = kind(weights=SHAPES["one free"]["weights"]).bind(DIM)
    bundle = filled([np.eye(DIM)[-1]], [1.0])
    assert master_for(regularizer).solve(bundle, 0.1, 1e3).lower <= 1e-12


@every_shape
@every_kind
def test_a_copy_goes_on_like_the_original(kind, shape):
    """To the last digit, also through other units: what a resumed run stands on."""
    rng = np.random.default_rng(8)
    regularizer = kind(**SHAPES[shape]).bind(DIM)
    normals, offsets = planes(rng, 12)
    bundle, master = Bundle(DIM, 0.0), master_for(regularizer)
    for a, b in zip(normals[:9], offsets[:9]):
        bundle.add_plane(a, b)
        master.solve(bundle, 0.1, 100.0)
    copies = [bundle.copy(), bundle.rescaled(np.full(DIM, 4.0)).copy()]
    for a, b in zip(normals[9:], offsets[9:]):
        bundle.add_plane(a, b)
        expected = master.solve(bundle, 0.1, 100.0)
        for other in copies:
            other.add_plane(a, b)
            found = master_for(kind(**SHAPES[shape]).bind(DIM)).solve(other, 0.1, 100.0)
            np.testing.assert_array_equal(found.w, expected.w)
            assert found.lower == expected.lower


@pytest.mark.parametrize("shape", ["plain", "weights", "one free", "two free"])
def test_a_proximal_term(shape):
    rng = np.random.default_rng(9)
    regularizer = L2(**SHAPES[shape]).bind(DIM)
    s, z, lam, kappa = regularizer.s, rng.normal(size=DIM), 0.1, 0.7
    bundle = Bundle(DIM, 0.0)
    for a, b in zip(*planes(rng, 12)):
        bundle.add_plane(a, b)

    def objective(w):
        return lam * regularizer.value(w) + 0.5 * kappa * np.sum(s * (w - z) ** 2) + bundle.value(w)

    solution = L2Master(regularizer).solve_near(bundle, lam, 100.0, z, kappa)
    least = objective(solution.w)
    for size in (1e-4, 1e-2, 1.0):
        assert all(objective(solution.w + size * step) >= least - 1e-12 for step in rng.normal(size=(50, DIM)))
    assert solution.lower <= L2Master(regularizer).solve(bundle, lam, 100.0).lower + 1e-12


@pytest.mark.parametrize("size", [1e-11, 1e-4, 1e6])
def test_the_linear_program_has_its_own_units(size):
    """Slopes below what HiGHS takes for 0: the same problem in other units has the same value."""
    rng = np.random.default_rng(10)
    normals, offsets = planes(rng, 12)
    values = []
    for c in (np.ones(DIM), size * 2.0 ** np.arange(DIM)):
        bundle = Bundle(DIM, 0.0)
        for a, b in zip(c * normals, offsets):
            bundle.add_plane(a, b)
        solution = master_for(L1(weights=c).bind(DIM)).solve(bundle, 0.1, 100.0)
        values.append([solution.lower, bundle.value(solution.w), *(c * solution.w)])
    np.testing.assert_allclose(values[1], values[0], rtol=1e-9)


@pytest.mark.parametrize("solver", ["bmrm", "ls_bmrm", "auto"])
@pytest.mark.parametrize("size", [1e2, 1e4])
@pytest.mark.parametrize("loss", ["least_absolute", "least_squares", "huber"])
def test_without_a_penalty_bounded_coordinates_count_in_the_box_of_the_others(loss, size, solver):
    """The optimum 0 lies at w = (1, -size): far out, and only along with the coordinate between two bounds."""
    risk = LinearRisk([[size, 1.0], [1.0, 0.0]], [0.0, 1.0], loss, n_threads=1)
    bounds = ([0.0, -np.inf], [1.0, np.inf])
    problem = Problem(risk, Zero(bounds=bounds), 1.0)
    assert problem.objective(np.array([1.0, -size])) == 0.0
    result = solve(problem, solver, tol=1e-6, max_iter=100, max_seconds=5.0)
    assert max(record.lower for record in result.history) <= 1e-9


@pytest.mark.parametrize("regularizer", [L1(), Zero()], ids=["l1", "zero"])
def test_a_program_that_gives_up_leaves_a_bound(regularizer, rng, monkeypatch):
    """Where HiGHS ends without numbers, the master goes on with the multipliers that it had."""
    X = rng.normal(size=(12, 3))
    risk = LinearRisk(X, np.sign(X[:, 0] + 0.5), "hinge", n_threads=1)
    bundle = Bundle(3, 0.0)
    for w in rng.normal(size=(4, 3)):
        bundle.add_point(risk.at(w))
    monkeypatch.setattr("bmrm.bundle.lp._run", lambda program, basis, cells: program.clearSolver())
    solution = master_for(regularizer.bind(3, ())).solve(bundle, 0.1, 1.0)
    assert not solution.w.any()
    assert solution.lower == 0.0  # the floor's
