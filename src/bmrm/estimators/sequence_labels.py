"""Labels of sequences: a list for each of them, and their codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def label_lists(y: Any, n: int, lengths: Sequence[int] | None = None) -> list[list[Any]]:
    """Return the labels of n sequences as lists; what is no list of lists raises an error with the sequence's number.

    Parameters
    ----------
    y : list of lists, tuples or arrays
    n : int
        Number of sequences.
    lengths : sequence of int, optional
        Number of tokens of each.
    """
    if isinstance(y, (str, bytes, Mapping)) or not hasattr(y, "__len__"):
        raise ValueError(f"y must be a list with a list of labels for each sequence, got {type(y).__name__}")
    if len(y) != n:
        raise ValueError(f"X has {n} sequences and y has {len(y)}")
    lists = []
    for i, labels in enumerate(y):
        if isinstance(labels, np.ndarray) and labels.ndim == 1:
            labels = labels.tolist()
        if not isinstance(labels, (list, tuple)):
            raise ValueError(f"sequence {i}: its labels are {labels!r}; expected a list with one label for each token")
        if lengths is not None and len(labels) != lengths[i]:
            raise ValueError(f"sequence {i}: X has {lengths[i]} tokens and y has {len(labels)} labels")
        lists.append(list(labels))
    return lists


def label_codes(lists: list[list[Any]], lengths: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the sorted labels, and the codes of all tokens one after the other.

    Parameters
    ----------
    lists : list of lists of labels
    lengths : array of int
        Number of tokens of each sequence.
    """
    label_lists(lists, len(lengths), lengths.tolist())
    flat = [label for labels in lists for label in labels]
    try:
        names = sorted(set(flat))
    except TypeError as error:
        raise ValueError(f"labels must be numbers, or text: {error}") from None
    if any(name != name for name in names):
        raise ValueError("a label is NaN")
    if len(names) < 2:
        raise ValueError(f"y has one label only, {names[0]!r}; a labeler needs at least two")
    place = {name: code for code, name in enumerate(names)}
    classes = np.array(names)
    if classes.ndim != 1 or classes.dtype.kind not in "biufU":
        raise ValueError(f"labels must be numbers, or text, not {type(names[0]).__name__}")
    return classes, np.array([place[label] for label in flat], dtype=np.int64)
