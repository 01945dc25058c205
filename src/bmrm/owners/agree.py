"""What a run's labels are: told by the owners, or given by the coordinator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bmrm.losses import Loss
from bmrm.losses.hierarchy import HierarchicalLoss
from bmrm.losses.multivariate import MultivariateRegression
from bmrm.losses.tree import Tree, nodes_of, tree_of
from bmrm.losses.vector import ClassLoss
from bmrm.owners.guard import OwnerError
from bmrm.owners.labels import node_names
from bmrm.owners.terms import sized

if TYPE_CHECKING:
    from bmrm.owners.connected import Owners


@dataclass(frozen=True)
class Labels:
    """A loss that knows how many scores it has, and what each of them is for.

    Parameters
    ----------
    loss : Loss
    classes : array or None
        As predictions have them: classes, labels of sets, or all nodes that may be predicted.
    names : list or None
        As the owners are told: the same, but only the nodes that have rows; 0, 1, ... for several numbers.
    positive : int or None
        The place of the class that is learned against the rest.
    sets : bool
        Whether several numbers are 1 for the labels of a row, else 0.
    """

    loss: Loss
    classes: npt.NDArray[Any] | None = None
    names: list[Any] | None = None
    positive: int | None = None
    sets: bool = False


def agreed_labels(owners: Owners, loss: Loss, classes: Any, positive: Any, tree: Any, by_name: bool) -> Labels:
    """Return what the labels of a run are; owners are asked where the classes are not given."""
    if tree is not None and not isinstance(loss, HierarchicalLoss):
        raise ValueError(f"tree is for the losses hierarchical_*, not for '{loss.name}'")
    if isinstance(loss, MultivariateRegression):
        if classes is not None:
            return Labels(loss, np.asarray(classes), np.asarray(classes).tolist(), sets=True)
        return Labels(loss, None, list(range(_n_numbers(owners, loss))))
    if loss.task not in ("classification", "multilabel", "hierarchy"):
        return Labels(loss)
    found = np.unique(np.asarray(classes)) if classes is not None else owners.classes
    if len(found) < 2:
        raise OwnerError(f"all labels of {', '.join(owners.names)} are {found.tolist()}; at least two are needed")
    if isinstance(loss, HierarchicalLoss):
        return _nodes(loss, found, tree, by_name)
    place = None if loss.task == "multilabel" or isinstance(loss, ClassLoss) else _place(loss, found.tolist(), positive)
    return Labels(sized(loss, len(found)), found, found.tolist(), place)


def _place(loss: Loss, labels: list[Any], positive: Any) -> int:
    if positive is None and len(labels) > 2:
        raise ValueError(
            f"the owners have {len(labels)} classes and loss '{loss.name}' is for two: take a loss of all "
            f"classes (softmax, multiclass_hinge), or say which is the positive one"
        )
    chosen = labels[1] if positive is None else positive
    if chosen not in labels:
        raise ValueError(f"positive is {chosen!r}, which is not one of the classes {labels}")
    return labels.index(chosen)


def _nodes(loss: HierarchicalLoss, found: npt.NDArray[Any], tree: Any, by_name: bool) -> Labels:
    """Return the nodes of the tree that is given, the tree of the loss, or the one that labels as paths make."""
    names = node_names(found)
    if tree is not None or by_name:
        if tree is None and found.dtype.kind not in "US":
            raise ValueError("the labels are numbers, not paths such as a/b/c: give the tree of classes (tree)")
        made: Tree = tree_of(tree, names)
        inner = not np.isin(nodes_of(made, names), made.leaves()).all()
        loss = replace(loss, tree=made, nodes="all" if inner else loss.nodes)  # type: ignore[type-var]
    return Labels(loss, np.array(loss.tree.names)[loss.classes()], names.tolist())


def _n_numbers(owners: Owners, loss: MultivariateRegression) -> int:
    """Return how many numbers each row has, which all owners must agree about."""
    k = len(loss.M) if loss.M is not None else owners.n_targets[0]
    for name, own in zip(owners.names, owners.n_targets):
        if own != k or not k:
            raise OwnerError(f"{name}: its rows have {own or 'different'} numbers to predict; expected {k or 'some'}")
    return k
