"""The file of a model: a NumPy archive of plain arrays and a JSON header. Nothing in it is ever executed."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import os
import warnings
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from bmrm._errors import DataError
from bmrm.certificate import Certificate
from bmrm.data.atomic import atomic

_FORMAT = "bmrm model"
_FORMAT_VERSION = 1
_HEADER = "header"
_ARRAYS = {"coef": "f", "intercept": "f", "classes": "biufU", "thresholds": "f"}
_OF_SEQUENCES = {
    "emission_starts": "i",
    "emission_labels": "i",
    "transitions": "b",
    "costs": "f",
    "names": "u",
    "name_ends": "i",
}

Arrays = dict[str, npt.NDArray[Any]]


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write the archive; it appears complete or not at all."""
    first = {"format": _FORMAT, "format_version": _FORMAT_VERSION}
    text = json.dumps({**first, **header, "sha256": _digest(arrays)}, ensure_ascii=False, allow_nan=False)
    members = {_HEADER: np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    with atomic(path) as file:
        np.savez(file, allow_pickle=False, **members)


def parse(content: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of an archive, checked to be what `write` wrote."""
    arrays = _members(content)
    header = json.loads(arrays.pop(_HEADER).tobytes().decode())
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise DataError(f"its header does not say '{_FORMAT}'")
    if header.get("format_version") != _FORMAT_VERSION:
        raise DataError(f"format version {header.get('format_version')!r}; this bmrm reads {_FORMAT_VERSION}")
    if header.get("sha256") != _digest(arrays):
        raise DataError("the checksum of its arrays does not match")
    return header, arrays


def plain_parameters(thing: Any) -> dict[str, Any]:
    """Return the parameters of a loss, regularizer or solver by name, as plain JSON values.

    Examples
    --------
    >>> import bmrm
    >>> from bmrm.model_file import plain_parameters
    >>> plain_parameters(bmrm.losses.Quantile(tau=0.9))
    {'tau': 0.9}
    """
    if not dataclasses.is_dataclass(thing):
        return {}
    return {f.name: plain(getattr(thing, f.name)) for f in dataclasses.fields(thing) if f.init}


def plain(value: Any) -> Any:
    """Return the value with arrays and tuples as lists, numbers of NumPy as Python's, and a tree as its fields."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain_parameters(value)
    return value


def plain_labels(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels as an array of numbers or text, without Python objects."""
    labels = classes.astype(str) if classes.dtype.kind == "O" else classes
    if classes.dtype.kind == "O" and not all(isinstance(label, str) for label in classes.tolist()):
        raise DataError("a model file holds labels that are numbers or text; these are mixed objects")
    if labels.dtype.kind not in _ARRAYS["classes"]:
        raise DataError(f"a model file holds labels that are numbers or text, not {labels.dtype}")
    return labels


def pack(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as plain JSON values; an end that is not finite is null."""
    ends = {"upper": certificate.upper, "lower": certificate.lower}
    return {"source": certificate.source} | {k: float(v) if np.isfinite(v) else None for k, v in ends.items()}


def unpack(packed: Any) -> Certificate:
    """Return the certificate that `pack` packed."""
    upper = np.inf if packed["upper"] is None else float(packed["upper"])
    lower = -np.inf if packed["lower"] is None else float(packed["lower"])
    return Certificate.of(upper, lower, typed(packed, "source", str))


def _digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape};".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _members(content: bytes) -> Arrays:
    """The arrays of the archive; what it declares is compared with its size before memory is set aside."""
    known = {f"{name}.npy": kinds for name, kinds in (_ARRAYS | _OF_SEQUENCES | {_HEADER: "u"}).items()}
    with warnings.catch_warnings(), zipfile.ZipFile(io.BytesIO(content)) as archive:
        warnings.simplefilter("ignore")
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        if f"{_HEADER}.npy" not in names or not set(names) <= set(known) or len(set(names)) < len(names):
            raise DataError(f"it holds {names[:8]}; expected {sorted(known)}")
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise DataError("it is compressed; model files are not")
        if sum(entry.file_size for entry in entries) > len(content):
            raise DataError("it declares more bytes than it has")
        return {e.filename.removesuffix(".npy"): _array(archive.read(e), known[e.filename]) for e in entries}


def _array(content: bytes, kinds: str) -> npt.NDArray[Any]:
    stream = io.BytesIO(content)
    if npy.read_magic(stream) != (1, 0):
        raise DataError("an array has another format version than 1.0")
    shape, by_columns, dtype = npy.read_array_header_1_0(stream)
    if dtype.kind not in kinds or by_columns or any(size < 0 for size in shape):
        raise DataError(f"an array has type {dtype} and shape {shape}, which is not expected")
    if stream.tell() + math.prod(shape) * dtype.itemsize != len(content):
        raise DataError("the header of an array does not agree with its size")
    return np.frombuffer(content, dtype=dtype, offset=stream.tell()).reshape(shape)


def typed(header: Any, name: str, kind: type) -> Any:
    """Return an entry of the header, checked to be of that kind."""
    value = header[name]
    if not isinstance(value, kind):
        raise DataError(f"'{name}' in its header is {type(value).__name__}; expected {kind.__name__}")
    return value
