"""What every solver must satisfy on every problem: a right certificate, or a refusal before any work."""

from __future__ import annotations

import numpy as np

from bmrm.certificate import Status
from bmrm.driver import Result, solve
from bmrm.problem import Problem, missing
from bmrm.solvers.base import Solver
from bmrm.testing._assertions import Array, magnitude, require, require_at_most, require_close, require_unchanged

_SECONDS = 60.0
_COMPARED = 8  # steps after a stop: later ones may drift apart, rounding errors grow


def check_solver(
    solver: Solver, problem: Problem, optimum: float | None = None, *, tol: float = 1e-4, error: float = 1e-7
) -> None:
    """Check that a solver closes the gap with true bounds, repeats itself, stops and resumes; or refuses in time.

    Parameters
    ----------
    solver : Solver
    problem : Problem
    optimum : float, optional
        min J, known from elsewhere: the bounds must enclose it.
    tol : float
        The relative gap to reach.
    error : float
        How far the optimum given may be off, relative to 1 + abs(optimum).

    Raises
    ------
    AssertionError
        With a sentence that says what is violated and by how much.

    Examples
    --------
    >>> import bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> bmrm.testing.check_solver(bmrm.solvers.BMRM(), bmrm.Problem(risk, "l2", lam=0.5), optimum=0.25)
    """
    if missing(solver, problem):
        _check_refusal(solver, problem)
        return
    zero = np.zeros(problem.risk.dim)
    start = problem.regularizer.prox(zero, 1.0)
    given = start.copy()
    result = solve(problem, solver, tol=tol, start=given, max_seconds=_SECONDS)
    require_unchanged(start, given, f"the start given to solver '{solver.name}'")
    require(
        result.converged,
        f"solver '{solver.name}' ended with {result.status.name} after {result.iterations} iterations, "
        f"relative gap {result.certificate.relative_gap:.3g} instead of {tol:g}",
    )
    _check_certificate(problem, result, tol)
    _check_history(result, optimum, error)
    _check_repeats(solver, problem, result, start, tol)
    _check_limits(solver, problem, start)
    _check_resumes(solver, problem, result, start, tol)


def _check_refusal(solver: Solver, problem: Problem) -> None:
    before = problem.risk.products
    try:
        solve(problem, solver)
    except ValueError as error:
        for phrase in missing(solver, problem):
            require(phrase in str(error), f"the refusal by '{solver.name}' does not say that it {phrase}")
        require(problem.risk.products == before, f"solver '{solver.name}' looked at the data before it refused")
        return
    raise AssertionError(f"solver '{solver.name}' accepts a problem it {missing(solver, problem)[0]}")


def _check_certificate(problem: Problem, result: Result, tol: float) -> None:
    certificate, name = result.certificate, result.solver
    objective = problem.objective(result.w)
    slack = 1e-9 * magnitude(objective)
    require_close(certificate.upper, objective, slack, f"upper of '{name}' is not J(w) recomputed")
    require_at_most(certificate.lower, certificate.upper, 0.0, f"lower of '{name}' exceeds upper")
    size = max(abs(certificate.upper), abs(certificate.lower))
    require_at_most(certificate.gap, tol * size, 1e-12, f"'{name}' says CONVERGED, but the gap is open")


def _check_history(result: Result, optimum: float | None, error: float) -> None:
    """Upper never rises, lower never falls, and the optimum lies between them in every record."""
    uppers = np.array([record.upper for record in result.history])
    lowers = np.array([record.lower for record in result.history])
    name = result.solver
    require(uppers.size == result.iterations, f"'{name}' has {uppers.size} records of its iterations")
    if optimum is not None:
        slack = error * magnitude(optimum)
        lower = max(result.certificate.lower, lowers.max())
        upper = min(result.certificate.upper, uppers.min())
        require_at_most(lower, optimum, slack, f"lower of '{name}' exceeds the optimum {optimum:.9g}")
        require_at_most(optimum, upper, slack, f"upper of '{name}' is below the optimum {optimum:.9g}")
    require(not np.any(uppers[1:] > uppers[:-1]), f"upper of '{name}' rises")
    require(not np.any(lowers[1:] < lowers[:-1]), f"lower of '{name}' falls")


def _check_repeats(solver: Solver, problem: Problem, result: Result, start: Array, tol: float) -> None:
    again = solve(problem, solver, tol=tol, start=start, max_seconds=_SECONDS)
    same = np.array_equal(again.w, result.w) and again.certificate == result.certificate
    require(same, f"solver '{solver.name}' gives another answer the second time")
    require(again.passes == result.passes, f"solver '{solver.name}' needs {again.passes} passes the second time")


def _ended(result: Result, limit: Status) -> bool:
    """Whether a run ended at its limit, or was done before."""
    return result.status is limit or (result.converged and result.certificate.closes(0.0))


def _check_limits(solver: Solver, problem: Problem, start: Array) -> None:
    limited = solve(problem, solver, tol=0.0, max_iter=1, start=start)
    require(_ended(limited, Status.ITERATION_LIMIT), f"max_iter=1 gives {limited.status.name} for '{solver.name}'")
    require(limited.iterations == 1, f"'{solver.name}' ran {limited.iterations} iterations with max_iter=1")
    timed = solve(problem, solver, tol=0.0, max_seconds=1e-9, start=start)
    require(_ended(timed, Status.TIME_LIMIT), f"max_seconds=1e-9 gives {timed.status.name} for '{solver.name}'")


def _check_resumes(solver: Solver, problem: Problem, result: Result, start: Array, tol: float) -> None:
    """A run stopped after a few steps and continued is the run that was never stopped."""
    part = solve(problem, solver, tol=tol, max_iter=2, start=start)
    if part.converged:
        return
    rest = solve(problem, solver, tol=tol, start=part, max_seconds=_SECONDS)
    require(rest.converged, f"'{solver.name}' resumed from a result ends with {rest.status.name}")
    slack = 1e-9 * magnitude(part.certificate.upper)
    require_at_most(
        rest.certificate.upper, part.certificate.upper, slack, f"'{solver.name}' resumed is worse than before"
    )
    size = tol * magnitude(result.certificate.upper)
    slack = size + 1e-12
    require_close(rest.certificate.upper, result.certificate.upper, slack, f"'{solver.name}' resumed ends elsewhere")
    if not solver.resumable:
        return
    compared = min(rest.iterations, _COMPARED, result.iterations - 2)
    for k in range(compared):
        now, then = rest.history[k], result.history[k + 2]
        for bound in ("upper", "lower"):
            slack = 1e-6 * magnitude(getattr(then, bound))
            what = f"{bound} of '{solver.name}' in step {k + 3} is another one after a stop in between"
            require_close(getattr(now, bound), getattr(then, bound), slack, what)
    more = max(1.5 * result.passes, result.passes + 5.0)
    require_at_most(part.passes + rest.passes, more, 0.0, f"'{solver.name}' lost its planes on the way")
