"""Sequences of tokens with attributes, one after the other in one matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _sparse as sparse

Tokens: TypeAlias = Any  # a float64 array or a csr_array, which share slices and abs


class Sequences:
    """n sequences with T tokens in all: what chain models read.

    Parameters
    ----------
    tokens : csr_array or array of shape (T, n_attributes)
    offsets : array of shape (n + 1,)
        Where each sequence begins, and T at last.
    pairs : csr_array or array of shape (T, n_pair_attributes), optional
        Attributes of the step that leads to each token from the one before; the first token of a sequence has none,
        what stands there is not read.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.structured import Sequences
    >>> sequences = Sequences.of([np.eye(2), np.ones((1, 2))])
    >>> len(sequences), sequences.tokens.shape, sequences.offsets
    (2, (3, 2), array([0, 2, 3]))
    """

    def __init__(self, tokens: Any, offsets: npt.ArrayLike, pairs: Any = None) -> None:
        self.tokens = _matrix(tokens, "tokens")
        self.pairs = None if pairs is None else _matrix(pairs, "pairs")
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        if self.offsets.ndim != 1 or self.offsets.size == 0 or self.offsets[0] != 0:
            raise ValueError("offsets must begin with 0")
        if self.offsets[-1] != self.tokens.shape[0]:
            raise ValueError(f"offsets end with {self.offsets[-1]}, but there are {self.tokens.shape[0]} tokens")
        if self.pairs is not None and self.pairs.shape[0] != self.tokens.shape[0]:
            raise ValueError(f"pairs has {self.pairs.shape[0]} rows, but there are {self.tokens.shape[0]} tokens")
        if len(self) == 0:
            raise ValueError("there are no sequences")
        empty = np.flatnonzero(np.diff(self.offsets) <= 0)
        if empty.size:
            raise ValueError(f"example {empty[0]}: the sequence is empty")
        for matrix, name in ((self.tokens, "tokens"), (self.pairs, "pairs")):
            if matrix is not None:
                self._require_finite(matrix, name)

    def _require_finite(self, matrix: Tokens, name: str) -> None:
        values = matrix.data if isinstance(matrix, sparse.csr_array) else matrix
        if np.isfinite(values).all():
            return
        if isinstance(matrix, sparse.csr_array):
            token = int(np.searchsorted(matrix.indptr, np.flatnonzero(~np.isfinite(values))[0], side="right")) - 1
        else:
            token = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        example = int(np.searchsorted(self.offsets, token, side="right")) - 1
        token -= int(self.offsets[example])
        raise ValueError(f"example {example}: {name} have a value that is not finite, at token {token}")

    @classmethod
    def of(cls, X: Any, n_attributes: int | None = None) -> Sequences:
        """Return sequences from a list of 2-d arrays or sparse matrices, one for each sequence, or `Sequences` as is.

        An item of the list may be a pair of them: attributes of the tokens, and of the steps between them.
        """
        sequences = X if isinstance(X, Sequences) else cls._gathered(list(X))
        n = sequences.tokens.shape[1]
        if n_attributes is not None and n != n_attributes:
            raise ValueError(f"tokens have {n} attributes, expected {n_attributes}")
        return sequences

    @classmethod
    def _gathered(cls, items: list[Any]) -> Sequences:
        if not items:
            raise ValueError("there are no sequences")
        paired = isinstance(items[0], tuple)
        parts: list[list[Any]] = [[], []]
        for i, item in enumerate(items):
            if isinstance(item, tuple) is not paired or (paired and len(item) != 2):
                raise ValueError(f"example {i}: either all or no sequences come as (tokens, pairs)")
            for name, part, given in zip(("tokens", "pairs"), parts, item if paired else (item,)):
                part.append(_matrix(given, name, i))
                n, first = part[-1].shape[1], part[0].shape[1]
                if n != first:
                    raise ValueError(f"example {i}: {name} have {n} attributes, those of example 0 {first}")
            if paired and parts[0][-1].shape[0] != parts[1][-1].shape[0]:
                raise ValueError(f"example {i}: tokens and pairs have different numbers of rows")
        offsets = np.concatenate([[0], np.cumsum([part.shape[0] for part in parts[0]])])
        return cls(_stacked(parts[0]), offsets, _stacked(parts[1]) if paired else None)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, i: int) -> Any:
        i = range(len(self))[i]
        begin, end = self.offsets[i], self.offsets[i + 1]
        tokens = self.tokens[begin:end]
        return tokens if self.pairs is None else (tokens, self.pairs[begin:end])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


def _matrix(given: Any, name: str, example: int | None = None) -> Tokens:
    where = "" if example is None else f"example {example}: "
    if sparse.issparse(given):
        return sparse.csr_array(sparse.rows_of(given, f"{where}{name}"), dtype=np.float64)
    try:
        dense = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{where}{name} are no matrix of numbers") from None
    if dense.ndim != 2:
        if dense.size == 0:
            raise ValueError(f"{where}the sequence is empty")
        raise ValueError(f"{where}{name} must be a matrix with one row for each token, got shape {dense.shape}")
    return dense


def _stacked(parts: list[Tokens]) -> Tokens:
    if any(isinstance(part, sparse.csr_array) for part in parts):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(part) for part in parts], format="csr"))
    return np.concatenate(parts)
