"""Which solver for a smooth loss or a loss with kinks, by what the solvers cost: a part of `auto`."""

from __future__ import annotations

import numpy as np

from bmrm import _core
from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.linear import LinearRisk
from bmrm.solvers.base import Solver
from bmrm.solvers.dual_coordinate import DualCoordinate
from bmrm.solvers.lbfgs import LBFGS
from bmrm.solvers.newton import Newton
from bmrm.solvers.newton_system import MOST_COLUMNS
from bmrm.solvers.newton_wide import MOST_BLOCK_COLUMNS

_HARD_ROWS = 3.0  # q: beyond, semismooth Newton steps beat dual coordinate descent where columns are few
_HARD_RESIDUALS = 0.02  # the same, for losses of residuals
_HOPELESS_ROWS = 200.0  # c q: beyond, L-BFGS beats it where columns are many
_EASY = 100.0  # the condition number up to which L-BFGS needs a handful of steps

# One entry of X in one product costs 1; measured.
_NEWTON_STEPS, _EPOCHS = 6.0, 18.0
_ROW, _ROW_WITH_EXP = 60.0, 160.0  # what a row costs an epoch besides its entries
_ROW_OF_STEP = 20.0  # and a Newton step
_SPARSE_PAIR, _DENSE_PAIR = 0.5, 0.06  # two entries of a row, in X' diag(c) X
_CUBE = 0.04  # of the columns, in Cholesky's method


def for_smooth_rows(problem: Problem) -> list[Solver]:
    """Return the solvers for smooth losses of rows with l2, the best first.

    Newton's method takes about 6 steps, each of which forms and factors a matrix; dual coordinate descent takes about
    18 (1 + c q) epochs, q the mean of p_i |x_i|^2 / (lam s), c the largest second derivative of the loss. The cheaper
    one goes first. Where columns are too many for the matrix, L-BFGS is the rival: it wins where the condition number
    is small, at most c m q, and where rows are so hard that epochs do not get anywhere.
    """
    risk, q = problem.risk, curved_step(problem)
    if not isinstance(risk, LinearRisk) or not np.isfinite(q):
        return [Newton()]
    if risk.dim > MOST_COLUMNS:
        return [LBFGS(), Newton()] if is_easy(problem) or q > _HOPELESS_ROWS else [DualCoordinate(), LBFGS()]
    return [DualCoordinate(), Newton()] if _dual_cost(risk, q) < _newton_cost(risk) else [Newton()]


def for_wide_rows(problem: Problem) -> list[Solver]:
    """Return the solvers for smooth losses of several scores with l2, the best first.

    Newton's method needs the blocks of the classes for its conjugate gradients to be few; where there are too many
    columns for them, L-BFGS takes fewer products, but its planes say little where coordinates are free. It keeps few
    pairs and planes there: vectors as long as w cost as much as the data.
    """
    risk = problem.risk
    many = isinstance(risk, LinearRisk) and risk.design.n_cols > MOST_BLOCK_COLUMNS
    many = many and Trait.FREE_COORDINATES not in problem.traits
    return [LBFGS(memory=6, planes=4), Newton()] if many else [Newton(), LBFGS()]


def rows_are_hard(problem: Problem) -> bool:
    """Whether dual coordinate descent on rows with kinks would take many epochs."""
    assert isinstance(problem.risk, LinearRisk)
    knots = problem.risk.kernel.knots()
    of_residuals = knots is not None and knots[0] == "residual"
    return row_step(problem) > (_HARD_RESIDUALS if of_residuals else _HARD_ROWS)


def is_easy(problem: Problem) -> bool:
    """Whether a smooth problem's condition number is small in its own units: other ones could only make it larger."""
    q = curved_step(problem)
    return bool(np.isfinite(q)) and q * problem.risk.design.n_rows <= _EASY  # type: ignore[attr-defined]


def curved_step(problem: Problem) -> float:
    """Return c q; infinite where there is no such number."""
    risk = problem.risk
    if not problem.traits >= {Trait.CURVATURE, Trait.ROWS, Trait.QUADRATIC}:
        return np.inf
    if Trait.FREE_COORDINATES in problem.traits or not isinstance(risk, LinearRisk):
        return np.inf
    c = _core.largest_curvature(risk.kernel)
    return c * row_step(problem) if np.isfinite(c) else np.inf


def row_step(problem: Problem) -> float:
    """Return the mean of q_i = p_i <x_i, S^-1 x_i> / lam: by how much a change of its slope moves a row's own score."""
    risk, regularizer = problem.risk, problem.regularizer
    if not isinstance(risk, LinearRisk) or not isinstance(regularizer, Separable):
        return np.inf
    m = risk.design.n_rows
    squares = risk.norms**2
    s = np.broadcast_to(regularizer.s, squares.shape)
    total = float(np.sum(squares[s > 0.0] / s[s > 0.0]))
    return total / (problem.lam * m * m)


def _dual_cost(risk: LinearRisk, q: float) -> float:
    design = risk.design
    row = _ROW if Trait.PIECEWISE in risk.traits else _ROW_WITH_EXP
    return _EPOCHS * (1.0 + q) * (design.matrix.n_entries + row * design.n_rows)


def _newton_cost(risk: LinearRisk) -> float:
    design = risk.design
    m, entries = design.n_rows, design.matrix.n_entries
    pair = _DENSE_PAIR if entries == m * design.n_cols else _SPARSE_PAIR
    matrix = pair * entries**2 / m + _CUBE * design.n_cols**3
    return _NEWTON_STEPS * (matrix + 3.0 * entries + _ROW_OF_STEP * m)
