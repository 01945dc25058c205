"""The smoothed risk of the proximal point method: every row's loss replaced by its envelope around a slope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm import _core
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk
from bmrm.risks.normal_error import norm_of

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

    def at(self, scores: Array) -> Smoothed:
        """Return the rows of the envelope at the scores; no product with the data."""
        return self._along(scores, None, 0.0)[1]

    def slope_along(
        self, scores: Array, direction: Array, t: float, over: Smoothed | None = None
    ) -> tuple[float, float, Smoothed]:
        """Return first and second derivative along a direction of scores, and the rows at scores + t direction.

        Rows that are of no use any more may be written over: new memory is dear.
        """
        (slope, bend), rows = self._along(scores, direction, t, over)
        return slope, bend, rows

    def _along(
        self, scores: Array, direction: Array | None, t: float, over: Smoothed | None = None
    ) -> tuple[tuple[float, float], Smoothed]:
        risk = self.risk
        rows = over or Smoothed(np.empty(scores.size), np.empty(scores.size), np.empty(scores.size))
        sums = _core.envelope_along(
            risk.kernel, scores, direction, t, self.center, self.q, risk.targets, risk.weight, risk.scale,
            rows.z, rows.slopes, rows.bends, risk.n_threads,
        )  # fmt: skip
        return sums, rows


@dataclass(frozen=True)
class ProvenPlane:
    """<a, w> + b <= R(w), its steepness; the loss sum_i p_i l_i(z_i), and sum_i p_i s_i (f_i - z_i)."""

    a: Array
    b: float
    steepness: float
    loss: float
    moved: float


def plane(risk: LinearRisk, rows: Smoothed, scores: Array) -> ProvenPlane:
    """Return the plane that the slopes s_i of the loss at z_i prove: one product. f are the scores.

    a = X'(p s) and b = sum_i p_i (l_i(z_i) - s_i (z_i - offset_i)), less the rounding in it: sums by halves of 256 rows
    take 8 roundings, those of tasks a few more.
    """
    weighted = np.empty(scores.size)
    loss, cross, size, total, moved = _core.envelope_plane(
        risk.kernel, rows.z, rows.slopes, scores, risk.offset, risk.targets, risk.weight, risk.scale,
        weighted, risk.n_threads,
    )  # fmt: skip
    b = loss - cross - 32.0 * _EPS * (abs(loss) + size)
    return ProvenPlane(risk.pull_back(weighted, total), b, norm_of(weighted), loss, moved)
