"""Which solver for a smooth loss or a loss with kinks, by what the solvers cost: a part of `auto`."""

from __future__ import annotations

import numpy as np

from bmrm import _core
from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk
from bmrm.solvers.base import Solver
from bmrm.solvers.dual_coordinate import DualCoordinate
from bmrm.solvers.lbfgs import LBFGS
from bmrm.solvers.newton import Newton
from bmrm.solvers.newton_system import MOST_COLUMNS, SAMPLE, is_sampled, matrix_cost, rows_are_few
from bmrm.solvers.newton_wide import MOST_BLOCK_COLUMNS, rows_of_blocks
from bmrm.solvers.row_lbfgs import RowLBFGS

# q, at least and in multiples of what forming the matrix costs in passes: beyond, semismooth Newton steps beat dual
# coordinate descent to 1e-3 where columns are few (hinge; the matrix, and q at the tie: 1000 to 100000 x 10 dense 0.6,
# 3 to 1; ijcnn1 2.2, 1.7; gen_dense 3, 1.7; a9a 7, 3.6; mnist 75, 30).
_HARD_ROWS, _HARD_FOR_MATRIX = 2.0, 0.45
# The share of that from which on Newton steps go on from 1e-3 of J as soon as the gap is not halved (hinge to 1e-6:
# mnist, 1e-4, share 0.4, 1.9 s, 3.0 without; a9a, 1e-3, share 0.1, 102 ms, 38 without; residuals: 1.2 to 1.7 times
# slower).
_NEARLY = 0.3
_HARD_RESIDUALS = 0.1  # the same, for losses of residuals: below, epochs take 0.3 to 0.9 of the time of steps
# q: beyond, the bundle method beats it where columns are many and rows on kinks are not few (news20, 1e-6, after 15 s:
# a bound of 0.034 and 0.024, where J is 0.035).
_EXTREME_ROWS = 2e4
_EASY_ROWS = 60.0  # m q: up to here the bundle method takes 3 to 8 steps to 1e-3 or 1e-6, beyond 7 to 40 (hinge)
# c q: beyond, Newton steps beat it where columns are many. For squared_hinge 3 times slower at 100 (gen_text), 1.3
# times faster at 129 (reuters); for logistic, whose rows are never left out, a tie at 25, twice as fast at 32.
_HOPELESS_ROWS, _HOPELESS_WITH_EXP = 200.0, 28.0
# Fraction and passes of epochs before L-BFGS in the space of the rows: the bound that epochs find is far better, the
# point of L-BFGS is, and it takes half its steps or less from there. squared_hinge to 1e-3, with epochs and without:
# news20, 1e-5, 1.8 s and 4.2; 20news_bigram, 1e-5, 6.1 and 19; logistic, 8 passes: news20, 1e-5, 0.8 and 1.5.
_FIRST = 1e-3, 20.0
_EASY = 100.0  # the condition number up to which L-BFGS needs a handful of steps
# The same, against epochs with exponentials: 1.1 and 1.2 times slower at 2500 (gen_text, reuters), 1.1 times faster at
# 250.
_EASY_WITH_EXP = 1000.0
_EASY_WIDE = 500.0  # m q: the same for losses of several scores, against steps that factor a block for each class
_CHEAP_BLOCKS = 1.0  # passes: what those blocks may cost for the steps to go first at any m q (letter: half a pass)
# The share of the rows that have curvature at the minimum of a piecewise loss, where rows are hard (farm_ads: 0.28 to
# 0.4). If their system can be factored, Newton steps after some epochs beat L-BFGS (squared_hinge, 1e-6: 0.43 s and 2.1
# to 1e-3, 0.6 and 5.4 to 1e-6), from whose points few rows have any.
_BENT = 0.5
_BETWEEN = 1e-9  # from a slope to that of a piece of the loss
# Passes of dual coordinate descent that a Newton step by the system of the rows on kinks is taken to save: 60, as if by
# conjugate gradients (farm_ads, 1600 of its rows, 50 ms; reuters, 1150, 20 ms).
_EPOCHS_SAVED = 60.0
_WIDE = 3.0  # columns for each row: beyond, L-BFGS is faster in the space of the rows (2: a tie; 3.9: 1.5 times faster)

