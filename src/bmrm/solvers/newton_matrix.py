"""Which matrix the next Newton step takes: the exact one is dear, and not every step needs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bmrm._states import kept
from bmrm.risks.base import Array
from bmrm.risks.curvature import RowCurvature
from bmrm.solvers.newton_system import NewtonSystem

# The gap over the one asked for. A step with the last matrix leaves a 25th to a 150th of the gap, one with that of a
# part of the rows a 100th or less near the minimum, and far from it no more than any other (a9a, ijcnn1).
_LAST_STEP, _FEW_STEPS = 20.0, 100.0
_FAR = 0.05  # gap over J
_SHORT = 0.5  # step: the matrix was not near the right one


@kept
@dataclass(frozen=True)
class Formed:
    """The last matrix: at which scores it was formed, whether of a part of the rows, and how often it was used."""

    scores: Array | None = None
    rough: bool = False
    used: int = 0
    poor: bool = False  # whether a rough one, this or another, led to a short step or could not be had


class StepMatrix:
    """Chooses, forms and keeps the matrix of the next step.

    Parameters
    ----------
    system : NewtonSystem
    curvature : RowCurvature
    formed : Formed
        Of the run that is continued: it is formed again when it is needed.
    exact : bool
        Whether every step takes the exact matrix at its own point.
    """

    def __init__(self, system: NewtonSystem, curvature: RowCurvature, formed: Formed, exact: bool) -> None:
        self.formed, self._system, self._curvature, self._exact = formed, system, curvature, exact
        self._solve: Callable[[Array, float], Array] | None = None

    def choose(self, scores: Array, upper: float, lower: float, tol: float) -> bool:
        """Choose for a step from the point with the scores; return whether that is the exact matrix there."""
        last, gap, goal = self.formed, upper - lower, tol * abs(upper)
        if not self._exact and last.used == 1 and gap <= _LAST_STEP * goal:
            return False
        rough = not self._exact and not last.poor and (gap > _FAR * abs(upper) or gap <= _FEW_STEPS * goal)
        self._form(scores, rough)
        return not rough

    def choose_exact(self, scores: Array) -> None:
        """Choose the exact matrix."""
        self._form(scores, False)

    def solve(self, g: Array, accuracy: float) -> Array:
        """Return the inverse matrix times g."""
        if self._solve is None:
            assert self.formed.scores is not None
            self._solve = self._system.at(self._curvature.at(self.formed.scores), self.formed.rough)
            if self.formed.rough and not self._system.rough:
                self.formed = replace(self.formed, rough=False, poor=True)
        return self._solve(g, accuracy)

    def note(self, t: float) -> None:
        """Note how long the step turned out to be."""
        last = self.formed
        self.formed = replace(last, used=last.used + 1, poor=last.poor or (last.rough and t < _SHORT))

    def _form(self, scores: Array, rough: bool) -> None:
        self.formed, self._solve = Formed(scores, rough, 0, self.formed.poor), None
