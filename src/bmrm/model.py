"""Model: what a run leaves behind, in memory and in a file that cannot run code."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import os
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from bmrm._errors import DataError
from bmrm._registry import UnknownName
from bmrm.certificate import Certificate, Status
from bmrm.data import Design
from bmrm.data.atomic import atomic
from bmrm.losses import LOSSES, Loss
from bmrm.losses import get as get_loss

Array = npt.NDArray[np.float64]

_FORMAT = "bmrm model"
_FORMAT_VERSION = 1
_HEADER = "header"
_ARRAYS = {"coef": "f", "intercept": "f", "classes": "biufU"}


@dataclass(frozen=True, eq=False)
class Model:
    """Weights and all that is known about them: what they were trained for, and what was proved.

    Parameters
    ----------
    coef : array of shape (k, d)
        One row for each score; k = 1 unless there are more than two classes.
    intercept : array of shape (k,)
    loss : Loss
    regularizer : str
        Its name.
    lam : float
    solver : str
        Its name.
    tol : float
        The relative gap that was asked for.
    certificates : sequence of Certificate
        One for each score.
    statuses : sequence of Status
        One for each score.
    classes : array, optional
        The labels of a classifier, numbers or text; scores of two classes are positive for the second one.
    config : dict, optional
        All settings of the run, as plain JSON values.
    history : dict, optional
        A summary of the run (iterations, passes, seconds), as plain JSON values.
    version : str
        The version of bmrm that trained the model.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> certificate = bmrm.Certificate(upper=0.5, lower=0.5, gap=0.0, source="bmrm")
    >>> model = bmrm.Model(
    ...     coef=np.array([[1.0, -1.0]]), intercept=np.zeros(1), classes=np.array(["ham", "spam"]),
    ...     loss=bmrm.losses.Hinge(), regularizer="l2", lam=0.1, solver="auto", tol=1e-3,
    ...     certificates=[certificate], statuses=[bmrm.Status.CONVERGED],
    ... )
    >>> model.predict(np.eye(2)).tolist()
    ['spam', 'ham']
    """

    coef: Array
    intercept: Array
    loss: Loss
    regularizer: str
    lam: float
    solver: str
    tol: float
    certificates: Sequence[Certificate]
    statuses: Sequence[Status]
    classes: npt.NDArray[Any] | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    history: Mapping[str, Any] = field(default_factory=dict)
    version: str = field(default_factory=lambda: version("bmrm"))

    def __post_init__(self) -> None:
        coef = np.atleast_2d(np.ascontiguousarray(self.coef, dtype=np.float64))
        intercept = np.atleast_1d(np.ascontiguousarray(self.intercept, dtype=np.float64))
        classes = None if self.classes is None else np.asarray(self.classes)
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", intercept)
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "certificates", tuple(self.certificates))
        object.__setattr__(self, "statuses", tuple(self.statuses))
        k = coef.shape[0]
        if coef.ndim != 2 or k == 0 or intercept.shape != (k,):
            raise ValueError(f"coef has shape {coef.shape} and intercept {intercept.shape}; expected (k, d), (k,)")
        if len(self.certificates) != k or len(self.statuses) != k:
            raise ValueError(f"{k} rows of coef need {k} certificates and statuses")
        if (classes is None) == (self.task == "classification"):
            raise ValueError(f"loss '{self.loss.name}' is for {self.task}; classes are for classification only")
        if classes is not None and (classes.ndim != 1 or len(classes) != (2 if k == 1 else max(k, 3))):
            raise ValueError(f"classes have shape {classes.shape}, which does not fit {k} rows of coef")

    @property
    def task(self) -> str:
        """The loss's task: 'classification', 'regression', 'novelty', 'ordinal' or 'ranking'."""
        return str(self.loss.task)

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.coef.shape[1])

    @property
    def certificate(self) -> Certificate:
        """What was proved; for more than two classes, of the sum of the classes' objectives."""
        if len(self.certificates) == 1:
            return self.certificates[0]
        upper = math.fsum(each.upper for each in self.certificates)
        lower = math.fsum(each.lower for each in self.certificates)
        return Certificate.of(upper, lower, self.certificates[0].source)

    @property
    def status(self) -> Status:
        """CONVERGED if every gap is closed, else why the first other one is not."""
        open_ones = [status for status in self.statuses if status is not Status.CONVERGED]
        return open_ones[0] if open_ones else Status.CONVERGED

    def decision_function(self, X: Any, offset: npt.ArrayLike | None = None) -> Array:
        """Return the scores X coef' + intercept (+ offset): shape (m,), or (m, k) for k > 1.

        Raises
        ------
        DataError
            If X does not have `n_features` columns.
        """
        design = Design(X, intercept=True)
        if design.n_cols != self.n_features:
            raise DataError(f"X has {design.n_cols} features, but the model was trained with {self.n_features}")
        rows = np.column_stack([self.coef, self.intercept])
        scores = np.column_stack([design.dot(np.ascontiguousarray(w)) for w in rows])
        if offset is not None:
            scores += np.asarray(offset, dtype=np.float64).reshape(-1, 1)
        return scores[:, 0] if len(rows) == 1 else scores

    def predict(self, X: Any, offset: npt.ArrayLike | None = None) -> npt.NDArray[Any]:
        """Return labels, or what the loss makes of the scores where there are no classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, n_features)
        offset : array-like (m,), optional
            A known shift of each score.
        """
        return self.decide(self.decision_function(X, offset))

    def decide(self, scores: Array) -> npt.NDArray[Any]:
        """Return the predictions that belong to scores."""
        if self.classes is None:
            return self.loss.decide(scores)
        if scores.ndim == 2:
            return np.asarray(self.classes[np.argmax(scores, axis=1)])
        return np.asarray(self.classes[(self.loss.decide(scores) > 0.0).astype(np.intp)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a NumPy .npz archive of plain arrays; it appears complete or not at all.

        Raises
        ------
        DataError
            If the file cannot be written, or the loss is one that a file cannot name.
        """
        arrays = {"coef": self.coef, "intercept": self.intercept}
        if self.classes is not None:
            arrays["classes"] = _plain_labels(self.classes)
        header = json.dumps(_header_of(self, arrays), ensure_ascii=False, allow_nan=False)
        members = {_HEADER: np.frombuffer(header.encode(), dtype=np.uint8), **arrays}
        with atomic(path) as file:
            np.savez(file, allow_pickle=False, **members)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.loss.name or type(self.loss).__name__} + {self.lam:g} {self.regularizer}: {self.certificate}"


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model file that `Model.save` wrote. Nothing in the file is executed.

    Raises
    ------
    DataError
        If the file is not there, damaged, or no model file; the message says what is wrong.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import bmrm
    >>> certificate = bmrm.Certificate(upper=0.5, lower=0.5, gap=0.0, source="bmrm")
    >>> model = bmrm.Model(
    ...     coef=[[2.0]], intercept=[1.0], loss=bmrm.losses.Quantile(tau=0.9), regularizer="l2", lam=0.1,
    ...     solver="auto", tol=1e-3, certificates=[certificate], statuses=[bmrm.Status.CONVERGED],
    ... )
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "line.bmrm"
    >>> model.save(path)
    >>> bmrm.load(path).predict([[3.0]]), bmrm.load(path).loss
    (array([7.]), Quantile(tau=0.9))
    """
    file = Path(path)
    if file.is_dir():
        raise DataError(f"{path}: is a directory; expected a model file")
    try:
        content = file.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    try:
        members = _members(content)
        return _model_of(members)
    except UnknownName as error:
        raise DataError(f"{path}: {error} (import the module that defines it before loading)") from error
    except (DataError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not a usable model file ({error})") from error
    except Exception as error:  # whatever damaged bytes lead to
        kind = type(error).__name__
        raise DataError(f"{path}: not a usable model file ({kind}: {error})") from error


def plain_parameters(thing: Any) -> dict[str, Any]:
    """Return the parameters of a loss, regularizer or solver by name, as plain JSON values.

    Examples
    --------
    >>> import bmrm
    >>> from bmrm.model import plain_parameters
    >>> plain_parameters(bmrm.losses.Quantile(tau=0.9))
    {'tau': 0.9}
    """
    if not dataclasses.is_dataclass(thing):
        return {}
    return {f.name: _plain(getattr(thing, f.name)) for f in dataclasses.fields(thing) if f.init}


def _plain(value: Any) -> Any:
    """The value with arrays and tuples as lists, and numbers of NumPy as Python's."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _plain_labels(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    labels = classes.astype(str) if classes.dtype.kind == "O" else classes
    if classes.dtype.kind == "O" and not all(isinstance(label, str) for label in classes.tolist()):
        raise DataError("a model file holds labels that are numbers or text; these are mixed objects")
    if labels.dtype.kind not in _ARRAYS["classes"]:
        raise DataError(f"a model file holds labels that are numbers or text, not {labels.dtype}")
    return labels


def _header_of(model: Model, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    name = model.loss.name
    if not name or LOSSES.get(name) is not type(model.loss):
        raise DataError(
            f"loss {type(model.loss).__name__} is not registered, so a model file cannot name it; "
            f"define it with name='...' in its class statement"
        )
    return {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "version": model.version,
        "loss": name,
        "loss_parameters": plain_parameters(model.loss),
        "regularizer": model.regularizer,
        "lam": float(model.lam),
        "solver": model.solver,
        "tol": float(model.tol),
        "certificates": [_pack(each) for each in model.certificates],
        "statuses": [status.name for status in model.statuses],
        "config": dict(model.config),
        "history": dict(model.history),
        "sha256": _digest(arrays),
    }


def _pack(certificate: Certificate) -> dict[str, Any]:
    ends = {"upper": certificate.upper, "lower": certificate.lower}
    return {"source": certificate.source} | {k: float(v) if np.isfinite(v) else None for k, v in ends.items()}


def _unpack(packed: Any) -> Certificate:
    upper = np.inf if packed["upper"] is None else float(packed["upper"])
    lower = -np.inf if packed["lower"] is None else float(packed["lower"])
    return Certificate.of(upper, lower, _typed(packed, "source", str))


def _digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape};".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _members(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of the archive; what it declares is compared with its size before memory is set aside."""
    known = {f"{name}.npy": kinds for name, kinds in (_ARRAYS | {_HEADER: "u"}).items()}
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


def _model_of(members: dict[str, npt.NDArray[Any]]) -> Model:
    header = json.loads(members.pop(_HEADER).tobytes().decode())
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise DataError(f"its header does not say '{_FORMAT}'")
    if header.get("format_version") != _FORMAT_VERSION:
        raise DataError(f"format version {header.get('format_version')!r}; this bmrm reads {_FORMAT_VERSION}")
    if header.get("sha256") != _digest(members):
        raise DataError("the checksum of its arrays does not match")
    return Model(
        coef=members["coef"],
        intercept=members["intercept"],
        classes=members.get("classes"),
        loss=get_loss(_typed(header, "loss", str), **_typed(header, "loss_parameters", dict)),
        regularizer=_typed(header, "regularizer", str),
        lam=_typed(header, "lam", float),
        solver=_typed(header, "solver", str),
        tol=_typed(header, "tol", float),
        certificates=[_unpack(each) for each in _typed(header, "certificates", list)],
        statuses=[Status[name] for name in _typed(header, "statuses", list)],
        config=_typed(header, "config", dict),
        history=_typed(header, "history", dict),
        version=_typed(header, "version", str),
    )


def _typed(header: Any, name: str, kind: type) -> Any:
    value = header[name]
    if not isinstance(value, kind):
        raise DataError(f"'{name}' in its header is {type(value).__name__}; expected {kind.__name__}")
    return value
