"""Second derivatives of losses with k scores for each row: a k x k matrix for each row, as a product."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm.losses.base import Array


class Bend(Protocol):
    """p_i l''(f_i) for all rows at once."""

    compares: bool
    """Whether the loss does not change when all k scores of a row grow alike."""

    def times(self, along: Array) -> Array:
        """Return p_i l''(f_i) g_i for an array (m, k) of g, which may be written over."""

    def diagonal(self) -> Array:
        """Return the diagonals of the matrices, (m, k)."""

    def total(self) -> Array:
        """Return the sum of the matrices of all rows, (k, k)."""


class ShareBend:
    """p_i (diag(pi_i) - pi_i pi_i'), pi_i the shares exp(f_c) / sum exp(f_c): of the soft-max.

    Parameters
    ----------
    scores : array (m, k)
    weight : array (m,)
    n_threads : int

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.losses.bend import ShareBend
    >>> ShareBend(np.zeros((1, 2)), np.ones(1)).times(np.array([[1.0, 0.0]]))
    array([[ 0.25, -0.25]])
    """

    compares = True

    def __init__(self, scores: Array, weight: Array, n_threads: int = 1) -> None:
        self.weight, self.n_threads = weight, n_threads
        self.shares = np.empty_like(scores)
        _core.softmax_shares(scores, self.shares, n_threads)

    def times(self, along: Array) -> Array:
        """Return the products with the rows of an array, in its place."""
        _core.softmax_bend(self.shares, self.weight, along, self.n_threads)
        return along

    def diagonal(self) -> Array:
        """Return p pi (1 - pi)."""
        return self.weight[:, None] * self.shares * (1.0 - self.shares)

    def total(self) -> Array:
        """Return the sum over the rows."""
        weighted = self.weight[:, None] * self.shares
        return np.diag(weighted.sum(axis=0)) - weighted.T @ self.shares


class PathBend:
    """The same for classes whose scores are sums over the paths of a tree.

    Parameters
    ----------
    scores : array (m, nodes)
    weight : array (m,)
    parents : array
    classes : array
        The nodes that are classes.
    """

    compares = False

    def __init__(
        self, scores: Array, weight: Array, parents: npt.NDArray[np.int64], classes: npt.NDArray[np.int64]
    ) -> None:
        self._parents, self._classes = parents, classes
        self._inner = ShareBend(self._summed(scores.copy()), weight)

    def _summed(self, scores: Array) -> Array:
        _core.path_sums(self._parents, scores)
        return np.ascontiguousarray(scores[:, self._classes])

    def _spread(self, of_classes: Array) -> Array:
        out = np.zeros((len(of_classes), self._parents.size))
        out[:, self._classes] = of_classes
        _core.path_slopes(self._parents, out)
        return out

    def times(self, along: Array) -> Array:
        """Return the products with the rows of an array."""
        return self._spread(self._inner.times(self._summed(along)))

    def diagonal(self) -> Array:
        """Return p pi (1 - pi), pi the share of all classes below a node."""
        shares = np.minimum(self._spread(self._inner.shares), 1.0)
        return self._inner.weight[:, None] * shares * (1.0 - shares)

    def total(self) -> Array:
        """Return the sum over the rows."""
        below = self._summed(np.eye(self._parents.size))
        return below @ self._inner.total() @ below.T


class MatrixBend:
    """p_i M, the same matrix in all rows.

    Parameters
    ----------
    M : array (k, k)
    weight : array (m,)
    """

    compares = False

    def __init__(self, M: Array, weight: Array) -> None:
        self.M, self.weight = M, weight

    def times(self, along: Array) -> Array:
        """Return the products with the rows of an array."""
        return self.weight[:, None] * (along @ self.M)

    def diagonal(self) -> Array:
        """Return p_i M_cc."""
        return self.weight[:, None] * np.diag(self.M)

    def total(self) -> Array:
        """Return the sum over the rows."""
        return float(self.weight.sum()) * self.M
