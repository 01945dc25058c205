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
from bmrm.losses.hierarchy import HierarchicalLoss
from bmrm.losses.multilabel import MultilabelHinge
from bmrm.losses.multivariate import MultivariateRegression
from bmrm.losses.tree import nodes_of
from bmrm.losses.vector import Classes, ClassLoss, VectorLoss
from bmrm.owners.guard import GuardSettings, OwnerError, Refused
from bmrm.owners.labels import MOST_SCORES, codes, indicator, node_names, nodes, numbers, single
from bmrm.regularizers import REGULARIZERS, Regularizer, Zero

_TASKS = ("classification", "regression", "novelty", "ranking", "multilabel", "hierarchy", "multivariate")
_VECTORS = (ClassLoss, HierarchicalLoss, MultilabelHinge, MultivariateRegression)  # their targets can be agreed on


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
        All of them, sorted, where the loss is for classes or sets of labels; the nodes that have rows, where it is for
        a hierarchy; 0, 1, ..., k - 1, where it is for k numbers.
    positive : int or None
        The class against the rest, by its place; None where the loss takes all classes together.
    masked : bool
    sets : bool
        Whether several numbers for each row are 1 for the labels of its set, else 0.
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
    sets: bool = False

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
            "positive": (int, type(None)), "masked": (bool,), "sets": (bool,),
        }  # fmt: skip
        header = {"sets": False} | header if isinstance(header, dict) else header
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
        return loss if self.classes is None else sized(loss, len(self.classes))

    def made_regularizer(self, dim: int, unpenalized: tuple[int, ...]) -> Regularizer:
        """Return the regularizer for vectors of that length."""
        return regularizers.get(self.regularizer, **self.regularizer_parameters).bind(dim, unpenalized)

    def check(self, settings: GuardSettings) -> None:
        """Raise Refused if the penalty is too weak for the owner's guard."""
        if not self.lam > 0.0 or self.lam < settings.min_lam:
            raise Refused(f"lam is {self.lam:g}; this owner accepts {settings.min_lam:g} and above")
        if settings.min_lam > 0.0 and REGULARIZERS.get(self.regularizer) is Zero:
            raise Refused("without a regularizer nothing bounds w; this owner accepts that with min_lam 0 only")


def sized(loss: Loss, k: int) -> Loss:
    """Return a loss of classes or sets of labels for k of them, where it does not say for how many it is."""
    if isinstance(loss, (ClassLoss, MultilabelHinge)) and loss.n_classes is None:
        return replace(loss, n_classes=k)  # type: ignore[type-var]
    return loss


def needs_scores(loss: Loss) -> bool:
    """Whether a loss can be had from scores of single rows only: it looks at all of them, or has no lower bound.

    Examples
    --------
    >>> import bmrm
    >>> from bmrm.owners.terms import needs_scores
    >>> needs_scores(bmrm.losses.RocArea()), needs_scores(bmrm.losses.Hinge())
    (True, False)
    """
    return loss.couples == "all" or (loss.couples == "row" and (loss.learns_offset or not np.isfinite(loss.floor)))


def why_scores(loss: Loss) -> str:
    """Return why a loss needs scores, in words."""
    return "looks at all rows together" if loss.couples == "all" else "has no lower bound for an owner's guard"


def check_loss(loss: Loss) -> None:
    """Raise ValueError if a loss cannot be a sum over what owners compute by themselves."""
    if needs_scores(loss):
        raise ValueError(
            f"loss '{loss.name}' {why_scores(loss)} and needs the scores of single rows, which owners tell with "
            f"--allow-scores only (serve-shard; in Python allow_scores=True of Owner)"
        )
    known = isinstance(loss, _VECTORS) or not isinstance(loss, VectorLoss)
    if loss.task not in _TASKS or not known or not np.isfinite(loss.floor):
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
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)  # type: ignore[arg-type]
    return [_value(item) for item in value] if isinstance(value, (tuple, list)) else value


def targets(data: Dataset, loss: Loss, terms: Terms) -> Any:
    """Return the rows' targets as the loss takes them."""
    if not loss.needs_targets:
        return None
    y, labels = data.y, terms.classes or []
    if y is None:
        raise Refused(f"this owner has no labels, but loss '{loss.name}' needs them")
    if isinstance(loss, HierarchicalLoss):
        return nodes(y, loss.tree)
    if isinstance(loss, MultivariateRegression):
        return indicator(y, labels) if terms.sets else numbers(y, len(labels))
    if loss.task not in ("classification", "multilabel"):
        return y
    if len(labels) < 2:
        raise Refused(f"loss '{loss.name}' needs a list of at least two classes")
    if loss.task == "multilabel":
        return indicator(y, labels)
    found = codes(single(y), labels)
    if isinstance(loss, ClassLoss):
        return found
    if terms.positive is None or not 0 <= terms.positive < len(labels):
        raise Refused("the terms do not say which class is the positive one")
    return np.where(found == terms.positive, 1.0, -1.0)


def shape(loss: Loss, terms: Terms) -> tuple[int, tuple[int, ...]]:
    """Return the length of w and its free coordinates: the constants, but for one where classes are compared."""
    some = some_targets(loss, terms) if isinstance(loss, VectorLoss) else None
    k = loss.n_scores(some) if isinstance(loss, VectorLoss) else 1
    dim = (terms.n_features + terms.intercept) * k
    if not terms.intercept:
        return dim, ()
    free = loss.free_constants(some) if isinstance(loss, VectorLoss) else range(k)
    return dim, tuple(int(dim - k + c) for c in free)


def some_targets(loss: VectorLoss, terms: Terms) -> Any:
    """Return targets of few rows: what depends on the labels alone can be asked with them."""
    labels = terms.classes or []
    k = loss.tree.n_nodes if isinstance(loss, HierarchicalLoss) else len(labels)
    if not isinstance(loss, ClassLoss) and k > MOST_SCORES:
        raise ValueError(f"loss '{loss.name}' with {k} scores for each row; owners compute {MOST_SCORES} at most")
    if isinstance(loss, HierarchicalLoss):
        return loss.encode(nodes_of(loss.tree, node_names(np.array(labels))) if labels else loss.classes())
    if isinstance(loss, MultivariateRegression):
        return loss.encode(np.zeros((1, k)))
    if isinstance(loss, MultilabelHinge):
        return loss.encode(np.zeros((1, k)))
    return each_class_once(k)


def each_class_once(k: int) -> Classes:
    """Return targets with each of k classes."""
    return Classes(np.arange(k, dtype=np.int32), k)


def labels_union(found: list[list[Any]], names: list[str]) -> npt.NDArray[Any]:
    """Return the labels of all owners, sorted; text and numbers do not mix."""
    kinds = [bool(labels) and isinstance(labels[0], str) for labels in found]
    if len(set(kinds)) > 1:
        text, numbers = names[kinds.index(True)], names[kinds.index(False)]
        raise OwnerError(f"the labels of {text} are text, those of {numbers} numbers")
    return np.array(sorted({label for labels in found for label in labels}))
