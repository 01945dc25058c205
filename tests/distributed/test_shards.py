"""Shards of files: equal work, whole queries, the same rows as in one process, whatever the files are."""

from __future__ import annotations

import csv
import json
import os
import tempfile
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from commands import bad, good
from hypothesis import given, settings
from hypothesis import strategies as st

import bmrm
from bmrm import DataError, LinearRisk, ShardedRisk, Shards
from bmrm.data.balance import cuts, row_work
from bmrm.data.parts import planned, row_start
from bmrm.data.source_options import FilePart
from bmrm.parallel import LocalEngine
from bmrm.risks.file_shard import FileShard

ROWS, COLUMNS = 600, 50


class Several(LocalEngine):
    """An engine that says that it has several workers."""

    n_workers = 3


def skewed(rng, rows=ROWS, columns=COLUMNS, groups=None):
    """Rows of 1 to all entries, the long ones together."""
    lengths = np.sort(np.minimum(1 + rng.pareto(1.0, rows).astype(int), columns))[::-1]
    X = sp.lil_array((rows, columns))
    for i, n in enumerate(lengths):
        X[i, np.sort(rng.choice(columns, n, replace=False))] = rng.normal(size=n)
    return bmrm.Dataset(X=sp.csr_array(X), y=np.where(rng.random(rows) < 0.5, 1.0, -1.0), groups=groups)


def same_rows(shards, data):
    """Compare values and subgradients with those of all rows in one place."""
    w = np.random.default_rng(1).normal(size=data.X.shape[1])
    assert shards.shape == data.X.shape
    assert np.array_equal(shards.y, data.y)
    here, there = LinearRisk(data.X, data.y, "hinge").evaluate(w), ShardedRisk(shards, shards.y, "hinge").evaluate(w)
    assert np.isclose(here[0], there[0], rtol=1e-12)
    assert np.allclose(here[1], there[1], rtol=1e-10, atol=1e-13)


def write_table(path, data):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    X = data.X.toarray()
    table = arrow.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"label": data.y})
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=70)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path, chunksize=50)
    else:
        pyarrow.csv.write_csv(table, path)


def write_as(path, data):
    if path.suffix in (".parquet", ".feather", ".csv"):
        write_table(path, data)
    elif path.suffix == ".store":
        bmrm.convert(data, path, block_bytes=1024)
    else:
        bmrm.write(path, data)


@pytest.mark.parametrize("name", ["a.svm", "a.npz", "a.store", "a.parquet", "a.feather", "a.csv", "a.svm.gz"])
@pytest.mark.parametrize("memory", [None, "4GB"])
def test_one_file_in_parts_is_the_whole_file(name, memory, tmp_path, rng):
    data = skewed(rng)
    path = tmp_path / name
    write_as(path, data)
    target = "label" if path.suffix in (".parquet", ".feather", ".csv") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parts of text have fewer features
        shards = Shards.from_files([path], n_shards=4, target=target, memory=memory)
    whole = name in ("a.csv", "a.svm.gz")
    assert len(shards.about) == (1 if whole else 4)
    same_rows(shards, data)


