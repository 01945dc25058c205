"""``bmrm predict``: a model and a data file come in, one prediction for each row goes out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import click
import numpy as np
import numpy.typing as npt

from bmrm._errors import DataError
from bmrm.cli.files import plain_label
from bmrm.cli.outputs import STANDARD, check_writable
from bmrm.cli.reading import READING, Reading, read_for, reading_options, refuse_for_sequences, scores_of
from bmrm.cli.sequences import predicted_lines
from bmrm.cli.sequences import read_for as read_sequences_for
from bmrm.cli.standard_input import ALL_FORMATS, refuse_row_formats, with_standard_input
from bmrm.data.atomic import atomic
from bmrm.losses.hierarchy import HierarchicalLoss
from bmrm.model import Model, load
from bmrm.sequence_model import SequenceModel

_BELOW = " > "


@dataclass(frozen=True)
class PredictOptions:
    """All settings of ``bmrm predict``, under the names of its flags."""

    model: Path
    file: Path
    output: Path | None
    scores: bool
    proba: bool
    path: bool
    format: str | None
    reading: Reading

    @property
    def quiet(self) -> bool:
        """Whether nothing but predictions and errors is written."""
        return self.reading.quiet


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Path(path_type=Path), help="A file instead of standard output, which is -.")
@click.option("--scores", is_flag=True, help="Write scores, one for each class if there are more than two.")
@click.option("--proba", is_flag=True, help="Write the probability of each class, in the order of the sorted labels.")
@click.option("--path", is_flag=True, help="Write the nodes of a hierarchy from the top to the prediction.")
@click.option("--format", type=click.Choice(ALL_FORMATS),
              help="Of standard input, or of sequences.  [default: by the suffix, else as in training]")  # fmt: skip
@reading_options
@click.option("--quiet", is_flag=True, help="Write nothing but predictions and errors.")
def predict(**values: Any) -> int:
    """Write what MODEL predicts for each row of FILE, one line for each.

    That is a label, a number or a grade; the name of a node; comma-separated labels where there may be several; and the
    score for ranking. For sequences it is the label of each token: one more column in a file of columns, else with a
    blank line between sequences.

    A FILE of - is standard input. FILE may have every format that 'bmrm train' reads. Where it and MODEL have names of
    columns, they are put in order by name: a missing one is an error, others are left out, which one line says.
    """
    how = Reading(False, **{name: values.pop(name) for name in READING}, quiet=values.pop("quiet"))
    options = PredictOptions(**values, reading=how)
    if options.scores + options.proba + options.path > 1:
        raise click.UsageError("--scores, --proba and --path exclude each other")
    if options.output is not None:
        check_writable(options.output, [options.model, options.file], standard=True)
    with with_standard_input([options.file], options.format) as (file,):
        lines, count = _predicted(load(options.model), replace(options, file=file))
    text = "".join(f"{line}\n" for line in lines)
    if options.output in (None, STANDARD):
        click.echo(text, nl=False)
        return 0
    with atomic(options.output) as file:
        file.write(text.encode())
    if not options.quiet:
        click.echo(f"{count} written to {options.output}", err=True)
    return 0


def _predicted(model: Model | SequenceModel, options: PredictOptions) -> tuple[list[str], str]:
    """Return the lines to write, and how many predictions that are."""
    if isinstance(model, SequenceModel):
        if options.scores or options.path:
            raise click.UsageError(f"--{'scores' if options.scores else 'path'} is not for models of sequences")
        refuse_for_sequences(options.reading)
        sequences = read_sequences_for(model, options.file, options.format, options.reading.zero_based, labels=False)
        lines = predicted_lines(model, sequences, options.file, options.proba)
        return lines, f"labels of {len(sequences)} sequences"
    refuse_row_formats(options.format, [options.file])
    data = read_for(model, options.file, options.reading)
    scores = scores_of(model, data, options.file, options.reading)
    return _lines(model, scores, options), f"{data.n_examples} predictions"


def _lines(model: Model, scores: npt.NDArray[np.float64], options: PredictOptions) -> list[str]:
    if options.scores:
        return _numbers(model.class_scores(scores))
    if options.proba:
        return _numbers(model.probabilities(scores))
    predictions = model.decide(scores)
    if options.path:
        return _paths(model, predictions)
    if model.task == "multilabel":
        labels = [str(plain_label(label)) for label in cast(npt.NDArray[Any], model.classes).tolist()]
        return [",".join(label for label, is_one in zip(labels, row) if is_one) for row in predictions.tolist()]
    return _numbers(predictions)


def _numbers(values: npt.NDArray[Any]) -> list[str]:
    if values.ndim == 2:
        return [" ".join(map(repr, row)) for row in values.tolist()]
    return [str(plain_label(value)) for value in values.tolist()]


def _paths(model: Model, names: npt.NDArray[Any]) -> list[str]:
    if not isinstance(model.loss, HierarchicalLoss):
        raise DataError(f"--path is for models of a hierarchy; this one was trained by loss '{model.loss.name}'")
    tree = model.loss.tree
    paths = {name: _BELOW.join(tree.names[v] for v in tree.path(node)) for node, name in enumerate(tree.names)}
    return [paths[name] for name in names.tolist()]
