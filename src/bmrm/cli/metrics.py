"""How good predictions are, by scikit-learn's measures: those that suit the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm._errors import DataError
from bmrm.cli.files import plain_label
from bmrm.cli.ranks import graded_queries, mean_ndcg, mean_reciprocal_rank
from bmrm.cli.targets import encoded, indicator, node_labels, number_rows, queries_of, single_labels
from bmrm.data.dataset import Dataset
from bmrm.losses.hierarchy import HierarchicalLoss
from bmrm.losses.scores import number_of
from bmrm.losses.vector import ClassLoss
from bmrm.model import Model
from bmrm.outcomes import probabilities_of

Array = npt.NDArray[Any]

_LARGEST_TABLE = 10
_RANKS = 10


@dataclass(frozen=True)
class Wanted:
    """Numbers for measures that need one: those asked for, else those of the loss."""

    k: int | float | None = None
    beta: float | None = None


def measure(model: Model, data: Dataset, scores: Array, wanted: Wanted | None = None) -> dict[str, Any]:
    """Return the measures by name; None where one is not defined for this file."""
    wanted = wanted or Wanted()
    if model.task == "novelty":
        y = None if data.y is None or isinstance(data.y, list) else data.y
        return _novelty(model, y, scores, data.weight)
    if data.y is None:
        raise DataError("the file has no labels to compare the predictions with")
    if model.task == "multilabel":
        return _multilabel(model, data, scores)
    if model.task == "multivariate":
        return _regression(model, number_rows(data.y), scores, data.weight)
    y = single_labels(data.y)
    if model.task == "ranking":
        return _ranking(model, y, scores, data, wanted)
    if model.task == "ordinal":
        return _ordinal(model, y, scores, data.weight)
    if model.classes is None:
        return _regression(model, y, scores, data.weight)
    if model.task == "hierarchy":
        y = node_labels(y)
    unknown = np.setdiff1d(y, model.classes)
    if unknown.size:
        known = ", ".join(str(plain_label(label)) for label in model.classes[:_LARGEST_TABLE])
        raise DataError(f"label {plain_label(unknown[0])} is not one of the model's, which are {known}")
    if len(model.classes) == 2 and model.task == "classification":
        return _binary(model, y, scores, data.weight, wanted)
    return _multiclass(model, y, scores, data.weight)


def _mean_loss(
    model: Model, targets: Array, scores: Array, weight: Array | None, groups: Array | None = None
) -> float | None:
    """Return the loss; None where it has no value here.

    That is so for a loss of several rows which the file's labels, queries or weights do not suit, or which depends on a
    constant added to all scores: the threshold is such a constant, and not what was minimized.
    """
    p = np.full(len(scores), 1.0 / len(scores)) if weight is None else weight / np.sum(weight)
    loss, f = model.loss, np.ascontiguousarray(scores)
    if loss.couples == "row":
        return float(loss.evaluate(f, loss.encode(targets), p)[0])
    try:
        rows = loss.encode(targets, groups)
        return float(loss.evaluate(f, rows, p)[0]) if loss.shift_slope(rows) == 0.0 else None
    except ValueError:
        return None


def _binary(model: Model, y: Array, scores: Array, weight: Array | None, wanted: Wanted) -> dict[str, Any]:
    from sklearn import metrics

    assert model.classes is not None
    predicted, signs = model.decide(scores), encoded(y, model.classes)[0]
    decided = encoded(predicted, model.classes)[0]
    both = len(np.unique(y)) == 2
    found: dict[str, Any] = {
        "accuracy": metrics.accuracy_score(y, predicted, sample_weight=weight),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted, sample_weight=weight) if both else None,
        "roc_auc": metrics.roc_auc_score(signs, scores, sample_weight=weight) if both else None,
        "f1": metrics.f1_score(signs, decided, sample_weight=weight, zero_division=0.0),
    }
    beta = getattr(model.loss, "beta", None) if wanted.beta is None and model.loss.name == "fbeta" else wanted.beta
    if beta is not None:
        name = f"f_beta({beta:g})"
        found[name] = metrics.fbeta_score(signs, decided, beta=beta, sample_weight=weight, zero_division=0.0)
    found |= _at_k(model, signs > 0.0, scores, wanted)
    probabilities = probabilities_of(model.loss, scores)
    if probabilities is not None:
        found["log_loss"] = metrics.log_loss(signs, probabilities[:, 1], sample_weight=weight, labels=[-1.0, 1.0])
    if isinstance(model.loss, ClassLoss):  # only the difference of its two scores counts
        both_scores, codes = np.column_stack([np.zeros(len(scores)), scores]), (signs > 0.0).astype(np.int64)
        return _plain(found) | {"mean_loss": _mean_loss(model, codes, both_scores, weight)}
    return _plain(found) | {"mean_loss": _mean_loss(model, signs, scores, weight)}


def _at_k(model: Model, positive: Array, scores: Array, wanted: Wanted) -> dict[str, float | None]:
    """Return precision and recall among the k rows with the largest scores, equal ones in the order of the file."""
    names = ("precision_at_k", "recall_at_k", "break_even")
    total, m = int(positive.sum()), len(positive)
    k = wanted.k if wanted.k is not None else getattr(model.loss, "k", None)
    if k is None and model.loss.name not in names:
        return {}
    n = total if k is None else number_of(k, m)
    hits = int(positive[np.argsort(-scores, kind="stable")[:n]].sum())
    return {
        f"precision@{n}": hits / n if 0 < n <= m else None,
        f"recall@{n}": hits / total if total and n <= m else None,
    }


def _multiclass(model: Model, y: Array, scores: Array, weight: Array | None) -> dict[str, Any]:
    from sklearn import metrics

    assert model.classes is not None
    classes, predicted = model.classes, model.decide(scores)
    found: dict[str, Any] = {
        "accuracy": metrics.accuracy_score(y, predicted, sample_weight=weight),
        "macro_f1": metrics.f1_score(y, predicted, average="macro", sample_weight=weight, zero_division=0.0),
        "micro_f1": metrics.f1_score(y, predicted, average="micro", sample_weight=weight, zero_division=0.0),
    }
    place = {label: i for i, label in enumerate(classes.tolist())}
    codes = np.array([place[label] for label in y.tolist()])
    decided = np.array([place[label] for label in predicted.tolist()])
    nodes = codes
    if isinstance(model.loss, HierarchicalLoss):
        nodes = model.loss.classes()[codes]
        distances = model.loss.tree.distances()[nodes, model.loss.classes()[decided]]
        found["tree_loss"] = np.average(distances, weights=weight)
    if getattr(model.loss, "delta", None) is not None:
        found["mean_cost"] = np.average(np.array(model.loss.delta)[codes, decided], weights=weight)  # type: ignore[attr-defined]
    probabilities = probabilities_of(model.loss, scores) if model.joint else None
    if probabilities is not None:
        found["log_loss"] = metrics.log_loss(codes, probabilities, sample_weight=weight, labels=np.arange(len(classes)))
    if model.joint:
        found["mean_loss"] = _mean_loss(model, nodes, scores, weight)
    found = _plain(found)
    if len(classes) <= _LARGEST_TABLE:
        found["classes"] = [plain_label(label) for label in classes]
        found["confusion"] = metrics.confusion_matrix(y, predicted, labels=classes).tolist()
    return found


def _multilabel(model: Model, data: Dataset, scores: Array) -> dict[str, Any]:
    from sklearn import metrics

    assert model.classes is not None
    assert data.y is not None
    Y, predicted, weight = indicator(data.y, model.classes), model.decide(scores), data.weight
    options = {"sample_weight": weight, "zero_division": 0.0}
    found = {
        "hamming_loss": metrics.hamming_loss(Y, predicted, sample_weight=weight),
        "subset_accuracy": metrics.accuracy_score(Y, predicted, sample_weight=weight),
        "macro_f1": metrics.f1_score(Y, predicted, average="macro", **options),
        "micro_f1": metrics.f1_score(Y, predicted, average="micro", **options),
        "mean_loss": _mean_loss(model, Y, scores, weight),
    }
    return _plain(found)


def _regression(model: Model, y: Array, scores: Array, weight: Array | None) -> dict[str, Any]:
    from sklearn import metrics

    from bmrm.estimators.skill import skill

    targets = model.loss.encode(y)
    predicted = model.decide(scores)
    if targets.shape != predicted.shape:
        raise DataError(f"rows have {targets.shape[1:]} numbers, but the model predicts {predicted.shape[1:]}")
    several = len(targets) > 1
    found: dict[str, Any] = {
        "rmse": metrics.root_mean_squared_error(targets, predicted, sample_weight=weight),
        "mae": metrics.mean_absolute_error(targets, predicted, sample_weight=weight),
        "r2": metrics.r2_score(targets, predicted, sample_weight=weight) if several else None,
        "score": skill(model.loss, targets, scores, weight) if several else None,
    }
    if model.loss.name == "quantile":
        tau = getattr(model.loss, "tau", 0.5)
        found["pinball"] = metrics.mean_pinball_loss(targets, predicted, sample_weight=weight, alpha=tau)
    if model.loss.name == "poisson":
        means = np.maximum(predicted, np.finfo(np.float64).tiny)
        found["poisson_deviance"] = metrics.mean_poisson_deviance(targets, means, sample_weight=weight)
    return _plain(found) | {"mean_loss": _mean_loss(model, targets, scores, weight)}


def _ordinal(model: Model, y: Array, scores: Array, weight: Array | None) -> dict[str, Any]:
    from sklearn import metrics

    predicted = model.decide(scores)
    if y.dtype.kind not in "biuf":
        raise DataError(f"grades are numbers, but the labels have type {y.dtype}")
    found = {
        "accuracy": np.average(predicted == y, weights=weight),
        "mae": metrics.mean_absolute_error(y, predicted, sample_weight=weight),
        "rmse": metrics.root_mean_squared_error(y, predicted, sample_weight=weight),
        "mean_loss": _mean_loss(model, y, scores, weight),
    }
    return _plain(found)


def _ranking(model: Model, y: Array, scores: Array, data: Dataset, wanted: Wanted) -> dict[str, Any]:
    """Return measures of the queries that have documents of different grades, one of them above 0."""
    k = wanted.k if wanted.k is not None else getattr(model.loss, "k", _RANKS)
    if not isinstance(k, int):
        raise DataError(f"k = {k} is a share of rows, but NDCG@k needs a number of ranks")
    groups = queries_of(data)
    queries, weight = graded_queries(y, groups, data.weight)
    found = {
        f"ndcg@{k}": mean_ndcg(y, scores, queries, weight, k),
        "mrr": mean_reciprocal_rank(y, scores, queries, weight),
        "mean_loss": _mean_loss(model, y, scores, data.weight, groups),
    }
    counts = {"queries": float(len(np.unique(groups))), "queries_that_count": float(len(queries))}
    return _plain(found) | counts | {"ndcg_gains": "2^grade - 1"}


def _novelty(model: Model, y: Array | None, scores: Array, weight: Array | None) -> dict[str, Any]:
    from sklearn import metrics

    found: dict[str, Any] = {"rejected": np.average(model.decide(scores) < 0.0, weights=weight)}
    labels = np.unique(y) if y is not None else np.zeros(0)
    if len(labels) == 2:
        found["roc_auc"] = metrics.roc_auc_score(y == labels[1], scores, sample_weight=weight)
    return _plain(found)


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value is None else float(value) for name, value in found.items()}
