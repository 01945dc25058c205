"""The driver: runs a solver until the gap is closed or something else ends the run, and says which."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._blas import one_blas_thread
from bmrm._deadline import GRACE, Overdue, until, without_deadline
from bmrm._limits import check_limits
from bmrm.certificate import Certificate, Status
from bmrm.checkpoint import Checkpoint, Interrupts, Keeper, Snapshot
from bmrm.contradiction import resolved
from bmrm.floor_check import check_below, check_value
from bmrm.problem import Problem, refusal
from bmrm.regularizers import Regularizer
from bmrm.result import Monitor, Record, Result, State
from bmrm.resumed import checked, typed
from bmrm.solvers import SOLVERS, Solver, Start, Step
from bmrm.solvers import get as get_solver
from bmrm.starts import as_point, start_for

__all__ = ["Monitor", "Record", "Result", "State", "certify", "path", "solve"]

_PATIENCE = 200  # steps without progress of either bound
_NUMBERS = ("upper", "lower", "idle", "least", "scale", "excess")  # of a run, kept in checkpoints
_BOTTOM = -1e30  # an objective below falls without bound, as far as floating point can tell


def solve(
    problem: Problem,
    solver: str | Solver = "auto",
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    start: Result | npt.ArrayLike | None = None,
    monitor: Monitor | None = None,
    seed: int = 0,
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
) -> Result:
    """Minimize J(w) = lam Omega(w) + R(w) until the gap is proved to be closed.

    Parameters
    ----------
    problem : Problem
    solver : str or Solver
        A name of ``bmrm.solvers.SOLVERS``.
    tol : float
        Relative gap: converged means upper - lower <= tol * max(abs(upper), abs(lower)), plus 1e-12 of the
        objective at the start (or of 1, if that is smaller).
    max_iter, max_seconds : number, optional
        Limits; reaching one gives the best w so far with its certificate. The run ends at most half a second or one
        pass over the data after ``max_seconds``, whichever is longer: a step that takes longer is cut.
    start : Result or array, optional
        A result of the same risk brings its planes along, for any lam and regularizer; with the same solver,
        lam and regularizer the run goes on as if it had never stopped.
    monitor : callable, optional
        Called with a `Record` after each iteration; a true return value stops the run.
    seed : int
        For solvers that draw random numbers.
    checkpoint : Checkpoint or path, optional
        A file from which a killed run can go on, bit for bit: see `bmrm.Checkpoint`. ``max_iter`` counts all steps.

    Returns
    -------
    Result
        After Ctrl-C the best w so far; with a checkpoint when the step ends, or at once if it is pressed again later.

    Raises
    ------
    ValueError
        Before the first pass over the data, if the solver does not fit the problem or a value is out of range.
    FloorError
        A ValueError: the loss or the risk has a value below the floor it declares.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> print(bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5), tol=1e-6).status.name)
    CONVERGED
    """
    chosen = get_solver(solver)
    check_limits(tol, max_iter, max_seconds, seed)
    if monitor is not None and not callable(monitor):
        raise ValueError(f"monitor must be callable with a Record, got {monitor!r}")
    refused = refusal(chosen, problem, SOLVERS)
    if refused:
        raise ValueError(refused)
    # Only steps are cut. Numbers that overflow are looked at where they matter: a warning tells users nothing.
    with without_deadline() as outer, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        run = _Run(problem, chosen, tol, max_iter, max_seconds, monitor, outer)
        if checkpoint is not None:
            run.keeper = Keeper(checkpoint, problem, chosen, seed)
            saved = run.keeper.load()
            if saved is not None:
                with typed(run.keeper.path):
                    return run.go_on(saved, Start(saved.w, None, seed, tol=tol))
        of_risk = None
        if isinstance(start, Result) and problem.is_same(start.state.problem) and run.noise is None:
            run.lower, of_risk = start.certificate.lower, start.state.of_risk
        return run.to_the_end(replace(start_for(problem, chosen, start, seed), tol=tol), of_risk)


class _Run:
    """The state of one call of solve."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        tol: float,
        max_iter: int | None,
        max_seconds: float | None,
        monitor: Monitor | None,
        outer: float,
    ) -> None:
        self.outer = outer  # the deadline of a run around this one
        self.problem, self.solver, self.tol, self.monitor = problem, solver, tol, monitor
        self.noise = problem.risk.planes_noise
        self.max_iter = np.inf if max_iter is None else max_iter
        self.max_seconds = np.inf if max_seconds is None else max_seconds
        self.products, self.began = problem.risk.products, time.perf_counter()
        self.upper, self.lower, self.idle = np.inf, -np.inf, 0
        self.least = np.inf  # of all objectives said by the solver, confirmed or not
        self.excess = 0.0  # of the lower bound over the upper one, that was found to be rounding
        self.scale = 1.0  # of the objective: that of the start, at most 1
        self.history: list[Record] = []
        self.last: Step | None = None
        self.keeper: Keeper | None = None
        self.interrupts, self.whole = Interrupts(), False  # whole: the solver is between two steps
        self.cut = False  # whether the last step was not finished: its planes and bounds are lost

    def to_the_end(self, start: Start, of_risk: Any) -> Result:
        self.start = start
        self.problem.risk.forget(of_risk)
        return self._run(start)

    def go_on(self, saved: Snapshot, start: Start) -> Result:
        """Go on from a checkpoint as if the run had never stopped."""
        upper = checked(self.problem, saved, _NUMBERS)
        if saved.start is None and not Certificate.of(*saved.bounds, "").closes(self.tol, saved.numbers["scale"]):
            return self.to_the_end(start, None)
        self._restore(saved)
        status = self._ended_before(saved, upper)
        if status is not None:
            return self._result(self.start, status)
        return self._run(replace(start, bundle=saved.bundle and saved.bundle.copy(), memory=saved.memory))

    def _run(self, start: Start) -> Result:
        ends = _core.clock() + self.max_seconds - self._seconds() + GRACE
        steps = until(min(ends, self.outer), self.solver.steps(self.problem, start))
        if self.keeper is None:
            return self._result(self.start, self._follow(steps))
        with self.interrupts.held():
            status = self._follow(steps)
            snapshot = None if self.cut else self._snapshot()
            result = self._result(self.start, status)
            self.keeper.write(snapshot, result)
            try:
                self.interrupts.let_through()
            except KeyboardInterrupt:
                result = replace(result, status=Status.INTERRUPTED)
        return result

    def _snapshot(self) -> Snapshot | None:
        if self.last is None:
            return None
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        numbers |= {"seconds": self._seconds(), "products": self.problem.risk.products - self.products}
        step, kept = self.last, (self.problem.risk.memory, numbers, tuple(self.history))
        return Snapshot(step.w, self.start.w, step.bundle, step.memory, step.ended, *kept)

    def _restore(self, saved: Snapshot) -> None:
        for name in _NUMBERS:
            setattr(self, name, saved.numbers[name])
        self.products = self.problem.risk.products - saved.numbers["products"]
        self.began -= saved.numbers["seconds"]
        self.max_seconds += saved.numbers["seconds"]
        self.history = list(saved.history)
        self.last = Step(saved.w, self.upper, self.lower, saved.bundle, saved.memory, saved.ended)
        self.start = Start(saved.w if saved.start is None else saved.start)
        self.problem.risk.forget(saved.of_risk)

    def _ended_before(self, saved: Snapshot, upper: float) -> Status | None:
        """Return why the run is over already, if it is: it ended before, or less is asked for than it has reached."""
        assert self.last is not None
        if saved.status == Status.CONVERGED.name:
            self.upper, self.lower = max(upper, saved.bounds[0]), saved.bounds[1]
            if self._certificate().closes(self.tol, self.scale):
                return Status.CONVERGED
            self.upper = saved.numbers["upper"]
        if self._certificate().closes(self.tol, self.scale) and self._confirmed(self.last):
            return Status.CONVERGED
        if saved.is_final:
            return Status.STALLED if saved.status is None else Status[saved.status]
        return Status.ITERATION_LIMIT if len(self.history) >= self.max_iter else None

    def _between_steps(self) -> None:
        """Write a checkpoint if it is time, and let an interrupt through that has come in the meantime."""
        if self.keeper is not None:
            self.whole = True
            if self.keeper.due or self._next_may_be_cut():
                self.keeper.write(self._snapshot())
            self.interrupts.let_through()
            self.whole = False

    def _next_may_be_cut(self) -> bool:
        """Whether a step that takes twice as long as the last one would be cut, and with it what is not saved."""
        last = self.history[-1].seconds - (self.history[-2].seconds if len(self.history) > 1 else 0.0)
        return self._seconds() + 2.0 * last > self.max_seconds + GRACE

    def _follow(self, steps: Iterator[Step]) -> Status:
        try:
            with one_blas_thread():
                return self._followed(steps)
        except KeyboardInterrupt:
            self.cut = not self.whole
            return Status.INTERRUPTED
        except Overdue:  # a run around this one, if the deadline is its own, notices by itself
            self.cut = True
            return Status.TIME_LIMIT

    def _followed(self, steps: Iterator[Step]) -> Status:
        for step in steps:
            record = self._note(step)
            if step.upper < _BOTTOM:
                return Status.UNBOUNDED
            if not np.isfinite(step.upper):
                return Status.NON_FINITE
            asked_to_stop = self.monitor is not None and self.monitor(record)
            if self._certificate().closes(self.tol, self.scale) and self._confirmed(step):
                return Status.CONVERGED
            if asked_to_stop:
                return Status.STOPPED
            if len(self.history) >= self.max_iter:
                return Status.ITERATION_LIMIT
            if record.seconds >= self.max_seconds:
                return Status.TIME_LIMIT
            if self.idle >= _PATIENCE or step.ended:
                return Status.STALLED if self.noise is None else Status.SPENT
            self._between_steps()
        return Status.STALLED

    def _note(self, step: Step) -> Record:
        scale = 1e-15 * max(1.0, abs(step.upper))
        progress = step.upper < self.least - scale or step.lower > self.lower + scale
        self.least = min(self.least, step.upper)
        self.idle = 0 if progress else self.idle + 1
        self.lower = max(self.lower, step.lower)
        self.upper = min(self.upper, step.upper) if self.noise is None else step.upper  # with noise, of the last w
        if not self.history and 0.0 < step.upper < 1.0:
            self.scale = step.upper
        check_value(self.problem, step.w, step.upper, self.scale)
        self._settle(self.upper, step.w)
        self.last = step
        numbers = (len(self.history) + 1, self._seconds(), self._passes(), self.upper, self.lower)
        self.history.append(Record(*numbers, self.problem.risk.busy))
        return self.history[-1]

    def _settle(self, upper: float, w: npt.NDArray[np.float64]) -> None:
        """Take an upper bound; where the lower one lies above it, that is rounding or an error."""
        excess = self.lower - upper
        if excess > self.excess and self.noise is None:
            upper = resolved(self.problem, self.solver.name, upper, self.lower, w, self.start.w, self.scale)
            self.excess = excess
        self.upper = max(upper, self.lower)

    def _confirmed(self, step: Step) -> bool:
        """Whether the gap is still closed with the objective computed anew: scores may have been combined."""
        if self.noise is not None:  # the step's bounds are all there is: another evaluation has other noise
            return True
        self._settle(self.problem.at_most(step.w), step.w)
        closed = self._certificate().closes(self.tol, self.scale)
        if closed:
            check_below(self.problem, step.w, self.upper, self.lower, self.scale)
        return closed

    def _certificate(self) -> Certificate:
        return Certificate.of(self.upper, self.lower, self.solver.name, self.noise.failure if self.noise else 0.0)

    def _seconds(self) -> float:
        return time.perf_counter() - self.began

    def _passes(self) -> float:
        return (self.problem.risk.products - self.products) / 2.0

    def _result(self, start: Start, status: Status) -> Result:
        of_risk = self.problem.risk.memory  # before it is evaluated once more
        w = start.w if self.last is None else self.last.w
        if status is not Status.CONVERGED and (self.noise is None or self.last is None):
            self._settle(self.problem.at_most(w), w)
        bundle, memory = (None, None) if self.last is None else (self.last.bundle, self.last.memory)
        if self.cut and bundle is not None:
            bundle.memory = None  # perhaps half of a change; the planes themselves are whole
        if self.cut and memory is not None:
            memory = self.solver.after_cut(self.problem, memory)
        return Result(
            w=w.copy(),
            certificate=self._certificate(),
            status=status,
            iterations=len(self.history),
            passes=self._passes(),
            seconds=self._seconds(),
            history=tuple(self.history),
            solver=self.solver.name,
            state=State(self.problem, self.solver, bundle, memory, of_risk),
        )


