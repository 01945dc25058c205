"""Cholesky's method for matrices that rounding may have made indefinite, and Householder's where it is not enough."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmrm.risks.base import Array

_EPS = float(np.finfo(np.float64).eps)


def factored(M: Array, ridge: float) -> Callable[[Array], Array]:
    """Return g -> (M + ridge I)^-1 g; the ridge grows until the factor exists. Only M's lower triangle is read.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.solvers.cholesky import factored
    >>> factored(np.array([[4.0, 0.0], [2.0, 2.0]]), 1e-14)(np.array([6.0, 4.0])).round(9)
    array([1., 1.])
    """
    return factored_with_pivot(M, ridge)[0]


def factored_with_pivot(M: Array, ridge: float) -> tuple[Callable[[Array], Array], float]:
    """Return the same and the least pivot, 0 where the ridge had to grow: how far M is from being singular."""
    from scipy.linalg import lapack

    places, diagonal, failed, tries = np.arange(len(M)), M.diagonal().copy(), 1, 0
    while failed:
        M[places, places] = diagonal + ridge
        factor, failed = lapack.dpotrf(M.T, lower=0, clean=0, overwrite_a=0)
        ridge, tries = 100.0 * ridge, tries + 1
    least = float(np.min(np.diag(factor), initial=np.inf)) ** 2 if tries == 1 else 0.0
    return lambda g: np.asarray(lapack.dpotrs(factor, g, lower=0)[0]), least


def factored_in_place(M: Array) -> Callable[[Array], Array] | None:
    """Return g -> M^-1 g, or None where M has no factor. M's lower triangle is overwritten, and in use from then on."""
    from scipy.linalg import lapack

    factor, failed = lapack.dpotrf(M.T, lower=0, clean=0, overwrite_a=1)
    return None if failed else lambda g: np.asarray(lapack.dpotrs(factor, g, lower=0)[0])


def factored_by_rows(A: Array) -> Callable[[Array], Array]:
    """Return g -> (A'A)^-1 g from A itself, by Householder's method: A'A would have lost half of the digits.

    The columns of A should be of one size. Rows come in the order of their sizes and columns are pivoted, so that rows
    may be of very different size. Columns that depend on others, so that no more than rounding is left of them, are
    left out: the solution is 0 there.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.solvers.cholesky import factored_by_rows
    >>> A = np.array([[1.0, 1.0], [0.0, 1e-3]])
    >>> factored_by_rows(A)(A.T @ (A @ np.array([3.0, 4.0]))).round(3)
    array([3., 4.])
    """
    from scipy.linalg import qr, solve_triangular

    order = np.argsort(-np.abs(A).max(axis=1, initial=0.0), kind="stable")
    R, pivots = qr(A[order], mode="r", pivoting=True, overwrite_a=True, check_finite=False)
    sizes = np.abs(np.diag(R))
    rank = int(np.count_nonzero(sizes > max(A.shape) * _EPS * sizes[0]))
    R, pivots = np.asfortranarray(R[:rank, :rank]), pivots[:rank]

    def solve(g: Array) -> Array:
        x = np.zeros_like(g)
        x[pivots] = solve_triangular(R, solve_triangular(R, g[pivots], trans="T", check_finite=False))
        return x

    return solve
