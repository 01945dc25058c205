"""``bmrm train``: a data file comes in, a model file and what was proved about it go out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bmrm._errors import DataError
from bmrm.certificate import Status
from bmrm.cli.application import NOT_CERTIFIED, one_interrupt, plain_warnings
from bmrm.cli.engines import busy_line, busy_times, engine_of, sharded_data
from bmrm.cli.files import plain_label
from bmrm.cli.fit import Fit, fit
from bmrm.cli.options import TrainOptions, read_config, thread_count
from bmrm.cli.outputs import STANDARD, save_history, save_model
from bmrm.cli.owners import fit_owners, refuse_data_options
from bmrm.cli.report import ended_by, ending, loose_bound, trained
from bmrm.cli.sequences import train_sequences
from bmrm.cli.standard_input import ALL_FORMATS, with_standard_input
from bmrm.cli.stored import training_data
from bmrm.data import Dataset
from bmrm.losses.structured import STRUCTURED_LOSSES
from bmrm.model import Model
from bmrm.parallel import ENGINES, Engine
from bmrm.risks import Shards

_PATH = click.Path(path_type=Path)
_POSITIVE = click.FloatRange(min=0.0, min_open=True)
_COUNT = click.IntRange(min=1)
_PARAMETER: dict[str, Any] = {"multiple": True, "metavar": "NAME=VALUE"}


@click.command()
@click.argument("file", nargs=-1, type=_PATH)
@click.option("--loss", default="hinge", show_default=True, help="See 'bmrm list losses'.")
@click.option("--loss-param", **_PARAMETER, help="A parameter of the loss, for example tau=0.9; repeatable.")
@click.option("--regularizer", default="l2", show_default=True, help="See 'bmrm list regularizers'.")
@click.option("--regularizer-param", **_PARAMETER, help="A parameter of the regularizer; repeatable.")
@click.option("--lam", type=_POSITIVE, help="Minimize lam Omega(w) + mean loss.  [default: 1e-4]")
@click.option("--C", "C", type=_POSITIVE, help="Minimize Omega(w) + C times the sum of losses, instead of --lam.")
@click.option("--solver", default="auto", show_default=True, help="See 'bmrm list solvers'.")
@click.option("--solver-param", **_PARAMETER, help="A parameter of the solver; repeatable.")
@click.option("--tol", type=float, default=1e-3, show_default=True, help="Relative gap to be proved.")
@click.option("--max-iter", type=_COUNT, help="Limit of iterations (for each class).")
@click.option("--max-seconds", type=_POSITIVE, help="Limit of time.")
@click.option("--threads", type=int, callback=thread_count, help="Number of threads, -1 for all cores.  [default: -1]")
@click.option("--intercept/--no-intercept", default=None,
              help="Learn an unpenalized constant.  "
              "[default: yes, where the loss depends on one, but for novelty]")  # fmt: skip
@click.option("--zero-based", type=click.Choice(["auto", "true", "false"]), default="auto", show_default=True,
              help="Whether feature indices of svmlight text start at 0.")  # fmt: skip
@click.option("--memory", help="Limit of resident memory, such as 2GB; the data stay on disk.")
@click.option("--skip-bad", is_flag=True,
              help="Leave out and count corrupt blocks of stores, lines and rows that cannot be read.")  # fmt: skip
@click.option("--target", help="The column with the labels, of Parquet, Arrow and CSV files.")
@click.option("--group", help="The column with the query of each row, of the same files.")
@click.option("--weight", help="The column with the weight of each row, of the same files.")
@click.option("--engine", type=click.Choice(ENGINES),
              help="Train on shards of the files: here, on the ranks of mpiexec, on Dask workers.")  # fmt: skip
@click.option("--shards", type=_COUNT, help="Number of shards.  [default: by the size of the data, 4 for each worker]")
@click.option("--scheduler", help="The address of a Dask scheduler, such as tcp://host:8786.")
@click.option("--workers", type=_COUNT, help="Of a Dask cluster on this machine, where there is no --scheduler.")
@click.option("--owners", help="Train with the owners at host:port,host:port ('bmrm serve-shard'), without a FILE.")
@click.option("--masked", is_flag=True, help="Owners mask their answers: only sums over all of them are seen here.")
@click.option("--mask-bits", type=click.IntRange(1, 50), default=40, show_default=True,
              help="Of masked numbers, below the largest at w = 0; 22 are left above.")  # fmt: skip
@click.option("--ca", type=_PATH, help="What the owners' certificates must be signed by (PEM).")
@click.option("--certificate", type=_PATH, help="For owners that ask for one (PEM).")
@click.option("--key", type=_PATH, help="Of the certificate.")
@click.option("--insecure", is_flag=True, help="Accept owners on other machines without TLS.")
@click.option("--survive", is_flag=True,
              help="Go on without an owner that is lost, if three others remain: another objective.")  # fmt: skip
@click.option("--weights", type=_PATH, help="A .npy file with one weight for each row.")
@click.option("--hierarchy", type=_PATH,
              help="The tree of classes: lines 'parent child', or nested JSON.  "
              "[default: labels are paths a/b/c]")  # fmt: skip
@click.option("--costs", type=_PATH,
              help="A matrix, .npy or text, in the order of the sorted labels: what it costs to predict the one of the "
              "column where the one of the row is true.")  # fmt: skip
@click.option("--multiclass", type=click.Choice(["auto", "joint", "one_vs_rest"]), default="auto", show_default=True,
              help="More than two classes: one joint problem (hinge, logistic), or each against the rest.")  # fmt: skip
@click.option("--format", type=click.Choice(ALL_FORMATS),
              help="Of standard input, or of a file of sequences.  [default: svmlight; by the suffix]")  # fmt: skip
@click.option("--template", type=_PATH, help="What makes attributes of the columns of a .conll file, as in CRF++.")
@click.option("--emissions", type=click.Choice(["seen", "all"]), default="seen", show_default=True,
              help="Sequences: which pairs of an attribute and a label have a weight.")  # fmt: skip
@click.option("--transitions", type=click.Choice(["seen", "all", "none"]),
              help="Sequences: which pairs of neighboring labels have a weight.  "
              "[default: seen; none, if the template has no line B]")  # fmt: skip
@click.option("--hashing", type=_COUNT, help="Sequences: columns for hashed attributes, instead of one for each name.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--model", type=_PATH, help="Where to save.  [default: FILE's stem + .bmrm, in this directory]")
@click.option("--history", type=_PATH, help="Where to save the course of the run, as CSV.")
@click.option("--checkpoint", type=_PATH, help="Where to save the run now and then, to go on from after a stop.")
@click.option("--checkpoint-seconds", type=click.FloatRange(min=0.0), default=60.0, show_default=True,
              help="Time between two checkpoints.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on from the checkpoint, if it is there, as if never stopped.")
@click.option("--config", type=_PATH, is_eager=True, expose_value=False, callback=read_config,
              help="A TOML file with the same names; flags override it.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Write nothing but errors.")
@click.option("--json", is_flag=True, help="Write one JSON object to standard output.")
@click.pass_context
def train(ctx: click.Context, /, **values: Any) -> int:
    """Train a model on FILE and prove how good it is.

    FILE is svmlight text (also .gz, .bz2, .xz, .zst), .npz, .npy or a .store of 'bmrm convert'. Several files, tables
    (.parquet, .arrow, .csv) and all files with --memory become a temporary store. Two labels make a binary problem;
    more are trained one against the rest, or jointly by a loss of all scores (softmax, multiclass_hinge). Comma lists
    of labels are for multilabel_hinge, qid: for losses of queries. The losses structured_log and structured_hinge
    label the tokens of sequences: a .conll file of columns with a template, a .crfsuite file of attributes, or qid:
    for the sequence. A FILE of - is standard input, in the format that --format names; with --model - the model goes to
    standard output and all messages to standard error. With --owners there is no FILE: the rows stay with those they
    belong to, and losses of all rows together (roc_area, ordinal, fbeta) need owners that allow scores. Exit code 0:
    the gap is closed; 3: it is not, the model is saved all the same; 2: wrong usage or input, or the model had to be
    saved elsewhere.
    """
    options = TrainOptions.from_context(ctx, values)
    with (
        with_standard_input([options.file, *options.more], options.format) as files,
        engine_of(options := options.with_files(files)) as engine,
    ):
        return 0 if options.engine is not None and engine is None else train_with(engine, options)


def train_with(engine: Engine | None, options: TrainOptions) -> int:
    """Train on shards of an engine, or without one, and return the exit code."""
    if options.loss in STRUCTURED_LOSSES:
        options.refuse_rows()
        return train_sequences(options, engine)
    options.refuse_sequences()
    parts = options.make_parts()
    inputs = [options.file, *options.more, options.weights, options.hierarchy, options.costs]
    if options.owners is not None:
        refuse_data_options(options)
    options.check_outputs(inputs)
    workers: dict[str, dict[str, float]] = {}
    if options.owners is not None:
        done = saved(options, lambda: fit_owners(options, parts))
    else:
        with training_data(options) if engine is None else sharded_data(options, engine) as data:
            if data.zero_based is not None:  # later files are read the way this one turned out to count
                options = replace(options, zero_based=str(data.zero_based).lower())
            done = saved(options, lambda: fit_file(data, options, parts))
            X: Any = data.X
            if isinstance(X, Shards):
                workers = busy_times(X.placed.workers(), [result.history for result in done.results])
    if options.json:
        text = json.dumps(report(done, options) | ({"workers": workers} if workers else {}), allow_nan=False)
        click.echo(text, err=options.model == STANDARD)
    elif not options.quiet:
        n_shards = len(done.results[-1].history[-1].busy) if workers else 0
        click.echo(summary(done, options, busy_line(workers, n_shards)), err=options.model == STANDARD)
    return 0 if done.model.status is Status.CONVERGED else NOT_CERTIFIED


def saved(options: TrainOptions, fit: Callable[[], Fit]) -> Fit:
    """Fit, and save the model and the course of the runs."""
    with one_interrupt() as interrupt:
        done = fit()
        if options.model != STANDARD:  # a pipe that nobody reads would block for ever
            interrupt.hold()
        done = replace(done, model=ended_by(done.model, interrupt.signal))
        save_model(done.model.save, options.model_path, options.stem)
        if options.history is not None:
            records = [record for result in done.results for record in result.history]
            save_history(options.history, records, options.model_place)
    return done


def fit_file(data: Dataset, options: TrainOptions, parts: Any) -> Fit:
    """Fit; what is wrong with the data is said with the file's name."""
    try:
        with plain_warnings(options.quiet):
            return fit(data, options, parts)
    except MemoryError:
        raise DataError(
            f"{options.file}: {data.X.shape[1]} features; so many weights do not fit into memory (is an index wrong?)"
        ) from None
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{options.file}: {error}") from error


