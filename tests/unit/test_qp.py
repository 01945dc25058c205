"""The master's quadratic program, checked from scratch: every answer by its optimality conditions."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmrm._core import ActiveSetQp


def build(H, C, c, start):
    qp = ActiveSetQp(np.asarray(c, dtype=float))
    for j in range(len(H)):
        qp.add(np.ascontiguousarray(H[j, : j + 1]), np.ascontiguousarray(C[:, j]))
    qp.set_start(start)
    return qp


def simplex_problem(H, b, tol=1e-14):
    """Solve over the simplex, starting from the first corner."""
    C, start = np.ones((1, len(H))), np.eye(len(H))[0]
    qp = build(H, C, [1.0], start)
    qp.solve(b, tol)
    return qp, C


def assert_optimal(H, C, c, b, qp, tol=1e-12):
    """Feasible to rounding, reduced costs nonnegative and complementary, relative to their terms."""
    x, nu = qp.x, qp.multipliers()
    assert (x >= 0).all()
    for row, right in zip(C, c):
        assert abs(math.fsum([*(row * x), -right])) <= 1e-15 * (np.abs(row) @ x + abs(right))
    r = H @ x - b - C.T @ nu
    root = np.sqrt(np.diag(H))
    scale = root * (root @ x) + np.abs(b) + np.abs(C.T) @ np.abs(nu) + 1e-30 * H.max()
    # Below the rounding of the objective's own terms a reduced cost says nothing.
    assert (r >= -tol * scale - 4e-16 * (x @ scale)).all()
    assert (np.abs(r)[x > 0] <= tol * scale[x > 0] + 4e-16 * (x @ scale)).all()
    assert abs(x @ r) <= tol * (x @ scale)


def duality_gap(H, b, x):
    """Over the simplex: what x'(Hx - b) could still lose."""
    r = H @ x - b
    return x @ r - r.min()


def objective(H, b, x):
    return 0.5 * x @ H @ x - b @ x


def gram(rng, n, d, scale=1.0):
    A = rng.normal(size=(n, d)) * scale
    return A @ A.T


@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 1), (5, 3), (20, 40), (60, 20), (150, 300), (300, 100)])
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 1e3])
def test_random_gram(n, d, size):
    rng = np.random.default_rng(n + d)
    H, b = gram(rng, n, d), size * rng.normal(size=n)
    qp, C = simplex_problem(H, b)
    assert_optimal(H, C, [1.0], b, qp)
    assert duality_gap(H, b, qp.x) <= 1e-12 * (np.diag(H).max() + np.abs(b).max())
    assert qp.violation >= -1e-13


@pytest.mark.parametrize("noise", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-13])
@pytest.mark.parametrize("power", [0, 1, 2])
def test_nearly_collinear(noise, power):
    rng = np.random.default_rng(3)
    center = rng.normal(size=40)
    for along in (np.ones(120), rng.normal(size=120)):
        A = np.outer(along, center) + noise * rng.normal(size=(120, 40))
        H, b = A @ A.T, noise**power * rng.normal(size=120)
        qp, C = simplex_problem(H, b)
        assert_optimal(H, C, [1.0], b, qp, tol=1e-11)
        assert duality_gap(H, b, qp.x) <= 1e-10 * (np.diag(H).max() + np.abs(b).max())


def test_duplicated_columns():
    rng = np.random.default_rng(4)
    A = rng.normal(size=(40, 20))
    A = np.vstack([A, A, A[:10]])
    H = A @ A.T
    same = np.resize(rng.normal(size=40), 80)
    for b in (rng.normal(size=90), np.append(same, same[:10])):
        qp, C = simplex_problem(H, b)
        assert_optimal(H, C, [1.0], b, qp)


def test_zero_rows():
    rng = np.random.default_rng(5)
    A = rng.normal(size=(50, 30))
    A[[0, 20]] = 0.0
    for shift in (-5.0, 0.0, 5.0):
        b = rng.normal(size=50)
        b[[0, 20]] += shift
        qp, C = simplex_problem(A @ A.T, b)
        assert_optimal(A @ A.T, C, [1.0], b, qp)
    zero = np.zeros((6, 6))
    qp, C = simplex_problem(zero, np.arange(6.0))
    assert qp.x.tolist() == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("decades", [3, 6])
