"""The linear system of Newton's method, (diag(r) + X' diag(c) X) d = g, shared by the second-order solvers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmrm import _core
from bmrm.risks.base import Array
from bmrm.risks.curvature import RowCurvature
from bmrm.solvers.cholesky import factored_by_rows, factored_with_pivot

MOST_COLUMNS = 2000  # a matrix is formed and factored up to here
RIDGE = 1e-13
FINE_RIDGE = 1e-15  # for solutions that are refined
_CG_STEPS = 250
_ROUGH = 1e-7  # accuracies below are reached by refinement
_REFINEMENTS = 8
_SINGULAR = 1e-12  # least pivot, where the diagonal is 1
_MOST_ENTRIES = 1_000_000  # of X by rows and columns, zeros included


class NewtonSystem:
    """Solves (diag(r) + X' diag(c) X) d = g, by Cholesky's method or, for many columns, by conjugate gradients.

    Columns are scaled so that the diagonal is 1, and a tiny ridge is added: columns may be collinear and of
    any size. A coordinate without any curvature gets the curvature 1. Where more than 7 digits are asked for, the
    solution is refined; where the matrix is singular to the digits it has, and the data are few, the rows of
    diag(sqrt(c)) X take its place.

    Parameters
    ----------
    curvature : RowCurvature
    r : array
        At least 0; lam times the regularizer's weights.
    most_columns : int
        Up to so many columns the matrix is formed.
    ridge : float
        Added to the scaled diagonal; `FINE_RIDGE` says that all digits count.
    """

    def __init__(
        self, curvature: RowCurvature, r: Array, most_columns: int = MOST_COLUMNS, ridge: float = RIDGE
    ) -> None:
        self.curvature, self.r, self.ridge = curvature, r, ridge
        self.forms_matrix = r.size <= most_columns
        self.diagonal: Array = r.copy()  # of the last matrix

    def at(self, c: Array) -> Callable[[Array, float], Array]:
        """Return the solver for that c: a function of g and of the relative accuracy that is enough."""
        return self._factored(c) if self.forms_matrix else self._by_products(c)

    def _scaling(self) -> Array:
        self.diagonal[self.diagonal <= 0.0] = 1.0
        return 1.0 / np.sqrt(self.diagonal)

    def _factored(self, c: Array) -> Callable[[Array, float], Array]:
        H = self.curvature.gram(c)
        diagonal = H.reshape(-1)[:: self.r.size + 1]
        self.diagonal = diagonal + self.r
        scaling = self._scaling()
        H *= scaling
        H *= scaling[:, None]
        diagonal[:] = 1.0
        (inverse, pivot), r = factored_with_pivot(H, self.ridge), self.r
        if pivot < _SINGULAR and self.ridge <= FINE_RIDGE and self.curvature.n_cells <= _MOST_ENTRIES:
            roots = np.concatenate([self.curvature.root(c), np.diag(np.sqrt(r))])
            inverse = factored_by_rows(roots * scaling)

        def solve(g: Array, accuracy: float) -> Array:
            d = scaling * inverse(scaling * g)
            return self._refined(d, g, c, r, lambda rest: scaling * inverse(scaling * rest)) if accuracy < _ROUGH else d

        return solve

    def _refined(self, d: Array, g: Array, c: Array, r: Array, again: Callable[[Array], Array]) -> Array:
        """Return d, improved by solving for what it leaves of g: rounding and the ridge do not count any more."""
        rows, before = np.flatnonzero(c), np.inf
        for _ in range(_REFINEMENTS):
            rest = g - (self.curvature.times(rows, c, d) + r * d)
            size = float(np.sum(rest**2 / self.diagonal))
            if not size < 0.25 * before:
                break
            before, d = size, d + again(rest)
        return d

    def _by_products(self, c: Array) -> Callable[[Array, float], Array]:
        rows = np.flatnonzero(c)
        self.diagonal = self.curvature.diagonal(c) + self.r
        scaling = self._scaling()

        def times(v: Array) -> Array:
            u = scaling * v
            return scaling * (self.curvature.times(rows, c, u) + self.r * u) + self.ridge * v

        def solve(g: Array, accuracy: float) -> Array:
            return scaling * conjugate_gradients(times, scaling * g, accuracy, _CG_STEPS)

        return solve


def conjugate_gradients(times: Callable[[Array], Array], g: Array, accuracy: float, most: int) -> Array:
    """Return x with |A x - g| <= accuracy |g|, or what conjugate gradients have after `most` steps."""
    x, residual = np.zeros_like(g), g.copy()
    direction, square = residual.copy(), _core.inner(g, g)
    enough = accuracy**2 * square
    for _ in range(most):
        if square <= enough or square == 0.0:
            break
        image = times(direction)
        curvature = _core.inner(direction, image)
        if curvature <= 0.0:
            break
        step = square / curvature
        x += step * direction
        residual -= step * image
        before, square = square, _core.inner(residual, residual)
        direction = residual + (square / before) * direction
    return x
