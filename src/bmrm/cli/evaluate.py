"""``bmrm evaluate``: a model and a data file with labels come in, measures go out."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from bmrm._errors import DataError
from bmrm.cli.application import plain_warnings
from bmrm.cli.metrics import Wanted, measure
from bmrm.cli.reading import READING, Reading, read_and_score, reading_options, refuse_for_sequences
from bmrm.cli.sequences import measured, measures_text
from bmrm.cli.sequences import read_for as read_sequences_for
from bmrm.cli.standard_input import ALL_FORMATS, refuse_row_formats, with_standard_input
from bmrm.losses.scores import check_k
from bmrm.model import Model, load
from bmrm.sequence_model import SequenceModel


@dataclass(frozen=True)
class EvaluateOptions:
    """All settings of ``bmrm evaluate``, under the names of its flags."""

    model: Path
    files: tuple[Path, ...]
    format: str | None
    reading: Reading
    k: str | None
    beta: float | None
    json: bool


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--format", type=click.Choice(ALL_FORMATS),
              help="Of standard input, or of sequences.  [default: by the suffix, else as in training]")  # fmt: skip
@reading_options
@click.option("--k", metavar="NUMBER",
              help="Rows, or a share of them, for precision and recall at k; ranks for NDCG@k.  "
              "[default: the loss's, 10 for ranking]")  # fmt: skip
@click.option("--beta", type=click.FloatRange(min=0.0, min_open=True), help="For F-beta.  [default: the loss's]")
@click.option("--json", is_flag=True, help="Write one JSON object to standard output.")
def evaluate(**values: Any) -> int:
    """Compare what MODEL predicts for the rows of each FILE with their labels, all files together.

    Which measures are printed depends on what the model is for. NDCG has the gains 2^grade - 1; queries without
    documents of different grades, one of them above 0, do not count. For sequences they are the accuracy of tokens and,
    where labels are O, B-..., I-... (E-..., S-...), precision, recall and F1 of whole spans by conlleval's rules.

    A FILE of - is standard input. FILE may have every format that 'bmrm train' reads. Where it and MODEL have names of
    columns, they are put in order by name: a missing one is an error, others are left out, which one line says.
    """
    how = Reading(True, **{name: values.pop(name) for name in READING})
    options = EvaluateOptions(**values, reading=how)
    with with_standard_input(options.files, options.format) as files:
        return _evaluate(load(options.model), replace(options, files=tuple(files)))


def _evaluate(model: Model | SequenceModel, options: EvaluateOptions) -> int:
    if isinstance(model, SequenceModel):
        return _evaluate_sequences(model, options)
    refuse_row_formats(options.format, options.files)
    data, scores = read_and_score(model, options.files, options.reading)
    try:
        with plain_warnings():
            found = measure(model, data, scores, Wanted(_k(options.k), options.beta))
    except ValueError as error:
        raise DataError(f"{', '.join(map(str, options.files))}: {error}") from error
    if options.json:
        numbers = {name: _finite(value) for name, value in found.items()}
        click.echo(json.dumps({"n_examples": data.n_examples, **numbers}, allow_nan=False))
    else:
        click.echo(f"{data.n_examples} rows\n{table_of(found)}")
    return 0


def _evaluate_sequences(model: SequenceModel, options: EvaluateOptions) -> int:
    if options.k is not None or options.beta is not None:
        raise click.UsageError("--k and --beta are not for models of sequences")
    refuse_for_sequences(options.reading)
    first = options.reading.zero_based
    read = [(read_sequences_for(model, file, options.format, first, labels=True), file) for file in options.files]
    with plain_warnings():
        numbers = measured(model, read)
    click.echo(json.dumps(numbers, allow_nan=False) if options.json else measures_text(numbers))
    return 0


def table_of(found: dict[str, Any]) -> str:
    """Return the measures as aligned lines, and the confusion table where there is one."""
    numbers = {name: value for name, value in found.items() if name not in ("classes", "confusion")}
    width = max(map(len, numbers))
    lines = [f"{name.replace('_', ' '):<{width}}  {_text(value)}" for name, value in numbers.items()]
    if "confusion" in found:
        cells = [["true \\ predicted", *found["classes"]]]
        cells += [[label, *row] for label, row in zip(found["classes"], found["confusion"])]
        text = [[str(cell) for cell in row] for row in cells]
        widths = [max(len(row[i]) for row in text) for i in range(len(text[0]))]
        lines += ["", *("  ".join(cell.rjust(w) for cell, w in zip(row, widths)) for row in text)]
    return "\n".join(lines)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "undefined here" if value is None else format(value, ".6g")


def _k(text: str | None) -> int | float | None:
    """Return a number of rows, or a share of them."""
    if text is None:
        return None
    try:
        k = float(text) if set(text) & set(".eE") else int(text)
        check_k(k, "evaluate")
    except ValueError:
        raise click.UsageError(f"--k {text}; expected a number of rows, or a share between 0 and 1") from None
    return k


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
