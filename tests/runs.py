"""Runs that are stopped and continued from a file, compared with runs that are not."""

from __future__ import annotations

from collections.abc import Callable

from bmrm import Checkpoint, Problem, solve

STOPS = (1, 2, 4, 9)
STEPS = 16

Made = Callable[[], Problem]


def assert_same_run(make: Made, solver, path, tol: float, seed: int = 3) -> None:
    """Compare runs stopped after each of some steps, and continued from a file, with the run that was never stopped."""
    whole = solve(make(), solver, tol=tol, max_iter=STEPS, seed=seed)
    for stop in [stop for stop in STOPS if stop < whole.iterations]:
        path.unlink(missing_ok=True)
        part = solve(make(), solver, tol=tol, max_iter=stop, seed=seed, checkpoint=path)
        assert part.iterations == stop
        again = Checkpoint(path, resume=True)
        rest = solve(make(), solver, tol=tol, max_iter=STEPS, seed=seed, checkpoint=again)
        assert rest.history[:stop] == part.history  # with the times of the first run: nothing was done again
        bounds = [[(record.upper, record.lower) for record in run.history] for run in (rest, whole)]
        assert bounds[0] == bounds[1]
        assert rest.w.tobytes() == whole.w.tobytes()
        assert (rest.status, rest.certificate) == (whole.status, whole.certificate)
