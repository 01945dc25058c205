"""Private functions of the core refuse sizes and indices that would lead them out of their arrays."""

from __future__ import annotations

import numpy as np
import pytest

from bmrm import _core

HUGE = 2**31 + 1


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("bad", [-1, 3, 2**30])
def test_indices_of_compressed_rows_are_columns(index, bad):
    indices = np.array([0, bad, 2], dtype=index)
    with pytest.raises(ValueError, match=f"index {bad} is no column; expected 0 to n_cols - 1, with n_cols = 3"):
        _core.csr(np.ones(3), indices, np.array([0, 2, 3]), 3)


def test_there_are_no_negative_columns():
    with pytest.raises(ValueError, match="n_cols must not be negative"):
        _core.check_indices(np.array([0, 1]), np.array([0], np.int32), -(2**63))


def test_compressed_rows_that_are_right_are_taken():
    X = _core.csr(np.ones(3), np.array([0, 1, 2], np.int32), np.array([0, 2, 3]), 2**40)
    assert (X.n_rows, X.n_cols) == (2, 2**40)
    assert _core.csr(np.empty(0), np.empty(0, np.int32), np.array([0, 0]), 0).n_cols == 0
    with pytest.raises(ValueError, match="index 0 is no column"):
        _core.csr(np.ones(1), np.zeros(1, np.int32), np.array([0, 1]), 0)


@pytest.mark.parametrize("indptr", [[0, 5, 2], [1, 1, 2], [0, -3, 2], [0, 1, 3], []])
def test_label_sets_have_an_index(indptr):
    with pytest.raises(ValueError, match="indptr must rise from 0 to 2"):
        _core.multilabel(np.array(indptr, np.int64), np.array([0, 1], np.int32), 2, 1.0, None)


def test_rows_of_a_tree_are_checked_where_they_are_scored():
    rows = _core.JointRows.of_tree(np.array([-1, 0, 0]), np.array([1, 2]), np.array([0], np.int32), 1.0 - np.eye(2))
    with pytest.raises(ValueError, match="F has length 16, expected 1"):
        rows.check(np.zeros((16, 3)), None, 1.0, np.zeros((1, 2)), 0.0, np.zeros(16, np.int64))


def test_a_simplex_has_a_corner():
    none = np.empty(0)
    with pytest.raises(ValueError, match="g has length 0, expected at least 1"):
        _core.simplex_step(none, none, none, none.copy())


def test_lines_are_lines():
    with pytest.raises((ValueError, TypeError)):
        _core.minimize_on_line([None], 0.0, 1.0)


def test_queries_have_documents():
    starts, turns, two = np.array([0, 0, 2]), np.array([0, 1]), np.ones(2)
    with pytest.raises(ValueError, match="query 0 is empty"):
        _core.gain_loss(two, np.array([0, 1]), starts, turns, two, two, two, two, np.zeros(2))


def test_bounds_do_not_cross():
    one, H = np.ones(1), np.ones(1)
    with pytest.raises(ValueError, match="lower lies above upper at place 0"):
        _core.descend_with_matrix(H, one.copy(), one, one, 2.0 * one, one, one.copy(), 1e-3, 1)


# 2^62 tokens with rows of 4 numbers are 0 numbers in 64 bits, so that the sizes seem to fit.
@pytest.mark.parametrize(("k", "n_tokens"), [(1, 2**62), (2**32, 1), (2**62, 1), (2**63, 1)])
def test_sizes_of_chains_do_not_wrap(k, n_tokens):
    with pytest.raises(ValueError, match=r"too short|must"):
        _core.chain_best(np.array([0, n_tokens]), k, False, np.zeros(12), np.zeros(1, np.int32))


@pytest.mark.parametrize("k", [0, 2**31, 2**62, 2**64 - 1])
def test_labels_of_emissions_can_be_numbered(k):
    none = np.empty(0, np.int32)
    with pytest.raises(ValueError, match="k must lie between 1 and"):
        _core.chain_emissions(np.zeros(5, np.int64), none, None, np.zeros(3, np.int64), none, k)


def test_tables_of_edges_can_be_counted():
    with pytest.raises(ValueError, match="have more than 2\\^63 numbers"):
        _core.chain_edges(np.zeros(5, np.int64), np.empty(0, np.int32), None, 2**20, 2**30)


def test_counts_of_entries_are_written():
    squares, counts = np.zeros(3), np.full(3, 2**63 - 1)
    X = _core.csr(np.ones(3), np.array([0, 2, 2], np.int32), np.array([0, 2, 3]), 3)
    _core.column_sizes(X, None, squares, counts)
    assert (squares.tolist(), counts.tolist()) == ([1.0, 0.0, 2.0], [1, 0, 2])


def test_any_negative_partner_is_none():
    """-2^63 became the int 0, a partner, whose loops were counted outside of the array."""
    bases = np.array([2, 1, 0, 0, 0, 1], np.uint8)
    none = _core.fold_feature(bases, np.full(6, -1), 2, 3)
    for far in (-2, -(2**32) + 5, -(2**63)):
        assert np.array_equal(_core.fold_feature(bases, np.full(6, far), 2, 3), none)


def test_a_batch_is_no_larger_than_the_rows():
    """A batch of 2^40 rows asked for 16 TB."""
    X, m = _core.dense(np.eye(3)), 3
    zeros, ones = np.zeros(m), np.ones(m)
    clock = np.zeros(7)
    results = []
    for batch in (3, 2**40, 2**64 - 1):
        w = np.zeros(3)
        _core.descent_epoch(
            X, _core.scalar_loss("hinge"), np.arange(3), ones, None, None, zeros.copy(), zeros.copy(), None, 1.0, ones,
            ones, True, 0.1, "pegasos", 0.0, 10.0, batch, 1.0, w, None, clock.copy(),
        )  # fmt: skip
        results.append(w.tolist())
    assert results[0] == results[1] == results[2] != [0.0] * 3
