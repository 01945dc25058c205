"""The matrix of a Newton step that is made from the last one."""

import numpy as np
import pytest

import bmrm
from bmrm.risks.curvature import RowCurvature
from bmrm.risks.kept_gram import KeptGram


@pytest.fixture
def curvature():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 5)) * (rng.random((60, 5)) < 0.6)
    return RowCurvature(bmrm.LinearRisk(X, np.sign(rng.normal(size=60)), bmrm.losses.SquaredHinge(), intercept=True))


def steps(n, rows=60):
    """Curvatures of so many steps: one factor for all, and some rows that come and go."""
    rng = np.random.default_rng(8)
    c = np.where(rng.random(rows) < 0.7, 0.25, 0.0)
    for _ in range(n):
        c = c * rng.choice([1.0, 5.0, 0.2])
        for i in rng.integers(0, rows, 4):
            c[i] = 0.0 if c[i] else c.max()
        yield c.copy()


def test_is_the_matrix_formed_anew(curvature):
    gram = KeptGram()
    for c in steps(60):
        np.testing.assert_allclose(np.tril(gram.at(curvature, c)), np.tril(curvature.gram(c)), rtol=1e-12, atol=1e-14)


def test_reads_only_rows_that_changed(curvature):
    gram, c = KeptGram(), np.ones(60)
    gram.at(curvature, c)
    other = 3.0 * c
    other[[4, 17]] = 0.0
    change = gram.change(other)
    assert change.times == 3.0
    assert change.rows.tolist() == [4, 17]
    gram.at(curvature, other, change)
    assert gram.changes == 1
    assert gram.change(other).rows.size == 0


def test_no_common_rows_means_a_new_matrix(curvature):
    gram = KeptGram()
    first = np.zeros(60)
    first[:30] = 1.0
    gram.at(curvature, first)
    assert gram.change(1.0 - first) is None


def test_a_matrix_given_out_is_not_changed_by_the_next_step(curvature):
    gram, c = KeptGram(), np.ones(60)
    H = gram.at(curvature, c)
    before, other = H.copy(), c.copy()
    other[5] = 0.0
    gram.at(curvature, other)
    np.testing.assert_array_equal(H, before)
