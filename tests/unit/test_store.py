"""Stores: the same numbers as in memory, certificates, limits of memory, and files that are damaged."""

from __future__ import annotations

import os
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import bmrm
from bmrm import DataError
from bmrm.data.memory import parse_bytes, resident, show_bytes
from bmrm.data.store_format import PAGE
from bmrm.data.store_writer import Piece, StoreWriter
from bmrm.problem import missing
from bmrm.solvers import SOLVERS
from bmrm.solvers.base import new_bundle

ROWS, COLUMNS = 240, 9
LAYOUTS = [(kind, dtype) for kind in ("dense", "csr") for dtype in (np.float32, np.float64)]
ALONE = {"ROWS", "DUAL_ROWS", "CURVED_ROWS", "COMPILED"}


def matrix(kind="dense", dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "dense":
        return rng.normal(size=(ROWS, COLUMNS)).astype(dtype)
    return sp.csr_array(
        np.where(rng.random((ROWS, COLUMNS)) < 0.4, rng.normal(size=(ROWS, COLUMNS)), 0.0).astype(dtype)
    )


def signs(seed=1):
    return np.where(np.random.default_rng(seed).random(ROWS) < 0.5, 1.0, -1.0)


@pytest.fixture
def stored(tmp_path):
    def write(X, y=None, groups=None, weight=None, block_bytes=1500, **options):
        path = tmp_path / "data.store"
        bmrm.convert(bmrm.Dataset(X=X, y=y, groups=groups, weight=weight), path, block_bytes=block_bytes)
        return bmrm.Store(path, **options)

    return write


def close(a, b):
    assert np.max(np.abs(np.asarray(a) - b), initial=0.0) <= 1e-12 * max(1.0, np.max(np.abs(b), initial=0.0))


@pytest.mark.parametrize("memory", [None, "4GB"])
@pytest.mark.parametrize(("kind", "dtype"), LAYOUTS)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax", "roc_area", "pairwise_rank", "nu_novelty"])
def test_same_values_as_in_memory(stored, kind, dtype, loss, memory):
    rng, X = np.random.default_rng(2), matrix(kind, dtype)
    y = rng.integers(0, 3, ROWS) if loss in ("softmax", "pairwise_rank") else signs()
    whole = loss in ("roc_area", "pairwise_rank")
    groups = np.arange(ROWS) // 12 if loss == "pairwise_rank" else None
    options = {"intercept": not whole, "groups": groups}
    if not whole:
        options["sample_weight"] = rng.random(ROWS)
    if not whole and loss != "softmax":
        options["offset"] = rng.normal(size=ROWS)
    store = stored(X, y.astype(float), memory=memory)
    assert len(store.blocks) > 3
    here, there = bmrm.LinearRisk(X, y, loss, **options), bmrm.LinearRisk(store, y, loss, **options)
    for _ in range(3):
        w = rng.normal(size=here.dim)
        (value, a), (other, b) = here.evaluate(w), there.evaluate(w)
        close(other, value)
        close(b, a)
        close(there.at(w).subgradient, a)
        close(there.at(w).toward(-w).evaluate(0.25)[0], here.at(w).toward(-w).evaluate(0.25)[0])
    for name in ("norms", "extent"):
        close(getattr(there, name), getattr(here, name))
    close(there.sizes(), here.sizes())
    close(there.design.row_norms(), here.design.row_norms())


def test_indices_of_64_bits(tmp_path):
    X, y, path = matrix("csr"), signs(), tmp_path / "long.store"
    piece = Piece((X.data, X.indices.astype(np.int64), X.indptr), y, columns=COLUMNS)
    with path.open("wb") as file:
        writer = StoreWriter(file, None, block_bytes=2000)
        writer.add(piece)
        header = writer.finish(None)
    assert {block.index_size for block in header.blocks} == {8}
    store, w = bmrm.Store(path), np.linspace(-1, 1, COLUMNS)
    close(bmrm.LinearRisk(store, y, "hinge").evaluate(w)[1], bmrm.LinearRisk(X, y, "hinge").evaluate(w)[1])


@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax", "fbeta"])
@pytest.mark.parametrize("regularizer", ["l2", "l1"])
def test_same_certificate_as_in_memory(stored, loss, regularizer):
    X = matrix()
    y = np.argmax(X[:, :3], axis=1) if loss == "softmax" else signs()
    store = stored(X, y.astype(float), memory="4GB")
    results = [
        bmrm.solve(bmrm.Problem(bmrm.LinearRisk(data, y, loss), regularizer, 0.05), tol=1e-4) for data in (X, store)
    ]
    bounds = [result.certificate for result in results]
    assert all(result.converged for result in results)
    for one, other in (bounds, bounds[::-1]):
        assert one.lower <= other.upper + 1e-12
        assert abs(one.upper - other.upper) <= 2e-4 * abs(one.upper)


def test_repeats_bit_for_bit(stored):
    store = stored(matrix("csr"), signs())
    risks = [bmrm.LinearRisk(store, store.y, "logistic", n_threads=n) for n in (1, 2)]
    one, two = (bmrm.solve(bmrm.Problem(risk, "l2", 0.01), tol=1e-6).w for risk in risks)
    assert np.array_equal(one, two)


def test_an_evaluation_reads_the_file_once(stored):
    store = stored(matrix(), signs())
    risk = bmrm.LinearRisk(store, store.y, "hinge", intercept=True)
    size = sum(block.size for block in store.blocks)
    risk.evaluate(np.ones(risk.dim))
    assert store.file.bytes_read == size
    bmrm.Problem(risk, "l2", 0.1).risk.sizes()
    assert store.file.bytes_read == size  # statistics are stored


@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax"])
def test_solvers_of_rows_refuse_a_store(stored, loss):
    X, y = matrix(), np.arange(ROWS) % 2
    y = y if loss == "softmax" else 2.0 * y - 1.0
    store = stored(X, y.astype(float))
    problem = bmrm.Problem(bmrm.LinearRisk(store, y, loss), "l2", 0.1)
    of_rows = {name for name, cls in SOLVERS.items() if {trait.name for trait in cls.needs} & ALONE}
    assert len(of_rows) > 5
    for name in of_rows:
        lacking = [trait for trait in SOLVERS[name].needs if trait.name in ALONE]
        with pytest.raises(ValueError, match="does not fit this problem") as error:
            bmrm.solve(problem, name, max_iter=1)
        assert any(trait.value in str(error.value) for trait in lacking)
    assert not missing(SOLVERS["auto"], problem)
    assert bmrm.solve(problem, tol=1e-3).converged


@pytest.mark.parametrize("name", [name for name, cls in SOLVERS.items() if not {t.name for t in cls.needs} & ALONE])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_all_other_solvers_stream(stored, name, loss):
    X, y = matrix(), signs()
    store = stored(X, y, memory="4GB")
    inside, outside = (bmrm.Problem(bmrm.LinearRisk(data, y, loss), "l2", 0.1) for data in (X, store))
    assert bool(missing(SOLVERS[name], inside)) == bool(missing(SOLVERS[name], outside))
    if missing(SOLVERS[name], outside):
        return
    best, result = bmrm.solve(inside, tol=1e-9), bmrm.solve(outside, name, tol=1e-2, max_iter=300)
    assert result.converged
    assert result.certificate.lower <= best.certificate.upper
    assert best.certificate.lower <= result.certificate.upper


def test_a_risk_on_a_store_is_a_risk(stored):
    store = stored(matrix(), signs())
    bmrm.testing.check_risk(bmrm.LinearRisk(store, store.y, "logistic", intercept=True))


def test_labels_queries_and_weights_come_from_the_store(stored):
    rng = np.random.default_rng(3)
    sets = [tuple(map(float, np.flatnonzero(row))) for row in rng.random((ROWS, 3)) < 0.5]
    groups, weight = np.arange(ROWS) // 7, rng.random(ROWS)
    store = stored(matrix(), sets, groups, weight)
    assert store.y == sets
    assert np.array_equal(store.groups, groups)
    assert np.array_equal(store.weight, weight)
    words = stored(matrix(), np.array(["red", "green"])[np.arange(ROWS) % 2])
    assert words.y[:2].tolist() == ["red", "green"]
    assert stored(matrix()).y is None


@pytest.mark.filterwarnings("ignore::bmrm.ConstantModelWarning")  # targets that X says nothing about
@pytest.mark.parametrize(
    ("estimator", "targets"),
    [
        (bmrm.LinearClassifier(lam=0.01, tol=1e-6), signs),
        (bmrm.LinearClassifier(loss="logistic", lam=0.01, tol=1e-6), lambda: np.arange(ROWS) % 3),
        (bmrm.LinearRegressor(lam=0.01, tol=1e-6), lambda: np.random.default_rng(5).normal(size=ROWS)),
        (bmrm.OrdinalRegressor(lam=0.01, tol=1e-5), lambda: np.arange(ROWS) % 4),
        (bmrm.ScoreClassifier(lam=0.01, tol=1e-5), signs),
        (bmrm.NoveltyDetector(features="linear", tol=1e-5), lambda: None),
        (bmrm.Ranker(lam=0.01, tol=1e-5), lambda: np.arange(ROWS) % 3),
        (bmrm.MultilabelClassifier(lam=0.01, tol=1e-4), lambda: [(float(i % 3), 3.0 + i % 2) for i in range(ROWS)]),
        (bmrm.HierarchicalClassifier(lam=0.01, tol=1e-4), lambda: np.array(["a/b", "a/c", "d"])[np.arange(ROWS) % 3]),
    ],
    ids=lambda part: type(part).__name__ if hasattr(part, "fit") else "",
)
def test_estimators_train_from_a_store(stored, estimator, targets):
    from sklearn.base import clone

    X, y = matrix(), targets()
    ranks = isinstance(estimator, bmrm.Ranker)
    groups = np.arange(ROWS) // 8 if ranks else None
    weight = None if ranks else np.random.default_rng(6).integers(1, 3, ROWS).astype(float)
    weight = None if isinstance(estimator, bmrm.ScoreClassifier | bmrm.OrdinalRegressor) else weight
    store = stored(X, y, groups, weight)
    there = clone(estimator).fit(store)
    here = clone(estimator).fit(X, y, **({"qid": groups} if ranks else {"sample_weight": weight}))
    assert there.converged_
    gap = 2.0 * estimator.tol * abs(here.objective_)
    assert abs(there.objective_ - here.objective_) <= gap
    assert there.n_features_in_ == COLUMNS
    assert len(there.predict(store)) == ROWS
    same = np.mean([np.array_equal(a, b) for a, b in zip(there.predict(store), there.predict(X))])
    assert same == 1.0 or isinstance(estimator, bmrm.LinearRegressor | bmrm.Ranker)
    with pytest.raises(ValueError, match="features"):
        there.predict(stored(X[:, :4], y))


def test_estimators_need_labels(stored):
    with pytest.raises(ValueError, match="has no labels"):
        bmrm.LinearClassifier().fit(stored(matrix()))
    with pytest.raises(TypeError, match="y"):
        bmrm.LinearClassifier().fit(matrix())
    with pytest.raises(ValueError, match="y has 3"):
        bmrm.LinearClassifier().fit(stored(matrix()), [1, 2, 3])
    with pytest.raises(DataError, match="single rows cannot be taken out"):
        stored(matrix())[3]


def test_partial_fit_refuses_a_store(stored):
    store = stored(matrix(), signs())
    with pytest.raises(ValueError, match="rows that can be taken one at a time"):
        bmrm.LinearClassifier(loss="logistic").partial_fit(store, store.y, classes=[-1.0, 1.0])


def test_a_corrupt_block_is_named_or_skipped(stored):
    X, y = matrix(), signs()
    store = stored(X, y)
    block = store.blocks[2]
    overwrite(store.path, block.offset + 5, b"\xff\xff")
    message = rf"data\.store: corrupt block at offset {block.offset}: its checksum is wrong"
    with pytest.raises(DataError, match=message):
        bmrm.LinearRisk(bmrm.Store(store.path), y, "hinge").evaluate(np.ones(COLUMNS))
    first = sum(block.rows for block in store.blocks[:2])
    gone = np.arange(first, first + block.rows)
    text = rf"skipped 1 of {len(store.blocks)} blocks, {block.rows} of {ROWS} rows; corrupt at offset {block.offset}"
    with pytest.warns(UserWarning, match=text):
        left = bmrm.Store(store.path, skip_bad=True)
    rest, w = np.delete(X, gone, axis=0), np.linspace(-1, 1, COLUMNS)
    here, there = bmrm.LinearRisk(rest, np.delete(y, gone), "hinge"), bmrm.LinearRisk(left, left.y, "hinge")
    close(there.evaluate(w)[0], here.evaluate(w)[0])
    close(there.evaluate(w)[1], here.evaluate(w)[1])
    close(there.design.row_norms(), here.design.row_norms())


def test_nothing_is_left_when_all_blocks_are_bad(stored):
    store = stored(matrix(), signs())
    for block in store.blocks:
        overwrite(store.path, block.offset, b"\xff\xff\xff\xff")
    with pytest.raises(DataError, match=r"all \d+ blocks are corrupt"):
        bmrm.Store(store.path, skip_bad=True)


def test_indices_out_of_range_are_not_computed_with(stored):
    import zlib

    from bmrm.data.store_format import block_arrays, check_block

    store = stored(matrix("csr"), signs())
    block = store.blocks[0]
    data = np.fromfile(store.path, np.uint8)[block.offset : block.offset + block.size]
    block_arrays(store.header, block, data)[1][0] = COLUMNS
    forged = block.__class__(**block.__dict__ | {"crc": zlib.crc32(data)})
    with pytest.raises(ValueError, match=f"row 0 has index {COLUMNS}"):
        check_block(store.header, forged, data)


def overwrite(path, offset, content):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(content)


def header_offset(path):
    return int.from_bytes(path.read_bytes()[12:20], "little")


def test_damaged_files_are_named(stored, tmp_path):
    store = stored(matrix(), signs())
    path, whole = store.path, store.path.read_bytes()
    place, array = header_offset(path), store.header.arrays["y"]

    def fails(content, message):
        path.write_bytes(content)
        with pytest.raises(DataError, match=message) as error:
            bmrm.Store(path).dataset()
        assert str(path) in str(error.value)

    fails(b"", "not a store")
    fails(b"PK\x03\x04" + whole[4:], "not a store")
    fails(whole[: PAGE + 100], "truncated: its header should be at offset")
    fails(whole[:-1], "truncated")
    fails(whole[:8] + (9).to_bytes(4, "little") + whole[12:], "version 9; this program reads version 1")
    fails(whole[: place + 5] + b"#" + whole[place + 6 :], f"corrupt header at offset {place}")
    fails(whole[: array.offset] + b"#" + whole[array.offset + 1 :], f"corrupt array y at offset {array.offset}")
    with pytest.raises(DataError, match=r"cannot be read \(No such file"):
        bmrm.Store(tmp_path / "none.store")
    with pytest.raises(DataError, match="is a directory"):
        bmrm.Store(tmp_path)


def test_headers_that_lie_are_refused(stored):
    import json

    from bmrm.data.store_format import preamble

    store = stored(matrix(), signs())
    path, whole = store.path, store.path.read_bytes()
    place = header_offset(path)
    header = json.loads(whole[place:])
    for change in (
        {"rows": ROWS + 1},
        {"columns": COLUMNS + 1},
        {"kind": "csc"},
        {"dtype": "<i8"},
        {"blocks": [[1 << 40, *block[1:]] for block in header["blocks"]]},
        {"blocks": [1, 2]},
        {"arrays": {"y": {**header["arrays"]["y"], "dtype": "O"}}},
        {"surprise": 1},
    ):
        content = json.dumps(header | change).encode()
        path.write_bytes(preamble(place, content).ljust(PAGE, b"\0") + whole[PAGE:place] + content)
        with pytest.raises(DataError, match="unusable header"):
            bmrm.Store(path)


def test_a_file_cut_while_it_is_open(stored):
    store = stored(matrix(), signs())
    risk = bmrm.LinearRisk(store, store.y, "hinge")
    os.truncate(store.path, store.blocks[3].offset + 10)
    with pytest.raises(DataError, match=f"at offset {store.blocks[3].offset}: the file ends after"):
        risk.evaluate(np.ones(COLUMNS))
    assert not readers()


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "bmrm-reader"]


