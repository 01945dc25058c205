"""The file of a model: a NumPy archive of plain arrays and a JSON header. Nothing in it is ever executed."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from bmrm._errors import DataError
from bmrm.certificate import Certificate
from bmrm.data.archive import Arrays, parse_archive, write_archive

_FORMAT = "bmrm model"
_FORMAT_VERSION = 1
_ARRAYS = {"coef": "f", "intercept": "f", "classes": "biufU", "thresholds": "f"}
_OF_SEQUENCES = {
    "emission_starts": "i",
    "emission_labels": "i",
    "transitions": "b",
    "costs": "f",
    "names": "u",
    "name_ends": "i",
}


def write(path: str | os.PathLike[str] | BinaryIO, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write the archive to an open file, or to a path, where it appears complete or not at all."""
    write_archive(path, {"format": _FORMAT, "format_version": _FORMAT_VERSION, **header}, arrays)


def parse(content: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of an archive, checked to be what `write` wrote."""
    return parse_archive(content, _FORMAT, _FORMAT_VERSION, (_ARRAYS | _OF_SEQUENCES).get)


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
    failure = {"failure": certificate.failure} if certificate.failure > 0.0 else {}
    return {"source": certificate.source} | failure | {k: float(v) if np.isfinite(v) else None for k, v in ends.items()}


def unpack(packed: Any) -> Certificate:
    """Return the certificate that `pack` packed."""
    upper = np.inf if packed["upper"] is None else float(packed["upper"])
    lower = -np.inf if packed["lower"] is None else float(packed["lower"])
    failure = float(packed.get("failure", 0.0))
    if not 0.0 <= failure <= 1.0:
        raise DataError(f"'failure' in its header is {failure!r}; expected a probability")
    return Certificate.of(upper, lower, typed(packed, "source", str), failure)


def typed(header: Any, name: str, kind: type) -> Any:
    """Return an entry of the header, checked to be of that kind."""
    value = header[name]
    if not isinstance(value, kind):
        raise DataError(f"'{name}' in its header is {type(value).__name__}; expected {kind.__name__}")
    return value
