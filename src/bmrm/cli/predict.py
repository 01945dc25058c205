"""``bmrm predict``: a model and a data file come in, one prediction for each row goes out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from bmrm._errors import DataError
from bmrm.cli.files import check_writable, plain_label, read_data
from bmrm.data.atomic import atomic
from bmrm.data.dataset import Dataset
from bmrm.model import Model, load


@dataclass(frozen=True)
class PredictOptions:
    """All settings of ``bmrm predict``, under the names of its flags."""

    model: Path
    file: Path
    output: Path | None
    scores: bool
    zero_based: str | None
    quiet: bool


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Path(path_type=Path), help="A file instead of standard output.")
@click.option("--scores", is_flag=True, help="Write scores, one for each class if there are more than two.")
@click.option("--zero-based", type=click.Choice(["auto", "true", "false"]),
              help="Whether feature indices of svmlight text start at 0.  [default: as in training]")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Write nothing but predictions and errors.")
def predict(**values: Any) -> int:
    """Write what MODEL predicts for each row of FILE, one line for each."""
    options = PredictOptions(**values)
    if options.output is not None:
        check_writable(options.output, [options.model, options.file])
    model = load(options.model)
    data = read_for(model, options.file, options.zero_based)
    scores = scores_of(model, data, options.file)
    text = "".join(f"{line}\n" for line in _lines(scores if options.scores else model.decide(scores)))
    if options.output is None:
        click.echo(text, nl=False)
        return 0
    with atomic(options.output) as file:
        file.write(text.encode())
    if not options.quiet:
        click.echo(f"{data.n_examples} predictions written to {options.output}", err=True)
    return 0


def read_for(model: Model, path: Path, zero_based: str | None) -> Dataset:
    """Read a data file as wide as the model; missing features at the end are 0, additional ones an error."""
    first = zero_based or str(model.config.get("zero_based", "auto"))
    return read_data(path, first if first in ("auto", "true", "false") else "auto", model.n_features)


def scores_of(model: Model, data: Dataset, path: Path) -> npt.NDArray[np.float64]:
    """Return the scores of all rows."""
    try:
        return model.decision_function(data.X)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


def _lines(predictions: npt.NDArray[Any]) -> list[str]:
    if predictions.ndim == 2:
        return [" ".join(map(repr, row)) for row in predictions.tolist()]
    return [str(plain_label(value)) for value in predictions.tolist()]
