"""Products, the fused pass and lines: right to the last digits, and the same on any number of threads."""

import os

import numpy as np
import pytest
import scipy.sparse as sp

from bmrm import _core

THREADS = (2, 3, 4, 8)
WITH_PARAMETER = {
    "huber_hinge": 0.5,
    "novelty": 1.0,
    "quantile": 0.3,
    "epsilon_insensitive": 0.25,
    "squared_epsilon_insensitive": 0.25,
    "huber": 0.5,
}
MARGIN = {
    "perceptron",
    "squared_perceptron",
    "hinge",
    "squared_hinge",
    "huber_hinge",
    "exponential",
    "logistic",
}


def random_csr(rng, m, d, lengths, dtype=np.float64):
    """Rows with the lengths given, cut to d, and increasing columns."""
    lengths = np.minimum(np.broadcast_to(lengths, m), d)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    columns = [np.sort(rng.choice(d, n, replace=False)) for n in lengths]
    indices = np.concatenate([np.zeros(0, np.int64), *columns])
    return sp.csr_array((rng.normal(size=indptr[-1]).astype(dtype), indices, indptr), shape=(m, d))


def wide_csr(rng, m, d, k, dtype=np.float64):
    """Many rows, made at once: k columns, each from its own stretch."""
    stretch = d // k
    columns = np.arange(k) * stretch + rng.integers(0, stretch, size=(m, k))
    return sp.csr_array((rng.normal(size=m * k).astype(dtype), columns.ravel(), np.arange(m + 1) * k), (m, d))


def matrix_of(X, index=np.int32):
    if sp.issparse(X):
        return _core.csr(X.data, X.indices.astype(index), X.indptr.astype(np.int64), X.shape[1])
    return _core.dense(X)


def loss_named(name):
    return _core.scalar_loss(name, [WITH_PARAMETER[name]] if name in WITH_PARAMETER else [])


def targets(rng, name, m):
    if name == "poisson":
        return rng.poisson(1.5, size=m).astype(float)
    return np.sign(rng.normal(size=m)) if name in MARGIN else np.round(rng.normal(size=m), 1)


def dot(X, w, n_threads=1):
    out = np.full(X.n_rows, np.nan)
    X.dot(w, out, n_threads)
    return out


def tdot(X, g, n_threads=1):
    out = np.full(X.n_cols, np.nan)
    X.tdot(g, out, n_threads)
    return out


def evaluate(X, loss, w, y, weight=None, offset=None, constant=0.0, n_threads=1):
    f, slopes, gradient = np.full(X.n_rows, np.nan), np.full(X.n_rows, np.nan), np.full(X.n_cols, np.nan)
    sums = X.evaluate(loss, w, constant, offset, y, weight, 0.5, f, slopes, gradient, n_threads)
    return np.array(sums), f, slopes, gradient


def close(ours, exact, magnitude):
    """Relative to the sum of the terms' sizes, the scale at which sums round."""
    return np.all(np.abs(ours - exact) <= 1e-12 * np.maximum(magnitude, 1e-300))


def check_products(rng, X, index=np.int32):
    M, exact = matrix_of(X, index), X.astype(np.float64)
    m, d = X.shape
    w, g = rng.normal(size=d), rng.normal(size=m)
    assert (M.n_rows, M.n_cols) == (m, d)
    assert close(dot(M, w), exact @ w, abs(exact) @ abs(w))
    for zeros in (0.0, 0.5, 0.9):
        c = np.where(rng.random(m) < zeros, 0.0, g)
        assert close(tdot(M, c), exact.T @ c, abs(exact).T @ abs(c))
    norms = np.full(m, np.nan)
    M.row_norms(norms)
    squared = (exact * exact).sum(axis=1)
    assert close(norms, squared, squared)
    rows = rng.integers(0, m, size=7) if m else np.zeros(0, np.int64)
    some = np.full(len(rows), np.nan)
    M.dot_rows(rows, w, some)
    assert np.array_equal(some, dot(M, w)[rows])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [0, 1, 2, 3, 4, 5, 9, 301])
