"""Second derivatives of a linear model's risk: X' diag(c) X, as a matrix, by its products, or its diagonal."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._cached import cached_property
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk

Rows: TypeAlias = npt.NDArray[np.int64]


class RowCurvature:
    """X' diag(c) X for a risk's data and one number c_i >= 0 for each row; the constant column is included.

    Rows with c_i = 0 are not read. Results do not depend on the number of threads.

    Parameters
    ----------
    risk : LinearRisk
        With a compiled loss (trait ROWS).
    """

    def __init__(self, risk: LinearRisk) -> None:
        self.risk = risk
        self._room = np.empty(0)

    def at(self, scores: Array) -> Array:
        """Return c_i = p_i l''(f_i), p the normalized weights."""
        risk, c = self.risk, np.empty(scores.size)
        risk.kernel.curvature(scores, risk.targets, risk.weight, risk.scale, c)
        return c

    def gram(self, c: Array, rows: Rows | None = None) -> Array:
        """Return the matrix, or that of some rows; only its lower triangle is filled. Counts as one product."""
        design = self.risk.design
        if rows is None:
            rows = _core.nonzero(c)
        elif design.intercept:
            c, some = np.zeros_like(c), c[rows]
            c[rows] = some
        H = np.empty((design.n_cols, design.n_cols))
        design.matrix.gram(rows, c if rows.size == c.size else c[rows], H, design.n_threads)
        self.risk.products += 1
        if not design.intercept:
            return H
        wide = np.zeros((design.dim, design.dim))
        wide[:-1, :-1] = H
        wide[-1] = self.pull_back(c)
        return wide

    def row_system(self, rows: Rows, c: Array, r: Array) -> tuple[Array, Array] | None:
        """Return M = I + B diag(1/r) B' for B = diag(sqrt(c)) X of some rows, scaled to a diagonal of ones.

        Its lower triangle is filled; the second array is sqrt(c) times the scaling. Counts as one product. None where
        the rows are not all in memory here. The next call writes to the same memory: a new one is dear.
        """
        design, n = self.risk.design, rows.size
        if not hasattr(design.matrix, "row_system"):
            return None
        if self._room.size < n * n:
            self._room = np.empty(n * n + n * n // 4)
        M, weights = self._room[: n * n].reshape(n, n), np.empty(n)
        inverse = 1.0 / r
        constant = float(inverse[-1]) if design.intercept else 0.0
        design.matrix.row_system(rows, c[rows], inverse[: design.n_cols], constant, M, weights, design.n_threads)
        self.risk.products += 1
        return M, weights

    @property
    def entries_per_row(self) -> float:
        """The mean number of entries of a row."""
        return self.risk.design.matrix.n_entries / max(self.risk.design.n_rows, 1)

    @property
    def n_cells(self) -> int:
        """The size of X, zeros and the constant column included."""
        return self.risk.design.n_rows * self.risk.dim

    def root(self, c: Array) -> Array:
        """Return diag(sqrt(c)) X with its zeros, for few data: one reading counts as one product."""
        self.risk.products += 1
        return np.sqrt(c)[:, None] * self._dense

    @cached_property
    def _dense(self) -> Array:
        design = self.risk.design
        return np.stack([design.dot(unit) for unit in np.eye(design.dim)], axis=1)

    def pull_back(self, u: Array) -> Array:
        """Return X' u: one product."""
        self.risk.products += 1
        return self.risk.design.tdot(u, float(u.sum()))

    def of_rows(self, rows: Rows, v: Array) -> Array:
        """Return <x_i, v> for some rows: one product."""
        design, some = self.risk.design, np.empty(rows.size)
        columns, constant = design.split(v)
        design.matrix.dot_rows(rows, columns, some, design.n_threads)
        self.risk.products += 1
        return some + constant

    def to_columns(self, rows: Rows, u: Array) -> Array:
        """Return the sum of u_i x_i over some rows: one product."""
        everywhere = np.zeros(self.risk.design.n_rows)
        everywhere[rows] = u
        return self.pull_back(everywhere)

    def times(self, rows: Rows, c: Array, v: Array) -> Array:
        """Return X' diag(c) X v, where c is 0 outside the rows: two products."""
        return self.to_columns(rows, c[rows] * self.of_rows(rows, v))

    def diagonal(self, c: Array) -> Array:
        """Return sum_i c_i x_ij^2 for each column j: one product."""
        design = self.risk.design
        squares = np.empty(design.n_cols)
        design.matrix.squares(c, squares, design.n_threads)
        self.risk.products += 1
        return design.join(squares, float(np.sum(c)))
