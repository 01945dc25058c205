"""The examples run, and say what they should."""

from __future__ import annotations

import runpy
from itertools import product
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def grid():
    pytest.importorskip("maxflow", reason="examples/grid_cut.py needs PyMaxflow (pip install bmrm[grid])")
    return runpy.run_path(str(EXAMPLES / "grid_cut.py"))


def test_images_are_denoised(grid, capsys):
    result, by_cut, by_pixel = grid["main"]()
    assert result.converged
    assert by_cut > by_pixel + 0.1
    assert (result.w[2:] > 0.0).all()
    assert "pixels right" in capsys.readouterr().out


def test_cuts_are_the_best_images(grid):
    model, rng = grid["GridModel"](), np.random.default_rng(0)
    every = [np.array(bits).reshape(2, 3) for bits in product((0, 1), repeat=6)]
    for _ in range(20):
        x, y, w = rng.normal(size=(2, 3)), rng.integers(2, size=(2, 3)), rng.normal(size=4)
        w[2:] = abs(w[2:])
        scores = [w @ model.joint_feature(x, other) for other in every]
        costs = [model.delta(y, other) for other in every]
        assert w @ model.joint_feature(x, model.argmax(x, w)) == pytest.approx(max(scores))
        worst = model.augmented_argmax(x, y, w)
        assert w @ model.joint_feature(x, worst) + model.delta(y, worst) == pytest.approx(max(np.add(scores, costs)))
