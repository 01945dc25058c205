"""``bmrm train --owners``: no data file; rows stay with their owners, who are asked for sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from bmrm._errors import DataError
from bmrm.cli.application import plain_warnings
from bmrm.cli.fit import Fit, coefficients, model_of, solved
from bmrm.cli.options import DEFAULT_LAM, Parts, TrainOptions
from bmrm.cli.targets import Targets
from bmrm.driver import Result, solve
from bmrm.dropouts import solve_owners
from bmrm.losses.multiclass import of_all_classes
from bmrm.losses.vector import ClassLoss
from bmrm.owners import TLS, Owners, OwnersRisk
from bmrm.owners.terms import check_loss
from bmrm.parallel import EngineError
from bmrm.problem import Problem
from bmrm.solvers import Solver


def refuse_data_options(options: TrainOptions) -> None:
    """Raise if something is asked for that needs the data here."""
    columns = ("target", "group", "weight")
    names = ("memory", "skip_bad", *columns, "engine", "scheduler", "workers", "weights", "hierarchy", "costs")
    given = [name for name in names if getattr(options, name)]
    if given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} is not for --owners: the data are with them")
    if options.C is not None:
        raise click.UsageError("--C is not for --owners, who are told lam before the rows are counted: give --lam")
    if options.checkpoint is not None:
        raise click.UsageError(
            "--checkpoint is not for --owners: a run that goes on needs scores that they do not tell"
        )


def fit_owners(options: TrainOptions, parts: Parts) -> Fit:
    """Train as the options say; what goes wrong with an owner is said with its name."""
    assert options.owners is not None
    addresses = [address.strip() for address in options.owners.split(",") if address.strip()]
    try:
        check_loss(parts.loss)
        tls = _tls(options)
        with plain_warnings(options.quiet), Owners(addresses, tls, options.insecure) as owners:
            return _fit(owners, options, parts)
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
    loss, classes = parts.loss, None
    if loss.task == "classification":
        classes = owners.classes
        loss = of_all_classes(loss, options.multiclass, len(classes))
    joint = classes is None or len(classes) <= 2 or isinstance(loss, ClassLoss)
    positives = [None] if joint else classes.tolist()  # type: ignore[union-attr]
    worth_it = loss.task != "novelty" and loss.takes_offset
    intercept = worth_it if options.intercept is None else options.intercept

    def problem(number: int) -> Problem:
        return OwnersRisk(
            owners, loss, lam=lam, regularizer=parts.regularizer, intercept=intercept, classes=classes,
            positive=positives[number], masked=options.masked, scale=2.0**-options.mask_bits,
        ).problem  # fmt: skip

    run = _surviving if options.survive else solve
    results = solved(problem, len(positives), options, replace(parts, loss=loss), slim=True, run=run)
    if isinstance(loss, ClassLoss) and loss.n_classes is None:
        assert classes is not None
        loss = replace(loss, n_classes=len(classes))  # type: ignore[type-var]
    coef, constants = coefficients(owners.n_features, intercept, loss, results)
    used = {"lam": lam, "intercept": intercept}
    model = model_of(
        options, used, Targets(loss, [None], classes), results, coef, constants, names=owners.feature_names
    )
    return Fit(model, tuple(results), owners.n_rows)


def _surviving(problem: Problem, solver: str | Solver, **options: Any) -> Result:
    """Solve, and go on without owners that are lost."""
    assert isinstance(problem.risk, OwnersRisk)
    return solve_owners(problem.risk, solver, **options)
