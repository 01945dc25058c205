"""What a solver is: frozen settings and an infinite generator of steps. Stopping is the driver's business."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bmrm import _core
from bmrm._errors import DataError
from bmrm._registry import Registry
from bmrm._traits import Trait
from bmrm.bundle.master import Master, MasterSolution, master_for
from bmrm.bundle.planes import Bundle
from bmrm.bundle.storage import FEWEST_PLANES, cuts_within_budget
from bmrm.problem import Problem
from bmrm.risks.base import Array, Point
from bmrm.risks.space import RowSpace

SOLVERS: Registry[Solver] = Registry("solver")

_ENTRIES = 30.0  # of X for each number saved in a plane: there slopes are faster from about 75 planes on
_KNOWN_PLANES, _KNOWN_SHARE = 10, 0.25  # added at once, and how much of the gap one must take away


@dataclass(frozen=True)
class Start:
    """Where a solver begins.

    Attributes
    ----------
    w : array
    bundle : Bundle, optional
        Planes of the same risk.
    seed : int
        For solvers that draw random numbers.
    memory : object, optional
        The memory of the last step of a run of the same solver on the same problem, which is to be continued as
        if it had never stopped.
    tol : float
        The relative gap asked for. It may decide how to get there, never when to stop.
    slopes : array, optional
        One slope of the loss for each row, a point of the dual: where another solver has come to.
    """

    w: Array
    bundle: Bundle | None = None
    seed: int = 0
    memory: Any = None
    tol: float = 1e-3
    slopes: Array | None = None


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
    memory : object, optional
        Everything else the solver needs to go on from here: arrays, numbers and plain containers of them. A copy
        comes back in `Start`; a solver may go on changing it.
    ended : bool
        Whether the solver has no further step to make, whatever its memory.
    slopes : array, optional
        The slopes of the rows, where the solver works with these; it may go on changing them.
    """

    w: Array
    upper: float
    lower: float
    bundle: Bundle | None = None
    memory: Any = None
    ended: bool = False
    slopes: Array | None = None


