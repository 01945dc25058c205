"""Sparse matrices with wrong indices: SciPy and the core trust them, so one clear error comes before either."""

import numpy as np
import pytest
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, csr_matrix, lil_array

import bmrm
from bmrm._sparse import rows_of
from bmrm.regularizers import L2

Y = [0, 1, 0]


def _index(X):
    X.indices[1] = 2**30


def _negative(X):
    X.indices[1] = -5


def _pointer(X):
    X.indptr[1] = 2**30


def _negative_pointer(X):
    X.indptr[1] = -7


def _last_pointer(X):
    X.indptr[-1] = 2**20


def _few_pointers(X):
    X.indptr = X.indptr[:-1]


def _few_values(X):
    X.data = X.data[:2]


def _few_indices(X):
    X.indices = X.indices[:2]


BREAKS = [_index, _negative, _pointer, _negative_pointer, _last_pointer, _few_pointers, _few_values, _few_indices]

CALLS = {
    "classifier": lambda X: bmrm.LinearClassifier().fit(X, Y),
    "partial": lambda X: bmrm.LinearClassifier().partial_fit(X, Y, classes=[0, 1]),
    "predict": lambda X: bmrm.LinearClassifier().fit(np.eye(3), Y).predict(X),
    "score": lambda X: bmrm.ScoreClassifier().fit(X, Y),
    "ranker": lambda X: bmrm.Ranker().fit(X, Y, qid=[0, 0, 0]),
    "novelty": lambda X: bmrm.NoveltyDetector().fit(X),
    "multilabel": lambda X: bmrm.MultilabelClassifier().fit(X, np.eye(3)),
    "indicators": lambda X: bmrm.MultilabelClassifier().fit(np.eye(3), X),
    "sequences": lambda X: bmrm.SequenceLabeler().fit([X], [Y]),
    "labels": lambda X: bmrm.SequenceLabeler().fit([np.eye(3)], [Y]).predict([X]),
    "risk": lambda X: bmrm.LinearRisk(X, [-1, 1, -1], "hinge"),
    "rows": rows_of,
}


@pytest.mark.parametrize("damage", BREAKS)
@pytest.mark.parametrize("make", [csr_matrix, csc_array])
@pytest.mark.parametrize("call", CALLS)
def test_wrong_indices_are_refused(call, make, damage):
    X = make(np.eye(3) + 1.0)
    damage(X)
    with pytest.raises(ValueError, match=r"ind(ex|ices|ptr)|values"):
        CALLS[call](X)


def test_wrong_coordinates_and_blocks_are_refused():
    X = coo_array(np.eye(3))
    X.col[2] = 3
    with pytest.raises(ValueError, match="X has column index 3; it must lie between 0 and 2"):
        rows_of(X)
    blocks = bsr_array(np.eye(4), blocksize=(2, 2))
    blocks.indices[1] = 2
    with pytest.raises(ValueError, match="X has column index 2 in row 1; it must lie between 0 and 1"):
        rows_of(blocks)


@pytest.mark.parametrize("make", [csr_array, csc_array, coo_array, bsr_array, lil_array])
def test_right_ones_are_what_they_were(make):
    X = make(np.arange(6.0).reshape(2, 3))
    assert np.array_equal(rows_of(X).toarray(), np.arange(6.0).reshape(2, 3))


def test_indices_that_change_after_the_check_are_found_when_a_run_begins():
    X = csr_array(np.eye(3) + 1.0)
    problem = bmrm.Problem(bmrm.LinearRisk(X, [-1, 1, -1], "hinge"), L2(), 0.1)
    X.indices[4] = 2**30
    with pytest.raises(ValueError, match="X has index 1073741824 in row 1"):
        bmrm.solve(problem)


def test_attributes_that_change_after_the_check_are_found_when_a_run_begins():
    tokens = csr_array(np.eye(3) + 1.0)
    tokens.data += 0.5
    X = bmrm.structured.Sequences(tokens, [0, 3])
    model = bmrm.structured.ChainModel(2, 3)
    problem = bmrm.Problem(bmrm.StructuredRisk(X, np.array(Y), bmrm.losses.StructuredLog(model)), L2(), 0.1)
    tokens.indices[4] = 2**30
    with pytest.raises(ValueError, match="token 1 has attribute 1073741824"):
        bmrm.solve(problem)


def test_a_base_is_not_its_own_partner():
    model = bmrm.structured.FoldingModel()
    with pytest.raises(ValueError, match="position 1 is its own partner"):
        model.check("GCAAAGC", np.array([-1, 1, -1, -1, -1, -1, -1]))
    with pytest.raises(ValueError, match="position 0 is its own partner"):
        bmrm.StructuredPredictor(model).fit(["GCAAAGC"], [np.array([0, -1, -1, -1, -1, -1, -1])])


@pytest.mark.parametrize("make", [np.zeros, csr_matrix])
def test_no_columns_and_no_intercept_is_one_message(make):
    with pytest.raises(ValueError, match="X has no columns and there is no intercept"):
        bmrm.LinearRisk(make((3, 0)), [-1, 1, -1], "hinge")
