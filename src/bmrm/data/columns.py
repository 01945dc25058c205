"""Names of columns: which of a source's columns are features, in which order, and what takes them out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm._errors import DataError

Names = tuple[str, ...]

_SHOWN = 5


@dataclass
class Columns:
    """The features by name, in their order: given, or those of the first source that has names.

    Parameters
    ----------
    names : sequence of str, optional
        The features. Where they are given, other columns are left out; else sources must agree about all columns.
    drop : sequence of str
        Columns that are no features, where they are there.

    Attributes
    ----------
    ignored : dict
        The columns that were left out of each source, but for those of `drop`.

    Examples
    --------
    >>> from bmrm.data.columns import Columns
    >>> Columns(["a", "b"]).of(["b", "c", "a"], "more.csv")
    ('a', 'b')
    """

    names: Names | None = None
    drop: Sequence[str] = ()
    ignored: dict[str, Names] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._given = self.names is not None
        self.names = None if self.names is None else tuple(self.names)

    def of(self, own: Sequence[str], origin: str) -> Names:
        """Return the features of a source, in order; raise if it lacks one, or has others where none are given."""
        if self.names is None:
            self.names = tuple(name for name in own if name not in self.drop)
        check_once(self.names, own, origin)
        others = differences(self.names, [name for name in own if name not in self.drop], origin)
        if others and not self._given:
            raise DataError(
                f"{origin}: has the column {others[0]!r}{_more(others)}, which others lack; expected {few(self.names)}"
            )
        if others:
            self.ignored[origin] = others
        return self.names

    @property
    def given(self) -> bool:
        """Whether the features were named from the start."""
        return self._given

    def remarks(self) -> Names:
        """Return a line for each source that columns were left out of."""
        return tuple(ignored_line(origin, others) for origin, others in self.ignored.items())


def differences(wanted: Sequence[str], own: Sequence[str], origin: str) -> Names:
    """Return the names that are not wanted; raise if a wanted one is absent."""
    there, known = set(own), set(wanted)
    absent = [name for name in wanted if name not in there]
    if absent:
        raise DataError(f"{origin}: has no column {absent[0]!r}{_more(absent)}; expected {few(wanted)}")
    return tuple(name for name in own if name not in known)


def check_once(wanted: Sequence[str], own: Sequence[str], origin: str) -> None:
    """Raise if a wanted name stands for several columns."""
    if len(set(own)) < len(own):
        seen: set[str] = set()
        for name in own:
            if name in seen and name in wanted:
                raise DataError(f"{origin}: has two columns {name!r}; expected a name of its own for each")
            seen.add(name)


def places_of(wanted: Sequence[str], own: Sequence[str]) -> NDArray[np.intp]:
    """Return where the wanted columns are among those there."""
    place = {name: k for k, name in enumerate(own)}
    return np.array([place[name] for name in wanted], dtype=np.intp)


def ignored_line(origin: str, others: Sequence[str]) -> str:
    """Return what is said about columns that are left out."""
    return f"{origin}: ignored {len(others)} columns that are no features: {few(others)}"


def few(names: Sequence[str]) -> str:
    """Return the first names, for messages."""
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _more(names: Sequence[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def names_of(X: Any) -> Names | None:
    """Return the names of the columns of a data frame, a table or a store; None where there are none.

    Names are text: a frame that numbers its columns has none.

    Examples
    --------
    >>> import pandas as pd
    >>> from bmrm.data.columns import names_of
    >>> names_of(pd.DataFrame({"age": [3], "size": [1.5]}))
    ('age', 'size')
    """
    kind = type(X)  # a data frame answers to the names of its columns, its type does not
    name = next((name for name in ("feature_names", "column_names", "columns") if hasattr(kind, name)), None)
    found = None if name is None else getattr(X, name)
    listed = () if found is None else tuple(found)
    return tuple(map(str, listed)) if listed and all(isinstance(name, str) for name in listed) else None


def is_frame(X: Any) -> bool:
    """Whether X is a table that columns can be taken out of by name."""
    return hasattr(type(X), "columns") and (hasattr(type(X), "select") or hasattr(type(X), "loc"))


def aligned(X: Any, coef: NDArray[Any], names: Names | None) -> tuple[Any, NDArray[Any]]:
    """Return X and the rows of coefficients with the columns of both in one order, where both have names.

    Data frames are put in the order of the names. Of other X, whose columns cannot be taken out, the coefficients are:
    those of columns that are left out are 0. A column that X lacks raises DataError.
    """
    own = names_of(X)
    if names is None or own is None or own == names:
        return X, coef
    origin = getattr(X, "source", "X") if not is_frame(X) else "X"
    check_once(names, own, origin)
    others = differences(names, own, origin)
    if others:
        warnings.warn(ignored_line(origin, others), UserWarning, stacklevel=4)
    if is_frame(X):
        return array_of(X, names), coef
    whole = np.zeros((len(coef), len(own)))
    whole[:, places_of(names, own)] = coef
    return X, whole


def array_of(X: Any, names: Sequence[str] | None = None) -> NDArray[Any]:
    """Return the columns of a data frame or a table as an array: all of them, or those named."""
    if names is not None:
        X = X.select(list(names)) if hasattr(type(X), "select") else X.loc[:, list(names)]
    array = np.asarray(X)
    if array.dtype.kind != "O":
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        wrong = next((name for name, column in zip(X.columns, array.T) if not _are_numbers(column)), "")
        raise DataError(f"X: column {wrong!r} has other than numbers ({error})") from None


def _are_numbers(column: NDArray[Any]) -> bool:
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True
