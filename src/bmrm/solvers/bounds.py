"""The bounds that a few planes prove, or a single one that is flat in the free directions."""

from __future__ import annotations

import numpy as np

from bmrm.bundle.master import Master, lower_bound, master_for
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array, Point
from bmrm.risks.linear import LinearRisk
from bmrm.risks.normal_error import norm_of
from bmrm.solvers.base import solve_master, takes_slopes

_REACHES = (10.0 ** np.arange(1, 16)).tolist()  # the master widens its intervals by 10 where they are too narrow
FEW_FREE = 1  # free coordinates for which the planes' box is worth its time
_NEARLY = 1e-6
_EPS = float(np.finfo(np.float64).eps)


class FlatBound:
    """The bound of one plane X'(p s), b whose slopes in the free directions are nothing but rounding.

    The slope sum_i p_i s_i x_ij counts as 0, but for its value at 2 w_j, if it is at most (8 + sqrt(m)) eps |p s|
    |X_j|: that is about what is lost when the sum is computed. No box is needed then, which the planes of many free
    coordinates, or of columns that depend on each other, do not give.

    Why that may be done: let e be the slopes left, f = X w + o the scores that s belongs to. The rows whose slopes have
    room on both sides can take slopes s + d with X_j'(p d) = -e_j for each free j, d of the size of e, if they span the
    free directions that the data have at all. The plane of s + d is flat, so its bound needs no box, and its offset
    sum_i p_i (s_i o_i - l*(s_i)) differs from b by -sum_i p_i d_i (f_i - o_i) = -<X'(p d), w> = <e, w> to first order
    in d: at most sum_j |e_j| |w_j|, of which twice as much is charged. The second order is that of eps^2. If the rows
    with room do not span those directions, it is taken for granted that slopes which cancel but for rounding cancel.

    Parameters
    ----------
    problem : Problem
        Of a linear risk and a separable regularizer.
    """

    def __init__(self, problem: Problem) -> None:
        assert isinstance(problem.risk, LinearRisk)
        assert isinstance(problem.regularizer, Separable)
        self.problem, self.regularizer = problem, problem.regularizer
        self.free = problem.regularizer.free
        self._norms: Array = np.empty(0)
        self.steep = False  # whether the last plane was far from flat: then it helps other planes little as well
        if self.free.size:
            self._norms = problem.risk.norms[self.free]

    def of(self, bundle: Bundle, a: Array, b: float, slopes: Array, w: Array, upper: float) -> float:
        """Return the bound; -inf where a free direction has a slope.

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
            What the bound will be compared with.
        """
        if not self.free.size:
            return -np.inf
        steepness = norm_of(slopes)
        size = steepness * self._norms
        noise = (8.0 + np.sqrt(slopes.size)) * _EPS * size
        self.steep = bool(np.any(np.abs(a[self.free]) > _NEARLY * size))
        box = np.full(a.size, np.inf)
        box[self.free] = np.where(np.abs(a[self.free]) <= noise, 2.0 * np.abs(w[self.free]), np.inf)
        errors = bundle.errors_of(steepness)
        bound = lower_bound(self.regularizer, self.problem.lam, bundle, a, b, box, errors, upper, w)
        return bound if np.isfinite(bound) else -np.inf


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
        w, errors = point.w, bundle.errors(np.eye(1, len(bundle), len(bundle) - 1)[0])
        newest = lower_bound(problem.regularizer, problem.lam, bundle, point.subgradient, b, np.inf, errors, upper, w)
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
