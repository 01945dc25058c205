"""Estimates B of the inverse Hessian; the limited-memory one is `bmrm.solvers.lbfgs.Memory`."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from bmrm._states import kept
from bmrm.risks.base import Array


class Metric(Protocol):
    """B, an estimate of the inverse Hessian; empty while it is the identity."""

    def __len__(self) -> int: ...

    def push(self, s: Array, y: Array) -> None:
        """Learn from a step s and the change y of the subgradient."""

    def clear(self) -> None:
        """Return to the identity."""

    def apply(self, g: Array) -> Array:
        """Return B g."""
        ...


@kept
class Identity:
    """B = I, whatever comes: steepest descent."""

    def __len__(self) -> int:
        return 0

    def push(self, s: Array, y: Array) -> None:
        """Learn nothing."""

    def clear(self) -> None:
        """Stay the identity."""

    def apply(self, g: Array) -> Array:
        """Return g."""
        return g


@kept
class Dense:
    """The matrix B itself, d x d, kept by the update (6).

    Before the first pair B is the identity; the first pair scales it by s'y / y'y.

    Parameters
    ----------
    dim : int
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.clear()

    def __len__(self) -> int:
        return self._pairs

    def clear(self) -> None:
        """Return to the identity."""
        self.B, self._pairs = np.eye(self.dim), 0

    def push(self, s: Array, y: Array) -> None:
        """Update B = (I - rho s y') B (I - rho y s') + rho s s', if the curvature is safely positive."""
        sy, yy = float(s @ y), float(y @ y)
        if not sy > 1e-12 * float(np.sqrt(s @ s) * np.sqrt(yy)):
            return
        if not self._pairs:
            self.B *= sy / yy
        rho, By = 1.0 / sy, self.B @ y
        self.B -= rho * (np.outer(s, By) + np.outer(By, s))
        self.B += (rho * rho * float(y @ By) + rho) * np.outer(s, s)
        self._pairs += 1

    def apply(self, g: Array) -> Array:
        """Return B g."""
        return self.B @ g
