"""Runs of several owners that survive the loss of one: a new key agreement, a new sum, the same w."""

from __future__ import annotations

import time
from typing import Any

import numpy.typing as npt

from bmrm.driver import Result, solve
from bmrm.owners import OwnersRisk
from bmrm.owners.client import OwnerLost
from bmrm.solvers import Solver

_NO_TIME = 1e-9  # seconds: one step, which gives a certificate


def solve_owners(
    risk: OwnersRisk,
    solver: str | Solver = "auto",
    *,
    start: Result | npt.ArrayLike | None = None,
    max_seconds: float | None = None,
    **options: Any,
) -> Result:
    """Minimize the objective of a risk of several owners, and go on where owners are lost.

    With at least three others the run begins again from its best w so far, for the rows of those that remain: they
    agree on new masks, planes of the old sum are dropped, and a warning names the owner that left. The certificate is
    one of the new objective. With fewer, an `OwnerError` ends the run.

    The coordinator sees sums with the lost owner and without it, at w = 0 and at the best w: their difference is what
    that owner alone would have answered there. Owners that do not want this name their `peers`, all of whom are then
    needed.

    Parameters
    ----------
    risk : OwnersRisk
    solver : str or Solver
    start : Result or array, optional
    max_seconds : number, optional
        For all of it.
    **options
        Further ones of `bmrm.solve` but for ``checkpoint``; ``max_iter`` counts from the last loss.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X = np.linspace(-1.0, 1.0, 800).reshape(400, 2)
    >>> y = np.where(X[:, 0] > 0, 1, -1)
    >>> owners = [bmrm.Owner((X[s::4], y[s::4]), f"owner {s}") for s in range(4)]
    >>> with bmrm.OwnersRisk(owners, "logistic", lam=0.01, masked=True) as risk:
    ...     bmrm.solve_owners(risk).converged
    True
    """
    if options.get("checkpoint") is not None:
        raise ValueError("checkpoint is not for solve_owners: without a lost owner the objective is another one")
    ends = None if max_seconds is None else time.monotonic() + max_seconds
    while True:
        left = None if ends is None else max(ends - time.monotonic(), _NO_TIME)
        try:
            return solve(risk.problem, solver, start=start, max_seconds=left, **options)
        except OwnerLost as lost:
            start = _without(risk, lost)


def _without(risk: OwnersRisk, lost: OwnerLost) -> npt.ArrayLike | None:
    """Begin again without the owners that are lost, also those that are lost meanwhile; return the best w so far."""
    best = risk.best_w
    while True:
        try:
            risk.go_on_without(lost)
        except OwnerLost as more:
            lost = more
        else:
            return best