class Solver(ABC):
    """An algorithm: settings in, steps out. Class statements with ``name=`` register themselves in ``SOLVERS``.

    Attributes
    ----------
    needs, refuses : frozenset of Trait
        What a problem must have, and what it must not have.
    resumable : bool
        Whether a run continued from a result is the same run.
    takes_noise : bool
        Whether it can use values and subgradients with noise.
    """

    name: ClassVar[str] = ""
    needs: ClassVar[frozenset[Trait]] = frozenset()
    refuses: ClassVar[frozenset[Trait]] = frozenset()
    resumable: ClassVar[bool] = True
    takes_noise: ClassVar[bool] = False

    def __init_subclass__(cls, name: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name:
            cls.name = name
            SOLVERS[name] = cls

    @abstractmethod
    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield steps for ever, or until no further progress is possible."""

    def after_cut(self, problem: Problem, memory: Any) -> Any:
        """Return the memory of the last step, made fit to go on from although the next step was cut; None if it is not.

        Then a run goes on from w and the planes alone. A step may be cut wherever the core or `look` is called, and may
        have changed what the memory holds by then. It need not be the run that was never cut.
        """
        return None


def bundle_for(problem: Problem, start: Start, max_cuts: int | None, by_slopes: bool = False) -> Bundle:
    """Return the start's planes, or a new bundle with the planes that a risk without a floor needs.

    A solver that adds its planes as points may ask to have them kept by their slopes, where that is the better form.
    """
    risk, space = problem.risk, space_for(problem) if by_slopes else None
    if start.bundle is not None:
        if space is not None:
            start.bundle.keep_in(space)
        start.bundle.max_cuts = max_cuts or start.bundle.max_cuts
        return start.bundle
    bundle = new_bundle(problem, max_cuts, space)
    for w in risk.bracket():
        bundle.add_point(risk.touch(w))
    return bundle


def new_bundle(problem: Problem, max_cuts: int | None, space: RowSpace | None = None) -> Bundle:
    """Return a bundle without planes; so many of them, or as many as there is room for where memory is limited."""
    risk = problem.risk
    if risk.plane_bytes is not None:
        numbers = risk.dim * master_for(problem.regularizer).plane_copies
        most, least = cuts_within_budget(numbers, risk.plane_bytes), 8 * FEWEST_PLANES * numbers
        if risk.plane_bytes < least:
            raise DataError(
                f"the memory limit leaves {risk.plane_bytes / 1e6:.4g} MB for planes, but {FEWEST_PLANES} planes of "
                f"{risk.dim} weights take {least / 1e6:.4g} MB with regularizer '{problem.regularizer.name}'"
            )
        max_cuts = most if max_cuts is None else min(max_cuts, most)
    return Bundle(risk.dim, risk.floor, max_cuts, n_threads=risk.n_threads, space=space, error=risk.normal_error)


def space_for(problem: Problem) -> RowSpace | None:
    """Return the space of the rows where planes are better kept by their slopes, None where by their normals.

    A plane by its slopes saves dim - size numbers in a Gram row and as many in a combination, which cost one more
    product each. Masters other than that of a quadratic regularizer need the normals.
    """
    space = problem.risk.space() if takes_slopes(problem) else None
    return space if space is not None and space.entries <= _ENTRIES * (problem.risk.dim - space.size) else None


def takes_slopes(problem: Problem) -> bool:
    """Whether the problem's master takes planes that are kept by their slopes."""
    return Trait.QUADRATIC in problem.traits and not problem.traits & {Trait.FREE_COORDINATES, Trait.BOUNDS}


def solve_master(problem: Problem, master: Master, bundle: Bundle, upper: float, w: Array) -> MasterSolution:
    """Solve the master; where free coordinates are open, add planes from both sides of w and solve it again.

    Planes that the risk knows without an evaluation are added as long as they raise the model where it is least.
    """
    bundle.near = w
    solution = master.solve(bundle, problem.lam, upper)
    if brace(problem, bundle, w, solution.open):
        solution = master.solve(bundle, problem.lam, upper)
    for _ in range(_KNOWN_PLANES):
        plane = problem.risk.known_plane(solution.w)
        if plane is None:
            break
        raised = _core.inner(plane[0], solution.w) + plane[1] - bundle.value(solution.w)
        if not raised > _KNOWN_SHARE * (upper - solution.lower):
            break
        bundle.add_plane(*plane)
        solution = master.solve(bundle, problem.lam, upper)
    return solution


def brace(problem: Problem, bundle: Bundle, w: Array, coordinates: Iterable[int]) -> bool:
    """Add planes from both sides of w in the coordinates for which that was not done before; say whether any were."""
    unbraced = [int(j) for j in coordinates if int(j) not in bundle.braced]
    for j in unbraced:
        bundle.braced.add(j)
        for side in (-1.0, 1.0):
            _brace(problem, bundle, w, j, side)
    return bool(unbraced)


def _brace(problem: Problem, bundle: Bundle, w: Array, j: int, side: float) -> None:
    """Add a plane at w, moved along coordinate j until R rises that way about as steeply as it ever will."""
    steep = 1e-3 * float(np.abs(bundle.normals[:, j]).max())
    steepest, steepest_point = 0.0, None
    farthest = 1e6 * (1.0 + abs(bundle.value(w)))  # planes from farther up would only spoil the master's numbers
    for step in 4.0 ** np.arange(12):
        moved = w.copy()
        moved[j] += side * step
        point = problem.risk.touch(moved)
        slope = side * float(point.subgradient[j])
        if not point.value <= farthest or slope <= 1.5 * steepest > 0.0:
            break
        if slope > steepest:
            steepest, steepest_point = slope, point
        if steepest > steep:
            break
    if steepest_point is not None:
        bundle.add_point(steepest_point)


def touch_near(problem: Problem, w: Array, safe: Array, limit: float) -> Point:
    """Return the point w with value and subgradient, or one on the way to safe where R overflows there.

    Planes far outside the region of interest would only spoil the numbers of the master problem.
    """
    point = problem.risk.touch(w)
    for _ in range(60):
        if np.isfinite(point.value) and point.value <= limit:
            break
        w = 0.5 * (w + safe)
        point = problem.risk.touch(w)
    return point


def is_turn(step: int) -> bool:
    """Whether a bound that costs as much as a few steps is due: at steps 1, 2, 3, 4, 6, 8, 12, 18, ..., by 1.5.

    So the bounds cost a fixed number of steps each time the run has grown by half, whatever its length.

    Examples
    --------
    >>> from bmrm.solvers.base import is_turn
    >>> [step for step in range(1, 40) if is_turn(step)]
    [1, 2, 3, 4, 6, 8, 12, 18, 26, 39]
    """
    return step == 1 or int(np.log(step) / np.log(1.5)) > int(np.log(step - 1) / np.log(1.5))