def test_huge_range_of_scales(decades):
    rng = np.random.default_rng(6)
    norms = 10.0 ** rng.uniform(-decades, decades, size=(100, 1))
    H = gram(rng, 100, 40, norms)
    for b in (np.zeros(100), 1e-3 * rng.normal(size=100), rng.normal(size=100) * norms[:, 0]):
        qp, C = simplex_problem(H, b)
        assert_optimal(H, C, [1.0], b, qp)


def test_scaling_b_along_a_path():
    rng = np.random.default_rng(7)
    H, b, start = gram(rng, 80, 60), rng.normal(size=80), np.eye(80)[0]
    C = np.ones((1, 80))
    warm = build(H, C, [1.0], start)
    for factor in [*np.logspace(-6, 3, 28), *np.logspace(3, -6, 10)]:
        warm.solve(factor * b)
        assert_optimal(H, C, [1.0], factor * b, warm)
        cold = build(H, C, [1.0], start)
        np.testing.assert_allclose(warm.x, cold.solve(factor * b), rtol=0, atol=1e-11)


def test_adds_and_removes_equal_a_fresh_solve():
    rng = np.random.default_rng(8)
    A, offsets = rng.normal(size=(150, 100)), 0.3 * rng.normal(size=150)
    qp, kept = ActiveSetQp(np.ones(1)), []
    for t in range(150):
        kept.append(t)
        qp.add(A[kept] @ A[t], np.ones(1))
        if t == 0:
            qp.set_start(np.ones(1))
        x = qp.solve(offsets[kept])
        if t % 7 == 6:
            unused = np.flatnonzero(x == 0)[::2]
            qp.remove(unused)
            kept = [j for k, j in enumerate(kept) if k not in set(unused.tolist())]
            H = A[kept] @ A[kept].T
            fresh, C = simplex_problem(H, offsets[kept])
            qp.solve(offsets[kept])
            assert qp.size == len(kept)
            assert_optimal(H, C, [1.0], offsets[kept], qp)
            np.testing.assert_allclose(qp.x, fresh.x, rtol=0, atol=1e-11)


def with_slacks(rng, n, q, size=1.0):
    """Planes with q - 1 free coordinates, each with a slack either way, and a feasible start."""
    C = np.zeros((q, n + 2 * (q - 1)))
    C[0, :n] = 1.0
    C[1:, :n] = size * rng.normal(size=(q - 1, n))
    start = np.zeros(C.shape[1])
    start[0] = 1.0
    for i in range(1, q):
        up = n + 2 * (i - 1)
        C[i, up], C[i, up + 1] = 1.0, -1.0
        start[up if C[i, 0] < 0 else up + 1] = abs(C[i, 0])
    return C, np.eye(q)[0], start


@pytest.mark.parametrize("q", [2, 3])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_free_rows_with_slacks(q, size):
    rng = np.random.default_rng(q)
    for n in (3, 10, 60):
        C, c, start = with_slacks(rng, n, q, size)
        H = np.zeros((C.shape[1], C.shape[1]))
        H[:n, :n] = gram(rng, n, 25)
        for cost in (1e-3, 1.0, 1e3):
            b = np.append(rng.normal(size=n), np.full(2 * (q - 1), -cost))
            qp = build(H, C, c, start)
            qp.solve(b)
            assert_optimal(H, C, c, b, qp)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 3), st.integers(1, 6), st.integers(0, 8))
def test_small_problems(seed, n, q, d, digits):
    rng = np.random.default_rng(seed)
    C, c, start = with_slacks(rng, n, q)
    H = np.zeros((C.shape[1], C.shape[1]))
    A = rng.integers(-1, 2, size=d) + 10.0**-digits * rng.integers(-2, 3, size=(n, d))
    H[:n, :n] = A @ A.T
    b = np.append(rng.integers(-2, 3, size=n).astype(float), np.full(2 * (q - 1), -0.5))
    qp = build(H, C, c, start)
    x = qp.solve(b)
    assert_optimal(H, C, c, b, qp)
    assert objective(H, b, x) <= objective(H, b, start) + 1e-12


