"""Which weights a chain has, and where w holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm import _sparse as sparse
from bmrm._limits import check_length
from bmrm.structured.base import Array, Indices
from bmrm.structured.sequences import Sequences, Tokens

Labels = npt.NDArray[np.int32]


class ChainWeights:
    """w = [emissions | transitions | start | end | pair attributes x k x k].

    Parameters
    ----------
    n_labels, n_attributes : int
    emissions : tuple of arrays (indptr, labels), optional
        Compressed rows; by default every attribute has all labels.
    transitions : bool array (k, k), optional
    start_end : bool
    pair_attributes : int

    Attributes
    ----------
    starts : array (n_attributes + 1,)
        Where the weights of each attribute begin.
    labels : array, optional
        The label of each emission weight; None where every attribute has all.
    transitions : bool array (k, k)
    blocks : dict
    dim : int
    """

    def __init__(
        self,
        n_labels: int,
        n_attributes: int,
        emissions: tuple[npt.ArrayLike, npt.ArrayLike] | None,
        transitions: npt.ArrayLike | None,
        start_end: bool,
        pair_attributes: int,
    ) -> None:
        for name, value, least in (
            ("n_labels", n_labels, 1), ("n_attributes", n_attributes, 1), ("pair_attributes", pair_attributes, 0),
        ):  # fmt: skip
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        pairs = n_labels * n_labels * (1 + pair_attributes)
        given = 0 if emissions is not None else n_labels * n_attributes
        check_length(given + pairs, f"a chain of {n_labels} labels and {n_attributes} attributes")
        self.k, self.n_attributes, self.start_end = n_labels, n_attributes, start_end
        self.starts, self.labels = self._pattern(emissions)
        k = n_labels
        self.transitions = np.ones((k, k), dtype=bool) if transitions is None else np.asarray(transitions)
        if self.transitions.shape != (k, k) or self.transitions.dtype != bool:
            raise ValueError(f"transitions must be a table of {k} x {k} true and false")
        sizes = {
            "emissions": int(self.starts[-1]),
            "transitions": int(self.transitions.sum()),
            "start": k if start_end else 0,
            "end": k if start_end else 0,
            "pairs": pair_attributes * k * k,
        }
        ends = np.cumsum(list(sizes.values())).tolist()
        self.blocks = {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends)}
        self.dim = int(ends[-1])
        if self.dim == 0:
            raise ValueError("the model has no weights")

    def _pattern(self, emissions: tuple[npt.ArrayLike, npt.ArrayLike] | None) -> tuple[Indices, Labels | None]:
        n, k = self.n_attributes, self.k
        if emissions is None:
            return np.arange(n + 1, dtype=np.int64) * k, None
        starts = np.ascontiguousarray(emissions[0], dtype=np.int64)
        labels = np.ascontiguousarray(emissions[1], dtype=np.int32)
        if starts.shape != (n + 1,) or starts[0] != 0 or starts[-1] != labels.size or (np.diff(starts) < 0).any():
            raise ValueError(f"emissions must be (indptr, labels), with an indptr of {n + 1} that rises from 0")
        if labels.size and not 0 <= labels.min() <= labels.max() < k:
            raise ValueError(f"emissions have label {labels.max()}, but labels are 0 to {k - 1}")
        keys = np.repeat(np.arange(n), np.diff(starts)) * k + labels
        if (np.diff(keys) <= 0).any():
            raise ValueError("the labels of an attribute in emissions must increase")
        return starts, labels

    def emission_pairs(self) -> tuple[Indices, Indices]:
        """Return attribute and label of each emission weight."""
        attributes = np.repeat(np.arange(self.n_attributes), np.diff(self.starts))
        if self.labels is None:
            return attributes, np.tile(np.arange(self.k), self.n_attributes)
        return attributes, self.labels.astype(np.int64)

    def spread(self, w: Array, out: Array, row: int) -> None:
        """Put the weights of transitions, start and end into padded tables, one below the other."""
        k, table = self.k, out.reshape(-1, row)
        table[:] = 0.0
        table[:k, :k][self.transitions] = w[self.blocks["transitions"]]
        if self.start_end:
            table[k, :k], table[k + 1, :k] = w[self.blocks["start"]], w[self.blocks["end"]]

    def gather(self, slopes: Array, row: int, out: Array) -> None:
        """Take them out of such tables."""
        k, table = self.k, slopes.reshape(-1, row)
        out[self.blocks["transitions"]] = table[:k, :k][self.transitions]
        if self.start_end:
            out[self.blocks["start"]], out[self.blocks["end"]] = table[k, :k], table[k + 1, :k]

    def joint_feature(self, sequence: Sequences, y: Labels) -> tuple[Indices, Array]:
        """Return the features of one sequence with labels y, as indices and values."""
        parts = [self._emitted(sequence.tokens, y)]
        ids = np.full((self.k, self.k), -1, dtype=np.int64)
        ids[self.transitions] = np.arange(self.blocks["transitions"].start, self.blocks["transitions"].stop)
        steps = ids[y[:-1], y[1:]]
        ones = [steps[steps >= 0]]
        if self.start_end:
            ones.append(np.array([self.blocks["start"].start + y[0], self.blocks["end"].start + y[-1]], dtype=np.int64))
        parts += [(indices, np.ones(indices.size)) for indices in ones]
        if sequence.pairs is not None:
            pair = y[:-1].astype(np.int64) * self.k + y[1:]
            tokens, attributes, values = _triples(sequence.pairs[1:])
            indices = self.blocks["pairs"].start + attributes * self.k**2 + pair[tokens]
            parts.append((indices, values))
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _emitted(self, rows: Tokens, y: Labels) -> tuple[Indices, Array]:
        tokens, attributes, values = _triples(rows)
        if self.labels is None:
            return attributes * self.k + y[tokens], values
        pairs = self.emission_pairs()
        keys, wanted = pairs[0] * self.k + pairs[1], attributes * self.k + y[tokens]
        at = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
        known = keys[at] == wanted if keys.size else np.zeros(wanted.size, dtype=bool)
        return at[known], values[known]


def _triples(rows: Any) -> tuple[Indices, Indices, Array]:
    """Return row, column and value of the entries that are not 0."""
    entries = sparse.coo_array(rows)
    row, column = (each.astype(np.int64) for each in entries.coords)
    return row, column, entries.data


def checked_costs(costs: npt.ArrayLike | None, k: int) -> Array:
    """Return what predicting a label for another costs, the true label by rows."""
    off = 1.0 - np.eye(k)
    if costs is None:
        return off
    given = np.asarray(costs, dtype=np.float64)
    if given.shape not in ((k,), (k, k)):
        raise ValueError(f"costs must be {k} numbers or a {k} x {k} matrix, got shape {given.shape}")
    if not (np.isfinite(given).all() and (given >= 0.0).all()):
        raise ValueError("costs must be finite and at least 0")
    if given.shape == (k,):
        return off * given[:, None]
    if np.diagonal(given).any():
        raise ValueError("costs must be 0 for right labels: the diagonal of the matrix")
    return np.ascontiguousarray(given)
