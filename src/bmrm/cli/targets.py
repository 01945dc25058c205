"""From a file's labels to what a loss takes: classes, label sets, nodes of a tree, grades, queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm._errors import DataError
from bmrm.cli.files import plain_label
from bmrm.cli.hierarchy import read_tree
from bmrm.data.arrays import load_array
from bmrm.data.dataset import Dataset, Labels
from bmrm.losses import HierarchicalHinge, Loss, MulticlassHinge, MultilabelHinge, ScaledMulticlassHinge, Tree
from bmrm.losses.hierarchy import HierarchicalLoss
from bmrm.losses.multiclass import of_all_classes
from bmrm.losses.multilabel import check_order
from bmrm.losses.scores import WholeSetLoss
from bmrm.losses.tree import nodes_of
from bmrm.losses.vector import ClassLoss

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Targets:
    """What the problems are made of, beside the matrix: one target for each of them."""

    loss: Loss
    problems: list[Any]
    classes: Array | None = None
    groups: Array | None = None


@dataclass(frozen=True)
class Extras:
    """Files and settings that say more about labels."""

    hierarchy: Path | None = None
    costs: Path | None = None
    multiclass: str = "auto"


def targets_of(data: Dataset, loss: Loss, extras: Extras) -> Targets:
    """Return the targets as the loss takes them; options that mean nothing to it are refused."""
    refuse_unused(loss, extras)
    if not loss.needs_targets:
        return Targets(loss, [None])
    if data.y is None:
        raise ValueError(f"the file has no labels, but loss '{loss.name}' needs them (--target, if a column has them)")
    if loss.task == "classification":
        return _classes(single_labels(data.y), loss, extras)
    if loss.task == "multilabel":
        return _label_sets(data.y, loss, extras)
    if loss.task == "hierarchy":
        return _nodes(single_labels(data.y), loss, extras)
    if loss.task == "multivariate":
        return Targets(loss, [number_rows(data.y)])
    y = single_labels(data.y)
    if loss.task == "ordinal":
        counted = y if data.weight is None else y[data.weight > 0.0]
        return Targets(loss, [y], classes=np.unique(counted))
    if loss.couples == "group":
        return Targets(loss, [y], groups=queries_of(data))
    return Targets(loss, [y])


def refuse_unused(loss: Loss, extras: Extras) -> None:
    """Raise if something is said about labels that the loss has no use for."""
    if extras.hierarchy is not None and loss.task != "hierarchy":
        raise DataError(f"{extras.hierarchy}: a hierarchy is for the losses hierarchical_*, not for '{loss.name}'")
    if extras.multiclass != "auto" and loss.task != "classification":
        raise DataError(
            f"--multiclass {extras.multiclass} is for classification, but loss '{loss.name}' is for {loss.task}"
        )


def single_labels(y: Labels) -> Array:
    """Return one label for each row, or say which row has another number of them."""
    if isinstance(y, list):
        row = next((i for i, labels in enumerate(y) if len(labels) != 1), 0)
        raise ValueError(
            f"has examples with several labels, or none (row {row} has {len(y[row])}); expected one each "
            f"(several labels: --loss multilabel_hinge)"
        )
    if y.ndim != 1:
        raise ValueError(f"labels have shape {y.shape}; expected one for each row")
    return y.astype(str) if y.dtype.kind == "S" else y


def class_labels(y: Array) -> Array:
    """Return the distinct labels in order, checked to be at least two and to be classes."""
    y = single_labels(y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise ValueError(f"label of row {row} is {y[row]}; labels must be finite")
    classes = np.unique(y)
    if len(classes) == 1:
        raise ValueError(f"all {len(y)} labels are {classes[0]}; a classifier needs at least two classes")
    if len(classes) > 2 and classes.dtype.kind == "f" and np.any(classes != np.round(classes)):
        odd = classes[classes != np.round(classes)][0]
        raise ValueError(f"labels such as {odd:g} are no classes; take a loss for regression ('bmrm list losses')")
    return classes


def encoded(y: Array, classes: Array) -> list[npt.NDArray[np.float64]]:
    """Return -1 and 1 for each score: one of them for two classes, else one for each class against the rest."""
    labels = y.astype(str) if y.dtype.kind == "S" else y
    positives = classes[1:] if len(classes) == 2 else classes
    return [np.where(labels == label, 1.0, -1.0) for label in positives]


def _classes(y: Array, loss: Loss, extras: Extras) -> Targets:
    classes = class_labels(y)
    loss = of_all_classes(loss, extras.multiclass, len(classes))
    if isinstance(loss, WholeSetLoss) and len(classes) > 2:
        few = ", ".join(str(plain_label(label)) for label in classes[:5])
        raise ValueError(f"loss '{loss.name}' is for two classes, but the labels are {len(classes)} ({few}, ...)")
    loss = _with_costs(loss, extras.costs, classes)
    if not isinstance(loss, ClassLoss):
        return Targets(loss, list(encoded(y, classes)), classes)
    codes = np.searchsorted(classes, y)
    k = loss.n_scores(loss.encode(codes))
    if k != len(classes):
        raise ValueError(f"loss '{loss.name}' is given {k} classes, but the file has {len(classes)}")
    return Targets(loss, [codes], classes)


def _label_sets(y: Labels, loss: Loss, extras: Extras) -> Targets:
    if not isinstance(y, list) and y.ndim == 2:
        classes: Array = np.arange(y.shape[1])
    else:
        sets = y if isinstance(y, list) else [(label,) for label in single_labels(y).tolist()]
        classes = np.unique([label for labels in sets for label in labels])
    if len(classes) < 2:
        raise ValueError(f"there are {len(classes)} different labels; loss '{loss.name}' needs at least two")
    loss = _with_costs(loss, extras.costs, classes)
    Y = indicator(y, classes)
    sets = loss.encode(Y)
    k = loss.n_scores(sets)  # type: ignore[attr-defined]
    if k != len(classes):
        raise ValueError(f"loss '{loss.name}' is given {k} labels, but the file has {len(classes)}")
    check_order(sets)
    return Targets(loss, [Y], classes)


def indicator(y: Labels, classes: Array) -> npt.NDArray[np.float64]:
    """Return the matrix (m, k) with 1 for each label of a row; labels that are not among the classes are an error."""
    if not isinstance(y, list) and y.ndim == 2:
        if y.shape[1] != len(classes):
            raise ValueError(f"the label matrix has {y.shape[1]} columns; expected {len(classes)}, one for each label")
        return y.astype(np.float64)
    sets = y if isinstance(y, list) else [(label,) for label in single_labels(y).tolist()]
    place = {label: i for i, label in enumerate(classes.tolist())}
    Y = np.zeros((len(sets), len(classes)))
    for row, labels in enumerate(sets):
        for label in labels:
            if label not in place:
                raise ValueError(f"row {row} has the label {plain_label(label)}, which is not one of the model's")
            Y[row, place[label]] = 1.0
    return Y


def _nodes(y: Array, loss: Loss, extras: Extras) -> Targets:
    assert isinstance(loss, HierarchicalLoss)
    names = node_labels(y)
    if extras.hierarchy is not None:
        tree = read_tree(extras.hierarchy)
    elif y.dtype.kind != "U":
        raise ValueError("the labels are numbers, not paths such as a/b/c: give the tree of classes by --hierarchy")
    else:
        tree = Tree.from_paths(np.unique(names))
    try:
        nodes = nodes_of(tree, names)
    except ValueError as error:
        raise ValueError(f"{error}{'' if extras.hierarchy is None else f' {extras.hierarchy}'}") from None
    inner = not np.isin(nodes, tree.leaves()).all()
    loss = replace(loss, tree=tree, nodes="all" if inner else loss.nodes)  # type: ignore[type-var]
    classes = np.array(tree.names)[loss.classes()]
    return Targets(_with_costs(loss, extras.costs, classes), [nodes], classes)


def node_labels(y: Array) -> Array:
    """Return labels as names of nodes: text, whole numbers without a point."""
    return y if y.dtype.kind == "U" else np.array([str(plain_label(label)) for label in y.tolist()])


def number_rows(y: Labels) -> npt.NDArray[np.float64]:
    """Return the numbers (m, k) of all rows; comma lists of equal length are accepted."""
    if isinstance(y, list):
        sizes = [len(numbers) for numbers in y]
        if min(sizes) != max(sizes):
            raise ValueError(f"row {int(np.argmin(sizes))} has {min(sizes)} numbers, another one {max(sizes)}")
        return np.array(y, dtype=np.float64)
    return y if y.ndim == 2 else y.reshape(-1, 1)


def queries_of(data: Dataset) -> npt.NDArray[np.int64]:
    """Return the query of each row."""
    if data.groups is None:
        raise ValueError("the rows have no queries: expected qid:NUMBER after the label, or groups in .npz")
    return data.groups


def _with_costs(loss: Loss, path: Path | None, classes: Array) -> Loss:
    """Return the loss with the cost matrix of a file, which has the order of the sorted labels."""
    if path is None:
        return loss
    if not isinstance(loss, MulticlassHinge | ScaledMulticlassHinge | MultilabelHinge | HierarchicalHinge):
        raise DataError(
            f"{path}: costs are for multiclass_hinge, scaled_multiclass_hinge, multilabel_hinge and "
            f"hierarchical_hinge, not for '{loss.name}'"
        )
    matrix = read_matrix(path)
    k = len(classes)
    if matrix.shape != (k, k):
        raise DataError(f"{path}: has shape {matrix.shape}; expected {k} x {k}, a row for each label in sorted order")
    places = np.searchsorted(np.sort(classes), classes)
    try:
        return replace(loss, delta=matrix[np.ix_(places, places)])  # type: ignore[arg-type]
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


def read_matrix(path: Path) -> npt.NDArray[np.float64]:
    """Read a matrix of numbers: .npy, or text with one row on each line."""
    if path.suffix.lower() == ".npy":
        matrix = load_array(path)
        if matrix.dtype.kind not in "biuf":
            raise DataError(f"{path}: has type {matrix.dtype}; expected numbers")
        return matrix.astype(np.float64)
    try:
        rows = [line.replace(",", " ").split() for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise DataError(f"{path}: not a text file ({error})") from error
    numbers: list[list[float]] = []
    for number, row in enumerate(rows, 1):
        try:
            found = [float(text) for text in row]
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}") from None
        if found and numbers and len(found) != len(numbers[0]):
            raise DataError(f"{path}, line {number}: {len(found)} numbers; expected {len(numbers[0])}")
        numbers += [found] if found else []
    if not numbers:
        raise DataError(f"{path}: has no numbers")
    return np.array(numbers)
