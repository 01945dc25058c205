"""A proven box for free coordinates from the rows whose slopes have room, where one plane is flat in all of them."""

from __future__ import annotations

import numpy as np

from bmrm.bundle.box import farthest
from bmrm.bundle.charges import Errors, charged_dual, rounded_dual, worth
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk
from bmrm.risks.normal_error import UNIT, norm_of

_MOST_COLUMNS = 300  # a product for each, once: more free columns are no matter of a second
_WIDTHS = (1.0, 1e-2, 1e2, 1e-4, 1e4)  # of the root mean square of the scores: how far rows are looked at


class RowBox:
    """Bounds of the free coordinates v of each minimizer of J = lam Omega(u) + R(u, v).

    Let a plane P of R have the slopes s. A row's loss exceeds its part of P by a convex function F_i >= 0 of its score.
    With the scores f at a point w, F_i grows at least by D_i = min(l_i'(f_i + h) - s_i, s_i - l_i'(f_i - h)) beyond
    f_i +- h, so that
        R(w*) >= P(w*) + sum_i D_i (|x_i'(w* - w)| - h).
    J(w*) <= upper bounds the sum of D_i |x_i'(w* - w)|, hence |D X (w* - w)|. The least eigenvalue of X'D^2 X over the
    free columns, scaled to a diagonal of ones, then bounds v* - v.

    Parameters
    ----------
    problem : Problem
        Of a linear risk of one score for each row, and a separable regularizer.
    """

    def __init__(self, problem: Problem) -> None:
        assert isinstance(problem.risk, LinearRisk)
        assert isinstance(problem.regularizer, Separable)
        self.problem, self.risk, self.regularizer = problem, problem.risk, problem.regularizer
        self.free = problem.regularizer.free
        self.possible = problem.risk.n_outputs == 1 and self.free.size <= _MOST_COLUMNS
        self.dependent = False  # whether the free columns of the last call depended on each other, but for rounding
        self._columns: Array = np.empty((0, 0))

    def around(self, plane: tuple[Array, float], slopes: Array, errors: Errors, w: Array, upper: float) -> Array:
        """Return the bounds; inf where there is none.

        Parameters
        ----------
        plane : (a, b)
            P.
        slopes : array (m,)
            p s.
        errors : Errors
            Of a.
        w : array
            A point near the minimizer.
        upper : float
            An upper bound of min J.
        """
        self.dependent, none = False, np.full(self.free.size, np.inf)
        known = self._penalized(*plane, errors, upper)
        if not self.possible or known is None or not np.isfinite(upper):
            return none
        theta, gap, bend, middle = known
        e = np.abs(plane[0][self.free]) + errors.at(self.free, self.risk.dim)
        scores = self.risk.at(w).scores
        apart = self._apart(gap, bend, middle, w, upper)
        apart = apart[0] + (2.0 * errors.norm / bend if bend > 0.0 else 0.0), apart[1]
        size, box = max(norm_of(scores) / float(np.sqrt(scores.size)), 1e-3), none
        for width in _WIDTHS:
            found = self._with_width(width * size, theta, gap, apart, slopes, scores, e, w)
            if self.dependent:
                return none
            box = box if found is None else np.minimum(box, found)
            if float(e @ box) <= worth(upper - gap, upper):
                break
        return box

    def _penalized(self, a: Array, b: float, errors: Errors, upper: float) -> tuple[float, float, float, Array] | None:
        """Return theta, upper - min_u lam Omega(u) + theta P(u, 0) + (1 - theta) floor, the bend and the minimizer."""
        regularizer, lam, floor = self.regularizer, self.problem.lam, self.risk.floor
        box = np.full(a.size, np.inf)
        box[self.free] = 0.0
        charged = charged_dual(regularizer, lam, a, b, box, errors, -np.inf, floor)
        theta = regularizer.largest_multiple(charged.c, lam)
        if theta < 1.0 and not np.isfinite(floor):
            return None
        b = theta * (b - charged.charge) + ((1.0 - theta) * floor if theta < 1.0 else 0.0)
        value = rounded_dual(regularizer, lam, theta * charged.c, b, box)
        if not np.isfinite(value):
            return None
        squares = np.delete(np.broadcast_to(_squares(regularizer), a.shape), self.free)
        bend = lam * float(np.min(squares, initial=np.inf))
        middle = regularizer.dual(theta * charged.c, lam, box)[1]
        gap = max(upper - value, 0.0) + 1e-12 * abs(upper)  # upper may be a rounding error below min J
        return theta, gap, bend, middle

    def _apart(self, gap: float, bend: float, middle: Array, w: Array, upper: float) -> tuple[float, float]:
        """Return r0 and r1: the penalized part of w* is no farther from that of w than r0 + r1 times what v* adds."""
        if self.free.size == w.size:
            return 0.0, 0.0
        rest = np.delete(w, self.free)
        if not bend > 0.0:
            level = max(upper - self.risk.floor, 0.0) / self.problem.lam
            return farthest(self.regularizer, level) + norm_of(rest), 0.0
        least = max(gap, 1e-12 * abs(upper), 1e-300)  # sqrt(gap + x) <= sqrt(least) (1 + (gap + x) / least) / 2
        radius = float(np.sqrt(2.0 * least / bend))
        return norm_of(rest - np.delete(middle, self.free)) + radius, 0.5 * radius / least

    def _with_width(
        self,
        h: float,
        theta: float,
        gap: float,
        apart: tuple[float, float],
        slopes: Array,
        scores: Array,
        e: Array,
        w: Array,
    ) -> Array | None:
        """Return the bounds where rows are looked at this far from their scores; None if they do not do."""
        risk, v = self.risk, np.abs(w[self.free])
        ends = [risk.loss_and_slopes(scores + side)[1] for side in (-h, h)]
        room = np.minimum(slopes - ends[0], ends[1] - slopes)
        D = theta * np.maximum(room - 32.0 * UNIT * (np.abs(slopes) + np.abs(ends[0]) + np.abs(ends[1])), 0.0)
        if not (np.isfinite(D).all() and D.any()):
            return None
        X = self._free_columns() * D[:, None]
        sizes = np.sqrt(np.einsum("ij,ij->j", X, X))
        if not (np.isfinite(sizes).all() and sizes.min() > 0.0):
            return None
        least = _least_singular(X / sizes)
        if not least > 0.0:
            self.dependent = True
            return None
        near = 1.0 / (sizes * least)  # |v*_j - v_j| for each 1 of the sum of D_i |x_i'(w* - w)|
        kappa = norm_of(D) * risk.extent
        wrong = 8.0 * UNIT * (risk.norms @ np.abs(w) + norm_of(scores) + h * np.sqrt(D.size) + risk.shift_size)
        steep = 1.0 + kappa * apart[1]
        share = steep * float(e @ near)
        if not share < 0.5:
            return None
        far = gap + h * float(np.sum(D)) + norm_of(D) * wrong + kappa * apart[0] + steep * float(e @ v)
        box: Array = 1.01 * (v + near * far / (1.0 - share))
        return box

    def _free_columns(self) -> Array:
        """Return the free columns of X: a product for each, once."""
        if not self._columns.size:
            columns = []
            for j in self.free.tolist():
                unit = np.zeros(self.risk.dim)
                unit[j] = 1.0
                self.risk.products += 1
                columns.append(self.risk.design.dot(unit))
            self._columns = np.array(columns).T
        return self._columns


def _least_singular(X: Array) -> float:
    """Return a positive lower bound of the least singular value; 0 if none is sure. Columns have length 1."""
    m, r = X.shape
    unit = UNIT * 2.0 * (m + 16.0) * r  # of the sums and of the eigenvalues
    least = float(np.linalg.eigvalsh(X.T @ X)[0]) - unit
    if least > 4.0 * unit:
        return float(np.sqrt(least))
    unit = UNIT * 4.0 * (m + r) * float(np.sqrt(r))
    least = float(np.linalg.svd(X, compute_uv=False)[-1]) - unit if m >= r else 0.0
    return least if least > 4.0 * unit else 0.0


def _squares(regularizer: Separable) -> Array | float:
    return regularizer.parts[1] if regularizer.s.any() else 0.0
