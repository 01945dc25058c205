from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import sys

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from svmlight_text import bits, random_text

from bmrm._errors import DataError
from bmrm.data import svmlight
from bmrm.data.svmlight import read_svmlight, write_svmlight

PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def arrays(data):
    return [
        data.X.shape,
        *(bits(a) for a in (data.X.data, data.X.indices, data.X.indptr)),
        data.groups is None,
    ]


def assert_same(one, other):
    assert arrays(one) == arrays(other)
    if isinstance(one.y, list):
        assert one.y == other.y
    else:
        assert bits(one.y) == bits(other.y)
    if one.groups is not None:
        assert bits(one.groups) == bits(other.groups)


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.tuples(
            st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9).map(float), max_size=3),
            st.dictionaries(st.integers(0, 2**59), st.floats(allow_nan=False, allow_infinity=False), max_size=4),
            st.integers(0, 2**63 - 1),
        ),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
def test_round_trip(tmp_path, rows, zero_based):
    path = tmp_path / "round.svm"
    indptr = np.cumsum([0] + [len(row) for _, row, _ in rows])
    indices = np.array([i for _, row, _ in rows for i in sorted(row)], dtype=np.int64)
    values = np.array([row[i] for _, row, _ in rows for i in sorted(row)], dtype=np.float64)
    X = sparse.csr_array((values, indices, indptr), shape=(len(rows), 2**59 + 1))
    y = [tuple(labels) for labels, _, _ in rows]
    groups = np.array([group for _, _, group in rows])
    write_svmlight(path, X, y, groups, zero_based=zero_based, comment="one\ntwo")
    data = read_svmlight(path, zero_based=zero_based, n_features=X.shape[1], multilabel=True)
    assert bits(data.X.data) == bits(values)
    assert np.array_equal(data.X.indices, indices)
    assert np.array_equal(data.X.indptr, indptr)
    assert [bits(labels) for labels in data.y] == [bits(np.array(labels, dtype=float)) for labels in y]
    assert np.array_equal(data.groups, groups)


@pytest.mark.parametrize("suffix", ["", *PACKERS])
def test_round_trip_compressed(tmp_path, suffix):
    plain, packed = tmp_path / "a.svm", tmp_path / f"b.svm{suffix}"
    plain.write_text(random_text(5, qid=True))
    data = read_svmlight(plain)
    write_svmlight(packed, data.X, data.y, data.groups)
    assert_same(read_svmlight(packed), data)
    assert sorted(os.listdir(tmp_path)) == ["a.svm", f"b.svm{suffix}"]


def test_round_trip_of_many_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight, "_ENTRIES_PER_CHUNK", 10)
    rng = np.random.default_rng(3)
    X = np.where(rng.random((80, 30)) < 0.3, rng.standard_normal((80, 30)), 0)
    X[10:40] = 0
    y = rng.standard_normal(80)
    path = tmp_path / "dense.svm"
    write_svmlight(path, X, y)
    data = read_svmlight(path, n_features=30)
    assert np.array_equal(data.X.toarray(), X)
    assert np.array_equal(data.y, y)


def test_write_float32_and_unsorted(tmp_path):
    path = tmp_path / "x.svm"
    write_svmlight(path, np.array([[0.1, 0, 3]], dtype=np.float32), [1])
    assert read_svmlight(path).X.toarray().tolist() == [[float(np.float32(0.1)), 0, 3]]
    X = sparse.csr_array((np.array([1.0, 2.0]), np.array([3, 1]), np.array([0, 2])), shape=(1, 4))
    write_svmlight(path, X, [1])
    assert path.read_text() == "1 2:2 4:1\n"
    assert X.indices.tolist() == [3, 1]


@pytest.mark.parametrize("suffix", sorted(PACKERS))
def test_truncated_and_corrupt_compression(tmp_path, suffix):
    packed = PACKERS[suffix](random_text(1).encode())
    path = tmp_path / f"cut.svm{suffix}"
    for content in (packed[: len(packed) // 2], packed[:-1], packed[:5], b"not compressed at all"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=rf"cut\.svm\{suffix}: truncated or corrupt \{suffix} file"):
            read_svmlight(path)
    path.write_bytes(packed + packed)  # several streams in one file are one text
    assert read_svmlight(path).X.shape[0] == 600


def test_zst_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "a.svm.zst"
    with pytest.raises(DataError, match=r"pip install 'bmrm\[zst\]'"):
        write_svmlight(path, [[1.0]], [1])
    path.write_bytes(b"anything")
    with pytest.raises(DataError, match=r"pip install 'bmrm\[zst\]'"):
        read_svmlight(path)
    assert os.listdir(tmp_path) == ["a.svm.zst"]


@pytest.mark.parametrize(
    ("X", "y", "groups", "message"),
    [
        ([[1.0]], [np.nan], None, "label nan; expected a finite number"),
        ([[1.0]], ["spam"], None, "label 'spam'"),
        ([[np.inf]], [1], None, "not finite"),
        ([["a"]], [1], None, "expected a matrix of real numbers"),
        ([1.0], [1], None, "expected a matrix"),
        (np.empty((0, 3)), [], None, "at least one row"),
        ([[1.0]], [1, 2], None, "y has length 2, but X has 1 rows"),
        ([[1.0]], np.eye(1), None, "one dimension"),
        ([[1.0]], None, None, "y is neither"),
        ([[1.0]], [1], [-1], "none of them negative"),
        ([[1.0]], [1], [0.5], "whole numbers"),
        ([[1.0]], [1], [1, 2], "whole numbers"),
        ([[1.0], [0.0]], [(1,), ()], None, "row 1 has neither labels nor values"),
    ],
)
def test_what_cannot_be_written(tmp_path, X, y, groups, message):
    with pytest.raises(DataError, match=message):
        write_svmlight(tmp_path / "x.svm", X, y, groups)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", ["", *PACKERS])
def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"x.svm{suffix}"
    write_svmlight(path, [[1.0]], [1])
    before = path.read_bytes()

    def fail(*_):
        yield b"1 1:5\n"
        raise KeyboardInterrupt

    monkeypatch.setattr(svmlight, "_lines", fail)
    with pytest.raises(KeyboardInterrupt):
        write_svmlight(path, [[2.0]], [1])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_write_keeps_permissions_and_links(tmp_path):
    path, link = tmp_path / "x.svm", tmp_path / "link.svm"
    write_svmlight(path, [[1.0]], [1])
    path.chmod(0o640)
    link.symlink_to(path)
    write_svmlight(link, [[2.0]], [1])
    assert link.is_symlink()
    assert path.read_text() == "1 1:2\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(DataError, match="is a directory"):
        write_svmlight(tmp_path, [[1.0]], [1])
    with pytest.raises(DataError, match="cannot be written"):
        write_svmlight(tmp_path / "no" / "x.svm", [[1.0]], [1])
