"""The commands for sequences: training, prediction and measures of models that label tokens."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import numpy.typing as npt

from bmrm._errors import DataError
from bmrm.certificate import Status
from bmrm.cli.application import NOT_CERTIFIED, one_interrupt, plain_warnings
from bmrm.cli.engines import busy_line, busy_times
from bmrm.cli.options import DEFAULT_LAM, TrainOptions, made, parameter
from bmrm.cli.outputs import STANDARD, save_history, save_model
from bmrm.cli.report import ended_by, ending, trained
from bmrm.cli.targets import read_matrix
from bmrm.data.arrays import load_array
from bmrm.data.sequences import SequenceData, kind_of, read_sequences
from bmrm.data.template import Template
from bmrm.parallel import Engine
from bmrm.regularizers import REGULARIZERS
from bmrm.result import Record
from bmrm.risks import StructuredRisk
from bmrm.sequence_model import SequenceModel
from bmrm.solvers import SOLVERS
from bmrm.structured.spans import SpanScore, are_tags, span_scores

if TYPE_CHECKING:
    from bmrm.estimators import SequenceLabeler

_SHOWN = 5


def train_sequences(options: TrainOptions, engine: Engine | None = None) -> int:
    """Train a labeler on a file of sequences, save it and say what was proved; return the exit code."""
    _refuse_unused(options)
    inputs = [options.file, options.weights, options.costs, options.template]
    options.check_outputs(inputs)
    template = None if options.template is None else Template.read(options.template)
    labeler = _labeler(options, template)
    labeler._checkpoint = options.checkpoint_of()
    data = _read(options.file, options.format, template, zero_based=options.zero_based, threads=options.threads)
    weight = _weights(options.weights, len(data))
    with one_interrupt() as interrupt:
        _fit(labeler, data, weight, options, engine)
        if options.model != STANDARD:  # a pipe that nobody reads would block for ever
            interrupt.hold()
        model = ended_by(_model(labeler, data, template, options), interrupt.signal)
        save_model(model.save, options.model_path, options.stem)
        if options.history is not None:
            save_history(options.history, labeler.history_, options.model_place)
    if options.json:
        click.echo(json.dumps(_report(model, data, options), allow_nan=False), err=options.model == STANDARD)
    elif not options.quiet:
        click.echo(_summary(model, data, options, _busy(labeler.history_)), err=options.model == STANDARD)
    return 0 if model.status is Status.CONVERGED else NOT_CERTIFIED


def _refuse_unused(options: TrainOptions) -> None:
    given = {
        "--intercept/--no-intercept": options.intercept is not None,
        "--hierarchy": options.hierarchy is not None,
        "--multiclass": options.multiclass != "auto",
    }
    for name, is_given in given.items():
        if is_given:
            raise click.UsageError(f"{name} means nothing to loss '{options.loss}', which is for sequences")


def _labeler(options: TrainOptions, template: Template | None) -> SequenceLabeler:
    from bmrm.estimators import SequenceLabeler

    parameters = dict(parameter(text) for text in options.loss_param)
    scaling = parameters.pop("scaling", "margin")
    if parameters:
        raise click.UsageError(f"loss '{options.loss}' has no parameter {next(iter(parameters))!r}; accepted: scaling")
    default = "none" if template is not None and not template.transitions else "seen"
    return SequenceLabeler(
        loss=options.loss,
        scaling=scaling,
        regularizer=made(REGULARIZERS, options.regularizer, options.regularizer_param),
        lam=DEFAULT_LAM if options.lam is None else options.lam,
        C=options.C,
        emissions=options.emissions,
        transitions=options.transitions or default,
        hashing=options.hashing,
        costs=None if options.costs is None else read_matrix(options.costs),
        solver=made(SOLVERS, options.solver, options.solver_param),
        tol=options.tol,
        max_iter=options.max_iter,
        max_seconds=options.max_seconds,
        n_threads=options.threads,
        random_state=options.seed,
        verbose=not options.quiet,
    )


def _fit(
    labeler: SequenceLabeler, data: SequenceData, weight: Any, options: TrainOptions, engine: Engine | None
) -> None:
    """Fit; after Ctrl-C the labeler is what it is, if there is anything."""
    from sklearn.exceptions import ConvergenceWarning

    try:
        with plain_warnings(options.quiet):
            warnings.simplefilter("ignore", ConvergenceWarning)  # the summary says it
            labeler.fit(data.X, data.y, sample_weight=weight, engine=engine)
    except KeyboardInterrupt:
        if not hasattr(labeler, "status_"):
            raise
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{options.file}: {error}") from error


def _model(
    labeler: SequenceLabeler, data: SequenceData, template: Template | None, options: TrainOptions
) -> SequenceModel:
    config = {
        "lam": labeler.lam_,
        "format": data.kind,
        "n_columns": data.n_columns,
        "transitions": labeler.transitions,
        "zero_based": options.zero_based if data.zero_based is None else str(data.zero_based).lower(),
    }
    return replace(labeler.to_model(), template=template, config=options.as_config() | config)


def _read(
    path: Path,
    kind: str | None,
    template: Template | None,
    *,
    zero_based: str,
    n_columns: int | None = None,
    n_features: int | None = None,
    labels: bool = True,
    threads: int | None = None,
) -> SequenceData:
    """Read a file of sequences; each format takes the options that concern it."""
    chosen = kind_of(path, kind)
    if chosen != "svmlight":
        return read_sequences(path, chosen, template=template, n_columns=n_columns, labels=labels)
    if path.suffix.lower() == ".npz":
        return read_sequences(path, chosen, template=template, labels=labels)
    first = {"auto": "auto", "true": True, "false": False}[zero_based]
    return read_sequences(
        path, chosen, template=template, labels=labels, zero_based=first, n_features=n_features, n_threads=threads
    )


def _weights(path: Path | None, n: int) -> npt.NDArray[np.float64] | None:
    if path is None:
        return None
    weight = load_array(path)
    if weight.shape != (n,) or weight.dtype.kind not in "biuf":
        raise DataError(
            f"{path}: has type {weight.dtype} and shape {weight.shape}; expected {n} numbers, one for each sequence"
        )
    return weight.astype(np.float64)


def _busy(history: tuple[Record, ...]) -> list[str]:
    """Return a line on the shards, where there are some, each as a worker of its own."""
    shards = [f"shard {s}" for s in range(len(history[-1].busy) if history else 0)]
    return busy_line(busy_times(shards, [history]), len(shards))


def _summary(model: SequenceModel, data: SequenceData, options: TrainOptions, busy: list[str]) -> str:
    run = model.history
    return "\n".join(
        [
            *ending(model.certificate, model.status, run.get("signal", "")),
            f"{len(data)} sequences, {_tokens(data)} tokens, {model.attributes.n_attributes} attributes, "
            f"{len(model.classes)} labels, {model.coef.size} weights; "
            f"loss {model.loss.name}, regularizer {model.regularizer}, lam {model.lam:g}, solver {model.solver}",
            f"{run['iterations']} iterations, {run['passes']:g} passes, {run['seconds']:.3g} s",
            *busy,
            f"model saved to {options.model_place}",
        ]
    )


def _report(model: SequenceModel, data: SequenceData, options: TrainOptions) -> dict[str, Any]:
    return {
        **trained(model, options.model_path),
        "n_sequences": len(data),
        "n_tokens": _tokens(data),
        "n_attributes": model.attributes.n_attributes,
        "n_weights": int(model.coef.size),
        "classes": model.classes.tolist(),
    }


def _tokens(data: SequenceData) -> int:
    return sum(map(len, data.y or ()))


def read_for(
    model: SequenceModel, path: Path, kind: str | None, zero_based: str | None, *, labels: bool
) -> SequenceData:
    """Read a file as the model's training file was read; the suffix or the flag may say otherwise."""
    config = model.config
    try:
        chosen = kind_of(path, kind)
    except DataError:
        if "format" not in config:
            raise
        chosen = kind_of(path, str(config["format"]))
    if chosen == "conll" and model.template is None:
        raise DataError(f"{path}: is a file of columns, but the model has no template to make attributes of them")
    return _read(
        path,
        chosen,
        model.template if chosen == "conll" else None,
        zero_based=zero_based or str(config.get("zero_based", "auto")),
        n_columns=config.get("n_columns") if chosen == "conll" else None,
        n_features=model.attributes.n_attributes,
        labels=labels,
    )


