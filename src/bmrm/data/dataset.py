"""The arrays of one data file, kept together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bmrm._errors import DataError
from bmrm.data.columns import array_of, is_frame, names_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Matrix: TypeAlias = "NDArray[Any] | csr_array[Any]"
Labels: TypeAlias = NDArray[Any] | list[tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples and what belongs to each of them.

    Parameters
    ----------
    X : ndarray or scipy.sparse.csr_array of shape (n_examples, n_features)
        One row per example. A data frame (pandas, polars, Arrow) becomes an array and its columns `feature_names`.
    y : ndarray of shape (n_examples,), list of tuples of float, or None
        The labels; with several labels per example, a list with one tuple each (which may be empty).
    groups : ndarray of int64 of shape (n_examples,), or None
        Which query each example belongs to.
    weight : ndarray of shape (n_examples,), or None
        How much each example counts.
    zero_based : bool, or None
        For data from svmlight text: whether its indices count from 0. A second file must be read the same way.
    feature_names : sequence of str, or None
        The name of each column of X.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.data import Dataset
    >>> Dataset(X=np.eye(2), y=np.array([1.0, -1.0])).n_examples
    2
    """

    X: Matrix
    y: Labels | None = None
    groups: NDArray[np.int64] | None = None
    weight: NDArray[np.float64] | None = None
    zero_based: bool | None = None
    feature_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        names = names_of(self.X) if self.feature_names is None else tuple(self.feature_names)
        object.__setattr__(self, "feature_names", names)
        if is_frame(self.X):
            object.__setattr__(self, "X", array_of(self.X))
        if self.X.ndim != 2:
            raise DataError(f"X has {self.X.ndim} dimensions; expected 2, one row per example")
        for name, column in (("y", self.y), ("groups", self.groups), ("weight", self.weight)):
            if column is not None and len(column) != self.n_examples:
                raise DataError(f"{name} has length {len(column)}, but X has {self.n_examples} rows")
        if names is not None and len(names) != self.X.shape[1]:
            raise DataError(f"feature_names has length {len(names)}, but X has {self.X.shape[1]} columns")

    @property
    def n_examples(self) -> int:
        """The number of rows of X."""
        return int(self.X.shape[0])


def label_sets(labels: NDArray[Any], ends: NDArray[Any]) -> list[tuple[float, ...]]:
    """Cut the labels of all examples, one after the other, where each example's labels end."""
    flat: list[float] = labels.tolist()
    stops: list[int] = ends.tolist()
    return [tuple(flat[start:stop]) for start, stop in zip([0, *stops[:-1]], stops)]