def test_dense_products(m, dtype):
    rng = np.random.default_rng(m)
    for d in (0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 54, 100):
        check_products(rng, rng.normal(size=(m, d)).astype(dtype))


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [0, 1, 2, 5, 300])
def test_sparse_products(m, dtype, index):
    rng = np.random.default_rng(m)
    for d, longest in ((1, 1), (3, 3), (20, 0), (20, 20), (200, 40), (300, 200)):
        check_products(rng, random_csr(rng, m, d, rng.integers(0, longest + 1, size=m), dtype), index)


def test_short_rows_with_a_few_very_long_ones():
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 4, size=3000)
    lengths[[0, 700, 701, 1500, 2999]] = (2048, 2047, 2049, 5000, 3000)
    check_products(rng, random_csr(rng, 3000, 5000, lengths))


def test_float32_values_are_summed_in_double():
    rng = np.random.default_rng(4)
    X = (1e4 + rng.random((50, 1000))).astype(np.float32)
    w, g = rng.normal(size=1000), rng.normal(size=50)
    for M in (matrix_of(X), matrix_of(sp.csr_array(X))):
        assert np.allclose(dot(M, w), X.astype(float) @ w, rtol=0, atol=1e-7)
        assert np.allclose(tdot(M, g), X.astype(float).T @ g, rtol=0, atol=1e-7)


def shapes(rng):
    """A matrix for each way through the kernels: (name, X, whether one pass does it all)."""
    yield "dense, row blocks", rng.normal(size=(20011, 54)), True
    yield "dense f32, row blocks", rng.normal(size=(5003, 203)).astype(np.float32), True
    yield "dense, column ranges", rng.normal(size=(40, 20011)), False
    yield "short rows, row blocks", wide_csr(rng, 60007, 54, 12), True
    yield "short f32 rows, row blocks", wide_csr(rng, 60007, 54, 12, np.float32), True
    yield "long rows, row blocks", wide_csr(rng, 20011, 300, 60), True
    yield "long rows, column ranges", wide_csr(rng, 8009, 40000, 80), False
    yield "short rows, column ranges", wide_csr(rng, 60007, 90000, 9, np.float32), False


@pytest.fixture(scope="module")
def passes():
    return list(shapes(np.random.default_rng(5)))


@pytest.mark.parametrize("which", range(8))
def test_results_repeat_bit_for_bit_on_any_number_of_threads(passes, which):
    _, X, fuses = passes[which]
    M = matrix_of(X)
    assert M.fuses == fuses
    rng = np.random.default_rng(which)
    m, d = X.shape
    w, g, y = rng.normal(size=d), rng.normal(size=m), np.sign(rng.normal(size=m))
    g[::3] = 0.0
    hinge, logistic = loss_named("hinge"), loss_named("logistic")
    first = dot(M, w), tdot(M, g), evaluate(M, hinge, w, y), evaluate(M, logistic, w, y, np.abs(g), g, 0.5)
    for t in THREADS:
        assert np.array_equal(dot(M, w, t), first[0])
        assert np.array_equal(tdot(M, g, t), first[1])
        again = evaluate(M, hinge, w, y, n_threads=t), evaluate(M, logistic, w, y, np.abs(g), g, 0.5, t)
        for ours, one in zip(again, first[2:], strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(ours, one, strict=True))


