"""Every solver, stopped after any step and continued from a file by a new process's objects, is the same run."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from catalogue import (
    LAM,
    LAYOUTS,
    PLACES,
    all_losses,
    all_pairs,
    all_regularizers,
    all_solvers,
    sample_for,
    sharded,
    tolerance,
)
from runs import assert_same_run

from bmrm import LinearRisk, Problem, StructuredRisk
from bmrm.losses import Hinge, Logistic, SquaredHinge, StructuredHinge
from bmrm.problem import missing
from bmrm.regularizers import L1, L2
from bmrm.solvers import Auto
from bmrm.structured import StructuredModel

CASES = 4  # of each solver: other losses and regularizers for each


def made(loss, example, layout="dense64") -> Problem:
    """Return a problem whose objects are all new."""
    X, y, groups = sample_for(loss)
    if layout == "shards":
        risk = sharded(loss, X.copy(), y.copy(), groups, n_threads=1)
        return Problem(risk, all_regularizers(risk.dim)[example], LAM)
    risk = LinearRisk(LAYOUTS[layout](X.copy()), y.copy(), loss, groups=groups, n_threads=1)
    return Problem(risk, all_regularizers(risk.dim)[example], LAM)


def cases():
    """Return a few problems for each solver, spread over the losses and regularizers that fit it."""
    pairs = all_pairs()
    for place, solver in enumerate(all_solvers()):
        fitting = [pair for pair in pairs if not missing(solver, made(*pair))]
        chosen = [fitting[(place + k * len(fitting)) // CASES % len(fitting)] for k in range(CASES)]
        for k, (loss, example) in enumerate(dict.fromkeys(chosen)):
            places = [layout for layout in PLACES if not missing(solver, made(loss, example, layout))]
            layout = places[(place + k) % len(places)]
            yield pytest.param(solver, loss, example, layout, id=f"{solver.name}-{loss}-{example}-{layout}")


@pytest.mark.parametrize(("solver", "loss", "example", "layout"), list(cases()))
def test_continued_run_is_the_same_run(solver, loss, example, layout, tmp_path):
    assert_same_run(lambda: made(loss, example, layout), solver, tmp_path / "run", tol=1e-3 * tolerance(solver))


def uneven(loss, kind) -> Problem:
    """Return a problem of more columns than rows, in units that differ, with weights and offsets of rows."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 80)) * 10.0 ** rng.integers(-3, 4, size=80)
    y = np.where(rng.random(30) < 0.4, -1.0, 1.0)
    given = {"sample_weight": rng.uniform(0.5, 2.0, 30), "offset": rng.normal(size=30)}
    return Problem(LinearRisk(X, y, loss, n_threads=1, intercept=kind is L1, **given), kind(), LAM)


UNEVEN = [
    pytest.param(loss, kind, solver, id=f"{loss}-{kind.name}-{solver.name}")
    for loss, kind, solver in product([Hinge(), Logistic(), SquaredHinge()], [L1, L2], all_solvers())
    if not missing(solver, uneven(loss, kind))
]


@pytest.mark.parametrize(("loss", "kind", "solver"), UNEVEN)
def test_more_columns_than_rows_in_uneven_units(loss, kind, solver, tmp_path):
    """Planes are kept by slopes, and some solvers run in other units."""
    assert_same_run(lambda: uneven(loss, kind), solver, tmp_path / "run", tol=1e-9)


class Multiclass(StructuredModel):
    """Three classes as outputs, asked for one example at a time: its answers are remembered by the risk."""

    dim = 6

    def joint_feature(self, x, y):
        phi = np.zeros(6)
        phi[2 * y : 2 * y + 2] = x
        return phi

    def delta(self, y, other):
        return float(y != other)

    def augmented_argmax(self, x, y, w):
        return int(np.argmax(w.reshape(3, 2) @ x + (np.arange(3) != y)))

    def argmax(self, x, w):
        return int(np.argmax(w.reshape(3, 2) @ x))


@pytest.mark.parametrize("solver", ["auto", "bmrm", "ls_bmrm", "proximal_bundle"])
def test_remembered_outputs_are_kept(solver, tmp_path):
    def make() -> Problem:
        rng = np.random.default_rng(1)
        X, y = rng.normal(size=(20, 2)), rng.integers(3, size=20)
        return Problem(StructuredRisk(list(X), y.tolist(), StructuredHinge(Multiclass()), n_threads=1), "l2", 1e-3)

    assert_same_run(make, solver, tmp_path / "run", tol=1e-9)


@pytest.mark.parametrize("loss", [loss for loss in all_losses() if loss.couples != "row"][:6], ids=repr)
def test_auto_with_losses_of_several_rows(loss, tmp_path):
    assert_same_run(lambda: made(loss, 6), Auto(), tmp_path / "run", tol=1e-9)