# One entry of X in one product costs 1; measured.
_NEWTON_STEPS, _EPOCHS = 6.0, 18.0
_ROW, _ROW_WITH_EXP = 60.0, 160.0  # what a row costs an epoch besides its entries
_ROW_OF_STEP = 20.0  # and a Newton step
_SAMPLED_PRODUCTS = 30.0  # of a step by conjugate gradients, preconditioned by a sample
_CUBE = 0.04  # of the columns, in Cholesky's method


def for_smooth_rows(problem: Problem) -> list[Solver]:
    """Return the solvers for smooth losses of rows with l2, the best first.

    Newton's method takes about 6 steps, each of which forms and factors a matrix; dual coordinate descent takes about
    18 (1 + c q) epochs, q the mean of p_i |x_i|^2 / (lam s), c the largest second derivative of the loss. The cheaper
    one goes first. Where columns are too many for the matrix, L-BFGS wins where the condition number is small, at most
    c m q, and Newton steps by conjugate gradients where rows are so hard that epochs do not get anywhere. With many
    more columns than rows some epochs come first in any case, then L-BFGS in the space of the rows, where few steps do
    not pay, or Newton steps by the system of the rows with curvature, if these are few enough.
    """
    risk, q = problem.risk, curved_step(problem)
    if not isinstance(risk, LinearRisk) or not np.isfinite(q):
        return [Newton()]
    if risk.dim > MOST_COLUMNS:
        return _for_many_columns(risk, q)
    return [DualCoordinate(), Newton()] if _dual_cost(risk, q) < _newton_cost(risk) else [Newton()]


def _for_many_columns(risk: LinearRisk, q: float) -> list[Solver]:
    """Return dual coordinate descent and its rivals in the better order; columns are too many to form a matrix."""
    m, with_exp = risk.design.n_rows, Trait.PIECEWISE not in risk.traits
    wide, hard = risk.dim > _WIDE * m, not with_exp and q > _HOPELESS_ROWS
    if wide and hard:
        if rows_are_few(_BENT * m, risk.design.matrix.n_entries):
            return [DualCoordinate(passes=16.0), Newton(), RowLBFGS()]
        return [DualCoordinate(*_FIRST), RowLBFGS(), Newton()]
    if q * m <= (_EASY_WITH_EXP if with_exp and not wide else _EASY):
        return [LBFGS(), Newton()]
    if wide:
        return [DualCoordinate(), RowLBFGS(), Newton()]
    hopeless = q > (_HOPELESS_WITH_EXP if with_exp else _HOPELESS_ROWS)
    return [Newton(), LBFGS()] if hopeless else [DualCoordinate(), Newton(), LBFGS()]


def for_wide_rows(problem: Problem) -> list[Solver]:
    """Return the solvers for smooth losses of several scores with l2, the best first.

    Newton's method needs the blocks of the classes for its conjugate gradients to be few; where there are too many
    columns for them, L-BFGS takes fewer products, but its planes say little where constants are free. It keeps few
    pairs and planes there, for vectors as long as w cost as much as the data, or works in the space of the rows where
    those are far fewer than the columns. With few columns it goes first where the condition number is small, unless
    the blocks cost next to nothing.
    """
    risk = problem.risk
    assert isinstance(risk, LinearRisk)
    if Trait.FREE_COORDINATES in problem.traits:
        only_constants = tuple(getattr(problem.regularizer, "free", ())) == risk.unpenalized
        return [Newton(), LBFGS()] if only_constants else [LBFGS()]
    if risk.design.n_cols > MOST_BLOCK_COLUMNS:
        in_rows = risk.design.n_cols > _WIDE * risk.design.n_rows
        return [RowLBFGS(memory=10, planes=8) if in_rows else LBFGS(memory=6, planes=4), Newton()]
    q = row_step(problem) / risk.n_outputs
    easy = q * risk.design.n_rows <= _EASY_WIDE and _block_passes(risk) > _CHEAP_BLOCKS
    return [LBFGS(), Newton()] if easy else [Newton(), LBFGS()]


