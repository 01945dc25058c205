"""Training from a store or from shards: what is not given comes with them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from bmrm.data.columns import few
from bmrm.data.elsewhere import Elsewhere
from bmrm.risks import Shards
from bmrm.risks.from_dask import is_dask

_FROM_STORE = {"y": "y", "sample_weight": "weight", "qid": "groups"}
_FROM_DASK = {"y": "y", "sample_weight": "sample_weight", "qid": "groups"}


def takes_store(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method fit(X, y, ...) take a store, shards or Dask's arrays and frames as X.

    Labels, weights and queries that are not given are the store's; those of Dask go where X goes.
    """
    signature = inspect.signature(fit)

    @functools.wraps(fit)
    def fit_store(self: Any, *args: Any, **options: Any) -> Any:
        X = options.get("X", args[0] if args else None)
        if not isinstance(X, Elsewhere) and not is_dask(X):
            return fit(self, *args, **options)
        given = signature.bind_partial(self, *args, **options).arguments
        if is_dask(X):
            theirs = {name: given.pop(argument, None) for argument, name in _FROM_DASK.items()}
            X = given["X"] = Shards.from_dask(X, **theirs)
        for argument, name in _FROM_STORE.items():
            if argument in signature.parameters and given.get(argument) is None:
                given[argument] = getattr(X, name)
        return fit(**given)

    return fit_store


def check_names(estimator: Any, names: tuple[str, ...] | None, reset: bool) -> None:
    """Set `feature_names_in_`, or raise where the names of columns differ, as scikit-learn does for data frames."""
    if reset:
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    fitted = getattr(estimator, "feature_names_in_", None)
    if names is None or fitted is None or names == tuple(fitted):
        return
    absent = [name for name in fitted if name not in set(names)]
    others = [name for name in names if name not in set(fitted)]
    message = "The feature names should match those that were passed during fit."
    if others:
        message += f" Feature names unseen at fit time: {few(others)}."
    if absent:
        message += f" Feature names seen at fit time, yet now missing: {few(absent)}."
    if not others and not absent:
        message += " Feature names must be in the same order as they were in fit."
    raise ValueError(message)


def checked_store(estimator: Any, store: Elsewhere, reset: bool = True, **options: Any) -> Any:
    """Return the store, and the labels if they are among the options, as scikit-learn checks arrays."""
    check_names(estimator, store.feature_names, reset)
    if reset:
        estimator.n_features_in_ = store.shape[1]
    elif store.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {store.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    if "y" not in options:
        return store
    y = options["y"]
    if y is None:
        raise ValueError(f"{store.source}: the store has no labels, and y was not given")
    if isinstance(y, list) and any(isinstance(labels, tuple) for labels in y):
        raise ValueError(f"{store.source}: rows have sets of labels; expected one label each")
    labels = np.asarray(y, dtype=np.float64 if options.get("y_numeric") else None)
    if len(labels) != store.shape[0]:
        raise ValueError(f"X has {store.shape[0]} rows, but y has {len(labels)}")
    if labels.ndim != 1 and not options.get("multi_output"):
        raise ValueError(f"y should be a 1d array, got an array of shape {labels.shape} instead")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity")
    return store, labels
