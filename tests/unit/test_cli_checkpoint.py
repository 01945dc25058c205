"""``bmrm train --checkpoint``: killed runs go on bit for bit, signals end a run in order, nothing is left behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from commands import bad, good, run, write_files

import bmrm

TRAIN = ("train", "data.npz", "--lam", "1e-6", "--tol", "1e-7", "--threads", "1")
posix = pytest.mark.skipif(os.name == "nt", reason="signals are different there")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_data(classes=2, rows=1500, columns=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    scores = X @ rng.normal(size=(columns, classes)) + 3.0 * rng.normal(size=(rows, classes))
    bmrm.write("data.npz", X, scores.argmax(axis=1).astype(float))


def started(*args):
    command = [sys.executable, "-m", "bmrm", *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(path, child):
    deadline = time.monotonic() + 60.0
    while not path.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


def coefficients(path="data.bmrm"):
    model = bmrm.load(path)
    return model.coef.tobytes() + model.intercept.tobytes(), model.certificates


def bounds(path):
    return [line.split(",")[3:] for line in Path(path).read_text().splitlines()]


def test_stopped_runs_go_on(folder):
    write_data()
    good(*TRAIN, "--solver", "ls_bmrm", "--model", "whole.bmrm", "--history", "whole.csv")
    options = ("--solver", "ls_bmrm", "--checkpoint", "run.checkpoint")
    assert run(*TRAIN, *options, "--max-iter", 5).exit_code == 3
    result = good(*TRAIN, *options, "--resume", "--history", "data.csv")
    assert "not there yet" not in result.stderr
    assert coefficients() == coefficients("whole.bmrm")
    lines = [
        [line.split(",")[3:] for line in Path(name).read_text().splitlines()] for name in ("data.csv", "whole.csv")
    ]
    assert lines[0] == lines[1]
    again = good(*TRAIN, *options, "--resume", "--model", "again.bmrm")
    assert again.exit_code == 0
    assert coefficients("again.bmrm") == coefficients("whole.bmrm")


def test_classes_share_the_file(folder):
    write_data(classes=4)
    good(*TRAIN, "--model", "whole.bmrm")
    options = ("--checkpoint", "run.checkpoint", "--resume")
    run(*TRAIN, *options, "--max-iter", 3)
    good(*TRAIN, *options)
    assert coefficients() == coefficients("whole.bmrm")


def test_sequences_go_on(folder):
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(30):
        lines += [f"{'AB'[int(rng.integers(2))]}\tw{rng.integers(9)}\tp{rng.integers(4)}" for _ in range(6)] + [""]
    Path("tags.crfsuite").write_text("\n".join(lines))
    train = ("train", "tags.crfsuite", "--loss", "structured_log", "--tol", "1e-8", "--threads", 1)
    good(*train, "--model", "whole.bmrm")
    run(*train, "--checkpoint", "c", "--max-iter", 4)
    good(*train, "--checkpoint", "c", "--resume")
    one, two = bmrm.load("tags.bmrm"), bmrm.load("whole.bmrm")
    assert one.coef.tobytes() == two.coef.tobytes()
    assert one.certificate == two.certificate


def test_wrong_use_is_one_clear_error(folder):
    write_files()
    assert "--resume needs --checkpoint" in bad("train", "two.svm", "--resume")
    assert "would be overwritten" in bad("train", "two.svm", "--checkpoint", "two.svm")
    assert "cannot be written" in bad("train", "two.svm", "--checkpoint", "none/c")
    assert "c: not there yet, so the run starts" in good("train", "two.svm", "--checkpoint", "c", "--resume").stderr
    assert "c: is there already; go on from it with --resume" in bad("train", "two.svm", "--checkpoint", "c")
    before = Path("two.bmrm").read_bytes()
    other = bad("train", "two.svm", "--checkpoint", "c", "--resume", "--lam", 0.5)
    assert "c: the checkpoint belongs to another run: lam is 0.0001 there and 0.5 here" in other
    Path("c").write_bytes(Path("c").read_bytes()[:500])
    assert "c: not a checkpoint, or a damaged one" in bad("train", "two.svm", "--checkpoint", "c", "--resume")
    assert Path("two.bmrm").read_bytes() == before


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_signals_write_a_checkpoint_and_a_model(folder, number):
    write_data(rows=20_000, columns=200)
    options = ("--solver", "bmrm", "--checkpoint", "c", "--checkpoint-seconds", 0.05, "--resume")
    child = started(*TRAIN, "--tol", "1e-12", *options)
    wait_for(Path("c"), child)
    child.send_signal(number)
    child.send_signal(number)  # as a wrapper may do
    out, err = child.communicate(timeout=60)
    assert child.returncode == 3, err
    assert "Traceback" not in err
    by = "from the keyboard" if number == signal.SIGINT else "by SIGTERM"
    assert f"NOT certified: interrupted {by}: the best weights so far are in the model" in out
    model = bmrm.load("data.bmrm")
    assert model.status is bmrm.Status.INTERRUPTED
    assert model.certificate.lower <= model.certificate.upper < np.inf
    assert sorted(os.listdir()) == ["c", "data.bmrm", "data.npz"]
    steps = model.history["iterations"]
    assert run(*TRAIN, "--tol", "1e-12", *options, "--max-iter", steps).exit_code == 3
    assert bmrm.load("data.bmrm").coef.tobytes() == model.coef.tobytes()
    assert bmrm.load("data.bmrm").history["iterations"] == steps


@posix
def test_sigterm_without_a_checkpoint_saves_the_model(folder):
    write_data(rows=20_000, columns=200)
    child = started(*TRAIN, "--tol", "1e-12", "--solver", "bmrm", "--max-seconds", "300", "--json")
    assert child.stderr.readline().startswith("gap ")
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 3
    found = json.loads(child.stdout.read())
    assert found["signal"] == "SIGTERM"
    assert found["advice"] == "interrupted by SIGTERM: the best weights so far are in the model"
    child.stdout.close()
    child.stderr.close()
    assert bmrm.load("data.bmrm").status is bmrm.Status.INTERRUPTED


@posix
@pytest.mark.parametrize("solver", ["auto", "bmrm", "subgradient_lbfgs"])
def test_killed_runs_end_with_the_same_bits(folder, solver):
    write_data(rows=4000)
    run(*TRAIN, "--solver", solver, "--max-iter", 150, "--model", "whole.bmrm")
    options = ("--solver", solver, "--max-iter", 150, "--checkpoint", "c", "--checkpoint-seconds", 0, "--resume")
    child = started(*TRAIN, *options)
    wait_for(Path("c"), child)
    time.sleep(random.Random(solver).uniform(0.0, 0.3))
    child.kill()
    child.communicate(timeout=60)
    assert len([name for name in os.listdir() if name.endswith(".tmp")]) <= 1
    run(*TRAIN, *options)
    assert coefficients() == coefficients("whole.bmrm")
    assert sorted(os.listdir()) == ["c", "data.bmrm", "data.npz", "whole.bmrm"]
