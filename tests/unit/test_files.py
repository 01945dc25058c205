from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse

import bmrm
from bmrm._errors import DataError
from bmrm.data.dataset import Dataset

X = np.array([[0.5, 0.0, 2.0], [0.0, -1.0, 0.0]])
Y = np.array([1.0, -1.0])


def packed(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_npy(tmp_path):
    path = tmp_path / "x.npy"
    bmrm.write(path, X)
    data = bmrm.read(path)
    assert np.array_equal(data.X, X)
    assert data.y is None
    np.save(tmp_path / "y.npy", Y)
    assert np.array_equal(bmrm.read(path, y=tmp_path / "y.npy").y, Y)
    with pytest.raises(DataError, match=r"expected .*npz"):
        bmrm.write(path, X, Y)
    with pytest.raises(DataError, match=r"expected .*npz"):
        bmrm.write(path, sparse.csr_array(X))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_dense_npz(tmp_path, dtype):
    path = tmp_path / "d.npz"
    groups, weight = np.array([3, 4]), np.array([0.5, 1.0])
    bmrm.write(path, X.astype(dtype), Y, groups=groups, weight=weight)
    data = bmrm.read(path)
    assert data.X.dtype == dtype
    assert np.array_equal(data.X, X.astype(dtype))
    assert np.array_equal(data.y, Y)
    assert np.array_equal(data.groups, groups)
    assert np.array_equal(data.weight, weight)
    with np.load(path, allow_pickle=False) as arrays:
        assert sorted(arrays) == ["X", "groups", "weight", "y"]


def test_sparse_npz(tmp_path):
    path = tmp_path / "s.npz"
    bmrm.write(path, Dataset(X=sparse.csr_array(X), y=Y))
    data = bmrm.read(path)
    assert isinstance(data.X, sparse.csr_array)
    assert np.array_equal(data.X.toarray(), X)
    assert np.array_equal(data.y, Y)
    assert np.array_equal(sparse.load_npz(path).toarray(), X)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_plain_scipy_files_have_no_labels(tmp_path, kind):
    path = tmp_path / "s.npz"
    sparse.save_npz(path, sparse.coo_array(X).asformat(kind))
    data = bmrm.read(path)
    assert isinstance(data.X, sparse.csr_array)
    assert data.X.has_canonical_format
    assert np.array_equal(data.X.toarray(), X)
    assert data.y is None
    np.save(tmp_path / "y.npy", Y)
    assert np.array_equal(bmrm.read(path, y=tmp_path / "y.npy").y, Y)


@pytest.mark.parametrize("name", ["m.npz", "m.svm", "m.svm.gz"])
def test_multilabel_through_every_format(tmp_path, name):
    path, y = tmp_path / name, [(1.0, 2.0), ()]
    bmrm.write(path, X, y)
    data = bmrm.read(path)
    assert data.y == y
    bmrm.write(path, data)
    assert bmrm.read(path).y == y


@pytest.mark.parametrize("name", ["a.svm", "a.txt", "a", "a.svm.xz", "a.t.bz2", "A.SVM.GZ", "rcv1.v2.zst"])
def test_other_names_are_svmlight(tmp_path, name):
    path = tmp_path / name
    bmrm.write(str(path), X, Y, groups=[1, 2], comment="hello", zero_based=True)
    data = bmrm.read(str(path), n_threads=2)
    assert np.array_equal(data.X.toarray(), X)
    assert data.y.tolist() == [1, -1]
    assert data.groups.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["a.csv", "a.CSV.gz", "a.parquet", "a.pkl"])
def test_unsupported_names(tmp_path, name):
    for act in (lambda: bmrm.read(tmp_path / name), lambda: bmrm.write(tmp_path / name, X, Y)):
        with pytest.raises(DataError, match=r"not supported; this version has svmlight text.*\.npz.*\.npy"):
            act()
    assert os.listdir(tmp_path) == []


def test_errors_of_the_front(tmp_path):
    for name in ("a.npy", "a.npz", "a.svm"):
        with pytest.raises(DataError, match=rf"{name}: cannot be read \(No such file"):
            bmrm.read(tmp_path / name)
        (tmp_path / name).mkdir()
        with pytest.raises(DataError, match=f"{name}: is a directory"):
            bmrm.read(tmp_path / name)
        with pytest.raises(DataError, match=f"{name}: is a directory"):
            bmrm.write(tmp_path / name, X, None if name == "a.npy" else Y)
    with pytest.raises(DataError, match="cannot be compressed as a whole"):
        bmrm.read(tmp_path / "a.npz.gz")
    with pytest.raises(TypeError, match="options of svmlight text"):
        bmrm.read(tmp_path / "b.npz", n_features=3)
    with pytest.raises(TypeError, match="options of svmlight text"):
        bmrm.write(tmp_path / "b.npz", X, comment="x")
    with pytest.raises(TypeError, match="have their own labels"):
        bmrm.read(tmp_path / "b.svm", y="y.npy")
    with pytest.raises(TypeError, match="part of the dataset"):
        bmrm.write(tmp_path / "b.npz", Dataset(X=X), Y)
    with pytest.raises(DataError, match="needs labels"):
        bmrm.write(tmp_path / "b.svm", X)
    with pytest.raises(DataError, match="no weights"):
        bmrm.write(tmp_path / "b.svm", X, Y, weight=Y)


