"""Matchings: by hand, errors with the place, and learning which features tell nodes apart."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

import bmrm

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
X = np.arange(18.0).reshape(3, 3, 2)
Y = [2, 0, 1]


@pytest.fixture
def model():
    return bmrm.MatchingModel(2)


def test_by_hand(model):
    assert model.joint_feature(X, Y).tolist() == [4.0 + 6.0 + 14.0, 5.0 + 7.0 + 15.0]
    assert model.delta(Y, [2, 1, 0]) == pytest.approx(2 / 3)
    x = np.zeros((3, 3, 2))
    x[[0, 1, 2], Y] = 1.0
    assert model.argmax(x, np.array([1.0, 0.0])).tolist() == Y
    assert model.delta(Y, model.augmented_argmax(x, Y, np.zeros(2))) == 1.0


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((0, 0, 2)), [], "no nodes"),
        (np.zeros((2, 3, 2)), [0, 1], r"shape \(2, 3, 2\), expected \(n, n, 2\)"),
        (np.where(X == 9.0, np.inf, X), Y, "not finite at the pair of nodes 1 and 1"),
        (X, [0, 1], "one node for each of 3"),
        (X, [0.0, 1.0, 2.0], "one node for each of 3"),
        (X, [0, 1, 3], "node 2 is matched with 3, expected 0 to 2"),
        (X, [0, 1, 0], "no permutation: node 2 is matched with 0"),
    ],
)
def test_errors_name_the_example(model, x, y, message):
    with pytest.raises(ValueError, match=f"example 1: .*{message}"):
        bmrm.StructuredRisk([X, x], [Y, y], bmrm.losses.StructuredHinge(model))


def test_no_partition_function(model):
    risk = bmrm.StructuredRisk([X], [Y], bmrm.losses.StructuredLog(model))
    with pytest.raises(TypeError, match="MatchingModel has no log_partition"):
        risk.evaluate(np.zeros(2))


def test_generated_matchings_are_learned(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    data = importlib.import_module("structured_data")
    model, X, Y = data.matchings(np.random.default_rng(0), n=20, nodes=30, n_features=8, noise=0.2)
    risk = bmrm.StructuredRisk(X, Y, bmrm.losses.StructuredHinge(model), n_threads=2)
    result = bmrm.solve(bmrm.Problem(risk, "l2", lam=1e-3), tol=1e-2)
    assert result.converged

    def wrong(w):
        return np.mean([model.delta(y, model.argmax(x, w)) for x, y in zip(X, Y)])

    assert wrong(result.w) < 0.5 * wrong(np.ones(8))
