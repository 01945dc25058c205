"""Checks of what a loss says about its growth, from which upper bounds charge the rounding of scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bmrm.losses.base import Loss, Targets
from bmrm.testing._assertions import Array, magnitude, require_at_most

_SHORT = 1e-3  # of the way between two points, beside all of it
_ROUNDING = 1e-9


def check_growth(loss: Loss, targets: Targets, weight: Array, pairs: Sequence[tuple[Array, Array]]) -> None:
    """Raise if slopes exceed `largest_slopes`, or if from one point to another the loss grows by more than `growth`."""
    name, most = f"loss '{loss}'", loss.largest_slopes(targets, weight)
    for f, far in pairs:
        at_f, slopes = loss.evaluate(f, targets, weight)
        norm = float(np.linalg.norm(slopes))
        require_at_most(norm, most, _ROUNDING * (1.0 + norm), f"slopes of {name} exceed its largest_slopes")
        for g in (far, f + _SHORT * (far - f)):
            at_g, e = loss.evaluate(g, targets, weight)[0], float(np.linalg.norm(g - f))
            bound = loss.growth(f, targets, weight, e)
            sentence = f"{name} grows by more than its growth says where scores move by {e:.3g}"
            require_at_most(at_g - at_f, bound, _ROUNDING * magnitude(at_f, at_g), sentence)
