"""Second derivatives of the risk against plain numpy, on every layout and for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LAYOUTS

from bmrm import LinearRisk
from bmrm.losses import Hinge, Logistic
from bmrm.risks.curvature import RowCurvature

SHAPES = [(1, 1), (5, 9), (300, 3), (4000, 22), (900, 70), (200, 260)]


def data(m, d, share=0.6):
    rng = np.random.default_rng(m + d)
    X = (rng.normal(size=(m, d)) * (rng.random((m, d)) < share)).astype(np.float32).astype(np.float64)
    return X, np.where(rng.random(m) < 0.5, -1.0, 1.0), rng.random(m) * (rng.random(m) < 0.5)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("share", [0.1, 0.6])
@pytest.mark.parametrize(("m", "d"), SHAPES)
def test_curvature_equals_numpy(m, d, share, layout, intercept):
    X, y, c = data(m, d, share)
    wide = np.column_stack([X, np.ones(m)]) if intercept else X
    expected = wide.T @ (c[:, None] * wide)
    curvature = RowCurvature(LinearRisk(LAYOUTS[layout](X), y, Hinge(), intercept=intercept, n_threads=2))
    v, rows = np.linspace(-1.0, 1.0, wide.shape[1]), np.flatnonzero(c)
    size = np.abs(wide).T @ (c[:, None] * np.abs(wide)) + 1e-300
    assert np.all(np.abs(np.tril(curvature.gram(c)) - np.tril(expected)) <= 1e-13 * size)
    assert np.all(np.abs(curvature.diagonal(c) - np.diag(expected)) <= 1e-13 * np.diag(size))
    assert np.all(np.abs(curvature.times(rows, c, v) - expected @ v) <= 1e-12 * (size @ np.abs(v)))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("m", "d"), SHAPES)
def test_the_system_of_the_rows_equals_numpy(m, d, layout, intercept):
    X, y, c = data(m, d)
    wide = np.column_stack([X, np.ones(m)]) if intercept else X
    r, rows = np.linspace(0.5, 2.0, wide.shape[1]), np.flatnonzero(c)
    B = np.sqrt(c[rows])[:, None] * wide[rows]
    expected = np.eye(rows.size) + (B / r) @ B.T
    scaling = 1.0 / np.sqrt(np.diag(expected))
    systems = []
    for n_threads in (1, 3):
        curvature = RowCurvature(LinearRisk(LAYOUTS[layout](X), y, Hinge(), intercept=intercept, n_threads=n_threads))
        systems.append(curvature.row_system(rows, c, r))
    M, weights = systems[0]
    assert np.allclose(np.tril(M), np.tril(expected * scaling * scaling[:, None]), rtol=0.0, atol=1e-13)
    assert np.allclose(weights, scaling * np.sqrt(c[rows]), rtol=1e-13)
    assert np.array_equal(np.tril(M), np.tril(systems[1][0]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("m", "d"), [(20000, 40), (3000, 300)])
def test_threads_do_not_change_a_bit(m, d, layout):
    X, y, c = data(m, d)
    found = []
    for n_threads in (1, 2, 5):
        curvature = RowCurvature(LinearRisk(LAYOUTS[layout](X), y, Hinge(), n_threads=n_threads))
        rows = np.flatnonzero(c)
        found.append((curvature.gram(c), curvature.diagonal(c), curvature.times(rows, c, np.ones(d))))
    for other in found[1:]:
        for one, two in zip(found[0], other):
            assert np.array_equal(one, two)


def test_weights_of_rows_and_counting():
    X, y, _ = data(300, 3)
    weight = np.random.default_rng(0).uniform(size=300)
    risk = LinearRisk(X, y, Logistic(), sample_weight=weight, intercept=True)
    curvature, before = RowCurvature(risk), risk.products
    scores = X @ np.ones(3) + 0.5
    probability = 1.0 / (1.0 + np.exp(-scores))
    c = curvature.at(scores)
    assert c == pytest.approx(weight / weight.sum() * probability * (1.0 - probability))
    assert risk.products == before
    curvature.gram(c)
    assert risk.products == before + 2  # the matrix, and its border for the constant
    curvature.times(np.flatnonzero(c), c, np.ones(4))
    assert risk.products == before + 4


def test_rows_that_do_not_exist_are_refused():
    X, y, _ = data(5, 9)
    matrix = LinearRisk(X, y, Hinge()).design.matrix
    with pytest.raises(ValueError, match="row 5 does not exist"):
        matrix.gram(np.array([5]), np.ones(1), np.zeros((9, 9)))
    with pytest.raises(ValueError, match="out has length"):
        matrix.gram(np.array([0]), np.ones(1), np.zeros((8, 9)))