def predicted_lines(model: SequenceModel, data: SequenceData, path: Path, proba: bool) -> list[str]:
    """Return the lines that ``predict`` writes: labels in the layout of the file, or probabilities."""
    try:
        if not proba:
            return data.with_labels(model.predict(data.X))
        tables = model.marginals(data.X)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    blocks = ([" ".join(map(repr, row)) for row in table.tolist()] for table in tables)
    return [line for block in blocks for line in [*block, ""]][:-1]


def measured(model: SequenceModel, files: Sequence[tuple[SequenceData, Path]]) -> dict[str, Any]:
    """Return the measures of what the model predicts for files with labels, all together."""
    true: list[Any] = []
    found: list[Any] = []
    for data, path in files:
        assert data.y is not None
        true += data.y
        try:
            found += model.predict(data.X)
        except ValueError as error:
            raise DataError(f"{path}: {error}") from error
    pairs = list(zip(true, found))
    tokens = sum(map(len, true))
    right = sum(a == b for one, other in pairs for a, b in zip(one, other))
    unknown = _unknown(true, model.classes)
    numbers: dict[str, Any] = {
        "n_sequences": len(pairs),
        "n_tokens": tokens,
        "unknown_labels": unknown,
        "token_accuracy": right / tokens,
        "sequence_accuracy": sum(one == other for one, other in pairs) / len(pairs),
        "mean_loss": None if unknown else _mean_loss(model, [data for data, _ in files]),
    }
    if are_tags([*model.classes.tolist(), *(label for labels in true for label in labels)]):
        total, kinds = span_scores(true, found)
        numbers |= _span_numbers(total)
        numbers["kinds"] = {kind: _span_numbers(score) for kind, score in kinds.items()}
    return numbers


