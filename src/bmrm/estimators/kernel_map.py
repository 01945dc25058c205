"""A feature map under which one-class losses work: kernels of a row with landmarks, whatever the origin of X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics.pairwise import euclidean_distances

from bmrm._deadline import look

Array = npt.NDArray[np.float64]

# The kernel halves where |x - z|^2 is a tenth of v (3 / (2 * 15)). On the sets of docs/novelty.md, 20000 rows of each,
# the mean ROC AUC was 0.841 for 7.5 and 0.845 for 15.
_NARROW = 15.0
_LEAST = 1e-10  # eigenvalue of the landmarks' kernel, as a part of the largest: below it is rounding
_SPREAD = 1e-12  # variance, as a part of the mean square: below it is rounding
_BLOCK = 1 << 22  # numbers of a block of distances: 32 MB


@dataclass(frozen=True, eq=False)
class KernelMap:
    """phi(x), <phi(x), phi(z)> close to 1 / sqrt(1 + 2 _NARROW |x - z|^2 / v): Nystroem features of landmark rows.

    Columns are divided by their standard deviation first. v is then the mean of |x - z|^2 over pairs of training rows:
    twice the number of columns that vary. So the map depends neither on the origin nor on the units of the columns, and
    it has no width to choose. The kernel (inverse multiquadric) falls slowly: rows far from all others still differ.
    phi(x) = K(x, L) K(L, L)^(-1/2) for the landmarks L. Sparse rows become dense in blocks of 32 MB.

    Parameters
    ----------
    centers : array (d,)
        The means of the columns. Only differences count, but those of large numbers lose digits.
    scales : array (d,)
        What each column is multiplied by then: 1 / (standard deviation sqrt(v)), 0 where it does not vary.
    landmarks : array (n, d)
        Rows, centered and scaled.
    mixing : array (n, r)
        K(L, L)^(-1/2) in the r directions that rounding leaves.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.estimators.kernel_map import KernelMap
    >>> X = np.array([[0.0, 5.0], [1.0, 5.0], [3.0, 5.0]])
    >>> there = KernelMap.learn(1000.0 + 2.0 * X, None, 3, seed=0).transform(1000.0 + 2.0 * X)
    >>> here = KernelMap.learn(X, None, 3, seed=0).transform(X)
    >>> bool(np.allclose(here @ here.T, there @ there.T)), (here @ here.T).diagonal().round(9)
    (True, array([1., 1., 1.]))
    """

    centers: Array
    scales: Array
    landmarks: Array
    mixing: Array

    @classmethod
    def learn(cls, X: Any, weight: Array | None, n_landmarks: int, seed: int) -> KernelMap:
        """Return the map of training rows.

        A row is drawn with its weight, so 2 is the same as the row twice and 0 the same as no row. Where there are no
        more rows than landmarks, all are landmarks, each of equal ones once.

        Parameters
        ----------
        X : array or sparse matrix (m, d)
        weight : array (m,), optional
        n_landmarks : int
        seed : int
        """
        m = X.shape[0]
        p = np.full(m, 1.0 / m) if weight is None else weight / weight.sum()
        centers, variances = _moments(X, p)
        varying = variances > 0.0
        scales = np.zeros(centers.size)
        scales[varying] = 1.0 / np.sqrt(2.0 * np.count_nonzero(varying) * variances[varying])
        drawn = np.flatnonzero(p)
        if drawn.size > n_landmarks:
            drawn = np.random.default_rng(seed).choice(m, n_landmarks, replace=False, p=p)
        landmarks = np.unique((_dense(X[drawn]) - centers) * scales, axis=0)
        values, vectors = np.linalg.eigh(_kernel(landmarks, landmarks))
        sure = values > _LEAST * values[-1]
        return cls(centers, scales, landmarks, vectors[:, sure] / np.sqrt(values[sure]))

    def transform(self, X: Any) -> Array:
        """Return phi (m, r) of the rows, block by block.

        Parameters
        ----------
        X : array or sparse matrix (m, d)
        """
        m = X.shape[0]
        features = np.empty((m, self.mixing.shape[1]))
        size = max(1, _BLOCK // max(self.landmarks.shape))
        for start in range(0, m, size):
            look()
            rows = (_dense(X[start : start + size]) - self.centers) * self.scales
            features[start : start + size] = _kernel(rows, self.landmarks) @ self.mixing
        return features


def _dense(rows: Any) -> Any:
    return rows.toarray() if hasattr(rows, "toarray") else rows


def _kernel(rows: Array, landmarks: Array) -> Array:
    squares = euclidean_distances(rows, landmarks, squared=True)
    return np.asarray(1.0 / np.sqrt(1.0 + 2.0 * _NARROW * squares))


def _moments(X: Any, p: Array) -> tuple[Array, Array]:
    """Return the mean and the variance of each column; the latter is 0 where it is no more than rounding."""
    if hasattr(X, "multiply"):
        means, squares = np.asarray(X.T @ p), np.asarray(X.multiply(X).T @ p)
        variances = squares - means**2
    else:  # by columns: none of float32 data becomes a matrix of float64
        means = np.array([p @ column for column in X.T])
        variances = np.array([p @ (column - mean) ** 2 for column, mean in zip(X.T, means)])
        squares = variances + means**2
    return means, np.where(variances > _SPREAD * squares, variances, 0.0)