def summary(done: Fit, options: TrainOptions, more: Sequence[str] = ()) -> str:
    """Return the end of a run in a few lines, with more of them before the model's file."""
    model, run = done.model, done.model.history
    return "\n".join(
        [
            *ending(model.certificate, model.status, run.get("signal", "")),
            f"{done.n_examples} rows, {model.n_features} features{_of_labels(model)}; "
            f"loss {model.loss.name}, regularizer {model.regularizer}, lam {model.lam:g}, solver {model.solver}",
            f"{run['iterations']} iterations, {run['passes']:g} passes, {run['seconds']:.3g} s",
            *more,
            f"model saved to {options.model_place}",
            *([] if options.memory is None else loose_bound(model.certificate, model.status)),
        ]
    )


def _of_labels(model: Model) -> str:
    """Return how many classes there are and what became of them, where there is more to say than two."""
    n = 0 if model.classes is None else len(model.classes)
    if model.task == "classification" and n > 2:
        return f", {n} classes {'together' if model.joint else 'one against the rest'}"
    kinds = {"multilabel": f", {n} labels", "hierarchy": f", {n} classes in a tree of {len(model.coef)} nodes"}
    numbers = {"ordinal": f", {n} grades", "multivariate": f", {len(model.coef)} numbers to predict"}
    return (kinds | numbers).get(model.task, "")


def report(done: Fit, options: TrainOptions) -> dict[str, Any]:
    """Return the end of a run as plain JSON values; numbers that are not finite are null."""
    model = done.model
    return {
        **trained(model, options.model_path),
        "n_examples": done.n_examples,
        "n_features": model.n_features,
        "thresholds": None if model.thresholds is None else model.thresholds.tolist(),
        "classes": None if model.classes is None else [plain_label(label) for label in model.classes],
    }
