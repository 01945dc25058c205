"""Runs on shards and on stores go on from a checkpoint bit for bit, and know the data they belong to."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LAM, all_solvers, tolerance
from runs import assert_same_run

import bmrm
from bmrm import Checkpoint, DataError, LinearRisk, Problem, ShardedRisk, Shards, solve
from bmrm.problem import missing
from bmrm.risks import linear_risk
from bmrm.risks.fingerprint import fingerprint

ROWS, COLUMNS = 90, 6
PLACES = ("store", "shards", "shards of a store")


def sample(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, COLUMNS))
    return bmrm.Dataset(X=X, y=np.where(X[:, 0] + rng.normal(size=ROWS) > 0.0, 1.0, -1.0))


def stored(folder, seed=0, **options):
    path = folder / f"{seed}.store"
    if not path.exists():
        bmrm.convert(sample(seed), path, block_bytes=1024)
    return bmrm.Store(path, **options)


def problem(place, folder, loss, regularizer, lam=LAM):
    """Return a problem whose objects are all new."""
    stored(folder)
    if place == "store":
        data = stored(folder, memory="4GB")
    elif place == "shards":
        data = Shards.from_data(sample(), n_shards=3)
    else:
        data = Shards.from_files([folder / "0.store"], n_shards=3)
    return Problem(linear_risk(data, data.y, loss, intercept=True), regularizer, lam)


def cases():
    """Return each solver with some losses and regularizers; where the rows are rotates."""
    pairs = [("hinge", "l2"), ("hinge", "l1"), ("logistic", "l2"), ("logistic", "l1"), ("roc_area", "l2")]
    for number, solver in enumerate(all_solvers()):
        for k, (loss, regularizer) in enumerate(pairs):
            place = PLACES[(number + k) % len(PLACES)]
            yield pytest.param(place, loss, regularizer, solver, id=f"{place}-{loss}-{regularizer}-{solver.name}")


@pytest.mark.parametrize(("place", "loss", "regularizer", "solver"), list(cases()))
def test_every_solver_that_fits_goes_on_bit_for_bit(place, loss, regularizer, solver, tmp_path):
    if missing(solver, problem(place, tmp_path, loss, regularizer)):
        with pytest.raises(ValueError, match="does not fit this problem"):
            solve(problem(place, tmp_path, loss, regularizer), solver)
        return
    assert_same_run(
        lambda: problem(place, tmp_path, loss, regularizer), solver, tmp_path / "run", tol=1e-3 * tolerance(solver)
    )


@pytest.mark.parametrize(("loss", "solver"), [("logistic", "lbfgs"), ("hinge", "ls_bmrm"), ("hinge", "bmrm")])
def test_many_rows_go_on_bit_for_bit(loss, solver, tmp_path):
    """Sums over many rows depend on their order: points must be made again as they were."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(6000, 20))
    data = bmrm.Dataset(X=X, y=np.where(X @ rng.normal(size=20) + 3.0 * rng.normal(size=6000) > 0.0, 1.0, -1.0))

    def made():
        shards = Shards.from_data(data, n_shards=3)
        return Problem(ShardedRisk(shards, shards.y, loss, intercept=True), "l2", 1e-6)

    assert_same_run(made, solver, tmp_path / "run", tol=1e-9)


def test_a_checkpoint_of_a_store_reads_no_data(tmp_path):
    store = stored(tmp_path)
    found = fingerprint(LinearRisk(store, store.y, "hinge"))
    assert store.file.bytes_read == 0
    other = stored(tmp_path, seed=1)
    assert fingerprint(LinearRisk(other, store.y, "hinge"))["X"] != found["X"]
    part = stored(tmp_path, blocks=(0, 2))
    assert fingerprint(LinearRisk(part, part.y, "hinge"))["X"] != found["X"]
    assert fingerprint(LinearRisk(stored(tmp_path), store.y, "hinge")) == found


@pytest.mark.parametrize("loss", ["hinge", "roc_area"])
def test_a_checkpoint_of_shards_is_one_call(loss, tmp_path):
    shards = Shards.from_data(sample(), n_shards=3)
    risk = linear_risk(shards, shards.y, loss)
    calls, received = shards.placed.calls, shards.placed.received
    found = fingerprint(risk)
    assert shards.placed.calls == calls + 1
    assert shards.placed.received == received  # letters only
    again = Shards.from_data(sample(), n_shards=3)
    assert fingerprint(linear_risk(again, again.y, loss)) == found
    other = Shards.from_data(bmrm.Dataset(X=2.0 * sample().X, y=sample().y), n_shards=3)
    assert fingerprint(linear_risk(other, shards.y, loss))["X"] != found["X"]


def test_another_number_of_shards_is_another_run(tmp_path):
    def made(n):
        shards = Shards.from_data(sample(), n_shards=n)
        return Problem(ShardedRisk(shards, shards.y, "hinge"), "l2", LAM)

    solve(made(3), max_iter=2, checkpoint=tmp_path / "run")
    with pytest.raises(DataError, match="number of shards is 3 there and 2 here"):
        solve(made(2), checkpoint=Checkpoint(tmp_path / "run", resume=True))


def test_rows_left_out_are_other_rows(tmp_path):
    store = stored(tmp_path)
    solve(Problem(LinearRisk(store, store.y, "hinge"), "l2", LAM), max_iter=2, checkpoint=tmp_path / "run")
    with store.path.open("r+b") as file:
        file.seek(store.blocks[1].offset)
        file.write(b"????")
    with pytest.warns(UserWarning, match="skipped 1 of"):
        left = bmrm.Store(store.path, skip_bad=True)
    with pytest.raises(DataError, match="rows is 90 there and"):
        solve(
            Problem(LinearRisk(left, left.y, "hinge"), "l2", LAM), checkpoint=Checkpoint(tmp_path / "run", resume=True)
        )
