"""The smoothed risk of the proximal point method: every row's loss replaced by its envelope around a slope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm import _core
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Smoothed:
    """The envelope's rows at some scores.

    Attributes
    ----------
    z : array
        The scores at which the loss itself has the slopes.
    slopes : array
        s_i = M_i'(f_i), a subgradient of the loss at z_i: a feasible point of the dual.
    bends : array
        M_i''(f_i); 0 on linear pieces, 1/q on a kink.
    """

    z: Array
    slopes: Array
    bends: Array


class Envelope:
    """sum_i p_i M_i(f_i),   M_i(f) = min_z l_i(z) + s_i (f - z) + (f - z)^2 / (2 q),   s the center.

    Each M_i is differentiable, with the slope s_i + (f - z) / q at f, and lies below l_i by at most q/2 times the
    squared distance of its slope from the center's.

    Parameters
    ----------
    risk : LinearRisk
        With a compiled loss (trait ROWS).
    center : array
        One slope for each row.
    q : float
        The width, above 0.
    """

    def __init__(self, risk: LinearRisk, center: Array, q: float) -> None:
        self.risk, self.center, self.q = risk, center, q
        self._shift = q * center

    def at(self, scores: Array) -> Smoothed:
        """Return the rows of the envelope at the scores; no product with the data."""
        z, slopes, bends = np.empty(scores.size), np.empty(scores.size), np.empty(scores.size)
        self.risk.kernel.prox(scores + self._shift, self.risk.targets, self.q, z, slopes, bends)
        return Smoothed(z, slopes, bends)

    def slope_along(self, scores: Array, direction: Array, weighted: Array) -> tuple[float, float, Smoothed]:
        """Return first and second derivative along a direction of scores; weighted is p_i times the direction."""
        rows = self.at(scores)
        return _core.inner(rows.slopes, weighted), _core.inner(rows.bends * direction, weighted), rows


def plane(risk: LinearRisk, rows: Smoothed) -> tuple[Array, float, float]:
    """Return normal and offset of the plane that slopes s_i of the loss at z_i prove, and sum_i p_i l_i(z_i).

    <a, w> + b <= R(w) with a = X'(p s) and b = sum_i p_i (l_i(z_i) - s_i (z_i - offset_i)), less the rounding
    in it: one product.
    """
    weighted = risk.full_weight * rows.slopes
    loss = risk.loss_and_slopes(rows.z)[0]
    shift = rows.z if risk.offset is None else rows.z - risk.offset
    rounding = 8.0 * _EPS * (abs(loss) + _core.inner_of_sizes(weighted, shift))
    a = risk.pull_back(weighted, float(weighted.sum()))
    return a, loss - float((weighted * shift).sum()) - rounding, loss
