"""What all estimators share: from parameters to a solved problem, and from its solution to fitted attributes."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from bmrm import _core, regularizers, solvers
from bmrm._deadline import GRACE, within
from bmrm._limits import check_limits
from bmrm.certificate import Certificate, Status
from bmrm.checkpoint import Checkpoint
from bmrm.driver import Monitor, Record, Result, solve
from bmrm.estimators.callbacks import CallbackSupportMixin, FitTask, Iterations, Watched
from bmrm.estimators.offset import centered
from bmrm.estimators.parameters import NestedParameters
from bmrm.problem import Problem
from bmrm.regularizers import Regularizer
from bmrm.risks.base import Array
from bmrm.useless_models import NOTHING_FOUND, Findings, findings, warnings_of

LAM = 1e-4

_WORST_FIRST = (
    Status.UNBOUNDED,
    Status.NON_FINITE,
    Status.INTERRUPTED,
    Status.STALLED,
    Status.SPENT,
    Status.TIME_LIMIT,
    Status.ITERATION_LIMIT,
    Status.STOPPED,
    Status.CONVERGED,
)


@dataclass(frozen=True)
class Fit:
    """One solved problem, without the data it came from."""

    w: Array
    certificate: Certificate
    status: Status
    history: tuple[Record, ...]
    findings: Findings = NOTHING_FOUND

    @classmethod
    def pending(cls, w: Array, history: tuple[Record, ...] = ()) -> Fit:
        """Make the state of a problem that is not finished, or not begun."""
        upper, lower = (history[-1].upper, history[-1].lower) if history else (np.inf, -np.inf)
        return cls(w, Certificate.of(upper, lower, ""), Status.STOPPED, history)


class Task(Protocol):
    """Checked training data, of whatever kind: X and y as the hooks of callbacks see them."""

    @property
    def X(self) -> Any:
        """Inputs."""

    @property
    def y(self) -> Any:
        """Targets."""

    @property
    def loss(self) -> Any:
        """What is minimized."""

    @property
    def metadata(self) -> dict[str, Any]:
        """Weights and offsets, as given."""

    @property
    def dim(self) -> int:
        """Length of w."""


class RiskMinimizer(CallbackSupportMixin, NestedParameters, BaseEstimator):  # type: ignore[misc]
    """An estimator fitted by minimizing lam Omega(w) + R(w); the parameters are documented in the subclasses."""

    regularizer: str | Regularizer
    regularizer_params: dict[str, Any] | None
    lam: float
    C: float | None
    solver: str | solvers.Solver
    tol: float
    max_iter: int | None
    max_seconds: float | None
    n_threads: int | None
    warm_start: bool
    random_state: Any
    verbose: bool

    _checkpoint: Checkpoint | None = None  # for a single problem: of the command line

    loss_: Any
    objective_: float
    relative_gap_: float
    _status: str  # the name of `status_`: an enumeration does not survive every way of storing an estimator

    @abstractmethod
    def _problem(self, sample: Any, target: Any) -> Problem:
        """Return the problem of one target."""

    @abstractmethod
    def _starts(self, sample: Any, n_problems: int) -> Array | None:
        """Return the points (k, dim) where the last fit ended, if they fit the sample."""

    @abstractmethod
    def _coefficients(self, points: Array) -> dict[str, Any]:
        """Return the fitted attributes that hold the points (k, dim)."""

    @property
    def status_(self) -> Status:
        """Why the fit ended."""
        if "_status" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} has no attribute 'status_': it is not fitted")
        return Status[self._status]

    def _chosen_regularizer(self) -> Regularizer:
        """Return the regularizer; parameters beside an object raise an error."""
        if isinstance(self.regularizer, Regularizer) and self.regularizer_params:
            raise ValueError(
                f"regularizer_params={self.regularizer_params!r} are for a regularizer given by its name; "
                f"'{self.regularizer.name}' is an object and has its own"
            )
        return regularizers.get(self.regularizer, **(self.regularizer_params or {}))

    def _chosen_lam(self, total_weight: float) -> float:
        if self.C is None:
            return self.lam
        if self.lam != LAM:
            raise ValueError(f"C={self.C!r} and lam={self.lam!r} were both given; they say the same, give one")
        if not (isinstance(self.C, (int, float, np.number)) and 0.0 < self.C < np.inf):
            raise ValueError(f"C must be a finite number above 0, got {self.C!r}")
        return 1.0 / (float(self.C) * total_weight)

    def _minimize(self, sample: Task, targets: Callable[[int], Any], n_problems: int = 1, resume: bool = True) -> None:
        """Solve one problem after the other, each with its targets, and set the fitted attributes."""
        check_limits(self.tol, self.max_iter, self.max_seconds)
        self.loss_ = sample.loss
        starts = self._starts(sample, n_problems) if self.warm_start and resume else None
        points = np.zeros((n_problems, sample.dim)) if starts is None else starts
        fits = [Fit.pending(w) for w in points]
        task = FitTask(self, sample.X, sample.y, sample.metadata, n_problems, self.max_iter)
        watched = Watched(solvers.get(self.solver)) if task.watched else None
        deadline = None if self.max_seconds is None else time.perf_counter() + self.max_seconds
        for k in range(n_problems):
            tasks = task.iterations(self._seen(fits, k, watched))
            fits[k] = self._solve(
                self._problem(sample, targets(k)),
                None if starts is None else starts[k],
                watched or self.solver,
                deadline,
                n_problems - k,
                self._monitors(tasks, k, n_problems),
            )
            stop = tasks is not None and tasks.close()
            if stop or fits[k].status is Status.INTERRUPTED:
                break
        self.__dict__.update(self._attributes(fits))
        task.end()
        self._conclude(fits)

    def _solve(
        self,
        problem: Problem,
        start: Array | None,
        solver: str | solvers.Solver,
        deadline: float | None,
        problems_left: int,
        monitors: tuple[AbstractContextManager[Monitor | None], Iterations | None],
    ) -> Fit:
        if start is not None:
            start = problem.regularizer.clip(start)
        display, tasks = monitors
        with display as shown, within(np.inf if deadline is None else deadline - time.perf_counter() + GRACE):
            result = solve(
                problem,
                solver,
                tol=self.tol,
                max_iter=self.max_iter,
                max_seconds=_share(deadline, problems_left),
                start=start,
                monitor=_both(shown, tasks),
                seed=seed_of(self.random_state),
                checkpoint=self._checkpoint,
            )
        return _fit_of(problem, result)

    def _monitors(
        self, tasks: Iterations | None, k: int, n_problems: int
    ) -> tuple[AbstractContextManager[Monitor | None], Iterations | None]:
        if not self.verbose:
            return nullcontext(), tasks
        from bmrm.monitor import progress_monitor

        return progress_monitor(label=f"problem {k + 1} of {n_problems} | " if n_problems > 1 else ""), tasks

    def _seen(self, fits: list[Fit], k: int, watched: Watched | None) -> Any:
        """Return a function for the attributes that the estimator would have if its fit ended now."""

        def attributes(record: Record) -> dict[str, Any]:
            w = fits[k].w if watched is None or watched.w is None else watched.w
            return self._attributes([*fits[:k], Fit.pending(w, (record,)), *fits[k + 1 :]])

        return attributes

    def _conclude(self, fits: Sequence[Fit]) -> None:
        """Raise after a keyboard interrupt; warn of a useless model, and of an open gap if nobody asked to stop."""
        if self.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt
        for warning in warnings_of([fit.findings for fit in fits]):
            warnings.warn(warning, stacklevel=5)
        if self.status_ in (Status.CONVERGED, Status.STOPPED):
            return
        open_ones = sum(fit.status not in (Status.CONVERGED, Status.STOPPED) for fit in fits)
        which = f" in {open_ones} of {len(fits)} one-vs-rest problems" if len(fits) > 1 else ""
        warnings.warn(
            f"{type(self).__name__} did not converge{which}: objective {self.objective_:.6g}, relative gap "
            f"{self.relative_gap_:.3g}, tol={self.tol:g}. {_advice(self.status_)}",
            ConvergenceWarning,
            stacklevel=5,
        )

    def _attributes(self, fits: Sequence[Fit]) -> dict[str, Any]:
        """Return all fitted attributes."""
        return {**self._coefficients(np.array([fit.w for fit in fits])), **self._summary(fits)}

    def _summary(self, fits: Sequence[Fit]) -> dict[str, Any]:
        """Return the attributes that tell how the fit went; several problems count as their sum."""
        certificates = [fit.certificate for fit in fits]
        upper, lower = (sum(getattr(c, end) for c in certificates) for end in ("upper", "lower"))
        total = Certificate.of(float(upper), float(lower), certificates[0].source)
        single = len(fits) == 1
        status = min((fit.status for fit in fits), key=_WORST_FIRST.index)
        return {
            "certificate_": certificates[0] if single else certificates,
            "objective_": total.upper,
            "lower_bound_": total.lower,
            "gap_": total.gap,
            "relative_gap_": total.relative_gap,
            "converged_": status is Status.CONVERGED,
            "_status": status.name,
            "history_": fits[0].history if single else [fit.history for fit in fits],
            "n_iter_": max(len(fit.history) for fit in fits),
        }


def row_vector(values: npt.ArrayLike, m: int, what: str, unit: str = "row") -> Array:
    """Return one finite float64 number for each row, or raise an error that names the argument."""
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must hold numbers: {error}") from None
    if array.shape != (m,):
        raise ValueError(f"{what} must have one number for each of the {m} {unit}s of X, got shape {array.shape}")
    if not _core.all_finite(array):
        bad = np.flatnonzero(~np.isfinite(array))
        raise ValueError(f"{what} of {unit} {bad[0]} is {array[bad[0]]}; NaN and infinity are not accepted")
    return array


def checked_weight(sample_weight: npt.ArrayLike | None, m: int, unit: str = "row") -> Array | None:
    """Return the sample weights, all at least 0 and one above."""
    if sample_weight is None:
        return None
    weight = row_vector(sample_weight, m, "sample_weight", unit)
    if weight.min(initial=0.0) < 0.0:
        bad = np.flatnonzero(weight < 0.0)
        raise ValueError(f"sample_weight of {unit} {bad[0]} is {weight[bad[0]]:g}; weights must be at least 0")
    if not weight.any():
        raise ValueError(f"sample_weight is zero for all {unit}s; at least one weight must be above zero")
    return weight


def _fit_of(problem: Problem, result: Result) -> Fit:
    certificate, w = result.certificate, result.w
    if result.status is Status.INTERRUPTED:  # nobody waits for what would take more passes
        return Fit(w, certificate, result.status, result.history)
    if np.isfinite(certificate.upper):
        w, upper = centered(problem, w, certificate.upper)
        certificate = Certificate.of(max(upper, certificate.lower), certificate.lower, certificate.source)
    found = findings(problem, w, certificate, result.status)
    return Fit(w, certificate, result.status, result.history, found)


def _share(deadline: float | None, problems_left: int) -> float | None:
    """Return the seconds for the next problem; even the last one may make a step, if that takes no time."""
    if deadline is None:
        return None
    return max((deadline - time.perf_counter()) / problems_left, 1e-6)


def _both(first: Monitor | None, second: Monitor | None) -> Monitor | None:
    if first is None or second is None:
        return first or second

    def monitor(record: Record) -> bool:
        return any([first(record), second(record)])

    return monitor


def seed_of(random_state: Any) -> int:
    """Return a seed drawn from the random state, 0 for None."""
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))


def _advice(status: Status) -> str:
    """Return the status's advice in an estimator's words."""
    advice = status.advice.replace("continue with start=result", "fit again with warm_start=True")
    return advice[0].upper() + advice[1:]
