"""The parameters of a loss or a regularizer that is given as an object, as parameters of the estimator."""

from __future__ import annotations

import dataclasses
from typing import Any

from sklearn.base import BaseEstimator

_HOLDERS = ("loss", "regularizer")


class NestedParameters(BaseEstimator):  # type: ignore[misc]
    """``loss__tau`` and ``regularizer__r`` in `get_params` and `set_params`, and so in scikit-learn's searches.

    Losses and regularizers do not change: a new one takes the place of the old one.

    Examples
    --------
    >>> import bmrm
    >>> model = bmrm.LinearRegressor(loss=bmrm.losses.Quantile(tau=0.5))
    >>> model.set_params(loss__tau=0.9).loss
    Quantile(tau=0.9)
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if deep, with those of a loss and a regularizer that are objects."""
        found: dict[str, Any] = super().get_params(deep)
        for holder in _HOLDERS if deep else ():
            thing = found.get(holder)
            found |= {f"{holder}__{name}": getattr(thing, name) for name in _names(thing)}
        return found

    def set_params(self, **params: Any) -> NestedParameters:
        """Set parameters; ``loss__tau`` makes a loss with another tau."""
        nested = [key for key in params if key.partition("__")[0] in _HOLDERS and "__" in key]
        super().set_params(**{key: value for key, value in params.items() if key not in nested})
        for holder in _HOLDERS:
            changes = {key.partition("__")[2]: params[key] for key in nested if key.startswith(f"{holder}__")}
            if changes:
                self._replace(holder, changes)
        return self

    def _replace(self, holder: str, changes: dict[str, Any]) -> None:
        thing = super().get_params(deep=False).get(holder)
        names = _names(thing)
        unknown = [name for name in changes if name not in names]
        if not unknown:
            setattr(self, holder, dataclasses.replace(thing, **changes))
        elif hasattr(thing, "set_params"):
            super().set_params(**{f"{holder}__{name}": value for name, value in changes.items()})
        else:
            has = f"it has {', '.join(names) or 'none'}"
            if isinstance(thing, str):
                has = f"a name has none: set {holder}_params, or give the {holder} as an object"
            raise ValueError(f"{holder}={thing!r} has no parameter {unknown[0]!r} to set by '{holder}__'; {has}")


def _names(thing: Any) -> list[str]:
    """Return the parameters of an object of a data class, none of others."""
    if isinstance(thing, type) or not dataclasses.is_dataclass(thing):
        return []
    return [field.name for field in dataclasses.fields(thing) if field.init]
