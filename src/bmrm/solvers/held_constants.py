"""Free constants of several scores, held by weights around centers that move: the method of multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmrm._states import kept
from bmrm.risks.base import Array
from bmrm.risks.dual import Dual, DualPoint

# Weight s of a constant, in multiples of (lam c mean |x_i|^2)^-1/2 with the largest cost c, which has the units of s.
# Where s is small, a row moves the constants further than its own entries, and epochs are many; where it is large, the
# constants take many epochs to arrive. Epochs to 1e-3, lam 1e-2 (cellcycle, 351 constants): 22 with 0.2, 12 with 1 if
# the centers are known from the start, 17 if s grows from 0.1 on, and 11 without constants.
FIRST, FIXED = 0.1, 0.2  # where s may grow, and where it cannot
_GROWTH, _LARGEST = 1.2, 10.0  # after each epoch, and in all
# s gets smaller again while constants keep their way (the cosine between two epochs' ways), or where their slopes are
# expected to add as much of the estimated gap to the gap of the bound. Columns of one sign, 48 constants, to 1e-3: 89
# epochs without the former, 25 with it, 23 without constants.
_KEEPS, _LAGS = 0.3, 0.5
# Centers that keep their way go further, by this factor more after each epoch, and up to so many times as far. Epochs
# to 1e-3, lam 1e-2 (imclef07a, s fixed): 44 without, 23 with 2 times, 18 with 4 times.
_ONWARD, _FARTHEST = 1.5, 3.0
_TINY = 1e-300


@kept
@dataclass
class HeldConstants:
    """The weights of free constants around their centers, and how far slopes in them spoil the bound.

    Attributes
    ----------
    free : array of int
        The coordinates.
    weights : array
        Where they began.
    growth : float
        How many times as large they are now.
    excess, steep : float
        Of the bound's gap over that of (w, s) at the last check, and the slopes in the constants there.
    ahead : float
        The gap of (w, s) over its estimate, which is from before the epoch's last steps, at that check.
    way, stretch : array
        Of the constants in the last epoch, and how many times as far their centers went.
    """

    free: npt.NDArray[np.intp]
    weights: Array
    growth: float = 1.0
    excess: float = 0.0
    steep: float = 1.0
    ahead: float = 1.0
    way: Array | None = None
    stretch: Array | None = None

    def hold(self, rows: Dual, growth: float) -> bool:
        """Give the constants their weights; False if that is not possible any more."""
        if not rows.hold(self.free, growth * self.weights):
            return False
        self.growth = growth
        return True

    def slopes(self, w: Array, center: Array) -> float:
        """Return the sum of the slopes in the constants, over lam."""
        return float(self.growth * (self.weights @ np.abs(w[self.free] - center[self.free])))

    def lag(self, w: Array, center: Array) -> float:
        """Return what slopes in the constants are expected to add to the gap of the bound."""
        return self.excess * self.slopes(w, center) / self.steep

    def note(self, point: DualPoint, center: Array, estimate: float, gap: float, of_bound: float) -> None:
        """Compare the gaps that a check has found: of (w, s), its estimate, and of the bound."""
        self.ahead = min(1.0, gap / max(estimate, _TINY))
        self.excess = max(0.0, of_bound - gap)
        self.steep = max(self.slopes(point.w, center), _TINY)

    def recenter(self, rows: Dual, point: DualPoint, center: Array, estimate: float) -> float:
        """Move the center to w, or beyond, and adapt the weights; w follows. Return how far differences in w move."""
        before = point.w[self.free]
        way = before - center[self.free]
        shrinks = self.lag(point.w, center) > _LAGS * estimate
        if self.way is None or self.stretch is None:
            self.stretch = np.ones(way.size)
        else:
            shrinks |= bool(way @ self.way > _KEEPS * np.sqrt((way @ way) * (self.way @ self.way)))
            self.stretch = np.where(way * self.way > 0.0, np.minimum(_ONWARD * self.stretch, _FARTHEST), 1.0)
        growth = max(self.growth / _GROWTH, 1.0) if shrinks else min(self.growth * _GROWTH, _LARGEST)
        center[self.free] += self.stretch * way
        old = self.growth
        if self.hold(rows, growth):  # the slopes stay what they are, so their way gets shorter
            way *= old / growth
        self.way = way
        point.w[self.free] = center[self.free] + way
        return float(np.ptp(point.w[self.free] - before))
