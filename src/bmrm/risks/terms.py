"""A piecewise linear-quadratic loss as a line and a few ramps: the form in which an interior-point method reads it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm import _core
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Ramps:
    """l(z) = value + slope (z - at) + sum_k max over 0 <= theta <= jump_k of theta a_k - give_k theta^2 / 2.

    a_k = sign_k (z - knot_k). A ramp with give 0 is a kink, at which the slope jumps; one with give 1/h is a curved
    piece, over which the slope rises with rate h.

    Attributes
    ----------
    sign, knot, jump, give : arrays of shape (k, 1)
        The jump is infinite for a curved piece without an end.
    """

    value: float
    slope: float
    at: float
    sign: Array
    knot: Array
    jump: Array
    give: Array


class RowTerms:
    """The rows of a risk as ramps of z_i = e_i f_i + o_i, the margin, residual or score that the loss looks at.

    Parameters
    ----------
    risk : LinearRisk
        Of a compiled piecewise linear-quadratic loss (traits COMPILED and PIECEWISE).
    """

    def __init__(self, risk: LinearRisk) -> None:
        of, knots = risk.kernel.knots()
        self.risk, y = risk, risk.targets
        self.e: Array = y if of == "margin" else np.ones_like(y)
        self.o: Array = -y if of == "residual" else np.zeros_like(y)
        self.ramps = _ramps(risk.kernel, np.array(knots, dtype=np.float64), 1.0 if of == "margin" else 0.0)
        self.middle = float(np.mean(knots)) if knots else 0.0

    def arguments(self, scores: Array) -> Array:
        """Return z."""
        return self.e * scores + self.o

    def along(self, z: Array) -> Array:
        """Return a_k = sign_k (z - knot_k), one row of the result for each ramp."""
        a: Array = self.ramps.sign * (z - self.ramps.knot)
        return a

    def slopes(self, theta: Array) -> Array:
        """Return the slopes with respect to the scores, weights included, for given theta."""
        inner = self.ramps.slope + np.sum(self.ramps.sign * theta, axis=0)
        slopes: Array = self.risk.full_weight * self.e * inner
        return slopes

    def plane(self, theta: Array) -> tuple[Array, float]:
        """Return the plane below R that 0 <= theta <= jump proves, less its rounding: one product."""
        ramps, risk = self.ramps, self.risk
        slopes = self.slopes(theta)
        shift = self.e * self.o if risk.offset is None else self.e * self.o + risk.offset
        spent = np.sum((ramps.sign * ramps.knot + 0.5 * ramps.give * theta) * theta, axis=0)
        base = ramps.value - ramps.slope * ramps.at
        terms = slopes * shift - risk.full_weight * spent
        size = np.abs(slopes * shift) + risk.full_weight * np.sum(np.abs(ramps.knot * theta), axis=0)
        rounding = 8.0 * _EPS * (float(np.sum(size)) + abs(float(np.sum(terms))) + abs(base) + abs(ramps.value))
        return risk.pull_back(slopes, float(np.sum(slopes))), base + float(np.sum(terms)) - rounding


def _ramps(kernel: _core.ScalarLoss, knots: Array, y: float) -> Ramps:
    """Read slopes and curvatures off the compiled loss, between its knots and on both sides of them."""
    inner = knots if knots.size else np.zeros(1)
    left, right = _ends(kernel, inner, y)
    middles = np.concatenate([inner[:1] - 1.0, 0.5 * (inner[1:] + inner[:-1]), inner[-1:] + 1.0])
    bends = np.empty_like(middles)
    kernel.curvature(middles, np.full_like(middles, y), None, 1.0, bends)
    found = [(1.0, knot, jump, 0.0) for knot, jump in zip(inner, right - left) if jump > 0.0]
    widths = np.append(np.diff(inner), np.inf)
    found += [(1.0, k, h * width, 1.0 / h) for k, h, width in zip(inner, bends[1:], widths) if h > 0.0]
    if bends[0] > 0.0:
        found.append((-1.0, inner[0], np.inf, 1.0 / bends[0]))
    columns = np.array(found, dtype=np.float64).reshape(-1, 4).T[:, :, None]
    value, _ = kernel.evaluate(inner[:1], np.array([y]), None, 1.0, np.empty(1))
    return Ramps(value, float(left[0]), float(inner[0]), *columns)


def _ends(kernel: _core.ScalarLoss, at: Array, y: float) -> tuple[Array, Array]:
    """Return the left and the right slope at each point."""
    ends = np.empty((2, at.size))
    for side, out in zip((-1.0, 1.0), ends):
        kernel.extreme(at, np.full_like(at, side), np.full_like(at, y), None, 1.0, out)
    return ends[0], ends[1]
