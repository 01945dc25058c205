"""Cholesky's method for matrices that rounding may have made indefinite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmrm.risks.base import Array


def factored(M: Array, ridge: float) -> Callable[[Array], Array]:
    """Return g -> (M + ridge I)^-1 g; the ridge grows until the factor exists. Only M's lower triangle is read.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.solvers.cholesky import factored
    >>> factored(np.array([[4.0, 0.0], [2.0, 2.0]]), 1e-14)(np.array([6.0, 4.0])).round(9)
    array([1., 1.])
    """
    from scipy.linalg import lapack

    places, diagonal, failed = np.arange(len(M)), M.diagonal().copy(), 1
    while failed:
        M[places, places] = diagonal + ridge
        factor, failed = lapack.dpotrf(M.T, lower=0, clean=0, overwrite_a=0)
        ridge *= 100.0
    return lambda g: np.asarray(lapack.dpotrs(factor, g, lower=0)[0])