def test_no_reader_is_left_after_an_error(stored):
    store = stored(matrix(), signs())

    def fail(rows, block):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.matrix.each(fail)
    assert not readers()
    seen = []
    store.matrix.each(lambda rows, block: seen.append((rows.start, block.n_rows)))
    assert sum(rows for _, rows in seen) == ROWS


def test_the_next_blocks_are_read_meanwhile(stored):
    store = stored(matrix(), signs())
    ahead = threading.Event()
    read, first = store.file.read, store.blocks[0]

    def noted(block, buffer):
        read(block, buffer)
        if block is store.blocks[2]:
            ahead.set()

    store.file.read = noted
    store.matrix.each(lambda rows, block: rows.start > 0 or ahead.wait(20) or pytest.fail("nothing is read ahead"))
    assert ahead.is_set()
    assert first.rows < ROWS


def test_open_files_are_closed_and_pickles_open_them_again(stored):
    store = stored(matrix(), signs(), memory="2GB")
    again = pickle.loads(pickle.dumps(store))
    assert again.memory == 2_000_000_000
    close(bmrm.LinearRisk(again, again.y, "hinge").evaluate(np.ones(COLUMNS))[0],
          bmrm.LinearRisk(matrix(), signs(), "hinge").evaluate(np.ones(COLUMNS))[0])  # fmt: skip
    path = str(store.path)
    del store, again
    open_files = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if exists(fd)]
    assert path not in open_files


