"""Model: what a run leaves behind, in memory and in a file that cannot run code."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from bmrm import model_file, sequence_model
from bmrm._errors import DataError
from bmrm._registry import UnknownName
from bmrm.certificate import Certificate, Status
from bmrm.data import Design
from bmrm.data.archive import Arrays
from bmrm.data.columns import aligned
from bmrm.losses import LOSSES, Loss, VectorLoss
from bmrm.losses import get as get_loss
from bmrm.losses.hierarchy import HierarchicalLoss
from bmrm.losses.scores import WholeSetLoss
from bmrm.model_file import typed
from bmrm.outcomes import probabilities_of
from bmrm.sequence_model import SequenceModel

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Model:
    """Weights and all that is known about them: what they were trained for, and what was proved.

    Parameters
    ----------
    coef : array of shape (k, d)
        One row for each score: one for two classes, one for each of more classes, for each label of label sets, for
        each node of a hierarchy, or for each number to predict.
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
        One for each problem that was solved: one for each score of classes against the rest, else one in all.
    statuses : sequence of Status
        One for each problem.
    classes : array, optional
        The labels of a classifier, numbers or text; scores of two classes are positive for the second one. Increasing
        grades where they are predicted. The names of the nodes that may be predicted follow from a hierarchy.
    thresholds : array, optional
        For label sets, the number above which a label's score makes it one of a row's; for g grades, the g - 1 scores
        between them.
    config : dict, optional
        All settings of the run, as plain JSON values.
    history : dict, optional
        A summary of the run (iterations, passes, seconds), as plain JSON values.
    version : str
        The version of bmrm that trained the model.
    feature_names : sequence of str, optional
        The name of each column of X. Data frames and stores are then put in this order by name; columns of theirs that
        are no features are left out with a warning, one that is missing is an error. Arrays go by position.

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
    thresholds: Array | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    history: Mapping[str, Any] = field(default_factory=dict)
    version: str = field(default_factory=lambda: version("bmrm"))
    feature_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        coef = np.atleast_2d(np.ascontiguousarray(self.coef, dtype=np.float64))
        intercept = np.atleast_1d(np.ascontiguousarray(self.intercept, dtype=np.float64))
        classes = None if self.classes is None else np.asarray(self.classes)
        thresholds = None if self.thresholds is None else np.atleast_1d(np.asarray(self.thresholds, dtype=np.float64))
        if classes is None and isinstance(self.loss, HierarchicalLoss):
            classes = _node_names(self.loss)
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", intercept)
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "thresholds", thresholds)
        object.__setattr__(self, "certificates", tuple(self.certificates))
        object.__setattr__(self, "statuses", tuple(self.statuses))
        object.__setattr__(self, "feature_names", None if self.feature_names is None else tuple(self.feature_names))
        _check_parts(self)

    @property
    def task(self) -> str:
        """What the loss is for: 'classification', 'regression', 'novelty', 'multilabel', 'hierarchy' and so on."""
        return str(self.loss.task)

    @property
    def joint(self) -> bool:
        """Whether one problem was solved for all scores."""
        return isinstance(self.loss, VectorLoss)

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.coef.shape[1])

    @property
    def certificate(self) -> Certificate:
        """What was proved; for classes against the rest, of the sum of the classes' objectives."""
        if len(self.certificates) == 1:
            return self.certificates[0]
        upper = math.fsum(each.upper for each in self.certificates)
        lower = math.fsum(each.lower for each in self.certificates)
        failure = min(1.0, math.fsum(each.failure for each in self.certificates))
        return Certificate.of(upper, lower, self.certificates[0].source, failure)

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
            If X does not have `n_features` columns, or lacks one of `feature_names`.
        """
        X, coef = aligned(X, self.coef, cast("tuple[str, ...] | None", self.feature_names))
        scores = linear_scores(X, coef, self.intercept)
        if offset is not None:
            scores += np.asarray(offset, dtype=np.float64).reshape(-1, 1)
        return scores[:, 0] if len(self.coef) == 1 and self.task != "multivariate" else scores

    def predict(self, X: Any, offset: npt.ArrayLike | None = None) -> npt.NDArray[Any]:
        """Return labels, or what the loss makes of the scores where there are no classes.

        For label sets it is a matrix (m, k) with 1 for each label of a row, for hierarchies the names of nodes, for
        ranking the scores.

        Parameters
        ----------
        X : array, sparse matrix, data frame or store of shape (m, n_features)
            With names of columns, in any order: see `feature_names`.
        offset : array-like (m,), optional
            A known shift of each score.
        """
        return self.decide(self.decision_function(X, offset))

    def predict_proba(self, X: Any, offset: npt.ArrayLike | None = None) -> Array:
        """Return the probability (m, k) of each class, for the losses logistic, softmax and hierarchical_softmax."""
        return self.probabilities(self.decision_function(X, offset))

    def decide(self, scores: Array) -> npt.NDArray[Any]:
        """Return the predictions that belong to scores."""
        if self.classes is None:
            return np.asarray(self.loss.decide(scores))
        if self.task == "multilabel":
            return np.asarray(scores > cast(Array, self.thresholds)[0], dtype=np.int64)
        if self.task == "ordinal":
            return np.asarray(self.classes[np.searchsorted(cast(Array, self.thresholds), scores, side="left")])
        if scores.ndim == 2:
            return np.asarray(self.classes[np.argmax(self.class_scores(scores), axis=1)])
        if self.joint:
            return np.asarray(self.classes[(scores >= 0.0).astype(np.intp)])
        if isinstance(self.loss, WholeSetLoss):  # the intercept is a threshold, to be exceeded
            return np.asarray(self.classes[(scores > 0.0).astype(np.intp)])
        return np.asarray(self.classes[(self.loss.decide(scores) > 0.0).astype(np.intp)])

    def class_scores(self, scores: Array) -> Array:
        """Return the scores of the classes: for hierarchies, the sums over their paths, else the scores."""
        return self.loss.class_scores(scores) if isinstance(self.loss, HierarchicalLoss) else scores

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities (m, k) that belong to scores."""
        found = probabilities_of(self.loss, scores)
        if found is None:
            raise DataError(
                f"loss '{self.loss.name}' yields no probabilities; logistic, softmax and hierarchical_softmax do"
            )
        return found

    def save(self, path: str | os.PathLike[str] | BinaryIO) -> None:
        """Write a NumPy .npz archive of plain arrays: to an open file, or to a path, complete or not at all.

        Raises
        ------
        DataError
            If the file cannot be written, or the loss is one that a file cannot name.
        """
        arrays = {"coef": self.coef, "intercept": self.intercept}
        if self.classes is not None:
            arrays["classes"] = model_file.plain_labels(self.classes)
        if self.thresholds is not None:
            arrays["thresholds"] = self.thresholds
        model_file.write(path, _header_of(self), arrays)

    def __str__(self) -> str:
        return f"{self.loss.name or type(self.loss).__name__} + {self.lam:g} {self.regularizer}: {self.certificate}"


