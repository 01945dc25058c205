"""Segments: counts by hand, special cases that are chains, errors with the place, and learning from generated ones."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import bmrm
from bmrm.testing.structured import dense

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def model():
    return bmrm.SemiMarkovModel(n_labels=2, n_attributes=2, max_length=3, n_lengths=2, boundaries=True)


X = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0], [5.0, 0.0]])
Y = [(0, 3, 1), (3, 4, 0)]


def test_joint_feature_by_hand(model):
    phi, blocks = dense(model.joint_feature(X, Y), model.dim), model.blocks()
    assert phi[blocks["tokens"]].tolist() == [5.0, 3.0, 0.0, 4.0]  # attribute by label
    assert phi[blocks["lengths"]].tolist() == [1.0, 0.0, 0.0, 1.0]  # 3 tokens count as 2 or more
    assert phi[blocks["transitions"]].tolist() == [0.0, 0.0, 1.0, 0.0]
    assert phi[blocks["first"]].tolist() == [5.0, 1.0, 0.0, 0.0]
    assert phi[blocks["last"]].tolist() == [5.0, 0.0, 0.0, 3.0]


def test_sparse_and_dense_are_the_same(model):
    w = np.random.default_rng(0).normal(size=model.dim)
    other = sparse.csr_array(X)
    np.testing.assert_allclose(
        dense(model.joint_feature(other, Y), model.dim), dense(model.joint_feature(X, Y), model.dim)
    )
    assert model.argmax(other, w) == model.argmax(X, w)
    assert model.log_partition(other, w)[0] == pytest.approx(model.log_partition(X, w)[0])


@pytest.mark.parametrize(
    ("other", "cost"),
    [(Y, 0), ([(0, 3, 1), (3, 4, 1)], 1), ([(0, 1, 1), (1, 3, 1), (3, 4, 0)], 1), ([(0, 1, 0), (1, 4, 0)], 3 + 2)],
)
def test_costs_by_hand(model, other, cost):
    assert model.delta(Y, other) == model.delta(other, Y) == cost


def test_lengths_alone_decide():
    model = bmrm.SemiMarkovModel(n_labels=1, n_attributes=1, max_length=4)
    w = np.zeros(model.dim)
    w[model.blocks()["lengths"]] = [0.0, 0.0, 1.0, 0.0]
    assert model.argmax(np.zeros((9, 1)), w) == [(0, 3, 0), (3, 6, 0), (6, 9, 0)]
    # compositions of 8 into parts of at most 4, all alike: the tetranacci number 108
    assert model.log_partition(np.zeros((8, 1)), np.zeros(model.dim))[0] == pytest.approx(np.log(108.0))


def test_weights_of_any_size(model):
    for scale in (1e-300, 1e5, 1e150):
        w = scale * np.random.default_rng(1).normal(size=model.dim)
        value, expected = model.log_partition(X, w)
        assert np.isfinite(value)
        assert dense(expected, model.dim)[model.blocks()["tokens"]].sum() == pytest.approx(X.sum())


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((0, 2)), [], "no tokens"),
        (np.zeros((4, 3)), Y, r"shape \(4, 3\), expected \(tokens, 2\)"),
        (np.where(X == 3.0, np.nan, X), Y, "not finite at token 2"),
        (X, [], "no segments"),
        (X, [0, 1, 1, 0], "three integers"),
        (X, [(0, 2, 0), (1, 4, 0)], "segment 1 starts at 1, but the one before ends at 2"),
        (X, [(0, 1, 0), (2, 4, 0)], "segment 1 starts at 2, but the one before ends at 1"),
        (X, [(1, 4, 0)], "segment 0 starts at 1, but the first must start at 0"),
        (X, [(0, 4, 0)], "segment 0 from 0 to 4 has 4 tokens, expected 1 to 3"),
        (X, [(0, 0, 0), (0, 3, 0)], "segment 0 from 0 to 0 has 0 tokens"),
        (X, [(0, 3, 2), (3, 4, 0)], "segment 0 has label 2, expected 0 to 1"),
        (X, [(0, 3, 1)], "the last segment ends at 3, but x has 4 tokens"),
    ],
)
def test_errors_name_the_example(model, x, y, message):
    with pytest.raises(ValueError, match=f"example 1: .*{message}"):
        bmrm.StructuredRisk([X, x], [Y, y], bmrm.losses.StructuredHinge(model))


@pytest.mark.parametrize("name", ["n_labels", "n_attributes", "max_length", "n_lengths"])
def test_sizes_must_be_positive(name):
    sizes = {"n_labels": 1, "n_attributes": 1, "max_length": 1, name: 0}
    with pytest.raises(ValueError, match=f"'{name}' must be at least 1"):
        bmrm.SemiMarkovModel(**sizes)


@pytest.mark.parametrize("loss", [bmrm.losses.StructuredHinge, bmrm.losses.StructuredLog])
def test_generated_segments_are_learned(monkeypatch, loss):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    data = importlib.import_module("structured_data")
    model, X, Y = data.segmented(np.random.default_rng(0), n=15, noise=0.7)
    risk = bmrm.StructuredRisk(X, Y, loss(model), n_threads=2)
    result = bmrm.solve(bmrm.Problem(risk, "l2", lam=1.0), tol=1e-2)
    assert result.converged
    wrong = sum(model.delta(y, model.argmax(x, result.w)) for x, y in zip(X, Y)) / sum(len(x) for x in X)
    assert wrong < 0.1