def exists(fd):
    return os.path.islink(f"/proc/self/fd/{fd}")


def test_a_store_replaced_while_it_is_open_stays_what_it_was(stored):
    X, y = matrix(), signs()
    store = stored(X, y)
    bmrm.write(store.path, matrix(seed=9), -y)
    close(bmrm.LinearRisk(store, y, "hinge").evaluate(np.ones(COLUMNS))[1],
          bmrm.LinearRisk(X, y, "hinge").evaluate(np.ones(COLUMNS))[1])  # fmt: skip


def test_a_limit_of_memory_bounds_the_planes(stored):
    store = stored(matrix(), signs(), memory=resident() + 200_000_000)
    risk = bmrm.LinearRisk(store, store.y, "hinge")
    assert 0 < risk.plane_bytes < 200_000_000
    risk.plane_bytes = 2 * 50 * 8 * risk.dim
    problem = bmrm.Problem(risk, "l2", 0.1)
    assert new_bundle(problem, None).max_cuts == 50
    assert new_bundle(problem, 30).max_cuts == 30
    with pytest.raises(DataError, match="MB for planes, but 20 planes of 9 weights take"):
        new_bundle(bmrm.Problem(risk, "l1", 0.1), None)
    inside = bmrm.Problem(bmrm.LinearRisk(matrix(), signs(), "hinge"), "l2", 0.1)
    assert new_bundle(inside, None).max_cuts > 1000
    small = stored(matrix(), signs(), memory="20MB")
    with pytest.raises(DataError, match=r"limit of 20\.0 MB is too small for 240 rows.*expected at least [\d.]+ MB"):
        bmrm.LinearRisk(small, small.y, "hinge")


def test_amounts_of_memory():
    assert parse_bytes("2GB") == 2 * 10**9
    assert parse_bytes("1.5 GiB") == 3 * 2**29
    assert parse_bytes(" 300m ") == 3 * 10**8
    assert parse_bytes(4096) == 4096
    assert show_bytes(parse_bytes("999MB")) == "999.0 MB"
    for bad in ("", "GB", "-1GB", "1XB", "0", 0, -5, 1.5, None, True):
        with pytest.raises(ValueError, match="amount of memory"):
            parse_bytes(bad)
