"""The linear system of Newton's method, (diag(r) + X' diag(c) X) d = g, shared by the second-order solvers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmrm import _core
from bmrm.risks.base import Array
from bmrm.risks.curvature import RowCurvature, Rows
from bmrm.risks.kept_gram import NEAR, Change, KeptGram
from bmrm.solvers.cholesky import factored_by_rows, factored_in_place, factored_with_pivot

MOST_COLUMNS = 2000  # a matrix is formed and factored up to here
RIDGE = 1e-13
FINE_RIDGE = 1e-15  # for solutions that are refined
_CG_STEPS = 250
SPARSE_PAIR, DENSE_PAIR = 0.5, 0.06  # two entries of a row, in X' diag(c) X; a product with one entry costs 1
SAMPLE = 8  # one of so many rows is enough for a preconditioner
_PART = 4  # one of so many rows gives a matrix for steps that need not be exact
_ROWS_OF_PART = 16.0  # the least for each column
# c q up to which a direction that only rows left out have is not far off, and rows of a part for each column that make
# up for it: steps of the same length at q = 1 (a9a, logistic, 1e-4) and for 570 rows (ijcnn1), 6 times shorter at 100.
_EVEN, _MANY_OF_PART = 2.0, 200.0
_MANY_ROWS = 4.0  # for each column, in the sample: then its matrix is near the whole one
_LONG = 50.0  # products that take as long as forming the matrix
_SAMPLED_ACCURACY = 1e-2
_SAMPLED_STEPS = 20  # beyond, forming the matrix would have cost less
# Of the diagonal, the rest is r (LIBLINEAR's shares). Reuters, squared_hinge, 1e-6, to 1e-6: 122 ms, with a tenth 224.
_SHARE = 0.01
_MOST_ROWS = 4000
_FEWEST_STEPS = 60  # of conjugate gradients, that a system of rows is taken to save
_CUBE = 0.007  # of the rows, in their matrix and its factor; an entry of X in a product costs 1
_ROUGH = 1e-7  # accuracies below are reached by refinement
_REFINEMENTS = 8
_SINGULAR = 1e-12  # least pivot, where the diagonal is 1
_MOST_ENTRIES = 1_000_000  # of X by rows and columns, zeros included


def matrix_cost(n_columns: int, entries_per_row: float) -> float:
    """Return what forming the matrix costs for each entry of X, in products: by pairs of entries, or by panels."""
    return min(SPARSE_PAIR * entries_per_row, DENSE_PAIR * n_columns**2 / max(entries_per_row, 1.0))


def rows_are_few(n: float, n_entries: float, steps: float = _FEWEST_STEPS) -> bool:
    """Whether a system of so many rows costs less than so many steps of conjugate gradients with the columns."""
    return n <= _MOST_ROWS and _CUBE * n**3 <= 2.0 * steps * n_entries


def is_sampled(n_rows: int, n_columns: int, entries_per_row: float) -> bool:
    """Whether the matrix costs far more than products do, and few of the rows give nearly the same one."""
    return n_rows >= SAMPLE * _MANY_ROWS * n_columns and matrix_cost(n_columns, entries_per_row) >= _LONG


class NewtonSystem:
    """Solves (diag(r) + X' diag(c) X) d = g, by Cholesky's method or, for many columns, by conjugate gradients.

    With many columns but few rows with c > 0, and r > 0, the system of those rows is factored instead, where that costs
    less than conjugate gradients took the last time, 60 steps at least.
    Columns are scaled so that the diagonal is 1, and a tiny ridge is added: columns may be collinear and of any size.
    Where rows are many and long, the matrix of a sample of them is the preconditioner of conjugate gradients, and the
    whole one is formed only if these take too many steps. A coordinate without any curvature gets the curvature 1.
    Where more than 7 digits are asked for, the solution is refined; where the matrix is singular to the digits it has,
    and the data are few, the rows of diag(sqrt(c)) X take its place. Where a rough solution is enough, the matrix of a
    quarter of the rows does, with the diagonal of the whole one.

    Parameters
    ----------
    curvature : RowCurvature
    r : array
        At least 0; lam times the regularizer's weights.
    most_columns : int
        Up to so many columns the matrix is formed.
    ridge : float
        Added to the scaled diagonal; `FINE_RIDGE` says that all digits count.
    gram : KeptGram, optional
        The last matrix, for losses whose second derivatives change by jumps: the next one is made from it.
    """

    def __init__(
        self,
        curvature: RowCurvature,
        r: Array,
        most_columns: int = MOST_COLUMNS,
        ridge: float = RIDGE,
        gram: KeptGram | None = None,
    ) -> None:
        self.curvature, self.r, self.ridge, self.gram = curvature, r, ridge, gram
        self.forms_matrix = r.size <= most_columns
        self.diagonal: Array = r.copy()  # of the last matrix
        self.rough = False  # whether the last matrix is that of a part of the rows
        self._steps = _FEWEST_STEPS  # of conjugate gradients, in the last system

    def at(self, c: Array, rough: bool = False) -> Callable[[Array, float], Array]:
        """Return the solver for that c: a function of g and of the relative accuracy that is enough.

        If rough, the matrix may be one that is only near.
        """
        self.rough = False
        if not self.forms_matrix:
            return self._by_rows(c, _core.nonzero(c)) or self._by_products(c)
        change = None if self.gram is None else self.gram.change(c)
        if change is not None and change.share <= NEAR:
            return self._factored(c, change=change)
        rows = _core.nonzero(c)
        if self.ridge > FINE_RIDGE and is_sampled(rows.size, self.r.size, self.curvature.entries_per_row):
            return self._by_sample(c, rows)
        if rough and rows.size >= _PART * _ROWS_OF_PART * self.r.size:
            return self._by_part(c, rows)
        return self._factored(c)

    def _by_part(self, c: Array, rows: Rows) -> Callable[[Array, float], Array]:
        """Solve with the matrix of one row drawn of each four, if that is near the whole one."""
        diagonal = self.curvature.diagonal(c) + self.r
        penalized = self.r > 0.0
        q = float(np.sum(diagonal[penalized] / self.r[penalized])) / rows.size
        if q > _EVEN and rows.size < _PART * _MANY_OF_PART * self.r.size:
            return self._factored(c)
        self.rough = True
        first = np.arange(0, rows.size - _PART + 1, _PART)
        some = rows[first + np.random.default_rng(rows.size).integers(0, _PART, first.size)]
        near = self._near(c, some, rows.size / some.size, diagonal)
        return lambda g, _: near(g)

    def _near(self, c: Array, some: Rows, times: float, diagonal: Array) -> Callable[[Array], Array]:
        """Solve with the matrix of some rows, brought to the diagonal of the whole one.

        Columns that the rows drawn hardly have would be far off otherwise.
        """
        inverse, sampled = self._factored(times * c, some), self.diagonal
        self.diagonal = diagonal
        ratio = np.sqrt(sampled / np.maximum(diagonal, sampled * RIDGE))
        return lambda v: ratio * inverse(ratio * v, 1.0)

    def _by_sample(self, c: Array, rows: Rows) -> Callable[[Array, float], Array]:
        """Conjugate gradients for the whole matrix, preconditioned by that of some rows with the whole one's diagonal.

        Where the sample is not like the whole, the matrix is formed after all.
        """
        some = np.sort(np.random.default_rng(rows.size).permutation(rows)[::SAMPLE])
        near = self._near(c, some, rows.size / some.size, self.curvature.diagonal(c) + self.r)

        def times(v: Array) -> Array:
            return self.curvature.times(rows, c, v) + self.r * v

        whole: Callable[[Array, float], Array] | None = None

        def solve(g: Array, accuracy: float) -> Array:
            nonlocal whole
            accuracy = min(accuracy, _SAMPLED_ACCURACY)
            if whole is None:
                d, reached = conjugate_gradients(times, g, accuracy, _SAMPLED_STEPS, near)
                if reached:
                    return d
                whole = self._factored(c)
            return whole(g, accuracy)

        return solve

    def _scaling(self) -> Array:
        self.diagonal[self.diagonal <= 0.0] = 1.0
        return 1.0 / np.sqrt(self.diagonal)

    def _factored(
        self, c: Array, some: Rows | None = None, change: Change | None = None
    ) -> Callable[[Array, float], Array]:
        if self.gram is None or some is not None:
            H = self.curvature.gram(c, some)
        else:
            H = self.gram.at(self.curvature, c, change).copy()
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
        rows, before = _core.nonzero(c), np.inf
        for _ in range(_REFINEMENTS):
            with np.errstate(over="ignore", invalid="ignore"):  # a system this bad is not refined
                rest = g - (self.curvature.times(rows, c, d) + r * d)
                size = float(np.sum(rest**2 / self.diagonal))
            if not size < 0.25 * before:
                break
            before, d = size, d + again(rest)
        return d

    def _by_rows(self, c: Array, rows: Rows) -> Callable[[Array, float], Array] | None:
        """Solve with (I + B diag(1/r) B')^-1, B = diag(sqrt(c)) X of the rows with c > 0, where these are few enough.

        H^-1 = diag(1/r) (I - B' (I + B diag(1/r) B')^-1 B diag(1/r)), by Sherman, Morrison and Woodbury.
        """
        curvature, r = self.curvature, self.r
        n, n_entries = rows.size, curvature.entries_per_row * curvature.risk.design.n_rows
        if not rows_are_few(n, n_entries, self._steps) or not np.all(r > 0.0):
            return None
        system = curvature.row_system(rows, c, r)
        if system is None:
            return None
        M, weights = system
        self.diagonal = curvature.diagonal(c) + r
        inverse = factored_in_place(M)
        if inverse is None:
            return None

        def once(g: Array) -> Array:
            u = g / r
            return u - curvature.to_columns(rows, weights * inverse(weights * curvature.of_rows(rows, u))) / r

        def solve(g: Array, accuracy: float) -> Array:
            return self._refined(once(g), g, c, r, once) if accuracy < _ROUGH else once(g)

        return solve

    def _by_products(self, c: Array) -> Callable[[Array, float], Array]:
        """Conjugate gradients, preconditioned by little of the diagonal: that of text says little of its matrix."""
        rows = _core.nonzero(c)
        self.diagonal = self.curvature.diagonal(c) + self.r
        self.diagonal[self.diagonal <= 0.0] = 1.0
        near = np.where(self.r > 0.0, _SHARE * self.diagonal + (1.0 - _SHARE) * self.r, self.diagonal)
        ridge = self.ridge * self.diagonal

        def solve(g: Array, accuracy: float) -> Array:
            steps = 0

            def times(v: Array) -> Array:
                nonlocal steps
                steps += 1
                return self.curvature.times(rows, c, v) + (self.r + ridge) * v

            d, _ = conjugate_gradients(times, g, accuracy, _CG_STEPS, lambda v: v / near)
            self._steps = max(_FEWEST_STEPS, steps)
            return d

        return solve


def conjugate_gradients(
    times: Callable[[Array], Array],
    g: Array,
    accuracy: float,
    most: int,
    inverse: Callable[[Array], Array] = np.copy,
) -> tuple[Array, bool]:
    """Return x with |A x - g| <= accuracy |g|, or what conjugate gradients have after `most` steps, and False.

    The norm is that of the inverse of a matrix near A, if there is one.
    """
    x, residual = np.zeros_like(g), g.copy()
    direction = inverse(residual)
    square = _core.inner(residual, direction)
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
        preconditioned = inverse(residual)
        before, square = square, _core.inner(residual, preconditioned)
        direction = preconditioned + (square / before) * direction
    return x, square <= enough
