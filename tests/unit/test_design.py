"""The data matrix on entry: what is used in place, what is put in order in a copy, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from bmrm import LinearRisk, losses
from bmrm.data import Design


def raw_csr(data, indices, indptr, shape, index=np.int32):
    """Build a CSR matrix without scipy's checks."""
    X = sparse.csr_matrix(shape)
    X.data, X.indices = np.array(data, dtype=float), np.array(indices, dtype=index)
    X.indptr = np.array(indptr, dtype=index)
    return X


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
def test_values_that_are_not_finite_are_located(bad, dtype, layout):
    X = np.ones((40, 5), dtype=dtype)
    X[33, 2] = X[35, 0] = bad
    with pytest.raises(ValueError, match="row 33, column 2"):
        Design(layout(X))


def test_c_ordered_floats_are_used_in_place():
    for dtype in (np.float64, np.float32):
        X = np.ones((3, 2), dtype=dtype)
        design = Design(X)
        X[0, 0] = 5.0
        assert design.dot(np.ones(2))[0] == 6.0


@pytest.mark.parametrize(
    "convert",
    [
        np.asfortranarray,
        lambda X: X[::-1][::-1],
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: X.astype(np.int64),
        lambda X: X.astype(np.int8),
        lambda X: X.astype(np.float16),
        lambda X: X.astype(">f8"),
        lambda X: X.tolist(),
        lambda X: X.astype(object),
        sparse.csr_matrix,
        sparse.csr_array,
        sparse.csc_matrix,
        sparse.coo_array,
        sparse.lil_array,
        lambda X: sparse.csr_array(X.astype(np.int64)),
        lambda X: sparse.csr_array(X.astype(np.float32)),
    ],
)
def test_other_layouts_and_types(convert, rng):
    X = rng.integers(-3, 4, size=(7, 4)).astype(np.float64)
    given = convert(X)
    design = Design(given)
    w, slopes = rng.normal(size=4), rng.normal(size=7)
    np.testing.assert_allclose(design.dot(w), X @ w, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(design.tdot(slopes, 0.0), X.T @ slopes, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(design.row_norms(), (X**2).sum(axis=1), rtol=1e-13)


def test_booleans_are_numbers():
    assert Design(np.array([[True, False]])).dot(np.array([2.0, 3.0]))[0] == 2.0


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_unsorted_rows_are_put_in_order_in_a_copy(index):
    X = raw_csr([1.0, 2.0, 3.0], [2, 0, 1], [0, 2, 3], (2, 3), index)
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    design = Design(X)
    np.testing.assert_array_equal(design.dot(np.array([1.0, 10.0, 100.0])), [102.0, 30.0])
    for array, copy in zip((X.data, X.indices, X.indptr), before):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_duplicates_are_summed_in_a_copy(index):
    X = raw_csr([1.0, 2.0, 4.0, 3.0], [1, 1, 0, 2], [0, 3, 4], (2, 3), index)
    before = X.data.copy(), X.indices.copy()
    design = Design(X)
    np.testing.assert_array_equal(design.dot(np.array([1.0, 10.0, 100.0])), [34.0, 300.0])
    np.testing.assert_array_equal(design.row_norms(), [25.0, 9.0])
    np.testing.assert_array_equal(X.data, before[0])
    np.testing.assert_array_equal(X.indices, before[1])


@pytest.mark.parametrize(("index", "row"), [([0, -1, 1], 0), ([0, 3, 1], 0), ([0, 1, 7], 1)])
def test_indices_out_of_range(index, row):
    X = raw_csr([1.0, 2.0, 3.0], index, [0, 2, 3], (2, 3))
    bad = next(i for i in index if not 0 <= i < 3)
    with pytest.raises(ValueError, match=f"index {bad} in row {row}"):
        Design(X)


@pytest.mark.parametrize("X", [np.ones(3), np.ones((2, 2, 2)), 5.0, np.float64(1.0), []], ids=str)
def test_wrong_dimensions(X):
    with pytest.raises(ValueError, match="two dimensions"):
        Design(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([["a", "b"]]), "numbers"),
        (np.array([["a", 1.0]], dtype=object), "numbers"),
        (np.array([[1.0 + 2.0j]]), "complex"),
        (np.array([[{}]], dtype=object), "numbers"),
    ],
)
def test_what_is_no_number(X, message):
    with pytest.raises(ValueError, match=message):
        Design(X)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_intercept(layout, rng):
    X = rng.normal(size=(5, 3))
    design = Design(layout(X), intercept=True)
    w, slopes = rng.normal(size=4), rng.normal(size=5)
    np.testing.assert_allclose(design.dot(w), X @ w[:3] + w[3])
    np.testing.assert_allclose(design.tdot(slopes, slopes.sum()), np.r_[X.T @ slopes, slopes.sum()])
    np.testing.assert_allclose(design.row_norms(), (X**2).sum(axis=1) + 1.0)
    assert design.dim == 4


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_empty_rows_and_columns(layout):
    X = np.zeros((3, 4))
    X[1, 2] = 2.0
    design = Design(layout(X))
    np.testing.assert_array_equal(design.dot(np.ones(4)), [0.0, 2.0, 0.0])
    np.testing.assert_array_equal(design.tdot(np.ones(3), 3.0), [0.0, 0.0, 2.0, 0.0])
    wide = Design(layout(np.zeros((2, 0))), intercept=True)
    np.testing.assert_array_equal(wide.dot(np.array([3.0])), [3.0, 3.0])


@pytest.mark.parametrize("n_threads", [0, 1.5, "2", True])
def test_bad_numbers_of_threads(n_threads):
    with pytest.raises(ValueError, match="n_threads"):
        Design(np.ones((2, 2)), n_threads=n_threads)


def test_the_risk_leaves_its_inputs_alone(rng):
    X, y, weight = rng.normal(size=(6, 3)), rng.normal(size=6), rng.random(6)
    copies = X.copy(), y.copy(), weight.copy()
    risk = LinearRisk(X, y, losses.LeastSquares(), sample_weight=weight)
    risk.evaluate(np.ones(3))
    for array, copy in zip((X, y, weight), copies):
        np.testing.assert_array_equal(array, copy)


def test_read_only_data(rng):
    X, y = rng.normal(size=(6, 3)), rng.normal(size=6)
    X.flags.writeable = y.flags.writeable = False
    w = np.ones(3)
    w.flags.writeable = False
    value, _ = LinearRisk(X, y, losses.LeastSquares()).evaluate(w)
    assert value == pytest.approx(0.5 * np.mean((X @ w - y) ** 2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_columns_for_several_scores_are_gathered_from_a_copy_by_columns(dtype):
    rng = np.random.default_rng(3)
    X = sparse.random_array((40, 9000), density=0.01, format="csr", dtype=dtype, rng=rng)
    L = rng.normal(size=(40, 8))
    sums = [Design(X, n_threads=n).widened(8).tdot(L.reshape(-1), 0.0).reshape(-1, 8) for n in (1, 2)]
    np.testing.assert_allclose(sums[0], X.T.astype(np.float64) @ L, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(*sums)
