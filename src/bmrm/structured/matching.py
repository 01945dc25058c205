"""Matchings of two sets of nodes, one to one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from bmrm.structured.base import Array, Examples, Feature, Indices, StructuredModel
from bmrm.structured.inputs import each


class MatchingModel(StructuredModel, name="matching"):
    """Permutations y that match node i of one graph with node y_i of another, scored by sum_i <w, x[i, y_i]>.

    An input x is an array (n, n, n_features): what is known of each pair of nodes, such as how their descriptions
    differ. n may differ between examples. The cost of an output is the share of nodes that are matched wrongly. The
    best one is found by assignment in O(n^3); the sum over all permutations is a permanent, which nobody can compute:
    the model has no `log_partition`.

    Parameters
    ----------
    n_features : int

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> model = bmrm.MatchingModel(n_features=1)
    >>> a, b = np.array([0.0, 1.0, 5.0]), np.array([4.0, 0.2, 1.1])
    >>> x = -np.abs(a[:, None] - b)[:, :, None]
    >>> model.argmax(x, np.array([1.0]))
    array([1, 2, 0])

    References
    ----------
    Caetano, McAuley, Cheng, Le and Smola, Learning graph matching (2009).
    """

    def __init__(self, n_features: int) -> None:
        if n_features < 1:
            raise ValueError(f"parameter 'n_features' must be at least 1, got {n_features}")
        self.n_features = self.dim = n_features

    def encode(self, X: Sequence[Any], Y: Sequence[Any] | None = None) -> Examples:
        """Check the examples."""
        return Examples(self, each(X, self._input), Y)

    def _input(self, x: Any) -> Array:
        pairs = np.ascontiguousarray(x, dtype=np.float64)
        if pairs.ndim != 3 or pairs.shape[0] != pairs.shape[1] or pairs.shape[2] != self.n_features:
            raise ValueError(f"x has shape {pairs.shape}, expected (n, n, {self.n_features})")
        if pairs.size == 0:
            raise ValueError("x has no nodes")
        if not np.isfinite(pairs).all():
            i, j = np.argwhere(~np.isfinite(pairs).all(axis=2))[0].tolist()
            raise ValueError(f"x is not finite at the pair of nodes {i} and {j}")
        return pairs

    def check(self, x: Any, y: Any) -> None:
        """Raise ValueError if y is no permutation of the nodes of x."""
        n, nodes = len(self._input(x)), np.asarray(y)
        if nodes.shape != (n,) or nodes.dtype.kind not in "iu":
            raise ValueError(f"y must have one node for each of {n}, got {nodes.dtype} of shape {nodes.shape}")
        outside = np.flatnonzero((nodes < 0) | (nodes >= n))
        if outside.size:
            raise ValueError(f"node {outside[0]} is matched with {nodes[outside[0]]}, expected 0 to {n - 1}")
        taken, first = np.unique(nodes, return_index=True)
        if len(taken) < n:
            again = int(np.setdiff1d(np.arange(n), first)[0])
            raise ValueError(f"y is no permutation: node {again} is matched with {nodes[again]}, as another one is")

    def joint_feature(self, x: Any, y: Any) -> Feature:
        """Return the sum of the features of the matched pairs."""
        total: Array = np.asarray(x, dtype=np.float64)[np.arange(len(x)), np.asarray(y)].sum(axis=0)
        return total

    def delta(self, y: Any, other: Any) -> float:
        """Return the share of nodes that are matched differently."""
        return float(np.mean(np.asarray(y) != np.asarray(other)))

    def argmax(self, x: Any, w: Array) -> Indices:
        """Return the best matching, by assignment."""
        return _assigned(np.asarray(x, dtype=np.float64) @ w)

    def augmented_argmax(self, x: Any, y: Any, w: Array) -> Indices:
        """Return the matching with the largest cost and score: wrong pairs score 1/n more."""
        scores = np.asarray(x, dtype=np.float64) @ w
        wrong = np.asarray(y)[:, None] != np.arange(len(scores))
        return _assigned(scores + wrong / len(scores))

    def outputs(self, x: Any) -> Iterator[Indices]:
        """Return all permutations."""
        return (np.array(order) for order in permutations(range(len(x))))

    @classmethod
    def examples(cls) -> list[StructuredModel]:
        """Return one and several features."""
        return [cls(1), cls(3)]

    def draw(self, rng: np.random.Generator, n: int) -> tuple[list[Any], list[Any]]:
        """Draw graphs of 1 to 4 nodes."""
        sizes = rng.integers(1, 5, size=n).tolist()
        return [rng.normal(size=(m, m, self.n_features)) for m in sizes], [rng.permutation(m) for m in sizes]


def _assigned(scores: Array) -> Indices:
    """Return the column of each row in the assignment with the largest sum."""
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(scores, maximize=True)[1], dtype=np.int64)
