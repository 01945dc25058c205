"""A limit of memory holds in a process of its own, for conversions and for every kind of regularizer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bmrm.data.pieces import Piece
from bmrm.data.store_writer import StoreWriter

ROWS, COLUMNS = 120_000, 200  # 96 MB in float32, 192 MB in float64
LIMIT = 170_000_000
TABLES = 310_000_000  # pyarrow alone takes from 100 to 150 MB

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system has no /proc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A dense store larger than the limit allows to be read, with labels of two and of three classes."""
    path, rng = tmp_path_factory.mktemp("memory"), np.random.default_rng(0)
    normal = rng.normal(size=COLUMNS)
    for name, classes in (("two", 2), ("three", 3)):
        with (path / f"{name}.store").open("wb") as file:
            writer = StoreWriter(file, single=True, block_bytes=1 << 21)
            for _ in range(ROWS // 4000):
                X = rng.standard_normal((4000, COLUMNS), dtype=np.float32)
                y = np.digitize(X @ normal + rng.normal(size=4000), [0.0, 5.0][: classes - 1])
                writer.add(Piece(X, y.astype(float), columns=COLUMNS))
            writer.finish(None)
    return path


def resident(pid):
    """RssAnon + RssFile of a process."""
    lines = [line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return sum(1024 * int(line[1]) for line in lines if line and line[0] in ("RssAnon:", "RssFile:"))


def measured(*arguments, folder, codes=(0, 3), limit=LIMIT):
    """Run a command; return the most that was resident, and what it wrote."""
    command = [sys.executable, "-m", "bmrm", *map(str, arguments), "--json", "--quiet", "--memory", str(limit)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
    most, deadline = 0, time.monotonic() + 100
    try:
        while run.poll() is None and time.monotonic() < deadline:
            try:
                most = max(most, resident(run.pid))
            except (OSError, ValueError):  # it has just ended
                break
            time.sleep(0.003)
        out, errors = run.communicate(timeout=10)
    finally:
        run.kill()
    assert run.returncode in codes, errors
    return most, json.loads(out) if out else errors


SETTINGS = {
    "l2": ["two.store", "--loss", "hinge"],
    "no intercept": ["two.store", "--loss", "logistic", "--no-intercept"],
    "l1": ["two.store", "--loss", "hinge", "--regularizer", "l1"],
    "elastic net": ["two.store", "--loss", "hinge", "--regularizer", "elastic_net"],
    "bounds": ["two.store", "--loss", "hinge", "--regularizer-param", "bounds=[-0.1,0.1]"],
    "three classes together": ["three.store", "--loss", "softmax"],
    "one against the rest": ["three.store", "--loss", "hinge", "--multiclass", "one_vs_rest"],
    "shards": ["two.store", "--loss", "hinge", "--engine", "local", "--shards", "3"],
}


@pytest.mark.parametrize("name", SETTINGS)
def test_training_keeps_the_limit(name, folder):
    most, found = measured("train", *SETTINGS[name], "--max-iter", 5, "--model", "m.bmrm", folder=folder)
    assert found["n_examples"] == ROWS
    assert 50_000_000 < most <= LIMIT


def write_table(path, rows):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    X = np.random.default_rng(1).normal(size=(rows, 20)).round(6)
    table = arrow.table({f"x{j}": X[:, j] for j in range(20)} | {"label": np.sign(X[:, 0])})
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path, chunksize=10_000)
    else:
        pyarrow.csv.write_csv(table, path)


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.csv"])
def test_tables_are_converted_within_the_limit(name, tmp_path):
    rows = 100_000 if name == "a.csv" else 600_000
    write_table(tmp_path / name, rows)
    most, found = measured("convert", name, "a.store", "--target", "label", folder=tmp_path, limit=TABLES)
    assert found["n_examples"] == rows
    assert 50_000_000 < most <= TABLES


def test_a_table_is_trained_from_within_the_limit(tmp_path):
    """There are 12 vectors as long as the rows."""
    rows = 300_000
    write_table(tmp_path / "a.parquet", rows)
    run = ("train", "a.parquet", "--target", "label", "--max-iter", 3, "--model", "m.bmrm")
    most, found = measured(*run, folder=tmp_path, limit=TABLES + 200 * rows)
    assert found["n_examples"] == rows
    assert 50_000_000 < most <= TABLES + 200 * rows


def test_arrays_and_text_are_converted_within_the_limit(tmp_path):
    X = np.random.default_rng(2).normal(size=(200_000, 100))
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    with (tmp_path / "a.svm").open("wb") as file:
        line = b" ".join([b"1", *(b"%d:0.123456" % j for j in range(1, 40))]) + b"\n"
        for _ in range(60):
            file.write(line * 5000)
    for name in ("a.npy", "columns.npy", "a.svm"):
        most, found = measured("convert", name, "a.store", folder=tmp_path)
        assert found["n_examples"] in (200_000, 300_000)
        assert 30_000_000 < most <= LIMIT


def test_what_cannot_be_kept_is_refused(folder, tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((100_000, 80)), y=np.ones(100_000))
    for command in (["convert", "a.npz", "a.store"], ["train", "a.npz", "--model", "m.bmrm"]):
        most, line = measured(*command, folder=tmp_path, codes=(2,))
        assert "a.npz: a .npz file of 64" in line
        assert "a memory limit of 170.0 MB has no room for; expected at least" in line
        assert most <= LIMIT
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]
