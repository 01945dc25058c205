"""What a solver is: frozen settings and an infinite generator of steps. Stopping is the driver's business."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bmrm._registry import Registry
from bmrm._traits import Trait
from bmrm.bundle.master import Master, MasterSolution
from bmrm.bundle.planes import Bundle
from bmrm.problem import Problem
from bmrm.risks.base import Array

SOLVERS: Registry[Solver] = Registry("solver")


@dataclass(frozen=True)
class Start:
    """Where a solver begins: w, and planes of the same risk if there are any."""

    w: Array
    bundle: Bundle | None = None


@dataclass(frozen=True)
class Step:
    """What a solver yields after each iteration.

    Attributes
    ----------
    w : array
        The best point so far.
    upper : float
        J(w).
    lower : float
        A proven lower bound of min J, -inf if there is none yet.
    bundle : Bundle, optional
        The planes found so far: what a later run can start from.
    exact : bool
        False if upper comes from scores that were combined, not computed anew: the driver then checks it before
        it believes in convergence.
    """

    w: Array
    upper: float
    lower: float
    bundle: Bundle | None = None
    exact: bool = True


class Solver(ABC):
    """An algorithm: settings in, steps out. Class statements with ``name=`` register themselves in ``SOLVERS``.

    Attributes
    ----------
    needs, refuses : frozenset of Trait
        What a problem must have, and what it must not have.
    resumable : bool
        Whether a run continued from a result is the same run.
    """

    name: ClassVar[str] = ""
    needs: ClassVar[frozenset[Trait]] = frozenset()
    refuses: ClassVar[frozenset[Trait]] = frozenset()
    resumable: ClassVar[bool] = True

    def __init_subclass__(cls, name: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name:
            cls.name = name
            SOLVERS[name] = cls

    @abstractmethod
    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield steps for ever, or until no further progress is possible."""


def bundle_for(problem: Problem, start: Start, max_cuts: int | None) -> Bundle:
    """Return the start's planes, or a new bundle with the planes that a risk without a floor needs."""
    risk = problem.risk
    if start.bundle is not None:
        start.bundle.max_cuts = max_cuts or start.bundle.max_cuts
        return start.bundle
    bundle = Bundle(risk.dim, risk.floor, max_cuts, n_threads=risk.n_threads)
    for w in risk.bracket():
        value, a = risk.evaluate(w)
        bundle.add(w, value, a)
    return bundle


def solve_master(problem: Problem, master: Master, bundle: Bundle, upper: float, w: Array) -> MasterSolution:
    """Solve the master; where free coordinates are open, add planes from both sides of w and solve it again."""
    solution = master.solve(bundle, problem.lam, upper)
    if not solution.open.size:
        return solution
    for j in solution.open:
        for side in (-1.0, 1.0):
            _brace(problem, bundle, w, int(j), side)
    return master.solve(bundle, problem.lam, upper)


def _brace(problem: Problem, bundle: Bundle, w: Array, j: int, side: float) -> None:
    """Add a plane at w, moved along coordinate j far enough for R to rise that way."""
    steep = 1e-3 * max(float(np.abs(bundle.normals[:, j]).max()), 1e-3)
    for step in 4.0 ** np.arange(12):
        point = w.copy()
        point[j] += side * step
        value, a = problem.risk.evaluate(point)
        if side * a[j] > steep or not np.isfinite(value):
            bundle.add(point, value, a)
            return


def evaluate_near(problem: Problem, w: Array, safe: Array, limit: float) -> tuple[Array, float, Array]:
    """Evaluate the risk at w, or, where it overflows, on the way back to a point where it does not.

    Planes far outside the region of interest would only spoil the numbers of the master problem.
    """
    value, a = problem.risk.evaluate(w)
    for _ in range(60):
        if np.isfinite(value) and value <= limit:
            break
        w = 0.5 * (w + safe)
        value, a = problem.risk.evaluate(w)
    return w, value, a
