"""How much larger than the value computed R(w) may be, because the scores are rounded.

A score is in error by 4 eps sum_j |x_ij| |w_j|, the scores together by e = 4 eps sum_j |X_j| |w_j| at most. Where w is
huge along columns that depend on each other, that is all the digits of R. What the loss makes of it:
- A compiled loss of one score: by the slopes, the larger ones at f - e and f + e, for rows next to a kink.
- Others, which compare scores: by `Loss.growth`, which moves each score in the direction that is worst.
Bounds that need no pass over the data or the scores come first: they suffice at ordinary w.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bmrm import _core
from bmrm._traits import Trait

if TYPE_CHECKING:
    from bmrm.risks.linear import LinearPoint

_EPS = float(np.finfo(np.float64).eps)
_NEGLIGIBLE = 1e-12  # of R: a rounding error that needs no sharper bound


def rounding_of(point: LinearPoint) -> float:
    """Return how much larger than its value R(w) may be."""
    risk, w = point.risk, point.w
    own = 4.0 * _EPS * (abs(point.loss) + abs(risk.tilted(w)))
    if not w.any():  # however large the columns are, even beyond the square root of the largest number
        return own + growth(point, _error(point, 0.0))
    if risk.kernel is not None or risk.largest_slopes < np.inf:
        e = _error(point, risk.extent * float(np.sqrt(_core.inner(w, w))))
        rough = growth(point, e) if risk.kernel is not None else risk.largest_slopes * e
        if rough <= _NEGLIGIBLE * abs(point.value):
            return own + rough
    norms = np.where(w == 0.0, 0.0, risk.norms)
    return own + growth(point, _error(point, _core.inner_of_sizes(norms, w)))


def _error(point: LinearPoint, far: float) -> float:
    """Return e from a bound of sum_j |X_j| |w_j|; what is added to the scores, offsets say, is rounded too."""
    offset, far = point.risk.offset, far + point.risk.shift_size
    return 4.0 * _EPS * (far if offset is None else far + float(np.sqrt(_core.inner(offset, offset))))


def growth(point: LinearPoint, e: float) -> float:
    """Return a bound of what the loss grows by where scores are in error by e together."""
    risk = point.risk
    if e == 0.0:
        return 0.0
    if not np.isfinite(e):
        return np.inf
    if risk.kernel is None:
        scores, p = risk.by_rows(point.scores), risk.full_weight
        return min(risk.largest_slopes * e, risk.loss.growth(scores, risk.targets, p, e))
    c = _core.largest_curvature(risk.kernel) if Trait.CURVATURE in risk.traits else np.inf
    if np.isfinite(c):
        p = risk.full_weight
        slopes = float(np.sqrt(_core.inner(point.slopes, point.slopes)) + c * e * np.sqrt(_core.inner(p, p)))
    else:
        slopes = float(risk.kernel.steepest(point.scores, risk.targets, risk.weight, risk.scale, e))
    return slopes * e
