"""What takes the place of X where the rows are not in this process's memory: on disk, or on other machines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bmrm._errors import DataError
from bmrm.data.dataset import Dataset, Labels


class Elsewhere(ABC):
    """Rows that can be multiplied with, but not taken out; what belongs to them (labels, weights) is at hand."""

    ndim = 2

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""

    @property
    @abstractmethod
    def matrix(self) -> Any:
        """The rows as the products see them."""

    @property
    @abstractmethod
    def source(self) -> str:
        """Where the rows are, for messages."""

    @property
    @abstractmethod
    def y(self) -> Labels | None:
        """The targets, or None; sets of labels are a list of tuples."""

    @property
    @abstractmethod
    def groups(self) -> NDArray[np.int64] | None:
        """The query of each row, or None."""

    @property
    @abstractmethod
    def weight(self) -> NDArray[np.float64] | None:
        """The weight of each row, or None."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The name of each column, or None."""
        return None

    @property
    def zero_based(self) -> bool | None:
        """Whether indices of svmlight text count from 0, where the rows come from such text."""
        return None

    def dataset(self) -> Dataset:
        """Return the rows as X, with what belongs to them."""
        X: Any = self
        return Dataset(X, self.y, self.groups, self.weight, self.zero_based, self.feature_names)

    def __getitem__(self, rows: Any) -> NoReturn:
        raise DataError(f"{self.source}: single rows cannot be taken out of a {type(self).__name__}")
