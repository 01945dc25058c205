"""Conversion: every format, in pieces, gives the rows of the whole file; or one clear error, and no file."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import bmrm
from bmrm import DataError
from bmrm.data import compress, sources, tables

ROWS, COLUMNS = 150, 7


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((ROWS, COLUMNS)) < 0.6, rng.normal(size=(ROWS, COLUMNS)), 0.0)
    X[:, -1] = 1.0  # so that every file has all columns
    return X, np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sources, "PIECE_BYTES", 2000)
    monkeypatch.setattr(tables, "_CELLS", 200)


def content(path, **options):
    """The matrix of a store, dense, as a product with it shows it."""
    store = bmrm.Store(path, **options)
    return bmrm.data.Design(store).widened(store.shape[1]).dot(np.eye(store.shape[1]).ravel()).reshape(store.shape)


def zstd(text):
    return pytest.importorskip("zstandard", reason="zstandard is missing").ZstdCompressor().compress(text)


PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}


@pytest.mark.parametrize("suffix", PACKERS)
def test_many_files_of_text_are_one_matrix(suffix):
    X, y = data()
    groups = np.arange(ROWS) // 5
    names = []
    for k, rows in enumerate(np.array_split(np.arange(ROWS), 3)):
        bmrm.write("part.svm", X[rows], y[rows], groups=groups[rows])
        names.append(f"part-{k}.svm{suffix}")
        with open("part.svm", "rb") as file, open(names[-1], "wb") as packed:
            packed.write(PACKERS[suffix](file.read()))
    done = bmrm.convert(names, "all.store", block_bytes=1024)
    store = bmrm.Store("all.store")
    assert done.header.kind == "csr"
    assert len(store.blocks) > 3
    assert all(block.size <= 1400 for block in store.blocks)
    assert np.array_equal(content("all.store"), X)
    assert np.array_equal(store.y, y)
    assert np.array_equal(store.groups, groups)
    assert done.widths == dict.fromkeys(names, COLUMNS)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_packed_files_that_are_cut_or_damaged(suffix):
    X, y = data()
    bmrm.write("whole.svm", X, y)
    with open("whole.svm", "rb") as file:
        packed = PACKERS[suffix](file.read())
    for damaged in (packed[: len(packed) // 2], packed[:-3], b"no such format" + packed):
        with open(f"bad.svm{suffix}", "wb") as file:
            file.write(damaged)
        with pytest.raises(DataError, match=rf"bad\.svm\{suffix}: truncated or corrupt"):
            bmrm.convert(f"bad.svm{suffix}", "bad.store")
        assert not os.path.exists("bad.store")


def test_frames_of_zstd_follow_each_other():
    zst = pytest.importorskip("zstandard", reason="zstandard is missing").ZstdCompressor()
    with open("two.svm.zst", "wb") as file:
        file.write(zst.compress(b"1 1:2\n") + zst.compress(b"-1 2:3\n"))
    assert b"".join(compress.streamed(bmrm.data.files.Path("two.svm.zst"), 64)) == b"1 1:2\n-1 2:3\n"


def write_lines(name, lines):
    with open(name, "w") as file:
        file.write("\n".join(lines))


def test_errors_in_text_name_the_line_of_the_whole_file():
    lines = [f"1 1:{i} 2:1" for i in range(400)]
    lines[321] = "1 1:x"
    write_lines("bad.svm", lines)
    with pytest.raises(DataError, match=r"bad\.svm, line 322, column"):
        bmrm.convert("bad.svm", "bad.store")
    assert os.listdir() == ["bad.svm"]


def test_where_indices_begin():
    ones = [f"1 1:{i}" for i in range(1, 400)]
    write_lines("late.svm", [*ones, "1 0:5"])
    with pytest.raises(DataError, match=r"late\.svm, line 400.*zero_based=True"):
        bmrm.convert("late.svm", "late.store", zero_based=False)
    for first in ("auto", True):
        found = bmrm.convert("late.svm", "late.store", zero_based=first)
        assert (found.header.columns, found.header.zero_based, found.header.rows) == (2, True, 400)
        assert found.widths == {"late.svm": 2}
    write_lines("zero.svm", ["1 0:5", *ones])
    header = bmrm.convert("zero.svm", "zero.store").header
    assert (header.columns, header.zero_based) == (2, True)
    assert bmrm.Store("zero.store").dataset().zero_based is True
    write_lines("one.svm", ones)
    assert bmrm.convert("one.svm", "one.store").header.columns == 1


def test_sets_of_labels_may_come_late():
    lines = [f"{i % 3} 1:{i}" for i in range(300)] + ["1,2 1:1", " 1:2"]
    write_lines("sets.svm", lines)
    bmrm.convert("sets.svm", "sets.store")
    y = bmrm.Store("sets.store").y
    assert y[:4] == [(0.0,), (1.0,), (2.0,), (0.0,)]
    assert y[-2:] == [(1.0, 2.0), ()]
    assert len(y) == 302


def test_files_must_agree():
    X, y = data()
    bmrm.write("a.svm", X, y)
    bmrm.write("q.svm", X, y, groups=np.zeros(ROWS, int))
    np.save("X.npy", X)
    np.save("narrow.npy", X[:, :3])
    with pytest.raises(DataError, match=r"a\.svm: has no queries \(qid\), but q\.svm has"):
        bmrm.convert(["q.svm", "a.svm"], "x.store")
    with pytest.raises(DataError, match=r"X\.npy: dense and sparse data"):
        bmrm.convert(["a.svm", "X.npy"], "x.store")
    with pytest.raises(DataError, match=r"narrow\.npy: has 3 features, but X\.npy has 7"):
        bmrm.convert(["X.npy", "narrow.npy"], "x.store")
    bmrm.write("few.svm", X[:, :2], y)
    done = bmrm.convert(["few.svm", "a.svm"], "x.store")
    assert done.header.columns == COLUMNS  # the most are taken
    assert np.array_equal(content("x.store")[:ROWS, :2], X[:, :2])


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_arrays(kind, dtype):
    X, y = data()
    X = (10 * X).astype(dtype)
    weight = np.random.default_rng(1).random(ROWS)
    made = {"dense": np.asarray, "csr": sp.csr_array, "csc": sp.csc_array}[kind](X)
    if kind == "dense":
        np.savez("a.npz", X=X, y=y, weight=weight)
    else:
        sp.save_npz("a.npz", made)
    header = bmrm.convert("a.npz", "a.store", block_bytes=1024).header
    assert np.array_equal(content("a.store"), X)
    assert header.dtype == ("<f4" if dtype == np.float32 else "<f8")
    assert header.kind == ("dense" if kind == "dense" else "csr")
    if kind == "dense":
        assert np.array_equal(bmrm.Store("a.store").weight, weight)


def test_npy_with_labels_of_their_own():
    X, y = data()
    np.save("X.npy", np.asfortranarray(X))
    np.save("y.npy", y)
    bmrm.convert("X.npy", "a.store", labels="y.npy", float32=True)
    assert np.array_equal(content("a.store"), X.astype(np.float32))
    assert np.array_equal(bmrm.Store("a.store").y, y)
    np.save("y.npy", y[:-1])
    with pytest.raises(DataError, match="149, but X has 150"):
        bmrm.convert("X.npy", "a.store", labels="y.npy")
    with pytest.raises(DataError, match="one file, but there are 2"):
        bmrm.convert(["X.npy", "X.npy"], "a.store", labels="y.npy")
    np.save("text.npy", np.array([["a"]]))
    with pytest.raises(DataError, match=r"text\.npy: has type <U1"):
        bmrm.convert("text.npy", "a.store")
    np.save("objects.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(DataError, match=r"objects\.npy: has type object"):
        bmrm.convert("objects.npy", "a.store")


def test_values_must_be_finite():
    X, _ = data()
    X[77, 3] = np.nan
    np.save("X.npy", X)
    with pytest.raises(DataError, match=r"X\.npy: the value in row 77, column 3 is not finite"):
        bmrm.convert("X.npy", "a.store")
    X[77, 3] = 1e300
    np.save("X.npy", X)
    with pytest.raises(DataError, match="row 77, column 3 is not a float32"):
        bmrm.convert("X.npy", "a.store", float32=True)
    bmrm.convert("X.npy", "a.store")


def write_table(name, table):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(table, name, row_group_size=40)
    elif name.endswith((".csv", ".csv.gz")):
        with arrow.output_stream(name) as file:
            pyarrow.csv.write_csv(table, file)
    elif name.endswith(".feather"):
        pyarrow.feather.write_feather(table, name)
    else:
        make = arrow.ipc.new_stream if name.endswith(".ipc") else arrow.ipc.new_file
        with make(name, table.schema) as file:
            file.write_table(table, max_chunksize=40)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.ipc", "t.feather", "t.csv", "t.csv.gz"])
def test_tables(name):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    X, y = data()
    X[:, 1] = np.round(X[:, 1])
    columns = {f"x{j}": X[:, j] for j in range(COLUMNS)} | {"x1": X[:, 1].astype(int)}
    words = np.where(y > 0, "yes", "no")
    groups, weight = np.arange(ROWS) // 4, np.arange(ROWS) / 8.0
    table = arrow.table({"q": groups, **columns, "label": arrow.array(words), "p": weight})
    if not name.startswith("t.csv"):
        table = table.set_column(8, "label", table["label"].dictionary_encode())
    write_table(name, table)
    bmrm.convert(name, "t.store", target="label", group="q", weight="p", block_bytes=2048)
    store = bmrm.Store("t.store")
    assert np.array_equal(content("t.store"), X)
    assert np.array_equal(store.y, words)
    assert np.array_equal(store.groups, groups)
    assert np.array_equal(store.weight, weight)
    with pytest.raises(DataError, match=rf"{name}: has no column 'z'; the columns are q, x0"):
        bmrm.convert(name, "t.store", target="z")
    with pytest.raises(DataError, match=rf"{name}: column 'label' has type .*expected numbers"):
        bmrm.convert(name, "t.store")
    assert np.array_equal(content("t.store"), X)  # the old one stays


def test_a_csv_column_may_begin_with_whole_numbers():
    pytest.importorskip("pyarrow", reason="pyarrow is missing")
    write_lines("n.csv", ["a,y", *["1,0"] * 300000, "1.5,1", ""])
    bmrm.convert("n.csv", "n.store", target="y")
    assert bmrm.Store("n.store").matrix.square_sum() == 300000 + 2.25


def test_gaps_and_damage_in_tables():
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    write_table("gap.parquet", arrow.table({"a": [1.0] * 90 + [None], "y": [1] * 91}))
    with pytest.raises(DataError, match=r"gap\.parquet: column 'a' has no value in row 90"):
        bmrm.convert("gap.parquet", "gap.store", target="y")
    for name in ("bad.parquet", "bad.arrow", "bad.feather"):
        with open(name, "wb") as file:
            file.write(b"ARROW1 and then nothing")
        with pytest.raises(DataError, match=rf"{name}: not a readable"):
            bmrm.convert(name, "bad.store", target="y")
    write_lines("ragged.csv", ["a,y", "1,2,3", ""])
    with pytest.raises(DataError, match=r"ragged\.csv: not a readable csv"):
        bmrm.convert("ragged.csv", "bad.store", target="y")
    with pytest.raises(DataError, match="cannot be read"):
        bmrm.convert("none.parquet", "bad.store")
    assert not os.path.exists("bad.store")


def test_tables_name_the_extra_they_need(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install 'bmrm\[arrow\]'"):
        bmrm.convert("t.parquet", "t.store")


def test_wrong_requests():
    X, y = data()
    bmrm.write("a.svm", X, y)
    with pytest.raises(DataError, match=r"a\.svm: has no column 'y'"):
        bmrm.convert("a.svm", "a.store", target="y")
    with pytest.raises(DataError, match="labels of their own"):
        bmrm.convert("a.svm", "a.store", labels="y.npy")
    with pytest.raises(ValueError, match="block_bytes is 10"):
        bmrm.convert("a.svm", "a.store", block_bytes=10)
    with pytest.raises(ValueError, match="format is 'xml'"):
        bmrm.convert("a.svm", "a.store", format="xml")
    with pytest.raises(DataError, match="no files"):
        bmrm.convert([], "a.store")
    with pytest.raises(DataError, match="is an input"):
        bmrm.convert(["a.svm"], "a.svm")
    with pytest.raises(DataError, match="cannot be read"):
        bmrm.convert("none.svm", "a.store")
    write_lines("empty.svm", ["# nothing", ""])
    with pytest.raises(DataError, match=r"empty\.svm: no rows; expected at least one"):
        bmrm.convert("empty.svm", "a.store")
    assert sorted(os.listdir()) == ["a.svm", "empty.svm"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_conversion_leaves_nothing(number):
    os.mkfifo("endless.svm")
    run = subprocess.Popen(
        [sys.executable, "-m", "bmrm", "convert", "endless.svm", "a.store", "--format", "svmlight"],
        stderr=subprocess.PIPE,
        text=True,
    )
    with open("endless.svm", "wb") as pipe:
        pipe.write(b"1 1:2 3:4\n" * 1000)
        pipe.flush()
        deadline = time.monotonic() + 60
        while not [name for name in os.listdir() if name.endswith(".tmp")]:
            assert time.monotonic() < deadline, "nothing is being written"
            time.sleep(0.02)
        run.send_signal(number)
        try:
            errors = run.communicate(timeout=20)[1]
        except subprocess.TimeoutExpired:  # one that comes right before a read that waits is not looked at
            run.send_signal(number)
            errors = run.communicate(timeout=60)[1]
    assert run.returncode == 130
    assert errors.strip() == "error: interrupted before there was a result; nothing was written"
    assert os.listdir() == ["endless.svm"]


def test_bad_lines_are_skipped_and_counted():
    lines = [f"{i % 2} 1:{i} 3:1" for i in range(500)]
    for i in (0, 7, 8, 321, 499):
        lines[i] = "1 1:x"
    write_lines("bad.svm", lines)
    done = bmrm.convert("bad.svm", "bad.store", skip_bad=True)
    assert done.header.rows == 495
    assert done.skipped.rows == 5
    assert [why.partition(", column")[0] for why in done.skipped.first] == [f"bad.svm, line {i}" for i in (1, 8, 9)]
    kept = [i for i in range(500) if i not in (0, 7, 8, 321, 499)]
    store = bmrm.Store("bad.store")
    assert np.array_equal(store.y, [i % 2 for i in kept])
    assert np.allclose(store.matrix.column_sizes()[0][0], sum(i * i for i in kept))


@pytest.mark.parametrize("seed", range(5))
def test_any_bad_lines_are_skipped(seed):
    rng = np.random.default_rng(seed)
    bad = rng.random(300) < 10.0 ** rng.uniform(-2.0, 0.0)
    write_lines("bad.svm", ["1 1:1 1:2" if wrong else f"{i} 2:1" for i, wrong in enumerate(bad)])
    if bad.all():
        return
    done = bmrm.convert("bad.svm", "bad.store", skip_bad=True)
    assert done.skipped.rows == bad.sum()
    assert np.array_equal(bmrm.Store("bad.store").y, np.flatnonzero(~bad))


def test_nothing_left():
    write_lines("bad.svm", ["1 1:x", "?"])
    with pytest.raises(DataError, match="no rows"):
        bmrm.convert("bad.svm", "bad.store", skip_bad=True)
    assert os.listdir() == ["bad.svm"]


def test_rows_with_gaps_and_infinities_are_skipped():
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    import pyarrow.parquet

    x, z = [1.0, None, 3.0, float("inf"), 5.0], [1.0, 2.0, 3.0, 4.0, None]
    pyarrow.parquet.write_table(arrow.table({"x": x, "z": z, "label": [1.0, 0.0, 1.0, 0.0, 1.0]}), "a.parquet")
    with pytest.raises(DataError, match="column 'x' has no value in row 1"):
        bmrm.convert("a.parquet", "a.store", target="label")
    done = bmrm.convert("a.parquet", "a.store", target="label", skip_bad=True)
    assert (done.header.rows, done.skipped.rows) == (2, 3)
    assert np.array_equal(bmrm.Store("a.store").matrix.column_sizes()[0], [10.0, 10.0])
    X = np.eye(4)
    X[2, 1] = np.nan
    np.save("a.npy", X)
    done = bmrm.convert("a.npy", "a.store", skip_bad=True)
    assert (done.header.rows, done.skipped.first) == (3, ["a.npy: row 2 has a value that is not finite"])


def test_stores_are_sources_too():
    X, y = data()
    bmrm.convert(bmrm.Dataset(X=X, y=y), "a.store", block_bytes=1024)
    bmrm.convert(bmrm.Dataset(X=X[:5], y=y[:5]), "b.store")
    done = bmrm.convert(["a.store", "b.store"], "ab.store")
    assert done.header.rows == ROWS + 5
    assert np.array_equal(bmrm.Store("ab.store").y, np.concatenate([y, y[:5]]))
    block = bmrm.Store("a.store").blocks[0]
    with open("a.store", "r+b") as file:
        file.seek(block.offset)
        file.write(b"????")
    with pytest.raises(DataError, match=rf"a\.store: corrupt block at offset {block.offset}"):
        bmrm.convert(["a.store", "b.store"], "ab.store")
    done = bmrm.convert(["a.store", "b.store"], "ab.store", skip_bad=True)
    assert done.skipped.rows == block.rows
    assert done.header.rows == ROWS + 5 - block.rows


def test_rows_of_npy_files_by_row_and_by_column(rng):
    from bmrm.data.npy_rows import NpyRows

    X = rng.normal(size=(50, 7)).astype(np.float32)
    for order in ("C", "F"):
        np.save("a.npy", np.asarray(X, order=order))
        rows = NpyRows(Path("a.npy"))
        assert np.array_equal(rows[10:23], X[10:23])
        assert rows.shape == X.shape
    os.truncate("a.npy", 300)
    with pytest.raises(DataError, match=r"a\.npy: not a readable \.npy file \(its matrix has \d+ bytes"):
        NpyRows(Path("a.npy"))


def test_blocks_end_with_queries(rng):
    groups = np.repeat(np.arange(60), rng.integers(1, 30, 60))
    X = rng.normal(size=(len(groups), 4))
    header = bmrm.convert(bmrm.Dataset(X=X, y=groups % 3.0, groups=groups), "q.store", block_bytes=2048).header
    ends = np.cumsum([block.rows for block in header.blocks])[:-1]
    assert len(ends) > 10
    assert (groups[ends] != groups[ends - 1]).all()
    header = bmrm.convert(bmrm.Dataset(X=X, groups=np.zeros(len(X), int)), "q.store", block_bytes=2048).header
    assert max(block.size for block in header.blocks) <= 2048  # one query of all rows is cut
