"""Data files for a model: read like those it was trained on, with the columns that it knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from bmrm._errors import DataError
from bmrm.cli.application import plain_warnings
from bmrm.cli.files import named_columns, read_data
from bmrm.cli.stored import say
from bmrm.data.columns import Columns, Names, places_of
from bmrm.data.dataset import Dataset
from bmrm.data.elsewhere import Elsewhere
from bmrm.data.part_reader import PartReader
from bmrm.data.pieces import as_dataset
from bmrm.data.source_options import FilePart, SourceOptions
from bmrm.data.sources import TABLES, dataset_pieces, format_of
from bmrm.data.store import Store
from bmrm.model import Model

READING = ("zero_based", "target", "group", "weight", "ignore_unseen")  # the flags of `reading_options`
_OPTIONS = (
    click.option("--zero-based", type=click.Choice(["auto", "true", "false"]),
                 help="Whether feature indices of svmlight text start at 0.  [default: as in training]"),
    click.option("--target", help="The column of a table with the labels.  [default: as in training]"),
    click.option("--group", help="The column with the query of each row, of a table.  [default: as in training]"),
    click.option("--weight", help="The column of a table with the weight of each row."),
    click.option("--ignore-unseen", is_flag=True,
                 help="Leave out features of svmlight text and sparse files that were not there in training."),
)  # fmt: skip
_UNSEEN = "--ignore-unseen leaves out features that were not there in training"


@dataclass(frozen=True)
class Reading:
    """How a file is read for a model, under the names of the flags.

    Attributes
    ----------
    labels : bool
        Whether labels are needed. Where they are not, their column may be missing.
    """

    labels: bool
    zero_based: str | None = None
    target: str | None = None
    group: str | None = None
    weight: str | None = None
    ignore_unseen: bool = False
    quiet: bool = False


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say how its data files are read."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_for(model: Model, path: Path, how: Reading) -> Dataset:
    """Read a data file with the columns of the model: by name where both have names, else by position."""
    if format_of(path, SourceOptions()) in TABLES:
        return _table(model, path, how)
    given = named_columns(how)
    if given:
        raise click.UsageError(f"--{given[0]} is for tables (Parquet, Arrow, CSV), which {path} is not")
    first = how.zero_based or str(model.config.get("zero_based", "auto"))
    first = first if first in ("auto", "true", "false") else "auto"
    try:
        data = read_data(path, first, None if how.ignore_unseen else model.n_features)
    except DataError as error:
        if "out of range for n_features" not in str(error):
            raise
        raise DataError(f"{error}; {_UNSEEN}") from error
    return _in_order(model, data, path, how)


def refuse_for_sequences(how: Reading) -> None:
    """Raise if something is asked for that models of sequences do not know."""
    given = [*named_columns(how), *(["ignore-unseen"] if how.ignore_unseen else [])]
    if given:
        raise click.UsageError(f"--{given[0]} is not for models of sequences")


def read_and_score(model: Model, paths: Sequence[Path], how: Reading) -> tuple[Dataset, npt.NDArray[np.float64]]:
    """Return what belongs to the rows of all files, without the rows themselves, and their scores."""
    pieces, scores = [], []
    for path in paths:
        data = read_for(model, path, how)
        scores.append(scores_of(model, data, path, how))
        beside = replace(data, X=np.zeros((data.n_examples, 0)), feature_names=None)
        pieces += list(dataset_pieces(beside, str(path)))
    return as_dataset(pieces), np.concatenate(scores)


def scores_of(model: Model, data: Dataset, path: Path, how: Reading) -> npt.NDArray[np.float64]:
    """Return the scores of all rows."""
    X: Any = data.X
    if how.ignore_unseen and X.shape[1] > model.n_features and _is_sparse(X) and data.feature_names is None:
        unseen = X.shape[1] - model.n_features
        model = replace(model, coef=np.pad(model.coef, ((0, 0), (0, unseen))), feature_names=None)
    try:
        with plain_warnings(how.quiet):
            return model.decision_function(X)
    except ValueError as error:
        if _is_sparse(X) and X.shape[1] > model.n_features and data.feature_names is None:
            raise DataError(f"{path}: {error}; {_UNSEEN}") from error
        prefix = "" if str(error).startswith(f"{path}: ") else f"{path}: "
        raise DataError(f"{prefix}{error}") from error


def _table(model: Model, path: Path, how: Reading) -> Dataset:
    """Read a table; what the training knew as labels, queries and weights is no feature here either."""
    known = {name: getattr(how, name) or model.config.get(name) for name in ("target", "group", "weight")}
    drop = tuple(str(name) for name in known.values() if name)
    reader = PartReader(features=_names(model), drop=drop, on_disk=True)
    if how.labels:
        if known["target"] is None and model.loss.needs_targets:
            raise click.UsageError(f"{path}: which column has the labels? Name it by --target")
        group = known["group"] if how.group or model.task == "ranking" else None
        reader = replace(reader, target=known["target"], group=group, weight=how.weight)
    data, remarks = reader.read([FilePart(str(path))])
    say(remarks, how.quiet)
    return data


def _in_order(model: Model, data: Dataset, path: Path, how: Reading) -> Dataset:
    """Put the columns of arrays in order by name, and make sparse rows as wide as the model."""
    X: Any = data.X
    own, names = data.feature_names, _names(model)
    if own is not None and names is not None and own != names and not isinstance(X, Elsewhere):
        columns = Columns(names)
        X = X[:, places_of(columns.of(own, str(path)), own)]
        say(columns.remarks(), how.quiet)
        return replace(data, X=X, feature_names=names)
    if own is None and X.shape[1] < model.n_features and _is_sparse(X):
        wide = (X.shape[0], model.n_features)
        X = X.widened(wide[1]) if isinstance(X, Store) else type(X)((X.data, X.indices, X.indptr), shape=wide)
        return replace(data, X=X)
    return data


def _names(model: Model) -> Names | None:
    return None if model.feature_names is None else tuple(model.feature_names)


def _is_sparse(X: Any) -> bool:
    return X.header.kind == "csr" if isinstance(X, Store) else hasattr(X, "tocsr")
