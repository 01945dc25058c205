"""Planes of structured risks touched far away, where scores have lost their digits, lie below the risk everywhere."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bmrm import StructuredRisk
from bmrm.losses import StructuredLog
from bmrm.structured import MODELS
from bmrm.testing.structured import dense

EPS = float(np.finfo(np.float64).eps)
LOGS = [
    model
    for cls in MODELS.values()
    for model in cls.examples()
    if "log_partition" not in model.lacks and cls.__name__ != "MatchingModel"
]


@pytest.mark.parametrize("model", LOGS, ids=lambda model: type(model).__name__)
def test_planes_lie_below(model):
    rng = np.random.default_rng(0)
    X, Y = model.draw(rng, 5)
    risk = StructuredRisk(X, Y, StructuredLog(model), n_threads=1)
    for size in (1.0, 1e3, 1e6, 1e9):
        w = size * rng.normal(size=model.dim)
        w[rng.random(model.dim) < 0.3] *= 1e-9  # outputs that share the large scores are near each other
        a, b = risk.at(w).plane
        for far in (1e-3, 1.0, 1e3, 1e6):
            v = far * size * rng.normal(size=model.dim)
            point = risk.at(v)
            plane = math.fsum([b, *(a * v)])
            charged = point.rounding + 50 * EPS * (abs(b) + float(np.abs(a) @ np.abs(v)))
            assert plane <= point.value + charged


@pytest.mark.parametrize("model", LOGS, ids=lambda model: type(model).__name__)
def test_far_subgradients_are_means_of_outputs(model):
    """Directions in which all outputs are the same are no part of a subgradient, wherever it is taken."""
    rng = np.random.default_rng(1)
    X, Y = model.draw(rng, 3)
    risk = StructuredRisk(X, Y, StructuredLog(model), n_threads=1)
    rows = []
    for x, y in zip(X, Y):
        true = dense(model.joint_feature(x, y), model.dim)
        rows += [dense(model.joint_feature(x, other), model.dim) - true for other in model.outputs(x)]
    features = np.array(rows)
    _, sizes, directions = np.linalg.svd(features)
    same = directions[np.count_nonzero(sizes > 1e-9 * sizes[0]) :]
    for size in (1.0, 1e3, 1e6, 1e9):
        w = size * rng.normal(size=model.dim) + rng.normal(size=model.dim)
        w -= features.T @ np.linalg.lstsq(features @ features.T, features @ w, rcond=1e-9)[0]
        w += rng.normal(size=model.dim)  # large scores, small differences
        _, a = risk.evaluate(w)
        assert np.abs(same @ a).max(initial=0.0) <= 1e-12 * (1.0 + np.abs(features).max())
