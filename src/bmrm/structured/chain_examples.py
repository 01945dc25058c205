"""Sequences and their labels as the compiled chain kernels read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm import _sparse as sparse
from bmrm.structured.base import Array, Indices
from bmrm.structured.sequences import Sequences, Tokens

Labels = npt.NDArray[np.int32]

_LANES = 4  # labels are padded to a multiple of it


class ChainExamples:
    """Encoded sequences: tokens by their attributes, the weights these have, steps by theirs, and labels.

    Parameters
    ----------
    sequences : Sequences
    y : array of int32 (T,), optional
    k : int
        Number of labels.
    starts, labels : array, optional
        The weights of each attribute and the labels they are for; None for all labels.
    n_pairs : int
        Attributes of steps.
    """

    def __init__(
        self,
        sequences: Sequences,
        y: Labels | None,
        k: int,
        starts: Indices,
        labels: Labels | None,
        n_pairs: int,
    ) -> None:
        self.sequences, self.y, self.k = sequences, y, k
        self.starts, self.row = sequences.offsets, _LANES * -(-k // _LANES)
        self.n_tokens = int(self.starts[-1])
        self._pattern = starts, labels
        self._rows = [(_entries(sequences.tokens), sequences.tokens.shape[1])]
        self.check_again()
        self.emissions = self._emissions(self._rows[0][0])
        self.n_pairs, self.edges = n_pairs, None
        if n_pairs:
            self._rows.append((_entries(self._steps()), n_pairs))
            self.check_again()
            self.edges = _core.chain_edges(*self._rows[1][0], n_pairs, k)
        self.buffers = _core.Buffers(self.n_scores)

    def _emissions(self, rows: tuple[Indices, Labels, Array | None]) -> Any:
        return _core.chain_emissions(*rows, *self._pattern, self.k)

    def check_again(self) -> None:
        """Raise ValueError if an attribute left its range since it was checked: the arrays may be the caller's."""
        for (pointers, indices, _), size in self._rows:
            _, at, wrong = _core.check_indices(pointers, indices, size)
            if at >= 0:
                raise ValueError(f"token {at} has attribute {wrong}; it must lie between 0 and {size - 1}")

    def _steps(self) -> Tokens:
        """Return the attributes of steps: without the rows of first tokens, which no step leads to."""
        assert self.sequences.pairs is not None
        is_step = np.ones(self.n_tokens, dtype=bool)
        is_step[self.starts[:-1]] = False
        steps: Tokens = self.sequences.pairs[is_step]
        return steps

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def n_scores(self) -> int:
        """How many numbers the scores of tokens, transitions, start, end and steps are."""
        return int(self.parts["pairs"].stop)

    @property
    def parts(self) -> dict[str, slice]:
        """Where those are in the flat array of scores."""
        sizes = {
            "emissions": self.n_tokens * self.row,
            "transitions": self.k * self.row,
            "start": self.row,
            "end": self.row,
            "pairs": (self.n_tokens - len(self)) * self.k * self.row if self.n_pairs else 0,
        }
        ends = np.cumsum(list(sizes.values())).tolist()
        return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends)}

    def of_sizes(self) -> tuple[Any, Any]:
        """Return emissions and edges with the sizes of their values instead of the values."""
        sequences = self.sequences
        edges = _core.chain_edges(*_entries(abs(self._steps())), self.n_pairs, self.k) if self.n_pairs else None
        return self._emissions(_entries(abs(sequences.tokens))), edges

    def split(self, flat: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Return one array for each sequence."""
        return np.split(flat, self.starts[1:-1])


def _entries(matrix: Tokens) -> tuple[Indices, Labels, Array | None]:
    """Return compressed rows, without values where all are 1."""
    rows = matrix if isinstance(matrix, sparse.csr_array) else sparse.csr_array(matrix)
    if rows.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"there are {rows.shape[1]} attributes, more than {np.iinfo(np.int32).max}")
    values = np.ascontiguousarray(rows.data, dtype=np.float64)
    ones = bool((values == 1.0).all())
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32, copy=False), None if ones else values


def flat_labels(Y: Sequence[Any] | npt.ArrayLike, sequences: Sequences, k: int) -> Labels:
    """Return the labels of all tokens, from a list with one array for each sequence or from one flat array."""
    lengths = np.diff(sequences.offsets)
    if isinstance(Y, np.ndarray) and Y.ndim == 1 and Y.dtype != object:
        flat = Y
        if flat.size != sequences.offsets[-1]:
            raise ValueError(f"X has {sequences.offsets[-1]} tokens and y has {flat.size} labels")
    else:
        items = [np.asarray(item) for item in Y]  # type: ignore[union-attr]
        if len(items) != len(sequences):
            raise ValueError(f"X has {len(sequences)} examples and y has {len(items)}")
        for i, (item, length) in enumerate(zip(items, lengths)):
            if item.shape != (length,):
                raise ValueError(f"example {i}: x has {length} tokens and y has labels of shape {item.shape}")
        flat = np.concatenate(items)
    if flat.dtype.kind not in "iu":
        raise ValueError(f"labels must be integers from 0 to {k - 1}, got {flat.dtype}")
    bad = np.flatnonzero((flat < 0) | (flat >= k))
    if bad.size:
        i = int(np.searchsorted(sequences.offsets, bad[0], side="right")) - 1
        raise ValueError(f"example {i}: label {flat[bad[0]]} lies outside of 0 to {k - 1}")
    return np.ascontiguousarray(flat, dtype=np.int32)
