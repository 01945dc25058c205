"""Commands on stores, on several files and on tables; limits of memory; damaged stores."""

from __future__ import annotations

import json
import os
import tempfile

import numpy as np
import pytest
from commands import FILES, bad, good, write_files

import bmrm


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path)
    write_files()
    np.save("X.npy", np.eye(3))


def trained(*arguments):
    return json.loads(good("train", *arguments, "--model", "m.bmrm", "--json", "--quiet").stdout)


def same(one, other, tol=1e-3):
    assert one["converged"]
    assert other["converged"]
    assert one["lower_bound"] <= other["objective"] * (1 + 1e-12)
    assert other["lower_bound"] <= one["objective"] * (1 + 1e-12)
    assert abs(one["objective"] - other["objective"]) <= tol * one["objective"]


def test_convert_says_what_it_wrote():
    first, last = good("convert", "two.svm", "two.store").stdout.splitlines()
    assert first.startswith("120 rows, 6 features, csr float64; 1 blocks, ")
    assert last == "store saved to two.store"
    assert "no labels" in good("convert", "X.npy", "x.store").stdout
    bmrm.write("few.svm", [[1.0, 2.0]], [1.0])
    text = good("convert", "few.svm", "two.svm", "two.store").stdout
    assert "files have from 2 to 6 features; the most are taken for all" in text
    found = json.loads(good("convert", "two.svm", "two.store", "--float32", "--json").stdout)
    assert (found["n_examples"], found["n_features"], found["dtype"]) == (120, 6, "float32")
    assert good("convert", "two.svm", "two.store", "--quiet").stdout == ""


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_train_from_a_store_is_train_from_the_file(loss):
    good("convert", "two.svm", "two.store", "--block-bytes", "2kB")
    inside = trained("two.svm", "--loss", loss)
    for memory in ([], ["--memory", "3GB"]):
        same(inside, trained("two.store", "--loss", loss, *memory))
    accuracy = [good("evaluate", "m.bmrm", file).stdout for file in ("two.svm", "two.store")]
    assert accuracy[0] == accuracy[1]
    lines = [good("predict", "m.bmrm", file).stdout for file in ("two.svm", "two.store")]
    assert lines[0] == lines[1]


@pytest.mark.parametrize(
    ("task", "loss"),
    [
        ("regression", "poisson"),
        ("novelty", "novelty"),
        ("multilabel", "multilabel_hinge"),
        ("hierarchy", "hierarchical_softmax"),
        ("multivariate", "multivariate_squares"),
        ("ordinal", "ordinal"),
        ("ranking", "pairwise_rank"),
    ],
)
def test_every_task_trains_from_a_store(task, loss):
    if loss not in bmrm.losses.LOSSES:
        loss = next(name for name, cls in bmrm.losses.LOSSES.items() if cls.task == task)
    file = FILES[task][0]
    good("convert", file, "x.store", "--block-bytes", "2kB")
    same(trained(file, "--loss", loss, "--lam", "0.01"), trained("x.store", "--loss", loss, "--lam", "0.01"), 2e-3)
    good("evaluate", "m.bmrm", "x.store")


def test_several_files_and_a_limit_of_memory_leave_no_temporary_store():
    data = bmrm.read("two.svm")
    for k in range(3):
        bmrm.write(f"part-{k}.svm.gz", data.X[k * 40 : (k + 1) * 40], data.y[k * 40 : (k + 1) * 40])
    parts = [f"part-{k}.svm.gz" for k in range(3)]
    inside = trained("two.svm")
    same(inside, trained(*parts))
    same(inside, trained(*parts, "--memory", "3GB"))
    same(inside, trained("two.svm", "--memory", "3GB"))
    assert os.listdir("tmp") == []
    assert bmrm.load("m.bmrm").config["more"] == []
    line = bad("train", "two.svm", "--memory", "10MB")
    assert "a memory limit of 10.0 MB is too small" in line
    assert os.listdir("tmp") == []


def test_weights_of_their_own_file():
    np.save("p.npy", np.arange(120) % 3)
    good("convert", "two.svm", "two.store")
    same(trained("two.svm", "--weights", "p.npy"), trained("two.store", "--weights", "p.npy"))


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.feather"])
def test_tables_are_trained_from_directly(name):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    data = bmrm.read("two.svm")
    X = data.X.toarray()
    table = arrow.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"label": data.y})
    write = {
        "t.parquet": pyarrow.parquet.write_table,
        "t.csv": pyarrow.csv.write_csv,
        "t.feather": pyarrow.feather.write_feather,
    }
    write[name](table, name)
    same(trained("two.svm"), trained(name, "--target", "label"))
    assert "needs them" in bad("train", name)
    assert "has no column 'z'" in bad("train", name, "--target", "z")
    assert os.listdir("tmp") == []


def test_a_corrupt_block_keeps_the_old_model():
    good("convert", "two.svm", "two.store", "--block-bytes", "2kB")
    good("train", "two.store", "--model", "m.bmrm", "--quiet")
    with open("m.bmrm", "rb") as file:
        before = file.read()
    block = bmrm.Store("two.store").blocks[1]
    with open("two.store", "r+b") as file:
        file.seek(block.offset + 9)
        file.write(b"?")
    assert f"two.store: corrupt block at offset {block.offset}" in bad("train", "two.store", "--model", "m.bmrm")
    with open("m.bmrm", "rb") as file:
        assert file.read() == before
    result = good("train", "two.store", "--model", "m.bmrm", "--skip-bad")
    assert f"skipped 1 of {len(bmrm.Store('two.store').blocks)} blocks, {block.rows} of 120 rows" in result.stderr
    assert f"{120 - block.rows} rows, 6 features" in result.stdout


def test_bad_lines_are_counted_on_the_way():
    with open("two.svm", "a") as file:
        file.write("1 2:\n1 3:4\n")
    assert "two.svm, line 121" in bad("train", "two.svm")
    result = good("train", "two.svm", "--skip-bad", "--model", "m.bmrm")
    assert "warning: skipped 1 rows: two.svm, line 121" in result.stderr
    assert "121 rows" in result.stdout
    assert "skipped 1 rows: two.svm, line 121" in good("convert", "two.svm", "two.store", "--skip-bad").stdout
    found = json.loads(good("convert", "two.svm", "two.store", "--skip-bad", "--json").stdout)
    assert (found["n_skipped"], found["n_examples"]) == (1, 121)
    assert os.listdir("tmp") == []


def test_wrong_usage_is_one_line():
    good("convert", "two.svm", "two.store")
    assert "--shards is for --engine" in bad("train", "two.svm", "--shards", "2")
    assert "--target is for tables" in bad("train", "two.svm", "--target", "y")
    assert "one store is trained from at a time" in bad("train", "two.store", "two.svm")
    assert "amount of memory 'much'" in bad("train", "two.store", "--memory", "much")
    assert "rows whose slopes can be chosen" in bad("train", "two.store", "--solver", "dual_coordinate")
    assert "not for sequences" in bad("train", "a.conll", "--loss", "structured_log", "--memory", "1GB")
    assert "is an input" in bad("convert", "two.svm", "two.svm")
    assert "cannot be read" in bad("convert", "none.svm", "none.store")
    assert "amount of memory" in bad("convert", "two.svm", "b.store", "--block-bytes", "x")
    os.truncate("two.store", 5000)
    assert "two.store: truncated" in bad("train", "two.store")
