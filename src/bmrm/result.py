"""What a run leaves behind: its history, the answer with its proof, and what a later run can start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bmrm.bundle.planes import Bundle
from bmrm.certificate import Certificate, Status
from bmrm.problem import Problem
from bmrm.risks.base import Array
from bmrm.solvers import Solver


@dataclass(frozen=True)
class Record:
    """One line of the history; ``busy`` is how many seconds each shard has computed so far, where there are shards."""

    iteration: int
    seconds: float
    passes: float
    upper: float
    lower: float
    busy: tuple[float, ...] = ()

    @property
    def gap(self) -> float:
        """upper - lower."""
        return self.upper - self.lower


Monitor = Callable[[Record], Any]


@dataclass(frozen=True)
class State:
    """What a later run can start from: the planes for any lam, the solver's memory for the same problem.

    Nothing of it is pickled: a result read back elsewhere starts a run from its w.
    """

    problem: Problem | None = None
    solver: Solver | None = None
    bundle: Bundle | None = None
    memory: Any = None
    of_risk: Any = None  # `Risk.memory`

    def __reduce__(self) -> tuple[type[State], tuple[()]]:
        return State, ()


@dataclass(frozen=True)
class Result:
    """The answer and its proof.

    Attributes
    ----------
    w : array
        The best point found.
    certificate : Certificate
        J(w) and a proven lower bound of min J.
    status : Status
        Why the run ended; ``status.advice`` is a sentence.
    iterations : int
    passes : float
        Passes over the data; X w and X' g together are one.
    seconds : float
    history : tuple of Record
        One record for each iteration.
    solver : str
    state : State
        For ``start=result``.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> result = bmrm.solve(bmrm.Problem(risk, "l2", lam=0.5))
    >>> result.converged, round(result.certificate.upper, 6)
    (True, 0.25)
    """

    w: Array
    certificate: Certificate
    status: Status
    iterations: int
    passes: float
    seconds: float
    history: tuple[Record, ...]
    solver: str
    state: State = field(repr=False)

    @property
    def converged(self) -> bool:
        """Whether the gap is closed."""
        return self.status is Status.CONVERGED

    def __str__(self) -> str:
        return (
            f"{self.certificate} ({self.status.name.lower()} after {self.iterations} iterations, "
            f"{self.passes:g} passes, {self.seconds:.3g} s, solver '{self.solver}')"
        )
