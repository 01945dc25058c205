"""``bmrm demo``: the whole way once, from data to a certified model, a comparison and a plot."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np

import bmrm
from bmrm.cli.evaluate import table_of
from bmrm.cli.fit import Fit, fit
from bmrm.cli.metrics import measure
from bmrm.cli.options import TrainOptions
from bmrm.cli.plot import Course, convergence_plot
from bmrm.cli.train import summary
from bmrm.data.dataset import Dataset
from bmrm.driver import Result

_WORDS, _LENGTH, _TOPIC_WORDS = 20_000, 80, 400


@dataclass(frozen=True)
class Comparison:
    """Objectives in the scale of LinearSVC, 1/2 |w|^2 + C sum of hinge losses, and a bound for all of them."""

    rows: int
    other: float
    other_warned: bool
    ours: float
    bound: float


@click.command()
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), default=Path("demo-output"),
              show_default=True, help="Where the files go.")  # fmt: skip
def demo(output: Path) -> int:
    """Train, prove, compare with scikit-learn's LinearSVC, and plot; takes a few seconds."""
    if find_spec("matplotlib") is None:
        raise click.UsageError("the demo draws a plot and needs matplotlib: pip install 'bmrm[plot]'")
    output.mkdir(parents=True, exist_ok=True)
    _title("1. A support vector machine for text, with a certificate")
    done = train_on_text(output)
    _title("2. scikit-learn's LinearSVC on the raw breast cancer data, C = 1, no intercept")
    comparison, run = compare()
    click.echo(describe(comparison))
    _title("3. How the gap closed")
    stopped = ("LinearSVC stopped here", comparison.other / comparison.rows)
    convergence_plot(
        output / "convergence.png",
        [
            Course(f"text, {done.n_examples} documents", done.results[0].history),
            Course(f"breast cancer, {comparison.rows} rows, unscaled", run.history, stopped),
        ],
    )
    click.echo(f"plot saved to {output / 'convergence.png'}")
    return 0


def train_on_text(output: Path) -> Fit:
    """Train on generated documents, save and load the model, and evaluate it on documents held out."""
    training, held_out = text_like(8000, seed=0), text_like(2000, seed=1)
    bmrm.write(output / "train.svm.gz", training)
    bmrm.write(output / "test.svm.gz", held_out)
    options = TrainOptions(file=output / "train.svm.gz", lam=1e-4, tol=1e-4, model=output / "text.bmrm")
    data = bmrm.read(options.file, n_features=_WORDS)
    done = fit(data, options, options.make_parts())
    done.model.save(options.model_path)
    click.echo(summary(done, options))
    model = bmrm.load(options.model_path)
    assert isinstance(model, bmrm.Model)
    test = bmrm.read(output / "test.svm.gz", n_features=model.n_features)
    found = measure(model, test, model.decision_function(test.X))
    click.echo(f"\non {test.n_examples} documents held out:\n{table_of(found)}")
    return done


def text_like(rows: int, seed: int) -> Dataset:
    """Return documents of words with Zipf's frequencies; some words tell which of two topics it is."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(12345).permutation(_WORDS)[: 2 * _TOPIC_WORDS].reshape(2, -1)
    common = (rng.zipf(1.3, size=(rows, _LENGTH)) - 1) % _WORDS
    y = rng.integers(0, 2, size=rows)
    special = topics[y[:, None], rng.integers(0, _TOPIC_WORDS, size=(rows, _LENGTH))]
    words = np.where(rng.random((rows, _LENGTH)) < 0.06, special, common)
    ends = np.arange(0, rows * _LENGTH + 1, _LENGTH)
    X: Any = csr_array((np.ones(words.size), words.ravel(), ends), shape=(rows, _WORDS))
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    X.data /= np.sqrt(np.repeat(np.add.reduceat(X.data**2, X.indptr[:-1]), np.diff(X.indptr)))
    noisy = np.where(rng.random(rows) < 0.05, 1 - y, y)
    return Dataset(X=X, y=2.0 * noisy - 1.0)


def compare() -> tuple[Comparison, Result]:
    """Solve the same problem with LinearSVC and with bmrm."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    X, y = load_breast_cancer(return_X_y=True)
    rows = len(y)
    problem = bmrm.Problem(bmrm.LinearRisk(X, y, bmrm.losses.Hinge()), "l2", lam=1.0 / rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        other = LinearSVC(loss="hinge", C=1.0, fit_intercept=False, random_state=0).fit(X, y)
    warned = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    run = bmrm.solve(problem, tol=1e-5)
    ends = run.certificate
    objective = problem.objective(np.ascontiguousarray(other.coef_[0], dtype=np.float64))
    return Comparison(rows, rows * objective, warned, rows * ends.upper, rows * ends.lower), run


def describe(comparison: Comparison) -> str:
    """Return the comparison as a table and a sentence."""
    above = 100.0 * (comparison.other / comparison.bound - 1.0)
    ours = 100.0 * (comparison.ours / comparison.bound - 1.0)
    warned = " (its ConvergenceWarning is silenced here)" if comparison.other_warned else ""
    lines = [
        f"{'':<28}{'objective':>12}{'above the bound':>18}",
        f"{'LinearSVC, default settings':<28}{comparison.other:>12.4f}{f'{above:.3g}%':>18}",
        f"{'bmrm':<28}{comparison.ours:>12.4f}{f'{ours:.2g}%':>18}",
        f"{'proven lower bound':<28}{comparison.bound:>12.4f}",
        "",
        f"LinearSVC stopped at least {above:.3g}% above the optimum, and could not know by how much{warned}.",
    ]
    return "\n".join(lines)


def _title(text: str) -> None:
    click.echo(f"\n{click.style(text, bold=True)}\n")
