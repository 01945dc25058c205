"""Models that are optimal and of no use: what is warned of, with which cause, and what is not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bmrm
from bmrm import ConstantModelWarning, LinearClassifier, LinearRegressor, NoveltyDetector, Ranker, ScoreClassifier
from bmrm.cli import main
from bmrm.regularizers import ElasticNet

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
CENTERED = (X - X.mean(axis=0)) / X.std(axis=0)
NUMBERS = X @ [1.0, 2.0, 0.0, 0.0] + 0.1 * RNG.normal(size=200)
CLOSE = 3.0 + NUMBERS / 300.0
DOCUMENTS, QUERIES, NOISE = RNG.normal(size=(800, 4)), np.repeat(np.arange(80), 10), RNG.integers(0, 3, size=800)
TIES = {"ties": "rows"}
RARE = RNG.permutation(200) < 4

CONSTANT: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("share nu = 0.1 .* mean 0., .*centered data, .*NoveltyDetector", NoveltyDetector(features="linear"), (CENTERED,)),
    ("mean 0, .*NoveltyDetector", NoveltyDetector(features="linear", loss="novelty"), (CENTERED,)),
    ("mean 0", NoveltyDetector(features="linear"), (CENTERED.astype(np.float32),)),
    (r"eps = 0.1 .* one constant is within .*such as 0\.00", LinearRegressor(loss="epsilon_insensitive"), (X, CLOSE)),
    ("eps = 0.1 ", LinearRegressor(loss="squared_epsilon_insensitive"), (X, CLOSE)),
    (
        "lam = 100 is too large: w = 0 is optimal from lam = ",
        LinearRegressor(regularizer="l1", lam=100.0),
        (X, NUMBERS),
    ),
    ("lam = 100 .* from lam = ", LinearRegressor(regularizer=ElasticNet(r=0.5), lam=100.0), (X, NUMBERS)),
    ("lam = 100 .* at least from", LinearClassifier(regularizer="l1", lam=100.0), (X, NUMBERS > 0)),
    ("lam = 1e.06 is too large for data of this size", LinearRegressor(lam=1e6), (X, NUMBERS)),
    ("no column of X varies", LinearRegressor(), (np.ones((200, 2)), NUMBERS)),
    ("rare .*class_weight='balanced'", LinearClassifier(tol=1e-10), (X, RARE)),
    ("asks for no margin", LinearClassifier(loss="perceptron"), (X, NUMBERS > 0)),
    ("pairwise_rank', or ties='together'", Ranker(loss="mrr", loss_params=TIES), (DOCUMENTS, NOISE, QUERIES)),
    *[
        (f"bound of the loss '{loss}' is flat", Ranker(loss=loss, lam=lam), (DOCUMENTS, NOISE, QUERIES))
        for loss in ("ndcg", "mrr", "expected_rank_utility")
        for lam in (1.0, 1e-8)
    ],
]


@pytest.mark.parametrize(("cause", "model", "data"), CONSTANT, ids=[f"{each[1]} {each[0]}" for each in CONSTANT])
def test_one_prediction_for_everybody_is_said_with_its_cause(cause: str, model: Any, data: tuple[Any, ...]) -> None:
    with pytest.warns(ConstantModelWarning, match=f"predicts one thing for everybody: .*{cause}") as caught:
        model.fit(*data)
    assert [each.category for each in caught] == [ConstantModelWarning]
    method = "score_samples" if isinstance(model, NoveltyDetector) else "predict"
    predicted = getattr(model, method)(data[0])
    if predicted.dtype.kind == "f":  # a tube that is wide leaves room for a little
        assert np.ptp(predicted) <= 0.03 * max(np.ptp(data[1]) if len(data) > 1 else 1.0, 1e-12)
    else:
        assert len(np.unique(predicted)) == 1


USEFUL: list[tuple[Any, tuple[Any, ...]]] = [
    (NoveltyDetector(features="linear"), (X + 3.0,)),
    (NoveltyDetector(features="linear"), (1e-6 * (X + 3.0),)),
    (NoveltyDetector(features="linear", lam=1e6), (X + 3.0,)),  # it only scales the scores
    (NoveltyDetector(), (CENTERED,)),
    (LinearRegressor(loss="epsilon_insensitive", fit_intercept=False), (X, CLOSE)),
    (LinearRegressor(lam=1e4), (X, NUMBERS)),
    (LinearRegressor(loss="epsilon_insensitive"), (X, np.full(200, 3.0))),  # nothing else can be learned
    (LinearRegressor(), (X[:1], NUMBERS[:1])),
    (LinearRegressor(regularizer="l1", lam=1.0), (X, NUMBERS)),
    (LinearClassifier(lam=1e4), (X, NUMBERS > 0)),
    (LinearClassifier(loss="logistic"), (X, RARE)),
    (ScoreClassifier(lam=1e4, tol=1e-10), (X, NUMBERS > 0)),  # the order counts, not its scale
    (Ranker(), (DOCUMENTS, NOISE, QUERIES)),
]


@pytest.mark.parametrize(("model", "data"), USEFUL, ids=[f"{each[0]} {i}" for i, each in enumerate(USEFUL)])
def test_no_warning_where_something_is_learned_or_nothing_can_be(model: Any, data: tuple[Any, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(*data)


def test_the_lam_that_is_named_is_the_one() -> None:
    with pytest.warns(ConstantModelWarning, match="from lam = ") as caught:
        LinearRegressor(regularizer="l1", lam=100.0).fit(X, NUMBERS)
    named = float(str(caught[0].message).split("from lam = ")[1].split()[0])
    assert named == pytest.approx(np.max(np.abs((X - X.mean(0)).T @ NUMBERS)) / 200, rel=5e-3)
    with pytest.warns(ConstantModelWarning):
        LinearRegressor(regularizer="l1", lam=1.01 * named).fit(X, NUMBERS)
    assert LinearRegressor(regularizer="l1", lam=0.99 * named, tol=1e-9).fit(X, NUMBERS).coef_.any()


def test_some_of_the_classes_against_the_rest() -> None:
    y = np.where(RARE, 2, NUMBERS > 0)
    with pytest.warns(ConstantModelWarning, match="1 of 3 one-vs-rest problems give one score to everybody"):
        LinearClassifier(tol=1e-10).fit(X, y)


def test_a_limit_says_that_it_ended_the_fit_and_no_more() -> None:
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning) as caught:
        LinearRegressor(solver="bmrm", tol=1e-12, max_iter=1).fit(X, NUMBERS)
    assert [each.category for each in caught] == [ConvergenceWarning]


@pytest.mark.parametrize("name", ["precision_at_k", "recall_at_k"])
@pytest.mark.parametrize(("k", "y", "way"), [(5, NUMBERS > 0, "up"), (150, NUMBERS > 2, "down")])
def test_a_bound_below_what_any_labeling_can_have(name: str, k: int, y: np.ndarray, way: str) -> None:
    shifted = X + 2.0  # the constant direction is among the columns, so the risk falls far along it
    message = rf"the risk is -.*no labeling has a loss below 0.* k = {k} and {y.sum()} positive .* move {way}"
    with pytest.warns(bmrm.MeaninglessObjectiveWarning, match=message):
        model = ScoreClassifier(score=name, score_params={"k": k}, lam=1e-3).fit(shifted, y)
    assert model.objective_ < 0.0


@pytest.mark.parametrize("name", ["precision_at_k", "recall_at_k"])
def test_k_positives_keep_the_bound(name: str) -> None:
    y = NUMBERS > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ScoreClassifier(score=name, score_params={"k": int(y.sum())}, lam=1e-3).fit(X + 2.0, y)
    assert model.lower_bound_ >= 0.0


def run(tmp_path: Any, labels: np.ndarray, *arguments: str, rows: np.ndarray = X) -> Any:
    file = tmp_path / "data.npz"
    np.savez(file, X=rows, y=labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        return CliRunner().invoke(main, ["train", str(file), *arguments])


@pytest.mark.parametrize(
    ("arguments", "labels", "cause"),
    [
        (["--loss", "nu_novelty"], np.zeros(200), "centered data"),
        (["--loss", "epsilon_insensitive"], NUMBERS / 300, "eps = 0.1"),
        (["--loss", "logistic", "--regularizer", "l1", "--lam", "100"], np.where(NUMBERS > 0, 1, -1), "lam = 100"),
    ],
)
def test_the_command_line_says_so_in_one_line(tmp_path: Any, arguments: list[str], labels: Any, cause: str) -> None:
    result = run(tmp_path, labels, *arguments, rows=CENTERED)
    assert result.exit_code == 0, result.output
    said = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert len(said) == 1
    assert "the model predicts one thing for everybody" in said[0]
    assert cause in said[0]
    assert "warning" not in run(tmp_path, labels, *arguments, "--quiet", rows=CENTERED).stderr


def test_the_command_line_says_that_a_bound_means_nothing(tmp_path: Any) -> None:
    result = run(tmp_path, np.where(NUMBERS > 0, 1, -1), "--loss", "precision_at_k", "--loss-param", "k=5", rows=X + 2)
    assert "warning: the objective says nothing about the score" in result.stderr


def test_a_run_on_disk_that_ends_with_a_bound_of_0_says_what_to_do(tmp_path: Any) -> None:
    rows, limits = np.repeat(X, 5, axis=0), ["--lam", "1e-9", "--max-iter", "2", "--solver", "bmrm"]
    y = np.where(np.repeat(NUMBERS, 5) > 0, 1, -1)
    result = run(tmp_path, y, "--memory", "2GB", *limits, rows=rows)
    assert result.exit_code == 3
    last = result.stdout.splitlines()[-1]
    assert last.startswith("the lower bound ")
    for cure in ("--max-seconds", "--resume", "--lam", "without --memory"):
        assert cure in last
    assert "lower bound" not in run(tmp_path, y, *limits, rows=rows).stdout.splitlines()[-1]
    closed = run(tmp_path, y, "--memory", "2GB", "--lam", "0.1", rows=rows)
    assert closed.stdout.splitlines()[-1].startswith("model saved to ")
