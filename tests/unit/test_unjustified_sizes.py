"""Small files and arguments cannot ask for much memory; damaged ones end in one typed error."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
import zlib

import numpy as np
import pytest
from numpy.lib import format as npy
from scipy import sparse

import bmrm
from bmrm import model_file
from bmrm.data import Design, compress
from bmrm.data.text import checked_text
from bmrm.parallel import messages
from bmrm.parallel.base import EngineError

CSR = {
    "data": np.ones(3),
    "indices": np.array([0, 1, 2], np.int32),
    "indptr": np.array([0, 1, 3], np.int32),
    "shape": np.array([2, 3]),
    "format": np.array(b"csr"),
}


@pytest.mark.parametrize(
    "damage",
    [
        {"indptr": np.array([0, 7, -(2**31)], np.int32)},  # SciPy subtracts in 32 bits: 2^31 + 7 more
        {"indptr": np.array([0, 5, 3], np.int32)},
        {"indptr": np.array([0, 3], np.int32)},
        {"indptr": np.array([0.0, 1.0, 3.0])},
        {"indices": np.array([0, 1, 2**30], np.int32)},
        {"indices": np.array([0, -1, 2])},
        {"shape": np.array([2, 3, 4])},
        {"shape": np.array([2, -(2**63)])},
        {"shape": np.array([2**40, 3])},
    ],
)
def test_sparse_files_are_checked_before_scipy_sorts_them(tmp_path, damage):
    path = tmp_path / "bad.npz"
    for kind in (b"csr", b"csc"):
        turned = {"shape": np.array([3, 2])} if kind == b"csc" else {}
        np.savez(path, **(CSR | turned | {"format": np.array(kind)}))
        assert bmrm.read(path).X.nnz == 3
        np.savez(path, **(CSR | turned | {"format": np.array(kind)} | damage))
        with pytest.raises(bmrm.DataError, match=r"bad\.npz: not a readable sparse matrix"):
            bmrm.read(path)


def bomb(path, size):
    """Write an array of zeros, compressed a thousandfold, without making it."""
    head = io.BytesIO()
    npy.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (size // 8, 1)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("X.npy", "w", force_zip64=True) as f:
        f.write(head.getvalue())
        for _ in range(size >> 22):
            f.write(bytes(1 << 22))


def test_an_array_is_at_most_a_hundred_times_as_large_as_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(compress, "_HARMLESS", 1 << 20)
    path = tmp_path / "bomb.npz"
    bomb(path, 1 << 24)
    with pytest.raises(bmrm.DataError, match=r"X\.npy has .* bytes in the file and would have 16777"):
        bmrm.read(path)
    np.savez_compressed(path, X=np.eye(300))  # 0.7 MB in 2 kB: harmless
    assert bmrm.read(path).X.shape == (300, 300)


@pytest.mark.parametrize("suffix", compress.SUFFIXES)
def test_text_is_at_most_a_hundred_times_as_large_as_in_the_file(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(compress, "_HARMLESS", 1 << 16)
    path = tmp_path / f"bomb.svm{suffix}"
    for n, good in ((10, True), (1 << 20, False)):
        with path.open("wb") as raw, compress.compressing(raw, suffix) as file:
            file.write(b"1 1:1\n" * n)
        if good:
            assert bmrm.read(path).X.shape == (n, 1)
        else:
            with pytest.raises(bmrm.DataError, match="bytes become more than"):
                bmrm.read(path)


def test_several_members_and_zeros_behind_are_read_as_before(tmp_path):
    path = tmp_path / "two.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n") + gzip.compress(b"2 1:2\n") + bytes(100))
    assert bmrm.read(path).y.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("code", [0x110000, 0xD800, 2**31])
def test_text_is_of_characters(tmp_path, code):
    names = np.array([code, 97], np.uint32).view("U2")
    assert checked_text(np.array(["ab", "ä"])).tolist() == ["ab", "ä"]
    with pytest.raises(ValueError, match="no character"):
        checked_text(names)
    np.savez(tmp_path / "bad.npz", X=np.ones((1, 1)), feature_names=names)
    with pytest.raises(bmrm.DataError, match=r"bad\.npz.*no character of Unicode"):
        bmrm.read(tmp_path / "bad.npz")


def other_header(path, change):
    """Write a store again after its header was changed, with the checksum made right."""
    data = path.read_bytes()
    preamble = struct.Struct("<8sIQQI")
    magic, version, offset, length, _ = preamble.unpack_from(data)
    header = json.loads(data[offset : offset + length])
    change(header)
    text = json.dumps(header).encode()
    first = preamble.pack(magic, version, offset, len(text), zlib.crc32(text))
    path.write_bytes(first + data[len(first) : offset] + text)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["arrays"]["y"].update(offset=0.5),
        lambda header: header["arrays"]["y"].update(shape=[True]),
        lambda header: header["arrays"]["y"].update(shape=[-1, -2]),
        lambda header: header["arrays"]["y"].update(size=16.0),
        lambda header: header.update(columns=2.0),
        lambda header: header.update(rows=True),
    ],
)
def test_numbers_in_the_header_of_a_store_are_whole(tmp_path, change):
    path = tmp_path / "bad.store"
    bmrm.convert(bmrm.Dataset(X=np.eye(2), y=np.array([1.0, -1.0])), path)
    other_header(path, change)
    with pytest.raises(bmrm.DataError, match=r"bad\.store: unusable header"):
        bmrm.Store(path)


def test_vectors_must_fit_in_memory(tmp_path):
    X = sparse.csr_array((np.ones(1), (np.array([0]), np.array([2**50]))), shape=(2, 2**50 + 1))
    for use in (
        Design,
        lambda X: bmrm.LinearRisk(X, [1, -1], "hinge"),
        lambda X: bmrm.LinearClassifier().fit(X, [0, 1]),
    ):
        with pytest.raises(ValueError, match=r"asks for vectors of 1125899906842625 numbers, 9.01e\+06 GB each"):
            use(X)
    path = tmp_path / "wide.store"
    bmrm.convert(bmrm.Dataset(X=sparse.csr_array(np.eye(2)), y=np.array([1.0, -1.0])), path)
    other_header(path, lambda header: header.update(columns=2**50))
    with pytest.raises(ValueError, match="asks for vectors of"):
        bmrm.LinearRisk(bmrm.Store(path), np.ones(2), "hinge")


def test_long_segments_cost_nothing_before_there_are_any():
    """The bins of 2^31 lengths took 16 GB."""
    model = bmrm.SemiMarkovModel(2, 1, 2**31, n_lengths=3)
    x, w = np.ones((4, 1)), np.linspace(-1.0, 1.0, model.dim)
    short = bmrm.SemiMarkovModel(2, 1, 4, n_lengths=3)
    assert model.argmax(x, w) == short.argmax(x, w)
    value, phi = model.log_partition(x, w)
    assert value == short.log_partition(x, w)[0]
    assert np.array_equal(phi, short.log_partition(x, w)[1])


def test_segments_cover_tokens_that_there_are():
    model = bmrm.SemiMarkovModel(2, 1, 3)
    good = [(0, 2, 0), (2, 3, 1)]
    assert model.delta(good, good) == 0.0
    for bad in ([(0, 2**31, 0)], [(0, 2, 0), (3, 4, 1)], [(1, 2, 0)], [(0, 2, 0), (2, 1, 0)], [(0, 0, 0)]):
        with pytest.raises(ValueError, match="segments"):
            model.delta(bad, bad)
    with pytest.raises(ValueError, match="covers 3 tokens and the other segmentation 2"):
        model.delta(good, good[:1])
    with pytest.raises(ValueError, match="covers 2147483648 tokens and the other segmentation 3"):
        bmrm.SemiMarkovModel(2, 1, 2**31, n_lengths=3).delta([(0, 2**31, 0)], good)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bmrm.SemiMarkovModel(2**31, 1, 2),
        lambda: bmrm.SemiMarkovModel(2, 1, 2**60),
        lambda: bmrm.ChainModel(2**31, 2),
        lambda: bmrm.ChainModel(2, 2**60),
        lambda: bmrm.ChainModel(2, 2, pair_attributes=2**60),
    ],
)
def test_models_have_weights_that_fit_in_memory(make):
    with pytest.raises(ValueError, match="asks for vectors of"):
        make()


@pytest.mark.parametrize("target", [1e308, -1e308])
def test_the_first_width_of_the_envelope_does_not_vanish(target):
    problem = bmrm.Problem(bmrm.LinearRisk([[0.5, 2.0]], [target], "absolute_error"), "l2", lam=1.0)
    result = bmrm.solve(problem, "semismooth_newton", max_iter=2)
    assert np.isfinite(result.w).all()


def test_ranks_refuse_messages_whose_parts_do_not_fit():
    message = messages.packed(7, ("sum", np.arange(300.0)))
    assert messages.unpacked(message)[1].size == 300
    for place, number in ((8, -1), (8, 2**62), (16, -1), (16, 2**62), (24, -8), (24, 2**63 - 1), (24, 2392)):
        bad = message.copy()
        bad[place : place + 8] = np.frombuffer(struct.pack("<q", number), np.uint8)
        with pytest.raises(EngineError, match="a message"):
            messages.unpacked(bad)
    for size in (0, 10, 23, 24, 31, 40, message.size - 1):
        with pytest.raises(EngineError, match="a message"):
            messages.unpacked(message[:size].copy())


def test_rows_of_sequences_are_finite(tmp_path):
    np.savez(tmp_path / "bad.npz", X=np.array([[np.nan]]), y=np.ones(1), groups=np.zeros(1, np.int64))
    with pytest.raises(bmrm.DataError, match=r"bad\.npz: .*not finite"):
        bmrm.read_sequences(tmp_path / "bad.npz")


@pytest.mark.parametrize("change", [{"n_attributes": 2**31}, {"pair_attributes": 2**31}, {"n_attributes": 2**70}])
def test_models_have_the_weights_that_their_header_speaks_of(tmp_path, change):
    """2^31 attributes took 16 GB until they were found to have no weights."""
    X = [np.eye(2), np.ones((1, 2))]
    labeler = bmrm.SequenceLabeler(lam=0.1).fit(X, [[0, 1], [1]])
    path = tmp_path / "model.bmrm"
    labeler.to_model().save(path)
    header, arrays = model_file.parse(path.read_bytes())
    kept = {name: array for name, array in arrays.items() if not name.startswith("emission")}
    model_file.write(path, header | change, kept)
    with pytest.raises(bmrm.DataError, match=r"its header speaks of \d+ attributes, and \d+ of steps, for 2 labels"):
        bmrm.load(path)


@pytest.mark.parametrize("label", [2**31 - 2, 2**31 - 1, 2**31, 2**40])
def test_classes_are_as_many_as_rows_have_room_for(label):
    """A label of 2^31 was class -2147483648."""
    rows = 40_000  # whose scores for 2^31 classes take 640 TB
    y = np.zeros(rows)
    y[1] = label
    with pytest.raises(ValueError, match=f"target of row 1 is|{rows} rows with classes 0 to {label}"):
        bmrm.losses.Softmax().encode(y)
    sets = [(0,), (label,)] + [(0,)] * (rows - 2)
    with pytest.raises(ValueError, match=f"row 1 has label {label}|{rows} rows with labels 0 to {label}"):
        bmrm.losses.MultilabelHinge().encode(sets)
