"""Losses of one score and one target, evaluated by the compiled core."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np

from bmrm import _core
from bmrm._traits import Trait
from bmrm.losses.base import Array, Loss, Targets

PIECEWISE = frozenset({Trait.PIECEWISE})
SMOOTH = frozenset({Trait.SMOOTH_RISK, Trait.CURVATURE})
SMOOTH_PIECEWISE = PIECEWISE | SMOOTH


class ScalarLoss(Loss):
    """A loss that is a weighted sum of l(f_i, y_i); its mathematics is written once, in the core.

    Subclasses are frozen dataclasses. Their name and the values of their fields select the compiled loss.
    """

    def kernel(self) -> _core.ScalarLoss:
        """Return the compiled loss."""
        return _core.scalar_loss(self.name, [float(value) for value in astuple(self)])  # type: ignore[call-overload]

    def evaluate(self, scores: Array, targets: Targets, weight: Array) -> tuple[float, Array]:
        """Return the weighted sum of the loss and the weighted slopes."""
        slopes = np.empty_like(scores)
        value, _ = self.kernel().evaluate(scores, targets, weight, 1.0, slopes)
        return value, slopes