def _unknown(true: Iterable[list[Any]], classes: npt.NDArray[Any]) -> int:
    """Return how many tokens have a label that cannot be predicted, and warn about them."""
    known = set(classes.tolist())
    strange = [label for labels in true for label in labels if label not in known]
    if strange:
        few = ", ".join(map(str, sorted(set(strange), key=str)[:_SHOWN]))
        warnings.warn(
            f"{len(strange)} tokens have labels that the model does not know ({few}); they count as wrong", stacklevel=2
        )
    return len(strange)


def _mean_loss(model: SequenceModel, files: Sequence[SequenceData]) -> float:
    place = {label: code for code, label in enumerate(model.classes.tolist())}
    means = []
    for data in files:
        codes = np.array([place[label] for labels in data.y or () for label in labels], dtype=np.int64)
        risk = StructuredRisk(model.attributes.encode(data.X), codes, model.loss)
        means.append(float(risk.evaluate(model.coef)[0]))
    return float(np.average(means, weights=[len(data) for data in files]))


def _span_numbers(score: SpanScore) -> dict[str, Any]:
    return {
        "spans": score.true,
        "predicted_spans": score.predicted,
        "right_spans": score.right,
        "precision": score.precision,
        "recall": score.recall,
        "f1": score.f1,
    }


def measures_text(numbers: dict[str, Any]) -> str:
    """Return the measures as aligned lines, and a table of the kinds of spans where there are any."""
    plain = {name: value for name, value in numbers.items() if name not in ("n_sequences", "n_tokens", "kinds")}
    width = max(map(len, plain))
    lines = [f"{numbers['n_sequences']} sequences, {numbers['n_tokens']} tokens"]
    for name, value in plain.items():
        text = "undefined here" if value is None else format(value, ".6g")
        lines.append(f"{name.replace('_', ' '):<{width}}  {text}")
    if numbers.get("kinds"):
        columns = ("precision", "recall", "f1", "spans")
        cells = [["kind", *columns]]
        for kind, scores in numbers["kinds"].items():
            cells.append([kind, *(_cell(scores[column]) for column in columns)])
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
        lines += ["", *("  ".join(cell.rjust(w) for cell, w in zip(row, widths)) for row in cells)]
    return "\n".join(lines)


def _cell(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"
