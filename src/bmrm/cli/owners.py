"""``bmrm train --owners``: no data file; rows stay with their owners, who are asked for sums."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import click
import numpy as np

from bmrm._errors import DataError
from bmrm.cli.application import plain_warnings
from bmrm.cli.fit import Fit, coefficients, fit, model_of, solved
from bmrm.cli.options import DEFAULT_LAM, Parts, TrainOptions
from bmrm.cli.targets import Targets, refuse_unused, targets_of
from bmrm.data import Dataset
from bmrm.driver import Result
from bmrm.dropouts import solve_owners
from bmrm.losses import Loss
from bmrm.owners import TLS, OwnerError, Owners, OwnersRisk, OwnersRows
from bmrm.owners.gathered import check_unmasked
from bmrm.owners.terms import check_loss, needs_scores, sized
from bmrm.owners.threshold import label_threshold
from bmrm.parallel import EngineError
from bmrm.problem import Problem
from bmrm.solvers import Solver

_ATTEMPTS, _MOMENT = 40, 0.05  # seconds: until an owner has noticed that the first session is over
_LABELED = ("classification", "multilabel", "hierarchy")  # tasks whose labels the owners tell


def refuse_data_options(options: TrainOptions) -> None:
    """Raise if something is asked for that needs the data here."""
    columns = ("target", "group", "weight")
    names = ("memory", "skip_bad", *columns, "engine", "scheduler", "workers", "weights")
    given = [name for name in names if getattr(options, name)]
    if given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} is not for --owners: the data are with them")
    if options.survive and options.checkpoint is not None:
        raise click.UsageError(
            "--survive and --checkpoint exclude each other: without a lost owner the objective changes"
        )
    if options.C is not None:
        raise click.UsageError("--C is not for --owners, who are told lam before the rows are counted: give --lam")


def fit_owners(options: TrainOptions, parts: Parts) -> Fit:
    """Train as the options say; what goes wrong with an owner is said with its name."""
    assert options.owners is not None
    addresses = [address.strip() for address in options.owners.split(",") if address.strip()]
    try:
        scores = needs_scores(parts.loss)
        if scores:
            check_unmasked(parts.loss, options.masked)
            if options.survive:
                raise ValueError(f"loss '{parts.loss.name}' looks at all rows together: leave --survive out")
        else:
            check_loss(parts.loss)
        tls = _tls(options)
        with plain_warnings(options.quiet), Owners(addresses, tls, options.insecure) as owners:
            if scores:
                return fit(OwnersRows(owners, parts.loss).dataset(), options, parts)
            done = _fit(owners, options, parts)
        with plain_warnings(options.quiet):
            return _with_threshold(done, options, parts, addresses, tls) if done.model.thresholds is not None else done
    except DataError:
        raise
    except (EngineError, ValueError) as error:
        raise DataError(str(error)) from error


def _tls(options: TrainOptions) -> TLS | None:
    if options.ca is None and options.certificate is None and options.key is None:
        return None
    return TLS(options.certificate, options.key, options.ca)


def _fit(owners: Owners, options: TrainOptions, parts: Parts) -> Fit:
    lam = DEFAULT_LAM if options.lam is None else options.lam
    targets = _targets(owners, options, parts.loss)
    loss, one_vs_rest = targets.loss, len(targets.problems) > 1
    intercept = loss.task != "novelty" and loss.takes_offset if options.intercept is None else options.intercept
    given = owners.classes if loss.task in _LABELED else None

    def problem(number: int) -> Problem:
        return OwnersRisk(
            owners, loss, lam=lam, regularizer=parts.regularizer, intercept=intercept, classes=given,
            positive=targets.classes[number] if one_vs_rest else None,  # type: ignore[index]
            masked=options.masked, scale=2.0**-options.mask_bits,
        ).problem  # fmt: skip

    run = _surviving if options.survive else None
    results = solved(problem, len(targets.problems), options, replace(parts, loss=loss), slim=True, run=run)
    if targets.classes is not None:
        loss = sized(loss, len(targets.classes))
    coef, constants = coefficients(owners.n_features, intercept, loss, results)
    thresholds = None
    if loss.task == "multilabel":
        constants, thresholds = constants - constants.mean(), np.zeros(1)  # the loss leaves their mean open
    used = {"lam": lam, "intercept": intercept}
    about = replace(targets, loss=loss)
    model = model_of(options, used, about, results, coef, constants, thresholds, owners.feature_names)
    return Fit(model, tuple(results), owners.n_rows)


def _with_threshold(done: Fit, options: TrainOptions, parts: Parts, addresses: list[str], tls: TLS | None) -> Fit:
    """Return the model with a threshold of labels, from sums in the clear: another loss, and so another session."""
    model, why = done.model, "under masks there are no sums to choose it by"
    assert model.classes is not None
    for _ in range(0 if options.masked else _ATTEMPTS):
        try:
            with warnings.catch_warnings(action="ignore"), Owners(addresses, tls, options.insecure) as owners:
                t = label_threshold(
                    owners, model.classes.tolist(), model.coef, model.intercept, model.lam, parts.regularizer
                )
            return replace(done, model=replace(model, thresholds=np.array([t])))
        except OwnerError as error:  # such as a guard whose budget is used up: the model is there all the same
            why = str(error)
            if "another coordinator" not in why:
                break
            time.sleep(_MOMENT)
    warnings.warn(f"the threshold of labels is 0 ({why})", stacklevel=2)
    return done


def _targets(owners: Owners, options: TrainOptions, loss: Loss) -> Targets:
    """Return what the problems are, as for a file with one row of each label."""
    if loss.task not in _LABELED:
        refuse_unused(loss, options.extras)
        return Targets(loss, [None])
    y = owners.classes
    return targets_of(Dataset(np.zeros((len(y), 1)), y), loss, options.extras)


def _surviving(problem: Problem, solver: str | Solver, **options: Any) -> Result:
    """Solve, and go on without owners that are lost."""
    assert isinstance(problem.risk, OwnersRisk)
    return solve_owners(problem.risk, solver, **options)
