"""One drawn problem: solvers run on it, and what they claim is compared with exact objectives."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from bmrm._traits import Trait
from bmrm.certificate import ATOL, Status
from bmrm.driver import solve
from bmrm.problem import Problem, missing
from bmrm.result import Result
from bmrm.solvers import SOLVERS
from bmrm.testing.hunt_draw import drawn
from bmrm.testing.hunt_exact import Objective
from bmrm.testing.hunt_numbers import ZERO, Number

LATE = 0.5  # seconds that `solve` may take beyond max_seconds; a pass over such small data takes less
_SOLVERS = 5  # tried on each problem: `auto` and some of the others
# The run with another lam whose result a run begins with.
_FIRST: dict[str, Any] = {"tol": 1e-3, "max_iter": 20, "max_seconds": 0.2}


@dataclass(frozen=True)
class Finding:
    """Something that must not happen.

    Attributes
    ----------
    kind : str
        "lower above J", "upper below J", "open gap", "contradiction", "outside", "crash", "hang", "overrun", "warning"
        or "output".
    seed, number : int
        The problem: ``hunt_case(seed, number)``.
    solver : str
    case : str
        The problem in words.
    details : str
    """

    kind: str
    seed: int
    number: int
    solver: str
    case: str
    details: str

    @property
    def reproduction(self) -> str:
        """Lines of Python that run the solver on the same problem."""
        return (
            f"from bmrm.testing import hunt_case\n"
            f"case = hunt_case({self.seed}, {self.number})  # {self.case}\n"
            f"problem, result = case.problem(), case.solve({self.solver!r})"
        )

    def __str__(self) -> str:
        return f"{self.kind} ({self.solver}): {self.details}\n{self.reproduction}"


class HuntCase:
    """A drawn problem: how it is made and how it is solved.

    Attributes
    ----------
    drawn : Case or StructuredCase
        Data, loss, regularizer, and the options of `solve`.
    """

    def __init__(self, seed: int, number: int) -> None:
        self.seed, self.number = seed, number
        self.drawn = drawn(seed, number)
        self.problem = self.drawn.problem

    def __str__(self) -> str:
        return str(self.drawn)

    def solvers(self) -> list[str]:
        """Return `auto` and some others of the solvers that fit."""
        problem = self.problem()
        fitting = [name for name in SOLVERS if not missing(SOLVERS[name](), problem)]
        order = np.random.default_rng([self.seed, self.number, 1]).permutation(len(fitting))
        others = [fitting[place] for place in order if fitting[place] != "auto"]
        return ["auto", *others][:_SOLVERS]

    def begin(self) -> tuple[Problem, Any]:
        """Return the problem, made anew, and where a run begins: None, a point, or a result with another lam."""
        problem = self.problem()
        if self.drawn.start == "zero":
            return problem, None
        rng = np.random.default_rng([self.seed, self.number, 2])
        if self.drawn.start == "drawn":
            return problem, problem.regularizer.clip(rng.normal(size=problem.risk.dim))
        other = problem.with_lam(float(problem.lam * 10.0 ** rng.uniform(-2, 2)))
        return problem, solve(other, "auto", **_FIRST)

    def solve(self, solver: str) -> Result:
        """Solve the problem as the hunt does."""
        problem, start = self.begin()
        return solve(problem, solver, start=start, **self.drawn.options)


def hunt_case(seed: int, number: int) -> HuntCase:
    """Return a problem of a hunt, to look at what was found.

    Examples
    --------
    >>> import bmrm
    >>> case = bmrm.testing.hunt_case(seed=0, number=1)
    >>> result = case.solve("auto")
    >>> bool(result.certificate.lower <= case.problem().at_most(result.w))
    True
    """
    return HuntCase(seed, number)


class Judge:
    """Runs solvers on one problem and notes what must not be."""

    def __init__(self, seed: int, number: int) -> None:
        self.seed, self.number = seed, number
        self.case: Any = None
        self.findings: list[Finding] = []
        self.solves, self.refused = 0, False

    def note(self, kind: str, solver: str, details: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, self.seed, self.number, solver, str(self.case), details))

    def run(self, tell: Callable[[str, str], None]) -> None:
        """Draw the problem, run the solvers and judge them; `tell` is called with the solver before each of them."""
        tell("drawing", "")
        try:
            with watched(self, "drawing", UserWarning):
                self.case = HuntCase(self.seed, self.number)
                problem = self.case.problem()
                names = self.case.solvers()
        except ValueError as error:
            if isinstance(error, np.linalg.LinAlgError):
                raise
            self.refused = True  # by a clear sentence: such a problem is none
            return
        results = {name: result for name in names if (result := self._solved(name, tell)) is not None}
        tell("judging", str(self.case))
        self._judged(Objective(self.case.drawn, problem), results)

    def _solved(self, name: str, tell: Callable[[str, str], None]) -> Result | None:
        tell(name, str(self.case))
        self.solves += 1
        try:
            with watched(self, name):
                problem, start = self.case.begin()
                begun, cpu_begun = time.perf_counter(), time.process_time()
                result = solve(problem, name, start=start, **self.case.drawn.options)
                # The time of the processor, where that is less: others may use it too.
                spent = min(time.perf_counter() - begun, time.process_time() - cpu_begun)
        except Exception:
            self.note("crash", name, traceback.format_exc(limit=-6))
            return None
        late = spent - self.case.drawn.options["max_seconds"]
        if late > LATE:
            self.note("overrun", name, f"{late:.2f} s after max_seconds")
        return result

    def _judged(self, objective: Objective, results: dict[str, Result]) -> None:
        exact = {name: objective.at(result.w) for name, result in results.items() if np.isfinite(result.w).all()}
        zero = objective.at(objective.problem.regularizer.clip(np.zeros(objective.problem.risk.dim)))
        least = min([*exact.items(), ("the start", zero)], key=lambda item: item[1][0])
        free = Trait.FREE_COORDINATES in objective.problem.traits
        unknown = Fraction(ATOL) * min(Fraction(1), abs(Fraction(zero[0]))) if free else ZERO
        for name, result in results.items():
            self._judge_bounds(name, result, exact.get(name), least, unknown)
            self._judge_status(name, result, exact.get(name), zero[0])

    def _judge_bounds(self, name: str, result: Result, own: Any, least: tuple[str, Any], unknown: Number) -> None:
        upper, lower = result.certificate.upper, result.certificate.lower
        if own is None:
            self.note("outside", name, f"w is not finite: {result.w[~np.isfinite(result.w)][:3]}")
            return
        value, slack = own
        if np.isnan(upper) or np.isnan(lower) or lower > upper or lower == np.inf:
            self.note("contradiction", name, f"lower {lower!r}, upper {upper!r}, {result.status.name}")
            return
        if value == np.inf and np.isfinite(upper):
            self.note("upper below J", name, f"upper {upper!r}, but J(w) is infinite: w is outside the bounds")
        elif np.isfinite(upper) and Fraction(upper) < value - slack:
            self.note("upper below J", name, f"upper {upper!r} is {excess(value - Fraction(upper), value)} below J(w)")
        who, (best, slack) = least
        if np.isfinite(lower) and best < np.inf and Fraction(lower) > best + slack + unknown:
            more = excess(Fraction(lower) - best, best)
            self.note("lower above J", name, f"lower {lower!r} is {more} above J at the point of {who}")

    def _judge_status(self, name: str, result: Result, own: Any, start: Any) -> None:
        upper, lower = result.certificate.upper, result.certificate.lower
        if result.status is not Status.CONVERGED or own is None:
            return
        size = max(abs(upper), abs(lower))
        first = result.history[0].upper if result.history else 1.0
        scale = first if 0.0 < first < 1.0 else 1.0
        gap = upper - lower
        if not gap <= self.case.drawn.options["tol"] * size + ATOL * scale:
            self.note("open gap", name, f"CONVERGED with a gap of {gap:.3g}, upper {upper!r}")


def excess(more: Number, than: Number) -> str:
    """Return a difference, and what share of the number it is."""
    share = f", {float(more / abs(than)):.2g} of it," if than != ZERO else ""
    return f"{float(more):.3g}{share}"


@contextmanager
def watched(judge: Judge, name: str, *ignored: type[Warning]) -> Iterator[None]:
    """Note warnings, and what is printed by Python or by compiled code, while the block runs."""
    with warnings.catch_warnings(record=True) as caught, printed() as lines:
        warnings.simplefilter("always")
        for kind in ignored:
            warnings.simplefilter("ignore", kind)
        yield
    for sentence in dict.fromkeys(f"{w.category.__name__}: {w.message} ({w.filename}:{w.lineno})" for w in caught):
        judge.note("warning", name, sentence)
    if lines:
        judge.note("output", name, lines[0][:500])


@contextmanager
def printed() -> Iterator[list[str]]:
    """Collect what is written to standard output and standard error, also by compiled code."""
    found: list[str] = []
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    saved = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        try:
            yield found
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            for descriptor, copy in zip((1, 2), saved):
                os.dup2(copy, descriptor)
                os.close(copy)
        file.seek(0, io.SEEK_SET)
        text = file.read().decode(errors="replace").strip()
    if text:
        found.append(text)
