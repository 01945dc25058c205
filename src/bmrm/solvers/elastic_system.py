"""Newton's model with absolute values: <g, z - w> + (z - w)'X' diag(c) X(z - w)/2 + sum_j u_j |z_j| + r_j z_j^2/2."""

from __future__ import annotations

from typing import cast

import numpy as np

from bmrm import _core
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array
from bmrm.risks.columns import ColumnModel, Indices, Penalty
from bmrm.risks.curvature import RowCurvature
from bmrm.risks.kept_gram import KeptGram
from bmrm.risks.linear import LinearRisk
from bmrm.solvers import small_lasso
from bmrm.solvers.cholesky import factored
from bmrm.solvers.newton_system import RIDGE

_LEVENBERG = 1e-10
_EPOCHS = 200
_TOL = 1e-3  # of the violation of optimality before
_MOST_BY_FACES = 200  # coordinates
_FACES = 40
_OVER = 1e-9  # of its threshold: so far over it a coordinate may stay at 0
_NEAR = 0.95  # of the threshold: from there a coordinate at 0 may leave it


class ElasticSystem:
    """Minimizes the model by coordinate descent, over the coordinates that are not 0 or may leave it.

    Up to so many columns the matrix is formed, of the rows with c_i > 0 alone; above, the descent reads the data by
    columns. A tiny proximal term keeps the model bounded, as rows with curvature may be fewer than columns.

    Parameters
    ----------
    problem : Problem
        Of a linear risk and a regularizer of absolute values and squares, without bounds.
    most_columns : int
        Up to so many columns the matrix is formed.
    gram : KeptGram
        The last matrix.
    """

    def __init__(self, problem: Problem, most_columns: int, gram: KeptGram) -> None:
        self.risk = cast(LinearRisk, problem.risk)
        regularizer, d = cast(Separable, problem.regularizer), self.risk.dim
        u, r = (problem.lam * np.broadcast_to(part, d) for part in regularizer.parts)
        self.penalty = Penalty(u, r, np.full(d, -np.inf), np.full(d, np.inf))
        self.curvature, self.gram = RowCurvature(self.risk), gram
        self.model = None if d <= most_columns else ColumnModel(self.risk)
        self.whole = self.curvature.diagonal(self.risk.full_weight)
        self.diagonal: Array = np.where(self.whole > 0.0, self.whole, 1.0)  # of the last matrix

    def minimize(self, w: Array, g: Array, c: Array, sigma: float) -> Array:
        """Return the model's minimizer.

        Parameters
        ----------
        w, g : arrays
            The point, and the gradient of the smooth part of the risk there.
        c : array
            The rows' curvatures, weights included.
        sigma : float
            The largest curvature that a row can have, apart from its weight.
        """
        violation = self.penalty.violation(w, g, slice(None))
        near = (w != 0.0) | (np.abs(g) >= _NEAR * self.penalty.u)
        working = np.flatnonzero(near).astype(np.int64)
        if not working.size:
            return w
        tol = _TOL * float(violation.max(initial=0.0))
        if self.model is not None:
            c = c + _LEVENBERG * sigma * self.risk.full_weight
            diagonal = self.curvature.diagonal(c)
            self.diagonal = np.where(diagonal > 0.0, diagonal, 1.0)
            return self.model.minimize(c, g, w, working, self.penalty, tol, _EPOCHS)
        H = self.gram.at(self.curvature, c).copy()
        places = np.arange(w.size)
        H[places, places] += _LEVENBERG * sigma * self.whole
        self.diagonal = np.where(H[places, places] > 0.0, H[places, places], 1.0)
        lower = H if working.size == w.size else H[np.ix_(working, working)]
        return self._descended(np.tril(lower) + np.tril(lower, -1).T, w, g, working, tol)

    def _descended(self, H: Array, w: Array, g: Array, working: Indices, tol: float) -> Array:
        parts, moved = self.penalty.at(working), w.copy()
        z = by_faces(H, g[working], w[working], *parts[:2]) if working.size <= _MOST_BY_FACES else None
        if z is None:
            z = w[working]
            epochs, _ = _core.descend_with_matrix(H.reshape(-1), g[working], *parts, z, tol, _EPOCHS)
            if epochs >= _EPOCHS and working.size <= small_lasso.MOST_COORDINATES:
                z = small_lasso.minimize(H, g[working], w[working], *parts[:2])
        moved[working] = z
        return moved


def by_faces(H: Array, g: Array, w: Array, u: Array, r: Array) -> Array | None:
    """Return the model's minimizer by steps from face to face, the coordinates at 0 and the others' signs; or None.

    On a face the model is quadratic. A step to its minimum ends where the first coordinate would change its sign,
    which stays at 0 from there; where none does, the coordinate at 0 farthest over its threshold may leave it. Near
    the solution of a Newton method the first face is the right one.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.solvers.elastic_system import by_faces
    >>> by_faces(np.eye(2), np.array([-3.0, 0.5]), np.zeros(2), np.ones(2), np.zeros(2)).round(6)
    array([2., 0.])
    """
    moving = (w != 0.0) | (np.abs(g) > u)
    signs, z, slope = np.where(w != 0.0, np.sign(w), -np.sign(g)), w.copy(), g + r * w
    scaling = 1.0 / np.sqrt(np.maximum(H.diagonal() + r, 1e-300))
    M = H * scaling * scaling[:, None]
    M.reshape(-1)[:: len(M) + 1] = 1.0
    for _ in range(_FACES):
        face = moving.nonzero()[0]
        c, pull = scaling[face], slope[face] + u[face] * signs[face]
        step = np.zeros_like(w)
        step[face] = -c * factored(M[face[:, None], face], RIDGE)(c * pull) if face.size else 0.0
        crosses = moving & (u > 0.0) & ((z + step) * signs <= 0.0)
        ways = np.divide(z, -step, out=np.full_like(z, np.inf), where=crosses & (step != 0.0))
        first = int(np.argmin(ways))
        t = min(1.0, float(ways[first]))
        z, slope = z + t * step, slope + t * (H @ step + r * step)
        if crosses.any():
            z[first], moving[first] = 0.0, False
            continue
        excess = np.where(moving, 0.0, np.abs(slope) - u)
        worst = int(np.argmax(excess))
        if excess[worst] <= _OVER * u[worst]:
            return z
        moving[worst], signs[worst] = True, -np.sign(slope[worst])
    return None