def _block_passes(risk: LinearRisk) -> float:
    """Return what the blocks of the classes cost a Newton step, in passes over the data."""
    d, rows = risk.design.n_cols, rows_of_blocks(risk.design.n_rows, risk.design.n_cols)
    return rows * d * d / (2.0 * max(risk.design.matrix.n_entries, 1))


def rows_are_hard(problem: Problem) -> bool:
    """Whether dual coordinate descent on rows with kinks would take many epochs for what Newton steps cost."""
    if _of_residuals(problem):
        return row_step(problem) > _HARD_RESIDUALS
    return row_step(problem) > _hard_step(problem)


def rows_are_nearly_hard(problem: Problem) -> bool:
    """Whether it should begin, but not go on from 1e-3 of J where it is slow: losses of margins."""
    return not _of_residuals(problem) and row_step(problem) > _NEARLY * _hard_step(problem)


def _hard_step(problem: Problem) -> float:
    assert isinstance(problem.risk, LinearRisk)
    design = problem.risk.design
    passes = matrix_cost(design.n_cols, design.matrix.n_entries / max(design.n_rows, 1))
    return max(_HARD_ROWS, _HARD_FOR_MATRIX * passes)


def kinks_are_few(problem: Problem, slopes: Array | None) -> bool:
    """Whether the system of the rows on kinks, by the slopes of a point of the dual, costs little in a Newton step.

    A row counts where its slope is neither 0 nor the least nor the largest of them all: hinge and absolute losses have
    no other pieces; where a loss has more, too many rows count.
    """
    risk = problem.risk
    if slopes is None or not isinstance(risk, LinearRisk):
        return False
    sizes = np.minimum(np.abs(slopes), np.minimum(slopes - slopes.min(), slopes.max() - slopes))
    n_between = int(np.count_nonzero(sizes > _BETWEEN))
    return rows_are_few(n_between, risk.design.matrix.n_entries, _EPOCHS_SAVED)


def suit_planes(problem: Problem, few_columns: bool) -> bool:
    """Whether rows with kinks suit the bundle method: a handful of planes is enough, or epochs would not arrive."""
    risk, q = problem.risk, row_step(problem)
    assert isinstance(risk, LinearRisk)
    if _of_residuals(problem):
        return False
    m, n_entries = risk.design.n_rows, risk.design.matrix.n_entries
    if few_columns:
        return q * m <= _EASY_ROWS
    return q > _EXTREME_ROWS and not rows_are_few(_BENT * m, n_entries)


def _of_residuals(problem: Problem) -> bool:
    assert isinstance(problem.risk, LinearRisk)
    knots = problem.risk.kernel.knots()
    return knots is not None and knots[0] == "residual"


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
    m, s = risk.design.n_rows, np.broadcast_to(regularizer.s, (risk.dim,))
    if s[0] > 0.0 and (regularizer.s.size == 1 or np.all(s == s[0])):
        return risk.extent**2 / (float(s[0]) * problem.lam * m * m)
    squares = risk.norms**2
    total = float(np.sum(squares[s > 0.0] / s[s > 0.0]))
    return total / (problem.lam * m * m)


def _dual_cost(risk: LinearRisk, q: float) -> float:
    design = risk.design
    row = _ROW if Trait.PIECEWISE in risk.traits else _ROW_WITH_EXP
    return _EPOCHS * (1.0 + q) * (design.matrix.n_entries + row * design.n_rows)


def _newton_cost(risk: LinearRisk) -> float:
    design = risk.design
    m, entries = design.n_rows, design.matrix.n_entries
    matrix = matrix_cost(design.n_cols, entries / m) * entries
    if is_sampled(m, design.n_cols, entries / m):
        matrix = matrix / SAMPLE + _SAMPLED_PRODUCTS * entries
    matrix += _CUBE * design.n_cols**3
    return _NEWTON_STEPS * (matrix + 3.0 * entries + _ROW_OF_STEP * m)
