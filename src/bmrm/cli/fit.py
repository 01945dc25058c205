"""From a data file's arrays to a model: targets, one problem for each score, one run for each problem."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm._errors import DataError
from bmrm.certificate import Status
from bmrm.cli.options import DEFAULT_LAM, Parts, TrainOptions
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Design
from bmrm.driver import Result, solve
from bmrm.losses import Loss
from bmrm.model import Model
from bmrm.monitor import progress_monitor
from bmrm.problem import Problem
from bmrm.risks import LinearRisk

_NO_TIME = 1e-9


@dataclass(frozen=True)
class Fit:
    """A model and the runs it comes from, one for each score."""

    model: Model
    results: tuple[Result, ...]
    n_examples: int


def class_labels(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the distinct labels in order, checked to be at least two and to be classes."""
    if y.dtype.kind == "S":
        y = y.astype(str)
    if y.ndim != 1:
        raise DataError(f"labels have shape {y.shape}; expected one for each row")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataError(f"label of row {row} is {y[row]}; labels must be finite")
    classes = np.unique(y)
    if len(classes) == 1:
        raise DataError(f"all {len(y)} labels are {classes[0]}; a classifier needs at least two classes")
    if len(classes) > 2 and classes.dtype.kind == "f" and np.any(classes != np.round(classes)):
        odd = classes[classes != np.round(classes)][0]
        raise DataError(f"labels such as {odd:g} are no classes; take a loss for regression ('bmrm list losses')")
    return classes


def encoded(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> list[npt.NDArray[np.float64]]:
    """Return -1 and 1 for each score: one of them for two classes, else one for each class against the rest."""
    labels = y.astype(str) if y.dtype.kind == "S" else y
    positives = classes[1:] if len(classes) == 2 else classes
    return [np.where(labels == label, 1.0, -1.0) for label in positives]


def fit(data: Dataset, options: TrainOptions, parts: Parts) -> Fit:
    """Train as the options say, with a live line on standard error."""
    loss = parts.loss
    classes, targets = _targets(data, loss)
    lam = _lam(data, options)
    worth_it = loss.task != "novelty" and loss.takes_offset
    intercept = worth_it if options.intercept is None else options.intercept
    design = Design(data.X, intercept or loss.learns_offset, options.threads)
    groups = data.groups if loss.couples == "group" else None
    results: list[Result] = []
    deadline = None if options.max_seconds is None else time.monotonic() + options.max_seconds
    for number, target in enumerate(targets, 1):
        risk = LinearRisk(design, target, loss, sample_weight=data.weight, groups=groups)
        problem = Problem(risk, parts.regularizer, lam)
        label = f"class {number} of {len(targets)} | " if len(targets) > 1 else ""
        with progress_monitor(quiet=options.quiet, label=label) as monitor:
            result = solve(
                problem, parts.solver, tol=options.tol, max_iter=options.max_iter,
                max_seconds=_seconds_left(deadline, results), monitor=monitor, seed=options.seed,
            )  # fmt: skip
            if result.history:
                monitor(result.history[-1])
        results.append(result)
    model = _model(design, options, lam, loss, classes, results)
    return Fit(model, tuple(results), data.n_examples)


def _targets(data: Dataset, loss: Loss) -> tuple[npt.NDArray[Any] | None, list[Any]]:
    if not loss.needs_targets:
        return None, [None]
    if data.y is None:
        raise DataError(f"the file has no labels, but loss '{loss.name}' needs them")
    y = np.asarray(data.y)
    if loss.task != "classification":
        return None, [y]
    classes = class_labels(y)
    return classes, list(encoded(y, classes))


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


def _model(
    design: Design,
    options: TrainOptions,
    lam: float,
    loss: Loss,
    classes: npt.NDArray[Any] | None,
    results: list[Result],
) -> Model:
    parts = [design.split(result.w) for result in results]
    return Model(
        coef=np.array([coef for coef, _ in parts]),
        intercept=np.array([constant for _, constant in parts]),
        classes=classes,
        loss=loss,
        regularizer=options.regularizer,
        lam=lam,
        solver=options.solver,
        tol=options.tol,
        certificates=[result.certificate for result in results],
        statuses=[result.status for result in results],
        config=options.as_config() | {"lam": lam, "intercept": design.intercept, "threads": design.n_threads},
        history={
            "iterations": sum(result.iterations for result in results),
            "passes": sum(result.passes for result in results),
            "seconds": sum(result.seconds for result in results),
        },
    )
