"""Cholesky's method for matrices that rounding may have made indefinite, and Householder's where it is not enough."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmrm._deadline import look
from bmrm.risks.base import Array

_EPS = float(np.finfo(np.float64).eps)
_TRIES = 170  # the ridge grows by 100 each time: from 1e-20 beyond all numbers
_WHOLE, _BLOCK = 1500, 256  # columns that LAPACK factors at once (0.1 s), and in a block


def factored(M: Array, ridge: float) -> Callable[[Array], Array]:
    """Return g -> (M + ridge I)^-1 g; the ridge grows until the factor exists. Only M's lower triangle is read.

    Where there is none, as for zeros with a ridge of 0 or with NaN in M, the solution is 0.

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
    places, diagonal = np.arange(len(M)), M.diagonal().copy()
    least_ridge = _EPS * float(np.abs(diagonal).max(initial=0.0))
    for tries in range(_TRIES):
        M[places, places] = diagonal + ridge
        factor = upper_factor(M.T)
        if factor is not None:
            least = float(np.min(np.diag(factor), initial=np.inf)) ** 2 if tries == 0 else 0.0
            return _solver(factor), least
        if not np.isfinite(np.tril(M)).all():
            break
        ridge = 100.0 * ridge or least_ridge
    return np.zeros_like, 0.0  # nothing to go by: no step at all, which solvers take for no progress


def factored_in_place(M: Array) -> Callable[[Array], Array] | None:
    """Return g -> M^-1 g, or None where M has no factor. M's lower triangle is overwritten, and in use from then on."""
    factor = upper_factor(M.T, overwrite=True)
    return None if factor is None else _solver(factor)


def upper_factor(A: Array, overwrite: bool = False) -> Array | None:
    """Return U with U'U = A from A's upper triangle, columns one after the other; None where there is none.

    LAPACK cannot be interrupted. A large matrix is factored by blocks of columns, each of which takes less than a
    tenth of a second up to 4000 columns, and the deadline is looked at in between.
    """
    from scipy.linalg import lapack, solve_triangular

    n = len(A)
    if n <= _WHOLE:
        look()
        factor, failed = lapack.dpotrf(A, lower=0, clean=0, overwrite_a=int(overwrite))
        return None if failed else np.asarray(factor)
    U: Array = A if overwrite else A.copy(order="F")
    for first in range(0, n, _BLOCK):
        look()
        own, rest = slice(first, first + _BLOCK), slice(first + _BLOCK, n)
        above = U[:first, own].T
        block, failed = lapack.dpotrf(U[own, own] - above @ U[:first, own], lower=0, clean=1)
        if failed:
            return None
        U[own, own] = block
        right = U[own, rest] - above @ U[:first, rest]
        U[own, rest] = solve_triangular(block, right, trans="T", check_finite=False)
    return U


def _solver(factor: Array) -> Callable[[Array], Array]:
    from scipy.linalg import lapack

    if not factor.size:  # no row has a bend at the point: LAPACK refuses matrices without rows
        return np.copy
    return lambda g: np.asarray(lapack.dpotrs(factor, g, lower=0)[0])


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
