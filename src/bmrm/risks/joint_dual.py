"""The dual of joint losses with a quadratic regularizer: label sets, and classes of a tree."""

from __future__ import annotations

from abc import abstractmethod
from typing import cast

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm.losses import HierarchicalHinge, MultilabelHinge
from bmrm.losses.multilabel import LabelSets
from bmrm.losses.vector import Classes
from bmrm.risks.base import Array
from bmrm.risks.dual import Dual, DualPoint, LevelPlane
from bmrm.risks.linear import LinearRisk

_LARGEST_ERROR = 1e-15


class JointDual(Dual):
    """max over theta of sum_i p_i offset_i(theta_i) - |X'L|^2 / (2 lam), L_i = p_i l_i(theta_i).

    The norm is that of S^-1, each theta_i lies in the hull of the vertices of its row's loss, which is the largest of
    offset(v) + <l(v), f>. W = -S^-1 X'L / lam.

    Parameters
    ----------
    risk : LinearRisk
        Of the multilabel or the hierarchical hinge loss.
    weights : array
        The diagonal of S, above 0.
    lam : float
    """

    def __init__(self, risk: LinearRisk, weights: Array, lam: float) -> None:
        super().__init__(risk, weights, lam)
        design, k = risk.design, risk.n_outputs
        d = design.n_cols
        self._rows, self._width = self._compiled()
        inverse = np.broadcast_to(1.0 / weights, (risk.dim,)).reshape(-1, k)
        plain = bool(np.all(inverse[:d] == 1.0))
        self._constant = inverse[d].copy() if design.intercept else None
        self._problem = (
            design.matrix, risk.weight, risk.scale, self._steps(inverse[:d]),
            None if plain else np.ascontiguousarray(inverse[:d]), self._constant, lam,
        )  # fmt: skip

    @abstractmethod
    def _compiled(self) -> tuple[_core.JointRows, int]:
        """Return the compiled rows and how many numbers theta_i has."""

    def _steps(self, inverse: Array) -> Array:
        """Return q_iv = p_i <x_i, S_v^-1 x_i> / lam without the constant, one column where all scores have the same."""
        design, risk = self.risk.design, self.risk
        if np.all(inverse == inverse[:, :1]):
            inverse = inverse[:, :1]
        q = np.empty((inverse.shape[1], design.n_rows))
        for column, out in zip(np.ascontiguousarray(inverse.T), q):
            _core.dual_steps(design.matrix, risk.weight, risk.scale, column, self.lam, False, out, risk.n_threads)
        return np.ascontiguousarray(q.T)

    def hold(self, free: npt.NDArray[np.intp], weights: Array) -> bool:
        """Change the weights of free constants; the caller changes w."""
        assert self._constant is not None
        self._plain = False
        self.weights[free] = weights
        self._constant[free - (self.risk.dim - self.risk.n_outputs)] = 1.0 / weights
        return True

    def flat(self) -> DualPoint:
        """Return the point with slopes 0 and w = 0."""
        return self._point(self._flat_theta())

    @abstractmethod
    def _flat_theta(self) -> Array:
        """Return the theta with slopes 0."""

    def near(self, scores: Array) -> DualPoint:
        """Return the point whose slopes are those of the loss at the scores: one product."""
        theta = np.empty((self.risk.design.n_rows, self._width))
        self._rows.best(self.risk.by_rows(scores), theta)
        point = self._point(theta)
        self.renew(point, np.zeros_like(point.w))
        return point

    def _point(self, theta: Array) -> DualPoint:
        m = len(theta)
        return DualPoint(np.zeros(self.risk.dim), theta.reshape(-1), np.empty(0), np.arange(m), m)

    def _theta(self, point: DualPoint) -> Array:
        return point.s.reshape(-1, self._width)

    def _slopes(self, point: DualPoint) -> Array:
        return self._slopes_of(self._theta(point))

    def _slopes_of(self, theta: Array) -> Array:
        out = np.empty((len(theta), self.risk.n_outputs))
        self._rows.slopes(theta, self.risk.weight, self.risk.scale, out)
        return out.reshape(-1)

    def offset(self, point: DualPoint) -> float:
        """Return sum_i p_i offset_i(theta_i)."""
        return float(self.risk.full_weight @ self._offsets(self._theta(point)))

    def _offsets(self, theta: Array) -> Array:
        out = np.empty(len(theta))
        self._rows.offsets(theta, out)
        return out

    def levelled(self, point: DualPoint) -> LevelPlane:
        """Return the plane of a theta near that of the point whose slopes add up to 0 in each score: one product."""
        theta = self._theta(point).copy()
        self._rows.level(theta, self.risk.weight, self.risk.scale)
        slopes, b = self._slopes_of(theta), self._offsets(theta)
        b -= _LARGEST_ERROR * (b + 1.0)  # sums within a row are rounded
        return LevelPlane(self.risk.pull_back(slopes, 0.0), float(self.risk.full_weight @ b), slopes)

    def _visit(self, point: DualPoint, key: int, reach: float) -> tuple[float, float, float, int, int, int]:
        W, active = point.w.reshape(-1, self.risk.n_outputs), point.active[: point.n_active]
        return self._rows.epoch(*self._problem, W, self._theta(point), active, key, reach)

    def _look(self, point: DualPoint, scores: Array, reach: float) -> tuple[float, float, float, float, int]:
        risk = self.risk
        F, theta = risk.by_rows(scores), self._theta(point)
        return self._rows.check(F, risk.weight, risk.scale, theta, reach, point.active)


class LabelDual(JointDual):
    """Label sets: theta_i is the slope itself.

    It is at least 0 for wrong labels and at most 0 for true ones; its positive part adds up to rho_i <= 1, its negative
    part to -rho_i, and the offset is rho_i times the margin.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.risks.joint_dual import LabelDual
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [{0}, {1}], bmrm.losses.MultilabelHinge())
    >>> rows = LabelDual(risk, np.ones(2), lam=0.5)
    >>> point = rows.flat()
    >>> rows.epoch(point, key=1, reach=np.inf).changed, point.w.round(6)
    (1, array([ 0.5, -0.5]))
    """

    def _compiled(self) -> tuple[_core.JointRows, int]:
        targets, loss = cast(LabelSets, self.risk.targets), cast(MultilabelHinge, self.risk.loss)
        return _core.JointRows.of_labels(targets.indptr, targets.labels, targets.k, loss.margin), targets.k

    def _flat_theta(self) -> Array:
        return np.zeros((self.risk.design.n_rows, self._width))


class TreeDual(JointDual):
    """Classes of a tree: theta_i lies on the simplex of the classes, its slopes are sums over what is below a node.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.risks.joint_dual import TreeDual
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, 3], bmrm.losses.HierarchicalHinge())
    >>> rows = TreeDual(risk, np.ones(4), lam=0.5)
    >>> point = rows.flat()
    >>> rows.epoch(point, key=1, reach=np.inf).changed
    2
    """

    def _compiled(self) -> tuple[_core.JointRows, int]:
        targets, loss = cast(Classes, self.risk.targets), cast(HierarchicalHinge, self.risk.loss)
        self._ids, costs, classes = targets.ids, loss.costs(), loss.classes()
        parents = np.array(loss.tree.parents, dtype=np.int64)
        return _core.JointRows.of_tree(parents, classes, self._ids, costs), classes.size

    def _flat_theta(self) -> Array:
        theta = np.zeros((self._ids.size, self._width))
        theta[np.arange(self._ids.size), self._ids] = 1.0
        return theta
