"""Terms: what all owners of a run agree on before the first number is computed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm import losses, regularizers
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES, Loss
from bmrm.losses.vector import Classes, ClassLoss
from bmrm.owners.guard import GuardSettings, OwnerError, Refused
from bmrm.regularizers import REGULARIZERS, Regularizer, Zero

_TASKS = ("classification", "regression", "novelty", "ranking")
MOST_CLASSES = 1000
_ROWS_FOR_A_CLASS = 5  # on the average, else labels are not classes


@dataclass(frozen=True)
class Terms:
    """A loss and a regularizer by name, and how labels become targets.

    Parameters
    ----------
    loss, regularizer : str
        Names of the registries.
    loss_parameters, regularizer_parameters : dict
        Plain values.
    lam : float
    n_features : int
        Owners with fewer have zeros in the others.
    intercept : bool
    classes : list of labels or None
        All of them, sorted, where the loss is for classes.
    positive : int or None
        The class against the rest, by its place; None where the loss takes all classes together.
    masked : bool
    """

    loss: str
    loss_parameters: dict[str, Any]
    regularizer: str
    regularizer_parameters: dict[str, Any]
    lam: float
    n_features: int
    intercept: bool
    classes: list[Any] | None = None
    positive: int | None = None
    masked: bool = False

    @classmethod
    def of(cls, loss: Loss, regularizer: Regularizer, **others: Any) -> Terms:
        """Make the terms for a loss and a regularizer, which must have names."""
        for thing, registry in ((loss, LOSSES), (regularizer, REGULARIZERS)):
            if registry.get(thing.name) is not type(thing):
                raise ValueError(f"{type(thing).__name__} is not registered, so owners cannot be told its name")
        return cls(loss.name, _plain(loss), regularizer.name, _plain(regularizer), **others)

    @classmethod
    def from_header(cls, header: Any) -> Terms:
        """Return the terms that came over the wire, of the right types."""
        kinds: dict[str, tuple[type, ...]] = {
            "loss": (str,), "loss_parameters": (dict,), "regularizer": (str,), "regularizer_parameters": (dict,),
            "lam": (float, int), "n_features": (int,), "intercept": (bool,), "classes": (list, type(None)),
            "positive": (int, type(None)), "masked": (bool,),
        }  # fmt: skip
        if not isinstance(header, dict) or set(header) != set(kinds):
            raise Refused(f"terms of a run must have {', '.join(kinds)}")
        for name, kind in kinds.items():
            if type(header[name]) not in kind:
                raise Refused(f"'{name}' in the terms of a run is {type(header[name]).__name__}")
        return cls(**header)

    def header(self) -> dict[str, Any]:
        """Return the terms as plain values."""
        return dataclasses.asdict(self)

    def made_loss(self) -> Loss:
        """Return the loss, which must be a sum over rows or queries that owners can compute by themselves."""
        loss = losses.get(self.loss, **self.loss_parameters)
        check_loss(loss)
        if isinstance(loss, ClassLoss) and self.classes is not None and loss.n_classes is None:
            loss = replace(loss, n_classes=len(self.classes))  # type: ignore[type-var]
        return loss

    def made_regularizer(self, dim: int, unpenalized: tuple[int, ...]) -> Regularizer:
        """Return the regularizer for vectors of that length."""
        return regularizers.get(self.regularizer, **self.regularizer_parameters).bind(dim, unpenalized)

    def check(self, settings: GuardSettings) -> None:
        """Raise Refused if the penalty is too weak for the owner's guard."""
        if not self.lam > 0.0 or self.lam < settings.min_lam:
            raise Refused(f"lam is {self.lam:g}; this owner accepts {settings.min_lam:g} and above")
        if settings.min_lam > 0.0 and REGULARIZERS.get(self.regularizer) is Zero:
            raise Refused("without a regularizer nothing bounds w; this owner accepts that with min_lam 0 only")


