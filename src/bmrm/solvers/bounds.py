"""The bounds that a few planes prove, or a single one that is flat in the free directions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bmrm.bundle.charges import Errors, worth
from bmrm.bundle.master import Master, lower_bound, master_for
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array, Point
from bmrm.risks.linear import LinearRisk
from bmrm.risks.normal_error import MORE, UNIT, norm_of
from bmrm.solvers.base import solve_master, takes_slopes
from bmrm.solvers.constant_box import constant_box
from bmrm.solvers.row_box import RowBox

_REACHES = (10.0 ** np.arange(1, 16)).tolist()  # the master widens its intervals by 10 where they are too narrow
FEW_FREE = 1  # free coordinates for which the planes' box is worth its time
_NEARLY = 1e-6
_NEAR = 2.0  # times w: where a minimizer is taken to be if nothing proves it
_EPS = float(np.finfo(np.float64).eps)


class FlatBound:
    """The bound of one plane X'(p s), b whose slopes in the free directions are nothing but rounding.

    That is assumed of slopes |sum_i p_i s_i x_ij| <= (8 + sqrt(m)) eps |p s| |X_j|. They and the rounding in them are
    charged against a box that needs no other planes: constants have that of `constant_box`, other free columns that of
    `RowBox`. Where neither proves a box there is no bound, with one exception. If free columns depend on each other but
    for rounding, or are too many, or a row has several scores, or the risk has no floor, they are charged for 2 w_j: it
    is taken for granted that a minimizer is not much farther away than w.

    The slopes of constants are summed in long double: their products with the data have one rounding for each row.

    Parameters
    ----------
    problem : Problem
        Of a linear risk and a separable regularizer.
    """

    def __init__(self, problem: Problem) -> None:
        assert isinstance(problem.risk, LinearRisk)
        assert isinstance(problem.regularizer, Separable)
        self.problem, self.risk, self.regularizer = problem, problem.risk, problem.regularizer
        self.free = problem.regularizer.free
        self._norms: Array = np.empty(0)
        self._constants = set(self.free.tolist()) <= set(problem.risk.unpenalized)
        self._constant_box: Array | None = None
        self._rows = RowBox(problem)
        self.steep = False  # whether the last plane was far from flat: then it helps other planes little as well
        if self.free.size:
            self._norms = problem.risk.norms[self.free]

    def of(self, bundle: Bundle, a: Array, b: float, slopes: Array, w: Array, upper: float) -> float:
        """Return the bound; -inf where a free direction has a slope, or no box.

        Parameters
        ----------
        bundle : Bundle
            With the floor of the risk.
        a, b : array, float
            The plane.
        slopes : array (m,)
            p s, what the plane's slope is the sum of.
        w : array
            A point near the minimizer.
        upper : float
            What the bound will be compared with: an upper bound of min J.
        """
        if not self.free.size:
            return -np.inf
        steepness = norm_of(slopes)
        size = steepness * self._norms
        noise = (8.0 + np.sqrt(slopes.size)) * _EPS * size
        self.steep = bool(np.any(np.abs(a[self.free]) > _NEARLY * size))
        if np.any(np.abs(a[self.free]) > noise):
            return -np.inf
        errors = bundle.errors_of(steepness)
        if self._constants:
            a, errors = self._summed(a, slopes, steepness, errors)
        box = np.full(a.size, np.inf)
        box[self.free] = np.abs(w[self.free])
        known = bundle, a, b, box, errors, upper
        if not lower_bound(self.regularizer, self.problem.lam, *known) > bundle.floor:
            return -np.inf  # the box, which is larger, would be sought in vain
        box[self.free] = self._box((a, b), slopes, errors, w, upper)
        bound = lower_bound(self.regularizer, self.problem.lam, *known)
        return bound if np.isfinite(bound) else -np.inf

    def _box(self, plane: tuple[Array, float], slopes: Array, errors: Errors, w: Array, upper: float) -> Array:
        box: Array = np.full(self.free.size, np.inf)
        if self._constants:
            if self._constant_box is None:
                self._constant_box = constant_box(self.problem)
            box = self._constant_box
            e = np.abs(plane[0][self.free]) + errors.at(self.free, self.risk.dim)
            if float(e @ box) <= worth(upper, upper):
                return box
        box = np.minimum(box, self._rows.around(plane, slopes, errors, w, upper))
        if self._rows.dependent or not (self._rows.possible and np.isfinite(self.risk.floor)):
            return np.where(np.isfinite(box), box, _NEAR * np.abs(w[self.free]))
        return box

    def _summed(self, a: Array, slopes: Array, steepness: float, errors: Errors) -> tuple[Array, Errors]:
        """Return the normal with its slopes in the constants summed anew, and the errors that are left."""
        k, m = self.risk.n_outputs, self.risk.design.n_rows
        sums = slopes.reshape(m, k).sum(axis=0, dtype=np.longdouble) + np.longdouble(self.risk.loss.tilt)
        a = a.copy()
        a[self.risk.dim - k :] = sums
        depth = 1.0 + MORE + m * float(np.finfo(np.longdouble).eps) / _EPS
        constant = min(errors.constant, UNIT * depth * steepness * float(np.sqrt(m)))

        def each() -> Array:
            e = errors.each().copy()
            e[self.risk.dim - k :] = constant
            return e

        return a, replace(errors, constant=constant, each=each)


def bound_with(
    problem: Problem, master: Master, bundle: Bundle, upper: float, point: Point, tol: float, helps: float
) -> float:
    """Add the plane at the point and return the bound of all planes, or its own where the others make no difference.

    That is where it closes the relative gap asked for, or leaves more than `helps` times that: then no mixture of
    planes would close it. The master costs as much as a pass over small data.
    """
    known = len(bundle)
    bundle.add_point(point)
    if takes_slopes(problem) and bundle.space is None and known < len(bundle) < bundle.max_cuts:
        b = float(bundle.offsets[-1])
        errors = bundle.errors(np.eye(1, len(bundle), len(bundle) - 1)[0])
        newest = lower_bound(problem.regularizer, problem.lam, bundle, point.subgradient, b, np.inf, errors, upper)
        if not tol * abs(upper) < upper - newest <= helps * tol * abs(upper):
            return newest
    return solve_master(problem, master, bundle, upper, point.w).lower


def bound_of(problem: Problem, master: Master, bundle: Bundle, upper: float, w: Array) -> float:
    """Return the bound of the planes.

    With free coordinates a master is made anew: what it remembers of them decides how good its bound is, and a
    resumed run has a master without a past.
    """
    free = getattr(problem.regularizer, "free", np.empty(0, np.intp))
    if not free.size:
        return solve_master(problem, master, bundle, upper, w).lower
    master, lower = master_for(problem.regularizer), -np.inf
    for reach in _REACHES:
        solution = solve_master(problem, master, bundle, upper, w)
        lower = max(lower, solution.lower)
        if np.abs(solution.w[free]).max() <= 0.9 * reach:
            break
    return lower