def linear_scores(X: Any, coef: Array, intercept: Array) -> Array:
    """Return X coef' + intercept, of shape (m, k); another number of columns than coef has raises DataError."""
    design, k = Design(X, intercept=True), len(coef)
    if design.n_cols != coef.shape[1]:
        raise DataError(f"X has {design.n_cols} features, but the model was trained with {coef.shape[1]}")
    rows = np.column_stack([coef, intercept])
    return (design.dot(rows[0]) if k == 1 else design.widened(k).dot(rows.T.reshape(-1))).reshape(-1, k)


def load(path: str | os.PathLike[str]) -> Model | SequenceModel:
    """Read a model file that `Model.save` or `SequenceModel.save` wrote. Nothing in the file is executed.

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
        header, arrays = model_file.parse(content)
        if header.get("kind") == sequence_model.KIND:
            return sequence_model.of_file(header, arrays)
        return _model_of(header, arrays)
    except UnknownName as error:
        raise DataError(f"{path}: {error} (import the module that defines it before loading)") from error
    except (DataError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not a usable model file ({error})") from error
    except Exception as error:  # whatever damaged bytes lead to
        kind = type(error).__name__
        raise DataError(f"{path}: not a usable model file ({kind}: {error})") from error


def _node_names(loss: HierarchicalLoss) -> npt.NDArray[Any]:
    return np.array(loss.tree.names)[loss.classes()]


def _check_parts(model: Model) -> None:
    """Raise unless the shapes fit each other and the loss."""
    coef, intercept, loss, k = model.coef, model.intercept, model.loss, model.coef.shape[0]
    if coef.ndim != 2 or k == 0 or intercept.shape != (k,):
        raise ValueError(f"coef has shape {coef.shape} and intercept {intercept.shape}; expected (k, d), (k,)")
    n = 1 if model.joint else k
    if len(model.certificates) != n or len(model.statuses) != n:
        raise ValueError(f"{k} rows of coef by loss '{loss.name}' need {n} certificates and statuses")
    if model.feature_names is not None and len(model.feature_names) != model.n_features:
        raise ValueError(f"feature_names are {len(model.feature_names)}, but coef has {model.n_features} columns")
    if (isinstance(loss, WholeSetLoss) or loss.couples == "group") and k != 1:
        raise ValueError(f"loss '{loss.name}' has one score for each row, but coef has {k} rows")
    labeled = model.task in ("classification", "multilabel", "hierarchy", "ordinal")
    if (model.classes is not None) != labeled:
        raise ValueError(
            f"loss '{loss.name}' is for {model.task}, which " + ("needs" if labeled else "has no") + " classes"
        )
    if model.classes is not None:
        _check_classes(model, model.classes)
    wanted = {"multilabel": (1,), "ordinal": (0 if model.classes is None else len(model.classes) - 1,)}.get(model.task)
    found = None if model.thresholds is None else model.thresholds.shape
    if found != wanted:
        raise ValueError(f"thresholds have shape {found}, but {model.task} needs {wanted}")
    if model.thresholds is not None and not (np.diff(model.thresholds) >= 0.0).all():
        raise ValueError("the thresholds between grades fall")


def _check_classes(model: Model, classes: npt.NDArray[Any]) -> None:
    k, n = len(model.coef), len(classes)
    if isinstance(model.loss, HierarchicalLoss):
        fits = k == model.loss.tree.n_nodes and np.array_equal(classes, _node_names(model.loss))
    elif model.task == "ordinal":
        fits = k == 1 and n >= 2 and classes.dtype.kind in "biuf" and bool((np.diff(classes.astype(float)) > 0).all())
    elif model.task == "multilabel":
        fits = n == k >= 2
    else:
        fits = n == (2 if k == 1 else max(k, 3))
    if classes.ndim != 1 or not fits:
        raise ValueError(f"classes have shape {classes.shape}, which does not fit {k} rows of coef and {model.task}")


def _header_of(model: Model) -> dict[str, Any]:
    name = model.loss.name
    if not name or LOSSES.get(name) is not type(model.loss):
        raise DataError(
            f"loss {type(model.loss).__name__} is not registered, so a model file cannot name it; "
            f"define it with name='...' in its class statement"
        )
    return {
        "version": model.version,
        "loss": name,
        "loss_parameters": model_file.plain_parameters(model.loss),
        "regularizer": model.regularizer,
        "lam": float(model.lam),
        "solver": model.solver,
        "tol": float(model.tol),
        "certificates": [model_file.pack(each) for each in model.certificates],
        "statuses": [status.name for status in model.statuses],
        "config": dict(model.config),
        "history": dict(model.history),
    } | ({} if model.feature_names is None else {"feature_names": list(model.feature_names)})


def _names_in(header: dict[str, Any]) -> list[str] | None:
    """Return the names of columns; files of models of arrays, and of earlier versions, have none."""
    if "feature_names" not in header:
        return None
    names: list[str] = typed(header, "feature_names", list)
    if not all(isinstance(name, str) for name in names):
        raise DataError("'feature_names' in its header are not all text")
    return names


def _model_of(header: dict[str, Any], arrays: Arrays) -> Model:
    return Model(
        coef=arrays["coef"],
        intercept=arrays["intercept"],
        classes=arrays.get("classes"),
        thresholds=arrays.get("thresholds"),
        loss=get_loss(typed(header, "loss", str), **typed(header, "loss_parameters", dict)),
        regularizer=typed(header, "regularizer", str),
        lam=typed(header, "lam", float),
        solver=typed(header, "solver", str),
        tol=typed(header, "tol", float),
        certificates=[model_file.unpack(each) for each in typed(header, "certificates", list)],
        statuses=[Status[name] for name in typed(header, "statuses", list)],
        config=typed(header, "config", dict),
        history=typed(header, "history", dict),
        version=typed(header, "version", str),
        feature_names=_names_in(header),
    )