@pytest.mark.parametrize("n_shards", [2, 5, 16])
@pytest.mark.parametrize("kind", [".svm", ".npz", ".store"])
@pytest.mark.parametrize("files", [1, 3])
def test_the_largest_shard_is_not_much_larger_than_the_mean(kind, files, n_shards, tmp_path, rng):
    data = skewed(rng, 3000)
    ends = np.linspace(0, 3000, files + 1).astype(int) ** 2 // 3000  # files of different sizes
    paths = [tmp_path / f"{k}{kind}" for k in range(files)]
    for path, a, b in zip(paths, ends, ends[1:]):
        write_as(path, replace(data, X=data.X[a:b], y=data.y[a:b]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shards = Shards.from_files(paths, n_shards=n_shards)
    entries = [about.entries for about in shards.about]
    assert len(entries) == n_shards
    assert max(entries) <= 1.2 * np.mean(entries)
    same_rows(shards, data)
    rows = [about.rows for about in shards.about]
    assert max(rows) > 1.5 * np.mean(rows)  # equal rows would not be equal work


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans())
def test_cuts_are_balanced_and_keep_queries_whole(seed, n_parts, with_groups):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(200, 2000))
    entries = np.minimum(1 + rng.pareto(0.8, m).astype(int), 60)
    groups = np.sort(rng.integers(0, m // 4, m)) if with_groups else None
    work = row_work(entries, groups)
    places = cuts(work, n_parts, groups)
    assert places[0] == 0
    assert places[-1] == m
    assert len(places) <= n_parts + 1
    parts = [work[a:b].sum() for a, b in pairwise(places)]
    largest = max(np.add.reduceat(work, np.flatnonzero(np.diff(groups, prepend=-1))) if with_groups else work)
    assert max(parts) <= work.sum() / n_parts + largest
    if groups is not None:
        assert all(groups[place - 1] != groups[place] for place in places[1:-1])


@pytest.mark.parametrize("kind", [".svm", ".npz", ".store"])
def test_queries_are_never_cut(kind, tmp_path, rng):
    sizes = rng.integers(1, 40, 40)
    groups = np.repeat(np.arange(40), sizes)
    data = skewed(rng, len(groups), groups=groups)
    data = replace(data, y=rng.integers(0, 3, len(groups)).astype(float))
    path = tmp_path / f"queries{kind}"
    write_as(path, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shards = Shards.from_files([path], n_shards=6)
        risk = ShardedRisk(shards, shards.y, "pairwise_rank", groups=shards.groups)  # refuses queries in two shards
        whole = LinearRisk(data.X, data.y, "pairwise_rank", groups=groups)
    assert len(shards.about) > 3
    w = rng.normal(size=COLUMNS)
    here = whole.evaluate(w)
    assert np.isclose(risk.evaluate(w)[0], here[0], rtol=1e-12)


def test_query_cost_counts():
    work = row_work(np.ones(12), [0] * 8 + [1, 2, 3, 4])
    assert work[0] == 4.0
    assert work[-1] == 1.0
    assert cuts(work, 2, [0] * 8 + [1, 2, 3, 4]) == [0, 8, 12]


def test_rows_start_at_lines_of_another_query(tmp_path):
    path = tmp_path / "text.svm"
    lines = [b"# first\n", b"1 qid:1 1:1\n", b"# qid:9\n", b"2 qid:1 1:1\n", b"\n", b"1 qid:2 1:1\n", b"2 qid:2 1:1"]
    path.write_bytes(b"".join(lines))
    starts = np.cumsum([0, *map(len, lines)])
    size, second = path.stat().st_size, int(starts[5])
    found = [row_start(str(path), offset) for offset in range(size + 1)]
    assert found == [second if offset <= second else size for offset in range(size + 1)]
    path.write_bytes(path.read_bytes().replace(b"qid:1 ", b"").replace(b"qid:2 ", b""))
    assert row_start(str(path), 1) == path.read_bytes().index(b"2 1:1")


def test_many_files_are_few_shards(tmp_path, rng):
    data, paths = skewed(rng), []
    for k in range(60):
        paths.append(tmp_path / f"part-{k:02d}.svm.gz")
        bmrm.write(paths[-1], data.X[10 * k : 10 * k + 10], data.y[10 * k : 10 * k + 10])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shards = Shards.from_files(paths, Several())
    assert 8 <= len(shards.about) <= 12
    same_rows(shards, data)
    sizes = [path.stat().st_size for path in paths]
    assert max(own.work for own in planned(paths, 3)) <= sum(sizes) / 12 + max(sizes)
    assert len(planned(paths, 1)) == 4


def test_little_data_stays_in_whole_files(tmp_path, rng):
    paths = [tmp_path / f"{k}.svm" for k in range(2)]
    for path in paths:
        bmrm.write(path, skewed(rng, 20))
    for n_workers in (1, 3):
        assert [own.parts for own in planned(paths, n_workers)] == [(FilePart(str(path)),) for path in paths]
    assert 3 < len(planned(paths, 1, n_shards=7)) <= 7
    hidden = planned([tmp_path / "elsewhere.svm", *paths], 2)  # only the workers see it
    assert len(hidden) == 3


def test_a_large_file_is_cut_for_several_workers(tmp_path):
    path = tmp_path / "large.svm"
    path.write_bytes(b"1 1:0.5 7:0.25\n-1 2:1 3:4\n" * 500_000)
    plan = planned([path], 2)
    assert len(plan) == 8
    assert all(np.isclose(own.work, path.stat().st_size / 8, rtol=1e-3) for own in plan)
    part = FileShard(plan[3].parts)()
    assert part.about().rows == pytest.approx(125_000, abs=2)


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("memory", [None, "4GB"])
def test_an_index_0_in_one_file_is_for_all(first, memory, tmp_path, rng):
    data, paths = skewed(rng), [tmp_path / f"{k}.svm" for k in range(3)]
    X = data.X.tolil()
    X[:, 0] = 0.0
    X[200 * first, 0] = 1.0
    data = replace(data, X=sp.csr_array(X))
    for k, path in enumerate(paths):
        bmrm.write(path, data.X[200 * k : 200 * k + 200], data.y[200 * k : 200 * k + 200], zero_based=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shards = Shards.from_files(paths, memory=memory)
        few = Shards.from_files(paths, n_shards=1, memory=memory)
    assert shards.zero_based is True
    same_rows(shards, data)
    same_rows(few, data)


def test_a_wrong_option_is_no_bad_line(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n1 0:1\n")
    with pytest.raises(DataError, match=r"a\.svm, line 2.*counts from 1"):
        Shards.from_files([tmp_path / "a.svm"], zero_based=False, skip_bad=True)
    assert Shards.from_files([tmp_path / "a.svm"], skip_bad=True).shape == (2, 2)


def test_a_shard_made_anew_has_the_columns_of_all(tmp_path, rng):
    """Its own file has fewer than the others."""
    data, paths = skewed(rng), [tmp_path / f"{k}.svm" for k in range(2)]
    narrow = data.X.tolil()
    narrow[300:, 20:] = 0.0
    data = replace(data, X=sp.csr_array(narrow))
    for k, path in enumerate(paths):
        bmrm.write(path, data.X[300 * k : 300 * k + 300], data.y[300 * k : 300 * k + 300])
    with pytest.warns(UserWarning, match="the shards have 20 to 50 features"):
        shards = Shards.from_files(paths)
    placed = shards.placed
    risks = [bmrm.ShardedRisk(shards, shards.y, "hinge"), LinearRisk(shards, shards.y, "roc_area")]
    w = rng.normal(size=COLUMNS)
    before = [risk.evaluate(w) for risk in risks]
    placed._objects[1] = FileShard(str(paths[1]))()
    again = [risk.evaluate(w) for risk in risks]
    for (value, a), (other, b) in zip(before, again):
        assert value == other
        assert np.array_equal(a, b)


def test_sparse_stores_of_different_width(tmp_path, rng):
    data, paths = skewed(rng), [tmp_path / f"{k}.store" for k in range(2)]
    bmrm.convert(replace(data, X=data.X[:300, :20], y=data.y[:300]), paths[0])
    bmrm.convert(replace(data, X=data.X[300:], y=data.y[300:]), paths[1])
    X = data.X.tolil()
    X[:300, 20:] = 0.0
    with pytest.warns(UserWarning, match="the shards have 20 to 50 features"):
        shards = Shards.from_files(paths)
    same_rows(shards, replace(data, X=sp.csr_array(X)))
    squares, counts = shards.matrix.column_sizes()
    assert np.allclose(squares, (X.toarray() ** 2).sum(axis=0))
    assert np.array_equal(counts, (X.toarray() != 0).sum(axis=0))
    bmrm.convert(bmrm.Dataset(X=np.ones((3, 2)), y=np.ones(3)), paths[0])
    with (
        pytest.warns(UserWarning, match="2 to 50 features"),
        pytest.raises(DataError, match=r"0\.store: a dense store with 2 features; expected 50"),
    ):
        Shards.from_files(paths)


def test_parts_of_a_store_know_their_own_columns(tmp_path, rng):
    data, path = skewed(rng), tmp_path / "a.store"
    bmrm.convert(data, path, block_bytes=1024)
    blocks = len(bmrm.Store(path).blocks)
    half = bmrm.Store(path, blocks=(0, blocks // 2))
    rest = bmrm.Store(path, blocks=(blocks // 2, None))
    sizes = [store.matrix.column_sizes() for store in (half, rest)]
    assert np.allclose(sizes[0][0] + sizes[1][0], (data.X.toarray() ** 2).sum(axis=0))
    assert np.array_equal(sizes[0][1] + sizes[1][1], (data.X.toarray() != 0).sum(axis=0))
    total = half.matrix.square_sum() + rest.matrix.square_sum()
    assert np.isclose(total, bmrm.Store(path).matrix.square_sum())
    assert np.array_equal(np.concatenate([half.y, rest.y]), data.y)


def test_rows_in_memory_by_work(rng):
    data = skewed(rng, 2000)
    shards = Shards.from_data(data, n_shards=5)
    entries = [about.entries for about in shards.about]
    assert max(entries) <= 1.2 * np.mean(entries)
    same_rows(shards, data)


@pytest.fixture
def in_folder(tmp_path, monkeypatch, rng):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path)
    data = skewed(rng)
    for k in range(3):
        part = replace(data, X=data.X[200 * k : 200 * k + 200], y=data.y[200 * k : 200 * k + 200])
        bmrm.convert(part, f"{k}.store", block_bytes=1024)
        bmrm.write(f"{k}.svm", part)
    return data


def trained(*arguments):
    return json.loads(good("train", *arguments, "--model", "m.bmrm", "--json", "--quiet", "--lam", "0.01").stdout)


STORES, TEXTS = ["0.store", "1.store", "2.store"], ["0.svm", "1.svm", "2.svm"]


def test_command_with_shards(in_folder):
    once = trained(*TEXTS)
    for files in (STORES, TEXTS):
        for more in ([], ["--shards", "7"], ["--memory", "3GB"], ["--shards", "2", "--memory", "3GB"]):
            found = trained(*files, "--engine", "local", *more)
            assert found["converged"]
            assert found["lower_bound"] <= once["objective"] * (1 + 1e-9)
            assert once["lower_bound"] <= found["objective"] * (1 + 1e-9)
            assert list(found["workers"]) == ["here"]
            assert found["workers"]["here"]["busy_seconds"] > 0.0
            assert 0.0 <= found["workers"]["here"]["idle"] <= 1.0
    assert "workers" not in once
    assert os.listdir("tmp") == []


@pytest.mark.parametrize("loss", ["hinge", "roc_area"])
def test_times_of_shards_in_history_and_summary(in_folder, loss):
    result = good("train", *TEXTS, "--engine", "local", "--shards", "5", "--history", "h.csv", "--loss", loss,
                  "--model", "m.bmrm", "--quiet", "--lam", "0.1")  # fmt: skip
    assert result.stdout == ""
    with open("h.csv") as file:
        rows = list(csv.DictReader(file))
    times = np.array([[float(row[f"busy_{s}"]) for s in range(5)] for row in rows])
    assert (np.diff(times, axis=0) >= 0.0).all()
    assert (times[-1] > 0.0).all()
    text = good("train", *TEXTS, "--engine", "local", "--shards", "5", "--loss", loss, "--lam", "0.1").stdout
    assert "5 shards on 1 workers: each computed" in text


def test_bad_blocks_and_lines_of_shards(in_folder):
    block = bmrm.Store("1.store").blocks[1]
    with open("1.store", "r+b") as file:
        file.seek(block.offset + 9)
        file.write(b"?")
    line = bad("train", *STORES, "--engine", "local", "--model", "m.bmrm")
    assert f"1.store: corrupt block at offset {block.offset}" in line
    assert not os.path.exists("m.bmrm")
    result = good("train", *STORES, "--engine", "local", "--skip-bad", "--lam", "0.1")
    blocks = len(bmrm.Store("1.store").blocks)
    assert f"1.store: skipped 1 of {blocks} blocks, {block.rows} of 200 rows" in result.stderr
    assert f"{600 - block.rows} rows" in result.stdout
    with open("2.svm", "a") as file:
        file.write("1 7:x\n")
    assert "2.svm, line 201" in bad("train", *TEXTS, "--engine", "local", "--shards", "5")
    result = good("train", *TEXTS, "--engine", "local", "--shards", "5", "--skip-bad", "--lam", "0.1")
    assert "skipped 1 rows: 2.svm, line 201" in result.stderr
    assert "600 rows" in result.stdout


def test_tables_on_shards(in_folder, tmp_path):
    write_table(tmp_path / "t.parquet", in_folder)
    found = trained("t.parquet", "--engine", "local", "--shards", "3", "--target", "label")
    assert found["n_examples"] == ROWS
    assert "has no column 'z'" in bad("train", "t.parquet", "--engine", "local", "--target", "z")
    assert "only Parquet, Arrow and CSV have names" in bad("train", "0.svm", "--engine", "local", "--target", "y")


def test_limits_of_memory_are_for_the_planes_too(in_folder):
    assert "memory limit of 10.0 MB is too small" in bad("train", *STORES, "--engine", "local", "--memory", "10MB")


def test_different_classes_are_said_once(in_folder):
    for name, labels in (("0.svm", (1, -1)), ("1.svm", (1, 0)), ("2.svm", (1, 0))):
        Path(name).write_text("".join(f"{label} 1:{k} 2:1\n" for k, label in enumerate(labels)))
    files = ("0.svm", "1.svm", "2.svm", "--engine", "local", "--model", "m.bmrm")
    said = good("train", *files).stderr.splitlines()
    assert [line for line in said if "classes" in line.partition(";")[0]] == [
        "warning: 0.svm: has the classes -1, 1, but all shards together have 3; taken as 3 classes"
    ]
    assert "warning" not in good("train", *files, "--loss", "least_squares").stderr
    assert "warning" not in good("train", *files[1:]).stderr