def test_labels_from_a_second_file(tmp_path):
    path = tmp_path / "x.npz"
    bmrm.write(path, X, Y)
    np.save(tmp_path / "y.npy", Y)
    with pytest.raises(DataError, match="has labels of its own"):
        bmrm.read(path, y=tmp_path / "y.npy")
    np.save(tmp_path / "y.npy", np.ones(5))
    bmrm.write(path, X)
    with pytest.raises(DataError, match=r"y\.npy: has shape \(5,\); expected \(2,\)"):
        bmrm.read(path, y=tmp_path / "y.npy")


CSR = {
    "data": np.ones(2),
    "indices": np.array([0, 1]),
    "indptr": np.array([0, 1, 2]),
    "shape": np.array([2, 2]),
    "format": np.array(b"csr"),
}
BAD_NPZ = {
    "object": packed(X=np.array([[1, "a"]], dtype=object)),
    "text": packed(X=np.array([["a"]])),
    "complex": packed(X=np.ones((1, 1), dtype=complex)),
    "vector": packed(X=np.ones(3)),
    "no X": packed(Z=X),
    "empty": packed(),
    "short y": packed(X=X, y=np.ones(3)),
    "scalar y": packed(X=X, y=np.array(1.0)),
    "bad groups": packed(X=X, groups=np.array(["a", "b"])),
    "broken groups": packed(X=X, groups=np.array([0.5, 1.5])),
    "broken ends": packed(X=X, y=np.ones(3), y_ends=np.array([1.0, 3.0])),
    "ends fall": packed(X=X, y=np.ones(3), y_ends=np.array([4, 3])),
    "not a zip": b"PK\x03\x04 nonsense",
    "nothing": b"",
    "no data": packed(**{k: v for k, v in CSR.items() if k != "data"}),
    "index beyond": packed(**CSR | {"indices": np.array([0, 7])}),
    "index negative": packed(**CSR | {"indices": np.array([0, -7])}),
    "pointer beyond": packed(**CSR | {"indptr": np.array([0, 9, 2])}),
    "short pointers": packed(**CSR | {"indptr": np.array([0, 2])}),
    "bad shape": packed(**CSR | {"shape": np.array([2, 2, 2])}),
    "scalar shape": packed(**CSR | {"shape": np.array(2)}),
    "odd format": packed(**CSR | {"format": np.array(b"dia")}),
    "numeric format": packed(**CSR | {"format": np.array([1, 2])}),
    "ends beyond": packed(X=X, y=np.ones(3), y_ends=np.array([1, 9])),
    "ends short": packed(X=X, y=np.ones(3), y_ends=np.array([3])),
}


@pytest.mark.parametrize("name", BAD_NPZ)
def test_bad_npz(tmp_path, name):
    path = tmp_path / "bad.npz"
    path.write_bytes(BAD_NPZ[name])
    with pytest.raises(DataError, match=r"bad\.npz: "):
        bmrm.read(path)


def test_header_that_promises_too_much(tmp_path):
    good = io.BytesIO()
    np.save(good, np.ones((3, 5)))
    text = good.getvalue().replace(b"(3, 5), ", b"(3, 999999999999), ").replace(b" " * 11 + b"\n", b"\n")
    (tmp_path / "bomb.npy").write_bytes(text)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        archive.writestr("X.npy", text)
    for name in ("bomb.npy", "bomb.npz"):
        with pytest.raises(DataError, match=rf"{name}: .*header does not agree with its size"):
            bmrm.read(tmp_path / name)


@pytest.mark.parametrize("name", ["m.npy", "m.npz", "sparse.npz"])
def test_mutations_give_arrays_or_data_errors(tmp_path, name):
    path = tmp_path / name
    bmrm.write(path, sparse.csr_array(X) if name == "sparse.npz" else X, None if name == "m.npy" else Y)
    valid = path.read_bytes()
    rng = random.Random(4)
    refused = 0
    for _ in range(300):
        content = bytearray(valid)
        for _ in range(rng.randint(1, 3)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(content[: rng.randrange(len(content))] if rng.random() < 0.2 else content)
        try:
            bmrm.read(path)
        except DataError:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("name", ["x.npz", "x.npy"])
def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch, name):
    path = tmp_path / name
    bmrm.write(path, X)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(DataError, match="No space left"):
        bmrm.write(path, X + 1)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [name]
    with pytest.raises(DataError, match="elements of type object"):
        bmrm.write(path, np.array([[None]]))
    assert path.read_bytes() == before


def test_killed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.svm"
    bmrm.write(path, X, Y)
    before = path.read_bytes()
    script = (
        "import os, sys, bmrm, bmrm.data.svmlight as s\n"
        "def die(*_):\n    yield b'1 1:9'\n    os._exit(9)\n"
        "s._lines = die\n"
        "bmrm.write(sys.argv[1], [[1.0]], [1])\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == 9
    assert path.read_bytes() == before


def test_dataset_checks_lengths():
    with pytest.raises(DataError, match="y has length 3, but X has 2 rows"):
        Dataset(X=X, y=np.ones(3))
    with pytest.raises(DataError, match="1 dimensions"):
        Dataset(X=np.ones(3))
    data = Dataset(X=X, y=Y)
    with pytest.raises(AttributeError):
        data.X = X
    assert data.n_examples == 2


def test_import_stays_light():
    script = "import sys, bmrm; print(sorted(m for m in ('scipy', 'sklearn', 'zstandard') if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