class HingeBundle:
    """Cutting planes a'w + offset of the mean hinge loss, and their Gram matrix for one strength."""

    def __init__(self):
        rng = np.random.default_rng(9)
        self.X = rng.normal(size=(300, 20))
        self.y = np.sign(self.X @ rng.normal(size=20) + rng.normal(size=300))
        self.A, self.offsets = np.empty((0, 20)), np.empty(0)
        self.qp = ActiveSetQp(np.ones(1))

    def risk(self, w):
        return np.maximum(0.0, 1.0 - self.y * (self.X @ w)).mean()

    def cut(self, w):
        inside = self.y * (self.X @ w) < 1.0
        a = -(self.y * inside) @ self.X / 300
        self.A = np.vstack([self.A, a])
        self.offsets = np.append(self.offsets, inside.mean())
        self.qp.add(self.A @ a, np.ones(1))
        if self.qp.size == 1:
            self.qp.set_start(np.ones(1))


def test_a_bundle_method_on_the_hinge_loss():
    bundle, w = HingeBundle(), np.zeros(20)
    for lam in (1e-3, 1e-4, 1e-5, 1e-6):
        lower, best = -np.inf, np.inf
        for _ in range(400):
            best = min(best, bundle.risk(w) + 0.5 * lam * w @ w)
            bundle.cut(w)
            H = bundle.A @ bundle.A.T
            x = bundle.qp.solve(lam * bundle.offsets)
            scale = x @ H @ x + lam * np.abs(bundle.offsets).max()
            assert duality_gap(H, lam * bundle.offsets, x) <= 1e-11 * scale
            bound = -objective(H, lam * bundle.offsets, x) / lam
            assert bound >= lower - 1e-13 * max(1.0, abs(lower))
            lower, w = bound, -(bundle.A.T @ x) / lam
            if best - lower <= 1e-9 * best:
                break
        assert best - lower <= 1e-9 * best


def test_step_limit_returns_a_feasible_point():
    rng = np.random.default_rng(10)
    H, b = gram(rng, 60, 80), np.zeros(60)
    qp = build(H, np.ones((1, 60)), [1.0], np.eye(60)[0])
    values = []
    for _ in range(5):
        x = qp.solve(b, max_steps=4)
        assert qp.steps == 4
        assert (x >= 0).all()
        assert abs(math.fsum(x) - 1.0) <= 1e-15
        values.append(objective(H, b, x))
    assert values == sorted(values, reverse=True)
    assert qp.violation < 0


def test_unbounded():
    qp = build(np.zeros((2, 2)), np.array([[1.0, 0.0]]), [1.0], np.array([1.0, 0.0]))
    with pytest.raises(RuntimeError, match="unbounded"):
        qp.solve(np.array([0.0, 1.0]))
    assert qp.solve(np.array([0.0, -1.0])).tolist() == [1.0, 0.0]


def test_refusals():
    qp = ActiveSetQp(np.ones(1))
    qp.add(np.array([2.0]), np.ones(1))
    qp.add(np.array([0.0, 1.0]), np.ones(1))
    with pytest.raises(ValueError, match="no feasible start"):
        qp.solve(np.zeros(2))
    for start, message in [
        ([0.5, 0.0], "equality"),
        ([2.0, -1.0], "negative"),
        ([1.0], "length 1, expected 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            qp.set_start(np.array(start))
    qp.set_start(np.array([1.0, 0.0]))
    for indices, message in [([0], "not zero"), ([2], "range"), ([-1], "range"), ([1, 1], "ascending")]:
        with pytest.raises(ValueError, match=message):
            qp.remove(np.array(indices))
    with pytest.raises(ValueError, match="not finite"):
        qp.solve(np.array([0.0, np.nan]))
    with pytest.raises(ValueError, match="length 2, expected 3"):
        qp.add(np.zeros(2), np.ones(1))
    with pytest.raises(ValueError, match="at least one"):
        ActiveSetQp(np.empty(0))
    assert qp.size == 2
    assert qp.x.tolist() == [1.0, 0.0]


def test_a_copy_goes_its_own_way():
    rng = np.random.default_rng(5)
    A, b = rng.normal(size=(7, 4)), rng.normal(size=7)
    H = A @ A.T
    program = ActiveSetQp(np.ones(1))
    for k in range(7):
        program.add(H[k, : k + 1], np.ones(1))
    program.set_start(np.eye(7)[0])
    program.solve(b)
    other, before = copy.deepcopy(program), program.x
    other.solve(-b)
    np.testing.assert_array_equal(program.x, before)
    np.testing.assert_array_equal(other.x, program.solve(-b))