def check_loss(loss: Loss) -> None:
    """Raise ValueError if a loss cannot be a sum over what owners compute by themselves."""
    if loss.couples == "all":
        raise ValueError(
            f"loss '{loss.name}' looks at all rows together and needs the scores of single rows, which no owner tells; "
            f"take a loss of single rows or queries"
        )
    if loss.task not in _TASKS or loss.learns_offset or not np.isfinite(loss.floor):
        raise ValueError(
            f"loss '{loss.name}' is not for several owners; expected one for {', '.join(_TASKS)} that "
            f"declares a lower bound (its 'floor')"
        )


def _plain(thing: Any) -> dict[str, Any]:
    """Return the parameters of a loss or regularizer that are not as they come, as plain values."""
    if not dataclasses.is_dataclass(thing):
        return {}
    found = {f.name: (f.default, getattr(thing, f.name)) for f in dataclasses.fields(thing) if f.init}
    return {name: _value(value) for name, (default, value) in found.items() if value is not default}


def _value(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return [_value(item) for item in value] if isinstance(value, (tuple, list)) else value


def class_labels(data: Dataset) -> list[Any]:
    """Return the labels of a data set where they are classes; many different ones are told to nobody."""
    y = data.y
    if y is None or isinstance(y, list) or y.ndim != 1:
        raise Refused("this owner has no labels, or several for a row")
    labels = np.unique(y.astype(str) if y.dtype.kind in "SO" else y)
    whole = labels.dtype.kind != "f" or bool((labels == np.round(labels)).all())
    if not whole or len(labels) > min(MOST_CLASSES, len(y) // _ROWS_FOR_A_CLASS):
        raise Refused(f"this owner's labels are no classes: {len(labels)} different ones in {len(y)} rows")
    found: list[Any] = labels.tolist()
    return found


def targets(data: Dataset, loss: Loss, terms: Terms) -> Any:
    """Return the rows' targets as the loss takes them."""
    if not loss.needs_targets:
        return None
    if data.y is None:
        raise Refused(f"this owner has no labels, but loss '{loss.name}' needs them")
    if loss.task != "classification":
        return data.y
    if isinstance(data.y, list) or data.y.ndim != 1:
        raise Refused("this owner has several labels for a row")
    if not terms.classes or len(terms.classes) < 2:
        raise Refused(f"loss '{loss.name}' needs a list of at least two classes")
    y = data.y.astype(str) if data.y.dtype.kind in "SO" else data.y
    place = {label: k for k, label in enumerate(terms.classes)}
    distinct, inverse = np.unique(y, return_inverse=True)
    if any(label not in place for label in distinct.tolist()):
        raise Refused(f"this owner has labels that are not among the {len(place)} classes of the run")
    codes = np.array([place[label] for label in distinct.tolist()])[inverse]
    if isinstance(loss, ClassLoss):
        return codes
    if terms.positive is None or not 0 <= terms.positive < len(place):
        raise Refused("the terms do not say which class is the positive one")
    return np.where(codes == terms.positive, 1.0, -1.0)


def shape(loss: Loss, terms: Terms) -> tuple[int, tuple[int, ...]]:
    """Return the length of w and its free coordinates: the constants, but for one where classes are compared."""
    k = len(terms.classes or ()) if isinstance(loss, ClassLoss) else 1
    dim = (terms.n_features + terms.intercept) * k
    if not terms.intercept:
        return dim, ()
    free = loss.free_constants(each_class_once(k)) if isinstance(loss, ClassLoss) else range(k)
    return dim, tuple(int(dim - k + c) for c in free)


def each_class_once(k: int) -> Classes:
    """Return targets with each of k classes: what depends on the classes alone can be asked with them."""
    return Classes(np.arange(k, dtype=np.int32), k)


def labels_union(found: list[list[Any]], names: list[str]) -> npt.NDArray[Any]:
    """Return the labels of all owners, sorted; text and numbers do not mix."""
    kinds = [bool(labels) and isinstance(labels[0], str) for labels in found]
    if len(set(kinds)) > 1:
        text, numbers = names[kinds.index(True)], names[kinds.index(False)]
        raise OwnerError(f"the labels of {text} are text, those of {numbers} numbers")
    return np.array(sorted({label for labels in found for label in labels}))
