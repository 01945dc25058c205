"""Checkpoints of runs with owners: another session goes on to the same answer, and never on other data."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest
from commands import good, run
from parties import parties, rows, served

import bmrm
from bmrm import Checkpoint, DataError, LinearRisk, OwnersRisk, Problem, solve
from bmrm.losses import EpsilonInsensitive
from bmrm.owners.resume import check_resumed
from bmrm.problem import missing

EPS = EpsilonInsensitive(eps=1.0)


@pytest.fixture
def data(rng):
    return rows(rng)


def begun(file, owners, loss="hinge", steps=4, **options):
    with OwnersRisk(owners, loss, **({"lam": 0.01} | options)) as risk:
        return solve(risk.problem, "ls_bmrm", tol=1e-9, max_iter=steps, checkpoint=file)


def resumed(file, owners, loss="hinge", solver="ls_bmrm", tol=1e-6, **options):
    with OwnersRisk(owners, loss, **({"lam": 0.01} | options)) as risk:
        return solve(risk.problem, solver, tol=tol, checkpoint=Checkpoint(file, resume=True))


def fitting():
    """Return the solvers that a smooth sum over owners has, with each regularizer."""
    X, y = rows(np.random.default_rng(0))
    for regularizer in ("l2", "l1"):
        with OwnersRisk(parties(X, y), "logistic", lam=0.01, regularizer=regularizer, intercept=True) as risk:
            for name in bmrm.solvers.SOLVERS:
                if not missing(bmrm.solvers.get(name), risk.problem):
                    yield name, regularizer


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("solver", "regularizer"), list(fitting()))
def test_another_session_goes_on(solver, regularizer, masked, data, tmp_path):
    """Planes are kept: the history begins with the first session, and no owner is asked about it again."""
    X, y = data
    options = {"lam": 0.01, "regularizer": regularizer, "intercept": True, "masked": masked}
    one = solve(Problem(LinearRisk(X, y, "logistic", intercept=True), regularizer, 0.01), "ls_bmrm", tol=1e-8)
    owners, file = parties(X, y), tmp_path / "run"
    with OwnersRisk(owners, "logistic", **options) as risk:
        part = solve(risk.problem, solver, tol=1e-4, max_iter=3, checkpoint=file)
    before = [owner.requests for owner in owners]
    again = parties(X, y)[::-1] if not masked else owners  # started anew, in another order
    with OwnersRisk(again, "logistic", **options) as risk:
        rest = solve(risk.problem, solver, tol=1e-4, checkpoint=Checkpoint(file, resume=True))
    assert rest.converged
    assert rest.history[: part.iterations] == part.history
    assert rest.certificate.lower <= one.certificate.upper
    assert one.certificate.lower <= rest.certificate.upper
    if masked:  # the record of answers goes on
        assert all(owner.requests > n for owner, n in zip(owners, before))
    assert all(owner.stopped is None for owner in again)


def changed(X, y, how):
    X, y, weight = X.copy(), y.copy(), np.ones(len(y))
    if how == "an entry":
        X[7, 2] += 1e-6
    elif how == "a label":
        y[7] = -y[7]
    elif how == "a weight":
        weight[7] = 1.001
    elif how == "two rows exchanged their labels":
        here, there = np.flatnonzero(y > 0)[0], np.flatnonzero(y < 0)[0]
        y[here], y[there] = y[there], y[here]
    elif how == "a row":
        X, y, weight = X[:-1], y[:-1], weight[:-1]
    elif how == "a column":
        X = np.column_stack([X, np.ones(len(y))])
    return X, y, None, weight


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "how", ["an entry", "a label", "a weight", "two rows exchanged their labels", "a row", "a column"]
)
def test_other_data_are_refused(how, masked, data, tmp_path):
    X, y = data
    file, weight = tmp_path / "run", np.ones(150)
    begun(file, [bmrm.Owner((X[s::2], y[s::2], None, weight), f"owner {s}") for s in range(2)], masked=masked)
    owners = [bmrm.Owner((X[::2], y[::2], None, weight), "same"), bmrm.Owner(changed(X[1::2], y[1::2], how), "other")]
    if how == "a column":
        owners[0] = bmrm.Owner((np.column_stack([X[::2], np.zeros(150)]), y[::2], None, weight), "same")
    with pytest.raises(DataError, match="the checkpoint belongs to another run: "):
        resumed(file, owners, masked=masked)


@pytest.mark.parametrize("masked", [False, True])
def test_a_change_that_shows_nowhere_but_at_the_last_w(masked, rng, tmp_path):
    """A row within the tube at w = 0 has no slope there, whatever its features: R at the last w has changed."""
    X = rng.normal(size=(300, 4))
    y = 3.0 * X[:, 0]
    y[0], X[0] = 0.0, 0.0
    file = tmp_path / "run"
    begun(file, parties(X, y, 2), EPS, masked=masked)
    X[0] = 50.0
    says = r"its objective is 0\.\d+, and that of its w is \d" if masked else "the owners' data differ"
    with pytest.raises(DataError, match=says):
        resumed(file, parties(X, y, 2), EPS, masked=masked)


@pytest.mark.parametrize(
    "other",
    [
        {"lam": 0.02},
        {"masked": True},
        {"intercept": True},
        {"positive": -1.0},
        {"regularizer": "l1"},
        {"loss": "logistic"},
    ],
    ids=str,
)
def test_other_terms_are_refused(other, data, tmp_path):
    file = tmp_path / "run"
    begun(file, parties(*data))
    with pytest.raises(DataError, match="the checkpoint belongs to another run: "):
        resumed(file, parties(*data), **other)


def test_other_owners_are_refused(data, tmp_path):
    X, y = data
    file = tmp_path / "run"
    begun(file, parties(X, y))
    for owners in (parties(X, y, 2), parties(X, y)[:2]):
        with pytest.raises(DataError, match="the checkpoint belongs to another run: owners is"):
            resumed(file, owners)


def test_masks_are_agreed_on_anew(data, tmp_path):
    file, owners = tmp_path / "run", parties(*data)
    begun(file, owners, masked=True)
    assert resumed(file, owners, masked=True).converged
    keys = [entry["reason"] for entry in owners[0].log.entries if entry["what"] == "masks"]
    assert len(keys) == len(set(keys)) == 2
    with pytest.raises(DataError, match="masked is 'by steps of"):
        resumed(file, owners, masked=True, scale=2.0**-30)


def test_checksums_are_told_for_checkpoints_in_the_clear_only(data, tmp_path):
    def asked(owners):
        return [sum(entry["what"] == "checksum" for entry in owner.log.entries) for owner in owners]

    X, y = data
    for masked, expected in ((False, [1, 1, 1]), (True, [0, 0, 0])):
        owners = parties(X, y)
        with OwnersRisk(owners, "hinge", lam=0.01, masked=masked) as risk:
            solve(risk.problem)
        assert asked(owners) == [0, 0, 0]
        begun(tmp_path / f"run {masked}", owners, masked=masked)
        assert asked(owners) == expected
    silent = bmrm.Owner((X, y), masked_only=2)
    with bmrm.owners.Owners([silent]) as only, pytest.raises(bmrm.owners.Refused, match="no checksum"):
        only.placed.call("checksum", 5)


def test_scores_go_on_bit_for_bit(data, tmp_path):
    owners, file = parties(*data, allow_scores=True), tmp_path / "run"
    with OwnersRisk(owners, "roc_area", lam=1e-3) as risk:
        whole = solve(risk.problem, "ls_bmrm", tol=1e-6)
    begun(file, owners, "roc_area", lam=1e-3)
    rest = resumed(file, owners, "roc_area", lam=1e-3)
    np.testing.assert_array_equal(rest.w, whole.w)
    assert (rest.certificate.upper, rest.certificate.lower) == (whole.certificate.upper, whole.certificate.lower)
    X, y = data
    with pytest.raises(DataError, match="belongs to another run: the entries of X differ"):
        resumed(file, parties(X + 1e-9, y, allow_scores=True), "roc_area", lam=1e-3)


@pytest.mark.parametrize(
    "memory",
    [
        {},
        {"w": np.ones(3), "value": 1.0, "rounding": 0.0},
        {"w": np.full(5, np.nan), "value": 1.0, "rounding": 0.0},
        {"w": np.ones(5), "value": 1.0},
        {"w": 1},
    ],
)
def test_a_crafted_memory(memory, data):
    with OwnersRisk(parties(*data), "hinge", lam=0.1) as risk, pytest.raises(DataError, match="no w with its value"):
        check_resumed(risk, memory)


def test_a_killed_coordinator(rng, tmp_path):
    """The owners serve on; the next coordinator goes on from the file."""
    file, model = tmp_path / "run", tmp_path / "m.bmrm"
    X, y = rows(rng, 600, 40)  # the run to be killed takes 1600 steps, which are seconds
    owners = parties(X, y)
    with served(owners) as addresses:
        common = ["train", "--owners", ",".join(addresses), "--loss", "logistic", "--lam", "1e-4", "--checkpoint",
                  str(file), "--model", str(model), "--solver", "bmrm"]  # fmt: skip
        endless = subprocess.Popen(
            [sys.executable, "-m", "bmrm", *common, "--tol", "1e-14", "--checkpoint-seconds", "0", "--quiet"]
        )
        limit = time.monotonic() + 60.0
        while not file.exists() and endless.poll() is None and time.monotonic() < limit:
            time.sleep(0.01)
        endless.kill()
        endless.wait()
        assert file.exists()
        assert not model.exists()
        for _ in range(100):  # until the owners have noticed
            result = run(*common, "--tol", "1e-2", "--resume")
            if "another coordinator is at work" not in result.stderr:
                break
            time.sleep(0.05)
    assert result.exit_code == 0, result.stderr
    one = solve(Problem(LinearRisk(X, y, "logistic", intercept=True), "l2", 1e-4), tol=1e-8)
    found = bmrm.load(model).certificate
    assert found.lower <= one.certificate.upper
    assert one.certificate.lower <= found.upper


def test_classes_against_the_rest_share_a_file(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(300, 4))
    y = np.argmax(X[:, :3], axis=1).astype(float)
    common = ["--loss", "squared_hinge", "--multiclass", "one_vs_rest", "--lam", "1e-3", "--model", "m.bmrm"]
    with served(parties(X, y)) as addresses:
        common += ["--owners", ",".join(addresses), "--checkpoint", "run"]
        assert run("train", *common, "--max-iter", "2", "--tol", "1e-9").exit_code == 3
        good("train", *common, "--resume")
    assert np.mean(bmrm.load("m.bmrm").predict(X) == y) > 0.9
