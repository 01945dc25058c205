"""Columns of an incomplete Cholesky factor of a Gaussian kernel: linear methods on them learn curved functions."""

import numpy as np

RANK = 100
ROWS = 8000


def _standard(values):
    deviation = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)


def kernel_features(X, y, rank=RANK):
    """G with G G' close to the kernel exp(-|x - x'|^2 / (2 d)), pivots where the rest is largest; and y, scaled."""
    X = _standard(X)
    m, d = X.shape
    squares = np.einsum("ij,ij->i", X, X)
    G = np.zeros((m, min(rank, m)))
    rest = np.ones(m)
    for k in range(G.shape[1]):
        pivot = int(np.argmax(rest))
        if rest[pivot] < 1e-8:
            return np.ascontiguousarray(G[:, :k]), _standard(y)
        distances = squares + squares[pivot] - 2.0 * X @ X[pivot]
        column = np.exp(-np.maximum(distances, 0.0) / (2.0 * d)) - G[:, :k] @ G[pivot, :k]
        G[:, k] = column / np.sqrt(rest[pivot])
        rest = np.maximum(rest - G[:, k] ** 2, 0.0)
    return G, _standard(y)
