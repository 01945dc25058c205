"""Files of arrays: data in .npz, models, stores, checkpoints. Checksums are made right again after most changes."""

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

import bmrm
from bmrm import model
from bmrm.data.dataset import Dataset
from fuzz.mutate import havoc, havoc_json
from fuzz.target import GRAVE, Target
from fuzz.targets.texts import chosen

X = np.array([[2.0, 1.0, 0.0], [-1.0, -2.0, 1.0], [1.5, -0.5, 0.0], [0.0, 1.0, 3.0]])
Y = np.array([1.0, -1.0, 1.0, -1.0])
_TYPES = ("<f8", "<f4", "<i8", "<i4", "|u1", "|b1", "<u8", "<U3", "|S2", "<c16", "|O", ">f8")


def written(write: Any, name: str) -> bytes:
    """Return the bytes of a file that `write` makes at a path."""
    path = Path(name)
    path.unlink(missing_ok=True)
    write(path)
    content = path.read_bytes()
    path.unlink()
    return content


def members(data: bytes) -> dict[str, bytes]:
    """Return the members of an archive, empty if it is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {info.filename: archive.read(info) for info in archive.infolist() if info.file_size < 1 << 20}
    except Exception:  # whatever a damaged archive leads to
        return {}


def archive(parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive of these members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as target:
        for name, content in parts.items():
            target.writestr(zipfile.ZipInfo(name), content, compression)
    return stream.getvalue()


def array_bytes(array: Any) -> bytes:
    """Return an array in ``.npy`` format."""
    stream = io.BytesIO()
    npy.write_array(stream, np.asarray(array), version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def array_of(content: bytes) -> Any:
    """Return the array of a member, None if it is none."""
    try:
        return npy.read_array(io.BytesIO(content), allow_pickle=False) if len(content) < 1 << 20 else None
    except Exception:  # whatever damaged bytes lead to
        return None


def changed_array(rng: random.Random, content: bytes) -> bytes:
    """Return a member with other entries, another shape or type, or a header that lies."""
    array = array_of(content)
    how = rng.randrange(6)
    if array is None or how == 0:
        return havoc(rng, content, content)
    if how == 1:
        shape = tuple(rng.choice((0, 1, 2, 3, 2**20, 2**31, 2**62)) for _ in range(rng.randrange(4)))
        return _lying(rng.choice(_TYPES), shape) + content[-array.nbytes :]
    if how == 2:
        size = rng.choice((0, 1, 2, 3, 7, 100))
        array = array.reshape(-1)  # an empty array may have other sizes of 2^62
        plain = array.astype(rng.choice(("f8", "i8", "i4", "u1", "U3"))) if array.dtype.kind in "biu" else array
        return array_bytes(np.resize(plain, size))
    if array.dtype == np.uint8 and array.size > 1:
        return array_bytes(np.frombuffer(havoc_json(rng, array.tobytes()), np.uint8))
    return _other_entries(rng, array)


def _lying(kind: str, shape: tuple[int, ...]) -> bytes:
    text = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (118 - len(text) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def _other_entries(rng: random.Random, array: Any) -> bytes:
    flat = array.copy().reshape(-1)
    for _ in range(min(flat.size, 1 << rng.randrange(3))):
        at = rng.randrange(flat.size)
        if flat.dtype.kind == "f":
            flat[at] = rng.choice((0.0, np.nan, np.inf, -np.inf, 1e308, -1.0, 5e-324, 0.5))
        elif flat.dtype.kind in "iu":
            edge = np.iinfo(flat.dtype)
            flat[at] = rng.choice((0, 1, 2, 5, edge.max, edge.min, edge.max // 2))
    return array_bytes(flat.reshape(array.shape))


class Archive(Target):
    """Data in ``.npz`` and ``.npy``, plain and compressed."""

    name = "npz"
    allowed = (bmrm.DataError,)

    def seeds(self) -> list[bytes]:
        """Return dense and sparse data, and label sets."""
        from scipy.sparse import csr_array

        several = Dataset(X=X, y=[(1.0,), (), (0.0, 2.0), (1.0,)], weight=np.ones(4))
        rows = Dataset(X=csr_array(X), y=Y, groups=np.array([0, 0, 1, 1]))
        named = Dataset(X=X, y=Y, feature_names=["a", "b", "c"])
        made = [written(lambda path, data=data: bmrm.write(path, data), "in.npz") for data in (several, rows, named)]
        return [*made, array_bytes(X)]

    def mutate(self, rng: random.Random, data: bytes, other: bytes) -> bytes:
        """Change bytes, or one member, compressed or not."""
        parts = members(data)
        if not parts or rng.random() < 0.2:
            return havoc(rng, data, other) if rng.random() < 0.5 else changed_array(rng, data)
        name = rng.choice(list(parts))
        parts[name] = changed_array(rng, parts[name])
        if rng.random() < 0.1:
            return archive(parts | {name: _lying("<f8", (2**17, 4)) + bytes(1 << 22)}, zipfile.ZIP_DEFLATED)
        if rng.random() < 0.1:
            del parts[rng.choice(list(parts))]
        return archive(parts, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))

    def run(self, data: bytes) -> None:
        """Read the data, as rows and as sequences."""
        path = Path("in.npz" if data[:2] == b"PK" else "in.npy")
        path.write_bytes(data)
        bmrm.read(path)
        if path.suffix == ".npz":
            bmrm.read_sequences(path, labels=False)


class Signed(Target):
    """Archives with a header that has the checksum of all others."""

    allowed = (bmrm.DataError,)

    def mutate(self, rng: random.Random, data: bytes, other: bytes) -> bytes:
        """Change bytes, or members with the checksum made right."""
        parts = members(data)
        if not parts or rng.random() < 0.1:
            return havoc(rng, data, other)
        for _ in range(rng.randrange(1, 4)):
            name = rng.choice(list(parts))
            parts[name] = changed_array(rng, parts[name])
        return archive(signed(parts))


def signed(parts: dict[str, bytes]) -> dict[str, bytes]:
    """Return the members with the right checksum in the header, if they are arrays."""
    arrays = {name.removesuffix(".npy"): array_of(content) for name, content in parts.items()}
    header = arrays.pop("header", None)
    if header is None or any(array is None for array in arrays.values()):
        return parts
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape};".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    try:
        text = json.loads(header.tobytes())
        text["sha256"] = digest.hexdigest()
    except (ValueError, TypeError):
        return parts
    return parts | {"header.npy": array_bytes(np.frombuffer(json.dumps(text).encode(), np.uint8))}


class Models(Signed):
    """Model files."""

    name = "model"

    def seeds(self) -> list[bytes]:
        """Return a binary, a multiclass, a multilabel, an ordinal, a hierarchical and a sequence model."""
        return list(_models())

    def run(self, data: bytes) -> None:
        """Load, predict, save."""
        path = Path("in.bmrm")
        path.write_bytes(data)
        found: Any = bmrm.load(path)
        if isinstance(found, model.Model):
            if found.n_features == 3:
                found.predict(X)
        else:
            found.predict([[["w=the"], ["w=cat"]]])
        found.save(Path("out.bmrm"))


@lru_cache
def _models() -> tuple[bytes, ...]:
    certificate = bmrm.Certificate(upper=0.5, lower=0.5, gap=0.0, source="bmrm")
    common: dict[str, Any] = {"regularizer": "l2", "lam": 0.1, "solver": "auto", "tol": 1e-3}
    common |= {"certificates": [certificate], "statuses": [bmrm.Status.CONVERGED]}
    one = {"coef": np.ones((1, 3)), "intercept": np.zeros(1)} | common
    three = {"coef": np.eye(3), "intercept": np.zeros(3)} | common
    joint, grades = bmrm.losses.Softmax(), np.array([1.0, 2.0, 3.0])
    made = [
        bmrm.Model(**one, loss=bmrm.losses.Quantile(tau=0.9)),
        bmrm.Model(**one, loss=bmrm.losses.Hinge(), classes=np.array(["a", "b"]), feature_names=["x", "y", "z"]),
        bmrm.Model(**three, loss=joint, classes=grades),
    ]
    labeler = bmrm.SequenceLabeler(lam=0.1).fit([[["w=the"], ["w=cat"]], [["w=dogs"]]], [["D", "N"], ["N"]])
    return tuple(written(each.save, "seed.bmrm") for each in [*made, labeler.to_model()])


class Checkpoints(Signed):
    """Checkpoints: read, and gone on from for a few steps, which ends well or is refused."""

    name = "checkpoint"
    allowed = (bmrm.DataError, bmrm.ContradictionError, bmrm.FloorError)
    grave = GRAVE
    solvers = ("bmrm", "lbfgs", "ls_bmrm", "owlqn")

    @staticmethod
    def problem() -> Any:
        """Return the problem that all the checkpoints are of."""
        return bmrm.Problem(bmrm.LinearRisk(X, Y, "logistic"), "l2", lam=0.01)

    def seeds(self) -> list[bytes]:
        """Return checkpoints of several solvers, after two steps."""

        def run(path: Path, solver: str) -> None:
            bmrm.solve(self.problem(), solver, max_iter=2, tol=1e-9, checkpoint=path)

        return [written(lambda path, name=name: run(path, name), "in.checkpoint") for name in self.solvers]

    def run(self, data: bytes) -> None:
        """Resume with the solver that the file names."""
        path = Path("in.checkpoint")
        path.write_bytes(data)
        solver = next((name for name in self.solvers if f"{name}".encode() in data), "bmrm")
        place = bmrm.Checkpoint(path, resume=True, seconds=1e9)
        bmrm.solve(self.problem(), solver, max_iter=5, max_seconds=5.0, tol=1e-9, checkpoint=place)


class Stores(Target):
    """Stores of row blocks; the header and the blocks have their checksums made right."""

    name = "store"
    allowed = (bmrm.DataError,)
    _preamble = struct.Struct("<8sIQQI")

    def seeds(self) -> list[bytes]:
        """Return a dense and a sparse store."""
        from scipy.sparse import csr_array

        dense = Dataset(X=X, y=Y, weight=np.ones(4), feature_names=["a", "b", "c"])
        rows = Dataset(X=csr_array(X), y=[(1.0,), (), (0.0, 2.0), (1.0,)], groups=np.array([0, 0, 1, 1]))
        return [written(lambda path, data=data: bmrm.convert(data, path), "in.store") for data in (dense, rows)]

    def mutate(self, rng: random.Random, data: bytes, other: bytes) -> bytes:
        """Change bytes anywhere, the header, or a block with its checksum."""
        try:
            magic, version, offset, length, _ = self._preamble.unpack_from(data)
            header, body = data[offset : offset + length], bytearray(data[:offset])
            if rng.random() < 0.3:
                header = self._other_block(rng, body, json.loads(header))
            if rng.random() < 0.7:
                header = havoc_json(rng, header)
        except (ValueError, KeyError, IndexError, TypeError, OverflowError, struct.error):
            return havoc(rng, data, other)
        if rng.random() < 0.1:
            return havoc(rng, data, other)
        first = self._preamble.pack(magic, version, offset, len(header), zlib.crc32(header))
        return bytes((first + body[len(first) :] + header)[: 1 << 16])

    @staticmethod
    def _other_block(rng: random.Random, body: bytearray, header: Any) -> bytes:
        block = rng.choice([*header["blocks"], *header["arrays"].values()])
        listed = isinstance(block, list)
        start, size = (block[0], block[1]) if listed else (block["offset"], block["size"])
        part = havoc(rng, bytes(body[start : start + size]), b"\0\1")[:size].ljust(size, b"\0")
        body[start : start + size] = part
        block[-1 if listed else "crc"] = zlib.crc32(part)
        return json.dumps(header).encode()

    def run(self, data: bytes) -> None:
        """Open, read all that belongs to the rows, and go through them."""
        path = Path("in.store")
        path.write_bytes(data)
        store = bmrm.Store(path, **chosen(data, ({}, {"memory": "1GB"}, {"skip_bad": True})))
        _ = store.y, store.groups, store.weight, store.feature_names, repr(store)
        if store.shape[1] < 100:
            y = np.ones(store.shape[0]) if store.shape[0] < 1000 else None
            risk = bmrm.LinearRisk(store, y, "absolute_error", intercept=True)
            risk.evaluate(np.ones(risk.dim))
