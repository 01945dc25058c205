"""How good predictions are, by scikit-learn's measures: those that suit the loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm._errors import DataError
from bmrm.cli.files import plain_label
from bmrm.cli.fit import encoded
from bmrm.data.dataset import Dataset
from bmrm.model import Model

Array = npt.NDArray[Any]

_LARGEST_TABLE = 10


def measure(model: Model, data: Dataset, scores: Array) -> dict[str, Any]:
    """Return the measures by name; None where one is not defined for this file."""
    y = None if data.y is None else np.asarray(data.y)
    if model.task == "novelty":
        return _novelty(model, y, scores, data.weight)
    if y is None:
        raise DataError("the file has no labels to compare the predictions with")
    if y.dtype.kind == "S":
        y = y.astype(str)
    if model.task in ("ordinal", "ranking"):
        return {"mean_loss": _mean_loss(model, y, scores, data.weight, data.groups)}
    if model.classes is None:
        return _regression(model, y, scores, data.weight)
    unknown = np.setdiff1d(y, model.classes)
    if unknown.size:
        known = ", ".join(str(plain_label(label)) for label in model.classes[:_LARGEST_TABLE])
        raise DataError(f"label {plain_label(unknown[0])} is not one of the model's, which are {known}")
    if len(model.classes) == 2:
        return _binary(model, y, scores, data.weight)
    return _multiclass(model, y, scores, data.weight)


def _mean_loss(
    model: Model, targets: Array, scores: Array, weight: Array | None, groups: Array | None = None
) -> float | None:
    """Return the loss; None for a loss of several rows that the file's labels, queries or weights do not suit."""
    p = np.full(len(scores), 1.0 / len(scores)) if weight is None else weight / np.sum(weight)
    loss, f = model.loss, np.ascontiguousarray(scores)
    try:
        return float(loss.evaluate(f, loss.encode(targets, groups if loss.couples == "group" else None), p)[0])
    except ValueError:
        if loss.couples == "row":
            raise
        return None


def _binary(model: Model, y: Array, scores: Array, weight: Array | None) -> dict[str, Any]:
    from scipy.special import expit
    from sklearn import metrics

    assert model.classes is not None
    predicted, signs = model.decide(scores), encoded(y, model.classes)[0]
    both = len(np.unique(y)) == 2
    found: dict[str, Any] = {
        "accuracy": metrics.accuracy_score(y, predicted, sample_weight=weight),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted, sample_weight=weight) if both else None,
        "roc_auc": metrics.roc_auc_score(signs, scores, sample_weight=weight) if both else None,
        "f1": metrics.f1_score(signs, encoded(predicted, model.classes)[0], sample_weight=weight, zero_division=0.0),
    }
    if model.loss.name == "logistic":
        found["log_loss"] = metrics.log_loss(signs, expit(scores), sample_weight=weight, labels=[-1.0, 1.0])
    return _plain(found) | {"mean_loss": _mean_loss(model, signs, scores, weight)}


def _multiclass(model: Model, y: Array, scores: Array, weight: Array | None) -> dict[str, Any]:
    from sklearn import metrics

    assert model.classes is not None
    predicted = model.decide(scores)
    found = _plain(
        {
            "accuracy": metrics.accuracy_score(y, predicted, sample_weight=weight),
            "macro_f1": metrics.f1_score(y, predicted, average="macro", sample_weight=weight, zero_division=0.0),
        }
    )
    if len(model.classes) <= _LARGEST_TABLE:
        table = metrics.confusion_matrix(y, predicted, labels=model.classes)
        found["classes"] = [plain_label(label) for label in model.classes]
        found["confusion"] = table.tolist()
    return found


def _regression(model: Model, y: Array, scores: Array, weight: Array | None) -> dict[str, Any]:
    from sklearn import metrics

    targets = model.loss.encode(y)
    predicted = model.decide(scores)
    several = len(targets) > 1
    found: dict[str, Any] = {
        "rmse": metrics.root_mean_squared_error(targets, predicted, sample_weight=weight),
        "mae": metrics.mean_absolute_error(targets, predicted, sample_weight=weight),
        "r2": metrics.r2_score(targets, predicted, sample_weight=weight) if several else None,
    }
    if model.loss.name == "quantile":
        tau = getattr(model.loss, "tau", 0.5)
        found["pinball"] = metrics.mean_pinball_loss(targets, predicted, sample_weight=weight, alpha=tau)
    if model.loss.name == "poisson":
        means = np.maximum(predicted, np.finfo(np.float64).tiny)
        found["poisson_deviance"] = metrics.mean_poisson_deviance(targets, means, sample_weight=weight)
    return _plain(found) | {"mean_loss": _mean_loss(model, targets, scores, weight)}


def _novelty(model: Model, y: Array | None, scores: Array, weight: Array | None) -> dict[str, Any]:
    from sklearn import metrics

    found: dict[str, Any] = {"rejected": np.average(model.decide(scores) < 0.0, weights=weight)}
    labels = np.unique(y) if y is not None else np.zeros(0)
    if len(labels) == 2:
        found["roc_auc"] = metrics.roc_auc_score(y == labels[1], scores, sample_weight=weight)
    return _plain(found)


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value is None else float(value) for name, value in found.items()}
