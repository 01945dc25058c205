"""Runs of solvers, each on one thread: wall time is then the papers' CPU seconds."""

import time

import numpy as np

import bmrm
from bmrm.problem import missing


def problem_of(X, y, loss, regularizer="l2", lam=1.0):
    """One problem on one thread; `with_lam` gives the others of the same data."""
    return bmrm.Problem(bmrm.LinearRisk(X, y, loss, n_threads=1), regularizer, lam)


def fits(solver, problem):
    """Whether the solver takes this problem."""
    return not missing(bmrm.solvers.get(solver), problem)


def optimum(problem, seconds, tol=1e-6):
    """A certified run: its upper bound is the optimum, up to its relative gap."""
    return bmrm.solve(problem, "auto", tol=tol, max_seconds=seconds)


class Curve:
    """The objective of a run over its iterations, seconds and passes, from w = 0 on."""

    def __init__(self, result):
        self.result = result
        self.iterations = np.array([0] + [r.iteration for r in result.history])
        self.seconds = np.array([0.0] + [r.seconds for r in result.history])
        self.passes = np.array([0.0] + [r.passes for r in result.history])
        self.upper = np.array([np.inf] + [r.upper for r in result.history])
        self.gap = np.array([np.inf] + [r.gap for r in result.history])

    def first(self, level):
        """Index of the first record with an objective of at most this level, or None."""
        reached = np.flatnonzero(self.upper <= level)
        return int(reached[0]) if len(reached) else None

    def seconds_to(self, level):
        """Seconds until the objective is at most this level; infinite if it was not reached."""
        index = self.first(level)
        return np.inf if index is None else float(self.seconds[index])

    def passes_to(self, level):
        """Passes over the data until the objective is at most this level; infinite if it was not reached."""
        index = self.first(level)
        return np.inf if index is None else float(self.passes[index])

    def iterations_to(self, level):
        """Iterations until the objective is at most this level; infinite if it was not reached."""
        index = self.first(level)
        return np.inf if index is None else int(self.iterations[index])


def curve(problem, solver, seconds, tol=1e-6, **limits):
    """The curve of a run that ends with the gap, or with the time."""
    return Curve(bmrm.solve(problem, solver, tol=tol, max_seconds=seconds, **limits))


def until(problem, solver, level, seconds, passes=np.inf):
    """The curve of a run that ends as soon as the objective is at most this level, or with time or passes."""
    reached = lambda record: record.upper <= level or record.passes >= passes  # noqa: E731
    return Curve(bmrm.solve(problem, solver, tol=1e-6, max_seconds=seconds, monitor=reached))


def walk(problem, solver, seconds, seed=0):
    """Yield (seconds so far, w) for each step; what the caller does with w is not counted."""
    steps = bmrm.solvers.get(solver).steps(problem, bmrm.solvers.Start(np.zeros(problem.risk.dim), seed=seed))
    spent = 0.0
    while spent < seconds:
        began = time.perf_counter()
        step = next(steps, None)
        spent += time.perf_counter() - began
        if step is None:
            return
        yield spent, step.w


def error(w, data):
    """Share of the test rows (20,000 at most) on the wrong side."""
    X, y = data.X_test[:20000], data.y_test[:20000]
    return float(np.mean(np.where(X @ w > 0.0, 1.0, -1.0) != y))
