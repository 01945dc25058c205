"""The dual of the multiclass hinge loss with a quadratic regularizer: a point of a simplex for each row."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm.losses import MulticlassHinge
from bmrm.losses.vector import Classes
from bmrm.risks.base import Array
from bmrm.risks.dual import Dual, DualPoint, LevelPlane
from bmrm.risks.linear import LinearRisk

_LARGEST_ERROR = 1e-15


class ClassDual(Dual):
    """max over theta of sum_i p_i <theta_i, Delta(y_i)> - |X'L|^2 / (2 lam), L_i = p_i (theta_i - e_y).

    The norm is that of S^-1, each theta_i lies on the simplex of the classes. W = -S^-1 X'L / lam.

    Parameters
    ----------
    risk : LinearRisk
        Of the multiclass hinge loss.
    weights : array
        The diagonal of S, above 0.
    lam : float

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.risks.class_dual import ClassDual
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [0, 1], bmrm.losses.MulticlassHinge())
    >>> rows = ClassDual(risk, np.ones(2), lam=0.5)
    >>> point = rows.flat()
    >>> rows.epoch(point, key=1, reach=np.inf).changed, point.w.round(6)
    (1, array([ 0.5, -0.5]))
    """

    def __init__(self, risk: LinearRisk, weights: Array, lam: float) -> None:
        super().__init__(risk, weights, lam)
        loss, targets, design = cast(MulticlassHinge, risk.loss), cast(Classes, risk.targets), risk.design
        k, d = targets.k, design.n_cols
        self._ids, self._shape = targets.ids, (design.n_rows, k)
        self._delta = None if loss.delta is None else np.array(loss.delta)
        self._costs = loss.costs(k)
        inverse = np.broadcast_to(1.0 / weights, (risk.dim,)).reshape(-1, k)
        plain = bool(np.all(inverse[:d] == 1.0))
        constant = np.ascontiguousarray(inverse[d]) if design.intercept else None
        self._problem = (
            design.matrix, self._ids, self._delta, risk.weight, risk.scale, self._steps(inverse),
            None if plain else np.ascontiguousarray(inverse[:d]), constant, lam,
        )  # fmt: skip

    def _steps(self, inverse: Array) -> Array:
        """Return q_ic = p_i <x_i, S_c^-1 x_i> / lam, one column where all classes have the same."""
        design, risk = self.risk.design, self.risk
        if np.all(inverse == inverse[:, :1]):
            inverse = inverse[:, :1]
        q = np.empty((inverse.shape[1], design.n_rows))
        for column, out in zip(np.ascontiguousarray(inverse.T), q):
            _core.dual_steps(
                design.matrix, risk.weight, risk.scale, column, self.lam, design.intercept, out, risk.n_threads
            )
        return np.ascontiguousarray(q.T)

    def flat(self) -> DualPoint:
        """Return the point with slopes 0 and w = 0: theta_i = e_y."""
        return self._at(self._ids)

    def near(self, scores: Array) -> DualPoint:
        """Return the point whose slopes are those of the loss at the scores: one product."""
        point = self._at(np.argmax(scores.reshape(self._shape) + self._costs[self._ids], axis=1))
        self.renew(point, np.zeros_like(point.w))
        return point

    def _at(self, classes: npt.NDArray[Any]) -> DualPoint:
        m = self._shape[0]
        theta = np.zeros(self._shape)
        theta[np.arange(m), classes] = 1.0
        return DualPoint(np.zeros(self.risk.dim), theta.reshape(-1), np.empty(0), np.arange(m), m)

    def offset(self, point: DualPoint) -> float:
        """Return sum_i p_i <theta_i, Delta(y_i)>."""
        return float(self.risk.full_weight @ np.einsum("ic,ic->i", self._theta(point), self._costs[self._ids]))

    def _theta(self, point: DualPoint) -> Array:
        return point.s.reshape(self._shape)

    def _slopes(self, point: DualPoint) -> Array:
        return self._slopes_of(self._theta(point))

    def _slopes_of(self, theta: Array) -> Array:
        slopes: Array = theta.copy()
        slopes[np.arange(self._shape[0]), self._ids] -= 1.0
        slopes *= self.risk.full_weight[:, None]
        return slopes.reshape(-1)

    def levelled(self, point: DualPoint) -> LevelPlane:
        """Return the plane of theta after each class has come to its own share of the rows: one product."""
        p, theta = self.risk.full_weight, self._theta(point).copy()
        _core.level_classes(theta, self._ids, self.risk.weight, self.risk.scale)
        slopes = self._slopes_of(theta)
        b = np.einsum("ic,ic->i", theta, self._costs[self._ids])
        b -= _LARGEST_ERROR * (b + 1.0)  # a row of theta adds up to 1 but for rounding
        return LevelPlane(self.risk.pull_back(slopes, 0.0), float(p @ b), slopes)

    def _visit(self, point: DualPoint, key: int, reach: float) -> tuple[float, float, float, int, int, int]:
        W, active = point.w.reshape(-1, self._shape[1]), point.active[: point.n_active]
        return _core.wide_dual_epoch(*self._problem, W, self._theta(point), active, key, reach)

    def _look(self, point: DualPoint, scores: Array, reach: float) -> tuple[float, float, float, float, int]:
        risk, F = self.risk, scores.reshape(self._shape)
        return _core.wide_dual_check(
            F, self._ids, self._delta, risk.weight, risk.scale, self._theta(point), reach, point.active
        )