def path(
    risk: Any,
    regularizer: Regularizer | str,
    lams: Sequence[float],
    solver: str | Solver = "auto",
    **options: Any,
) -> list[Result]:
    """Solve for many lam with one bundle: each run starts from the last one's planes and point.

    Parameters
    ----------
    risk : Risk, or any object with ``dim`` and ``evaluate(w)``
    regularizer : Regularizer or str
    lams : sequence of float
        Solved in the order given; from large to small is the fast one.
    solver : str or Solver
    **options
        Passed to `solve`, but no `checkpoint`: a run begins with the planes of the one before, which its file lacks.

    Returns
    -------
    list of Result
        One for each lam, each with its certificate; only the last one keeps the planes. Ends early if a run was
        interrupted or stopped.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> [round(r.certificate.upper, 4) for r in bmrm.path(risk, "l2", [1.0, 0.5], tol=1e-6)]
    [0.5, 0.25]
    """
    if isinstance(lams, (int, float)):
        raise ValueError(f"lams must be a sequence of numbers, got {lams!r}; write [{lams!r}]")
    if options.get("checkpoint") is not None:
        raise ValueError("path takes no checkpoint: solve for one lam after the other, each with its own file")
    results: list[Result] = []
    problem: Problem | None = None
    for lam in lams:
        problem = Problem(risk, regularizer, lam) if problem is None else problem.with_lam(lam)
        results.append(solve(problem, solver, start=results[-1] if results else None, **options))
        results[:-1] = [replace(result, state=State(problem)) for result in results[:-1]]
        if results[-1].status in (Status.INTERRUPTED, Status.STOPPED):
            break
    return results


def certify(
    problem: Problem,
    w: npt.ArrayLike,
    *,
    tol: float = 1e-3,
    max_iter: int = 500,
    max_seconds: float | None = None,
) -> Certificate:
    """Return a certificate for any w from anywhere, for example from another library.

    `solve` goes on from w until the bound lies within tol of min J: so the gap tells how far w is from optimal.

    Parameters
    ----------
    problem : Problem
    w : array-like
    tol : float
        How close to min J the lower bound shall come.
    max_iter, max_seconds : number, optional
        Limits; the bound is valid whenever it stops.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> certificate = bmrm.certify(bmrm.Problem(risk, "l2", lam=0.5), [0.0])
    >>> round(certificate.upper, 3), round(certificate.lower, 3)
    (1.0, 0.25)
    """
    point = as_point(problem, w)
    upper = problem.at_most(point)
    check_value(problem, point, upper, 1.0)
    start = point if np.isfinite(upper) else None
    result = solve(problem, tol=tol, max_iter=max_iter, max_seconds=max_seconds, start=start)
    return Certificate.of(upper, result.certificate.lower, result.solver, 2.0 * result.certificate.failure)
