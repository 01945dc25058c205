"""scikit-learn's callbacks (1.9 and later): the driver's records as tasks of a fit; nothing, where there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

from bmrm.driver import Record
from bmrm.problem import Problem
from bmrm.risks.base import Array
from bmrm.solvers import Solver, Start, Step

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9
    Method = TypeVar("Method", bound=Callable[..., Any])

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's class: there are no callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method: there is nothing to tear down."""
        return method


Attributes: TypeAlias = Callable[[Record], dict[str, Any]]

__all__ = ["CallbackSupportMixin", "FitTask", "Iterations", "Watched", "with_callbacks"]


class Watched(Solver):
    """A solver whose current point can be seen from outside.

    Parameters
    ----------
    solver : Solver
        Does the work.
    """

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.w: Array | None = None
        self.__dict__.update(name=solver.name, needs=solver.needs, refuses=solver.refuses)

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield the solver's steps."""
        for step in self.solver.steps(problem, start):
            self.w = step.w
            yield step


class FitTask:
    """One call of fit, as callbacks see it: a root task with a task for each iteration.

    With several classes the root task has one task for each class, and those have the iterations.

    Parameters
    ----------
    estimator : estimator
    X, y : as given to the hooks
    metadata : dict
        Sample weights and offsets.
    n_problems : int
        1, or the number of classes of one-vs-rest.
    max_iter : int or None
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, metadata: dict[str, Any], n_problems: int, max_iter: int | None
    ) -> None:
        given = {name: value for name, value in metadata.items() if value is not None}
        self.arguments = {"estimator": estimator, "X": X, "y": y, "metadata": given or None}
        self.most_iterations = None if max_iter is None else max_iter + 1
        self.nested = n_problems > 1
        self.watched = bool(getattr(estimator, "_skl_callbacks", None))
        self.context: Any = None
        if hasattr(estimator, "_init_callback_context"):
            subtasks = n_problems if self.nested else self.most_iterations
            self.context = estimator._init_callback_context(max_subtasks=subtasks)
            self.context.call_on_fit_task_begin(**self.arguments)

    def iterations(self, attributes: Attributes) -> Iterations | None:
        """Return the monitor for the next problem, or None if nobody watches.

        Parameters
        ----------
        attributes : callable
            Returns, for the last record, the fitted attributes as they would be if the fit ended now.
        """
        if not self.watched:
            return None
        context = self.context
        if self.nested:
            context = context.subcontext(task_name="class", max_subtasks=self.most_iterations)
            context.call_on_fit_task_begin(**self.arguments)
        return Iterations(self, context, attributes)

    def end(self) -> None:
        """Tell that the fit has ended."""
        if self.context is not None:
            self.context.call_on_fit_task_end(**self.arguments, reconstruction_attributes={})


class Iterations:
    """A monitor for the driver that ends one task and begins the next; it returns whether a callback asks to stop."""

    def __init__(self, fit: FitTask, context: Any, attributes: Attributes) -> None:
        self.fit, self.context, self.attributes = fit, context, attributes
        self._begin()

    def _begin(self) -> None:
        self.task = self.context.subcontext(task_name="iteration")
        self.task.call_on_fit_task_begin(**self.fit.arguments)

    def __call__(self, record: Record) -> bool:
        """Take note of an iteration."""
        stop = self.task.call_on_fit_task_end(
            **self.fit.arguments, reconstruction_attributes=lambda: self.attributes(record)
        )
        self._begin()
        return bool(stop)

    def close(self) -> bool:
        """End the task of the iteration that was the last, and the class's; return whether to stop altogether."""
        self.task.call_on_fit_task_end(estimator=self.fit.arguments["estimator"])
        if not self.fit.nested:
            return False
        return bool(self.context.call_on_fit_task_end(**self.fit.arguments))