@pytest.mark.parametrize("which", range(8))
def test_evaluate_is_dot_then_loss_then_tdot(passes, which):
    _, X, _ = passes[which]
    M = matrix_of(X)
    rng = np.random.default_rng(which)
    m, d = X.shape
    w, offset, weight = rng.normal(size=d), rng.normal(size=m), np.maximum(rng.normal(size=m), 0.0)
    y = np.sign(rng.normal(size=m))
    for name in ("hinge", "squared_hinge", "least_squares"):
        loss = loss_named(name)
        sums, f, slopes, gradient = evaluate(M, loss, w, y, weight, offset, 0.25)
        assert close(f, dot(M, w) + 0.25 + offset, abs(X) @ abs(w) + abs(offset) + 0.25)
        expected = np.full(m, np.nan)
        two = loss.evaluate(f, y, weight, 1.0, expected)
        assert np.array_equal(slopes, expected)
        assert np.allclose(sums, two, rtol=1e-12, atol=1e-12 * np.abs(slopes).sum())
        assert close(gradient, tdot(M, slopes), abs(X).T @ abs(slopes))


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (1, 1)])
def test_tiny_matrices_evaluate(shape):
    for X in (np.ones(shape), sp.csr_array(np.ones(shape)).astype(np.float64)):
        y = np.ones(shape[0])
        sums, f, _, gradient = evaluate(matrix_of(X), loss_named("hinge"), np.zeros(shape[1]), y, n_threads=4)
        assert np.array_equal(f, np.zeros(shape[0]))
        assert np.array_equal(gradient, np.full(shape[1], -0.5 * shape[0]))
        assert sums.tolist() == [0.5 * shape[0], -0.5 * shape[0]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_first_nonfinite(bad, dtype):
    rng = np.random.default_rng(6)
    dense, sparse = rng.normal(size=(5000, 60)).astype(dtype), wide_csr(rng, 30000, 54, 9, dtype)
    assert matrix_of(dense).first_nonfinite() is None
    assert matrix_of(sparse).first_nonfinite(4) is None
    dense[[4321, 4999], [17, 0]] = bad
    entry = 9 * 12345 + 4
    sparse.data[[entry, entry + 1, -1]] = bad
    for t in (1, 4):
        assert matrix_of(dense).first_nonfinite(t) == (4321, 17)
        assert matrix_of(sparse).first_nonfinite(t) == (12345, sparse.indices[entry])


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_check_indices(index):
    X = wide_csr(np.random.default_rng(7), 30000, 54, 9)
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(index)
    for t in (1, 4):
        assert _core.check_indices(indptr, indices, 54, t) == (True, -1, 0)
        swapped = indices.copy()
        swapped[9 * 700 : 9 * 700 + 2] = indices[9 * 700 : 9 * 700 + 2][::-1]
        assert _core.check_indices(indptr, swapped, 54, t) == (False, -1, 0)
        for wrong in (54, -1):
            outside = indices.copy()
            outside[[9 * 20000 + 3, 9 * 25000]] = wrong
            assert _core.check_indices(indptr, outside, 54, t)[1:] == (20000, wrong)


def test_logistic_loss_to_the_last_digits():
    z = np.concatenate([np.linspace(-800.0, 800.0, 20001), np.logspace(-300, 2, 2000), -np.logspace(-300, 2, 2000)])
    loss, slopes, bends = _core.scalar_loss("logistic"), np.empty_like(z), np.empty_like(z)
    ones, exact = np.ones_like(z), np.logaddexp(0.0, -z)
    for k in range(z.size):
        assert loss.evaluate(z[k : k + 1], ones[:1], None, 1.0, slopes[:1])[0] == pytest.approx(exact[k], rel=1e-15)
    loss.evaluate(z, ones, None, 1.0, slopes)
    loss.curvature(z, ones, None, 1.0, bends)
    probability = np.where(z > 0, np.exp(-np.abs(z)), 1.0) / (1.0 + np.exp(-np.abs(z)))
    np.testing.assert_allclose(slopes, -probability, rtol=2e-15, atol=1e-300)
    e = np.exp(-np.abs(z))
    np.testing.assert_allclose(bends, e / (1.0 + e) ** 2, rtol=2e-15, atol=1e-300)


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="one core, or no Linux"
)
def test_threads_of_the_pool_stay_off_the_core_of_the_caller():
    X = np.ones((200_000, 4))
    _core.dense(X).dot(np.ones(4), np.empty(len(X)), 2)
    masks = [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]
    assert any(len(mask) == len(os.sched_getaffinity(0)) - 1 for mask in masks)
