"""From a data file's arrays to a model: one problem for each class against the rest, else one in all."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm._deadline import GRACE, within
from bmrm._errors import DataError
from bmrm.certificate import Status
from bmrm.cli.options import DEFAULT_LAM, Parts, TrainOptions
from bmrm.cli.targets import Targets, targets_of
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Design
from bmrm.driver import Result, State, solve
from bmrm.losses import Loss
from bmrm.losses.scores import WholeSetLoss
from bmrm.losses.vector import ClassLoss, VectorLoss
from bmrm.model import Model, linear_scores
from bmrm.monitor import progress_monitor
from bmrm.outcomes import least_absolute_thresholds, least_mistakes, rows_of_classes, score_threshold
from bmrm.problem import Problem
from bmrm.risks import linear_risk
from bmrm.useless_models import Findings, findings, warnings_of

Array = npt.NDArray[np.float64]

_NO_TIME = 1e-9


@dataclass(frozen=True)
class Fit:
    """A model and the runs it comes from, one for each problem."""

    model: Model
    results: tuple[Result, ...]
    n_examples: int


def fit(data: Dataset, options: TrainOptions, parts: Parts) -> Fit:
    """Train as the options say, with a live line on standard error."""
    targets = targets_of(data, parts.loss, options.extras)
    loss, problems = targets.loss, targets.problems
    lam = _lam(data, options)
    worth_it = loss.task != "novelty" and loss.takes_offset
    intercept = worth_it if options.intercept is None else options.intercept
    design = Design(data.X, intercept or loss.learns_offset, options.threads)

    def problem(number: int) -> Problem:
        risk = linear_risk(design, problems[number], loss, sample_weight=data.weight, groups=targets.groups)
        return Problem(risk, parts.regularizer, lam)

    results = solved(problem, len(problems), options, parts, slim=design.streamed)
    coef, constants = coefficients(design.n_cols, design.intercept, loss, results)
    constants, thresholds = _thresholds(data, targets, coef, constants)
    used = {"lam": lam, "intercept": design.intercept, "threads": design.n_threads}
    model = model_of(options, used, targets, results, coef, constants, thresholds, data.feature_names)
    return Fit(model, tuple(results), data.n_examples)


def solved(
    problem: Callable[[int], Problem],
    n: int,
    options: TrainOptions,
    parts: Parts,
    slim: bool,
    run: Callable[..., Result] | None = None,
) -> list[Result]:
    """Solve n problems one after the other; where slim, without keeping the planes of each."""
    results: list[Result] = []
    found: list[Findings] = []
    deadline = None if options.max_seconds is None else time.monotonic() + options.max_seconds
    for number in range(n):
        label = f"class {number + 1} of {n} | " if n > 1 else ""
        with progress_monitor(quiet=options.quiet, label=label) as monitor:
            made = problem(number)
            with within(np.inf if deadline is None else deadline - time.monotonic() + GRACE):  # for all of them
                result = (run or solve)(
                    made, parts.solver, tol=options.tol, max_iter=options.max_iter,
                    max_seconds=_seconds_left(deadline, results), monitor=monitor, seed=options.seed,
                    checkpoint=options.checkpoint_of(number),
                )  # fmt: skip
            if result.history:
                monitor(result.history[-1])
        found.append(findings(made, result.w, result.certificate, result.status))
        results.append(replace(result, state=State()) if slim else result)
    for warning in warnings_of(found):
        warnings.warn(warning, stacklevel=2)
    return results


def _lam(data: Dataset, options: TrainOptions) -> float:
    if options.C is None:
        return DEFAULT_LAM if options.lam is None else options.lam
    total = data.n_examples if data.weight is None else float(np.sum(data.weight))
    if not total > 0.0:
        raise DataError("the sample weights do not add up to a number above 0")
    return 1.0 / (options.C * total)


def _seconds_left(deadline: float | None, results: list[Result]) -> float | None:
    """Return what a run may still take; after Ctrl-C each run makes one step, which gives it a certificate."""
    if any(result.status is Status.INTERRUPTED for result in results):
        return _NO_TIME
    return None if deadline is None else max(deadline - time.monotonic(), _NO_TIME)


def coefficients(d: int, intercept: bool, loss: Loss, results: list[Result]) -> tuple[Array, Array]:
    """Return the rows of coefficients of d features and their constants."""
    points, dim = np.array([result.w for result in results]), d + intercept
    if isinstance(loss, ClassLoss):
        return rows_of_classes(points[0], points.size // dim, d, free_constants=True)
    if isinstance(loss, VectorLoss):  # one point, a matrix with a column for each score
        points = points.reshape(dim, -1).T
    return points[:, :d].copy(), points[:, d].copy() if intercept else np.zeros(len(points))


def _thresholds(data: Dataset, targets: Targets, coef: Array, intercept: Array) -> tuple[Array, Array | None]:
    """Return the constants and the thresholds, chosen on the rows of the file where the loss leaves them open."""
    loss, (target, *_) = targets.loss, targets.problems
    if not (loss.task == "multilabel" or isinstance(loss, WholeSetLoss)):
        return intercept, None
    scores = linear_scores(data.X, coef, intercept)
    if loss.task == "multilabel":
        return intercept, np.array([least_mistakes(scores, target > 0.0, data.weight)])
    if loss.task == "ordinal":
        assert targets.classes is not None
        weight = np.ones(len(scores)) if data.weight is None else data.weight
        return intercept, least_absolute_thresholds(scores[:, 0], target, weight, targets.classes)
    return intercept - score_threshold(loss, scores[:, 0], target > 0.0, data.weight), None


def model_of(
    options: TrainOptions,
    used: dict[str, Any],
    targets: Targets,
    results: list[Result],
    coef: Array,
    intercept: Array,
    thresholds: Array | None = None,
    names: Sequence[str] | None = None,
) -> Model:
    """Return the model with what is known about its runs, and the settings used where they were not given."""
    return Model(
        coef=coef,
        intercept=intercept,
        classes=targets.classes,
        thresholds=thresholds,
        loss=targets.loss,
        regularizer=options.regularizer,
        lam=used["lam"],
        solver=options.solver,
        tol=options.tol,
        certificates=[result.certificate for result in results],
        statuses=[result.status for result in results],
        config=options.as_config() | used,
        history={
            "iterations": sum(result.iterations for result in results),
            "passes": sum(result.passes for result in results),
            "seconds": sum(result.seconds for result in results),
        },
        feature_names=names,
    )
