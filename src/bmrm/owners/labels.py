"""Labels of an owner's rows as targets: classes, sets of labels, nodes of a tree, several numbers for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm.losses import Tree
from bmrm.losses.tree import nodes_of
from bmrm.owners.guard import Refused

Array = npt.NDArray[Any]

MOST_SCORES = 1000  # for each row: what a coordinator may make an owner compute, 8 kB a row
_ROWS_FOR_A_LABEL = 5  # on the average, else labels are not classes


def names_told(y: Any) -> list[Any]:
    """Return the different labels where they are classes, or labels of sets; raise Refused where they are many.

    Examples
    --------
    >>> from bmrm.owners.labels import names_told
    >>> names_told([("a",), ("a", "b"), (), ("b",)] * 3)
    ['a', 'b']
    """
    if y is None:
        raise Refused("this owner has no labels")
    if not isinstance(y, list) and y.ndim == 2:
        if not np.isin(y, (0, 1)).all():
            raise Refused("this owner has numbers for each row, no labels")
        labels = np.arange(y.shape[1])
    else:
        labels = np.array([label for own in y for label in own]) if isinstance(y, list) else _plain(y)
    labels = np.unique(labels)
    whole = labels.dtype.kind != "f" or bool((labels == np.round(labels)).all())
    if not whole or len(labels) > min(MOST_SCORES, len(y) // _ROWS_FOR_A_LABEL):
        raise Refused(f"this owner's labels are no classes: {len(labels)} different ones in {len(y)} rows")
    found: list[Any] = labels.tolist()
    return found


def codes(y: Any, labels: Sequence[Any]) -> npt.NDArray[np.intp]:
    """Return the place of each row's label among the labels of the run."""
    distinct, inverse = np.unique(_plain(y), return_inverse=True)
    return _places(distinct.tolist(), labels)[inverse]


def indicator(y: Any, labels: Sequence[Any]) -> npt.NDArray[np.float64]:
    """Return the matrix (m, k) that says which row has which of k labels.

    A matrix of zeros and ones has a column for each label: for those of the run, or for the numbers 0, 1, ...

    Examples
    --------
    >>> from bmrm.owners.labels import indicator
    >>> indicator([("b",), ()], ["a", "b"]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    k = len(labels)
    if not isinstance(y, list) and y.ndim == 2:
        numbered = list(labels) == list(range(k))
        if y.shape[1] != k and not (numbered and y.shape[1] < k):
            raise Refused(f"this owner's matrix of labels has {y.shape[1]} columns, but the run {k} labels")
        return np.pad(np.asarray(y, dtype=np.float64), ((0, 0), (0, k - y.shape[1])))
    sets = y if isinstance(y, list) else [(label,) for label in _plain(y).tolist()]
    distinct = sorted({label for own in sets for label in own})
    column = dict(zip(distinct, _places(distinct, labels).tolist()))
    Y = np.zeros((len(sets), k))
    for row, own in enumerate(sets):
        Y[row, [column[label] for label in own]] = 1.0
    return Y


def node_names(labels: Array) -> Array:
    """Return labels as names of nodes: text, or whole numbers without a point.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.owners.labels import node_names
    >>> node_names(np.array([3.0, 1.0])).tolist()
    ['3', '1']
    """
    labels = _plain(labels)
    if labels.dtype.kind == "f" and (labels == np.round(labels)).all():
        labels = labels.astype(np.int64)
    return labels.astype(str)


def nodes(y: Any, tree: Tree) -> npt.NDArray[np.int64]:
    """Return the node of each row, whose label is the name of one."""
    try:
        return nodes_of(tree, node_names(single(y)))
    except ValueError:  # it quotes the label of a row
        raise Refused(f"this owner has labels that are not among the {tree.n_nodes} nodes of the hierarchy") from None


def numbers(y: Any, k: int) -> npt.NDArray[np.float64]:
    """Return k numbers for each row."""
    own = n_numbers(y)
    if own != k:
        raise Refused(f"this owner's rows have {own or 'different'} numbers to predict, those of the run {k}")
    return np.array(y, dtype=np.float64).reshape(-1, k)


def n_numbers(y: Any) -> int:
    """Return how many numbers each row has, 0 where their number differs or there are none.

    Examples
    --------
    >>> from bmrm.owners.labels import n_numbers
    >>> n_numbers([(1.0, 2.0), (3.0, 4.0)]), n_numbers([(1.0,), ()]), n_numbers(None)
    (2, 0, 0)
    """
    if y is None:
        return 0
    if isinstance(y, list):
        sizes = {len(own) for own in y}
        return sizes.pop() if len(sizes) == 1 else 0
    return 1 if y.ndim == 1 else int(y.shape[1])


def single(y: Any) -> Array:
    """Return labels that are one for each row; raise Refused if they are not."""
    if isinstance(y, list) or y.ndim != 1:
        raise Refused("this owner has several labels for a row")
    return _plain(y)


def _plain(y: Array) -> Array:
    return y.astype(str) if y.dtype.kind in "SO" else y


def _places(own: list[Any], labels: Sequence[Any]) -> npt.NDArray[np.intp]:
    place = {label: k for k, label in enumerate(labels)}
    if any(label not in place for label in own):
        raise Refused(f"this owner has labels that are not among the {len(place)} classes of the run")
    return np.array([place[label] for label in own], dtype=np.intp)
