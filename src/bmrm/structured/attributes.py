"""Attributes of tokens, by name: from dicts and lists of strings to the columns of a sparse matrix, and back."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from itertools import count, repeat
from numbers import Real
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt

from bmrm._cached import cached_property
from bmrm.structured.sequences import Sequences

Integers: TypeAlias = npt.NDArray[np.int64]

_UNKNOWN = -1
_LARGEST = 2**31 - 1
_SEPARATOR = ":"
_TEXT = frozenset({str, np.str_})


@dataclass(frozen=True, eq=False)
class Attributes:
    """Which column of a matrix stands for which attribute of a token.

    A token is a dict or a list. In a dict, a number is the attribute's value, True and False are 1 and 0, a text is a
    part of the name (``{"word": "the"}`` is ``{"word:the": 1}``), and a dict, a list or a set is a group with a common
    prefix (``{"next": {"word": "cat"}}`` is ``{"next:word:cat": 1}``). A list holds names, each with the value 1; text
    alone is one name. Values of 0 do not count, those of a name that comes twice are added. Tokens may also be the
    rows of arrays, which need no names.

    Parameters
    ----------
    n_attributes : int
        Number of columns.
    names : list of str, optional
        The name of each column; None for columns of arrays, and for hashed names.
    hashed : bool
        Whether a name's column is its hash modulo `n_attributes`.

    Examples
    --------
    >>> from bmrm.structured.attributes import Attributes
    >>> attributes, sequences = Attributes.learn([[{"word": "a", "length": 1}, ["last"]]])
    >>> attributes.names
    ['word:a', 'length', 'last']
    >>> attributes.encode([[{"word": "b", "length": 2}]]).tokens.toarray()
    array([[0., 2., 0.]])
    """

    n_attributes: int
    names: list[str] | None = None
    hashed: bool = False

    @classmethod
    def learn(cls, X: Any, hashing: int | None = None) -> tuple[Attributes, Sequences]:
        """Return the attributes that occur, in the order in which they do, and the sequences as matrices.

        Parameters
        ----------
        X : list of sequences
        hashing : int, optional
            Number of columns for hashed names; all names are remembered by default.
        """
        check_list(X)
        if _are_arrays(X):
            if hashing is not None:
                raise ValueError("hashing is for attributes with names, but the sequences are arrays")
            sequences = Sequences.of(X)
            return cls(int(sequences.tokens.shape[1])), sequences
        if hashing is not None:
            made = cls(_checked_size(hashing), hashed=True)
            return made, made.encode(X)
        places: defaultdict[str, int] = defaultdict(count().__next__)
        cells = _Cells.of(X, places.__getitem__)
        if not places:
            raise ValueError("no token has an attribute: there is nothing to learn from")
        made = cls(len(places), _checked_names(places))
        return made, cells.sequences(made)

    def encode(self, X: Any) -> Sequences:
        """Return the sequences as matrices; attributes that are not known are left out."""
        check_list(X)
        if self.names is None and not self.hashed:
            if not _are_arrays(X):
                raise ValueError(
                    f"the model was trained on arrays with {self.n_attributes} columns, but these are named attributes"
                )
            return Sequences.of(X, self.n_attributes)
        if _are_arrays(X):
            raise ValueError("the model was trained on named attributes, but these sequences are arrays")
        return _Cells.of(X, self._place).sequences(self)

    def name(self, column: int) -> str:
        """Return the name of a column; its number where there are no names."""
        return str(column) if self.names is None else self.names[column]

    def same_as(self, other: Any) -> bool:
        """Whether columns mean the same."""
        ours = (self.n_attributes, self.names, self.hashed)
        return isinstance(other, Attributes) and ours == (other.n_attributes, other.names, other.hashed)

    @property
    def _place(self) -> Callable[[str], int]:
        if self.hashed:
            size = self.n_attributes
            return lambda name: crc32(name.encode()) % size
        find = self._columns.get
        return lambda name: find(name, _UNKNOWN)

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {name: column for column, name in enumerate(self.names or ())}

    def __getstate__(self) -> dict[str, Any]:
        return {"n_attributes": self.n_attributes, "names": self.names, "hashed": self.hashed}


@dataclass(frozen=True)
class _Cells:
    """The entries of all tokens one after the other: columns and values, where tokens and where sequences end."""

    columns: Integers
    values: npt.NDArray[np.float64]
    ends: Integers
    offsets: Integers

    @classmethod
    def of(cls, X: Any, place: Callable[[str], int]) -> _Cells:
        columns, values = array("q"), array("d")
        ends, offsets = array("q", [0]), array("q", [0])
        for i, sequence in enumerate(X):
            _check_sequence(sequence, i)
            for t, token in enumerate(sequence):
                try:
                    _add(token, place, columns, values)
                except (TypeError, ValueError, AttributeError, OverflowError) as error:
                    raise ValueError(f"sequence {i}, token {t}: {error}") from None
                ends.append(len(columns))
            if len(ends) - 1 == offsets[-1]:
                raise ValueError(f"sequence {i} is empty")
            offsets.append(len(ends) - 1)
        whole = (np.frombuffer(numbers, dtype=np.int64) for numbers in (ends, offsets))
        return cls(np.array(columns, dtype=np.int64), np.array(values, dtype=np.float64), *whole)

    def sequences(self, attributes: Attributes) -> Sequences:
        from scipy.sparse import csr_array

        self._check_values(attributes)
        columns, values, ends = self.columns, self.values, self.ends
        known = columns != _UNKNOWN
        if not known.all():
            ends = np.concatenate([[0], np.cumsum(known)])[ends]
            columns, values = columns[known], values[known]
        kind = np.int32 if max(attributes.n_attributes, len(columns)) <= _LARGEST else np.int64
        shape = (len(ends) - 1, attributes.n_attributes)
        tokens = csr_array((values, columns.astype(kind), ends.astype(kind)), shape=shape)
        tokens.sum_duplicates()
        return Sequences(tokens, self.offsets)

    def _check_values(self, attributes: Attributes) -> None:
        bad = np.flatnonzero(~np.isfinite(self.values))
        if not bad.size:
            return
        cell = int(bad[0])
        token = int(np.searchsorted(self.ends, cell, side="right")) - 1
        i = int(np.searchsorted(self.offsets, token, side="right")) - 1
        column = int(self.columns[cell])
        which = f"attribute {attributes.name(column)!r}" if attributes.names and column >= 0 else "an attribute"
        raise ValueError(
            f"sequence {i}, token {token - int(self.offsets[i])}: {which} is {self.values[cell]}; "
            f"NaN and infinity are not accepted"
        )


def _add(token: Any, place: Callable[[str], int], columns: array[int], values: array[float]) -> None:
    """Append the attributes of one token."""
    kind = type(token)
    if kind is dict:
        for name, value in token.items():
            kind = type(value)
            if kind is str:
                columns.append(place(f"{name}{_SEPARATOR}{value}"))
                values.append(1.0)
            elif kind is bool or kind is int or kind is float:
                if value:
                    columns.append(place(name))
                    values.append(value)
            else:
                for full, number in _parts(name, value):
                    columns.append(place(full))
                    values.append(number)
    elif kind is list or kind is tuple:
        if not _TEXT.issuperset(map(type, token)):
            wrong = next(name for name in token if type(name) not in _TEXT)
            raise ValueError(f"attribute {wrong!r} is no text; numbers come as dicts {{name: number}} or as arrays")
        columns.extend(map(place, token))
        values.extend(repeat(1.0, len(token)))
    else:
        for full, number in _of_token(token):
            columns.append(place(full))
            values.append(number)


def _of_token(token: Any) -> Iterator[tuple[str, float]]:
    """Return names and values of a token that is neither a plain dict nor a list."""
    if isinstance(token, Mapping):
        for name, value in token.items():
            yield from _parts(name, value)
    elif isinstance(token, str):
        yield token, 1.0
    elif isinstance(token, (set, frozenset)):
        yield from ((name, 1.0) for name in sorted(token))
    else:
        raise ValueError(f"a token is a dict or a list of attributes, not {type(token).__name__}")


def _parts(name: Any, value: Any) -> Iterator[tuple[str, float]]:
    """Return the names and values that one entry of a dict stands for."""
    if not isinstance(name, str):
        raise ValueError(f"the name of an attribute must be text, got {name!r}")
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, str):
        yield f"{name}{_SEPARATOR}{value}", 1.0
    elif isinstance(value, Mapping):
        for inner, item in value.items():
            yield from _parts(f"{name}{_SEPARATOR}{inner}", item)
    elif isinstance(value, (list, tuple, set, frozenset)):
        # The order of a set differs from run to run, and with it would the columns.
        for inner in sorted(value) if isinstance(value, (set, frozenset)) else value:
            yield f"{name}{_SEPARATOR}{inner}", 1.0
    elif isinstance(value, (Real, np.bool_)):
        if value:
            yield name, float(value)
    else:
        raise ValueError(f"attribute {name!r} is {value!r}; expected a number, text, True or False, a dict or a list")


def check_list(X: Any) -> None:
    """Raise unless X is a list of sequences, or something like it, that is not empty."""
    if isinstance(X, (str, bytes, Mapping)) or not (isinstance(X, Sized) and isinstance(X, Iterable)):
        raise ValueError(f"expected a list of sequences, got {type(X).__name__}")
    if len(X) == 0:
        raise ValueError("there are no sequences")


def _check_sequence(sequence: Any, i: int) -> None:
    if isinstance(sequence, (str, bytes, Mapping)) or not isinstance(sequence, Iterable):
        raise ValueError(f"sequence {i} is {type(sequence).__name__}; expected a list of tokens")
    if hasattr(sequence, "shape"):
        raise ValueError(f"sequence {i} is an array, but others are lists of named attributes")


def _are_arrays(X: Any) -> bool:
    if isinstance(X, Sequences) or hasattr(X[0], "shape"):
        return True
    return isinstance(X[0], tuple) and len(X[0]) == 2 and hasattr(X[0][0], "shape")  # attributes of tokens and steps


def _checked_size(hashing: Any) -> int:
    if not isinstance(hashing, (int, np.integer)) or isinstance(hashing, bool) or not 1 <= hashing <= _LARGEST:
        raise ValueError(f"hashing must be a number of columns from 1 to 2^31 - 1, got {hashing!r}")
    return int(hashing)


def _checked_names(places: Iterable[Any]) -> list[str]:
    for name in places:
        if not isinstance(name, str):
            raise ValueError(f"the name of an attribute must be text, got {name!r}")
    return [str(name) for name in places]
