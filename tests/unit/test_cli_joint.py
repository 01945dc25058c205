"""The commands for losses of several scores or several rows: files, costs, measures, and bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import ROWS, bad, evaluated, good, run, write_files
from sklearn import metrics
from sklearn.svm import LinearSVC

import bmrm
from bmrm.losses import MulticlassHinge, MultilabelHinge, RocArea, Softmax


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files()
    return tmp_path


def minimum(risk, lam=1e-4, tol=1e-6):
    return bmrm.solve(bmrm.Problem(risk, "l2", lam), tol=tol)


def same_objective(model, result):
    assert len(model.certificates) == 1
    assert model.certificate.lower <= result.certificate.upper * (1 + 1e-9)
    assert result.certificate.lower <= model.certificate.upper * (1 + 1e-9)


@pytest.mark.parametrize("arguments", [["--loss", "softmax"], ["--loss", "logistic", "--multiclass", "joint"]])
def test_one_joint_problem(arguments):
    result = good("train", "three.svm", *arguments, "--tol", 1e-6)
    assert "3 classes together" in result.stdout
    model, data = bmrm.load("three.bmrm"), bmrm.read("three.svm")
    assert model.loss == Softmax()
    assert model.coef.shape == (3, data.X.shape[1])
    risk = bmrm.LinearRisk(data.X, data.y.astype(int), Softmax(), intercept=True)
    w = np.column_stack([model.coef, model.intercept - model.intercept[-1]]).T.reshape(-1)
    objective = bmrm.Problem(risk, "l2", 1e-4).objective(w)
    assert model.certificate.lower <= objective <= model.certificate.upper * (1 + 1e-12)
    assert model.intercept.sum() == pytest.approx(0.0, abs=1e-9)
    same_objective(model, minimum(risk))
    assert good("predict", "three.bmrm", "three.svm").stdout.split() == [f"{int(y)}" for y in model.predict(data.X)]


def test_two_classes_of_a_joint_loss_have_one_row():
    found, y, predicted, scores = evaluated("two.svm", "--loss", "softmax", "--lam", 0.01, "--tol", 1e-6)
    model, data = bmrm.load("m.bmrm"), bmrm.read("two.svm")
    assert model.coef.shape == (1, data.X.shape[1])
    fitted = bmrm.LinearClassifier(loss="softmax", lam=0.01, tol=1e-6).fit(data.X, data.y)
    np.testing.assert_allclose(model.coef, fitted.coef_, rtol=1e-2, atol=1e-3)
    assert np.array_equal(predicted, fitted.predict(data.X))
    p = np.array(good("predict", "m.bmrm", "two.svm", "--proba").stdout.split(), float).reshape(-1, 2)
    np.testing.assert_allclose(p[:, 1], 1.0 / (1.0 + np.exp(-scores)), rtol=1e-12)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, p[:, 1]))
    assert found["mean_loss"] == pytest.approx(found["log_loss"], rel=1e-12)


def test_auto_is_one_against_the_rest_for_losses_of_one_score():
    for multiclass in ("auto", "one_vs_rest"):
        assert "one against the rest" in good("train", "three.svm", "--multiclass", multiclass).stdout
        assert len(bmrm.load("three.bmrm").certificates) == 3


@pytest.mark.parametrize("suffix", [".npy", ".txt"])
@pytest.mark.parametrize(
    ("loss", "file"),
    [("multiclass_hinge", "three.svm"), ("scaled_multiclass_hinge", "three.svm"), ("hinge", "words.npz")],
)
def test_costs(loss, file, suffix):
    costs = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    if suffix == ".npy":
        np.save("costs.npy", costs)
    else:
        with open("costs.txt", "w") as out:
            out.write("0 1 5\n\n2, 0, 1\n1 1 0.0\n")
    joint = ["--multiclass", "joint"] if loss == "hinge" else []
    good("train", file, "--loss", loss, *joint, "--costs", f"costs{suffix}", "--model", "m.bmrm")
    model, data = bmrm.load("m.bmrm"), bmrm.read(file)
    assert np.array_equal(model.loss.delta, costs)
    risk = bmrm.LinearRisk(data.X, np.searchsorted(model.classes, data.y), model.loss, intercept=True)
    same_objective(model, minimum(risk))
    found = json.loads(good("evaluate", "m.bmrm", file, "--json").stdout)
    codes, decided = (np.searchsorted(model.classes, labels) for labels in (data.y, model.predict(data.X)))
    assert found["mean_cost"] == pytest.approx(np.mean(costs[codes, decided]))


def test_label_sets():
    for file in ("sets.svm", "sets.npz"):
        good("train", file, "--loss", "multilabel_hinge", "--lam", 0.01, "--model", "m.bmrm", "--tol", 1e-6)
        model, data, Y = bmrm.load("m.bmrm"), bmrm.read(file), bmrm.read("sets.npz").y
        first = 10 if file == "sets.svm" else 0
        assert model.classes.tolist() == [first, first + 1, first + 2, first + 3]
        same_objective(model, minimum(bmrm.LinearRisk(data.X, Y, MultilabelHinge(), intercept=True), 0.01))
        fitted = bmrm.MultilabelClassifier(lam=0.01, tol=1e-6).fit(data.X, Y)
        mistakes = np.sum(model.predict(data.X) != Y)
        assert mistakes == pytest.approx(np.sum(fitted.predict(data.X) != Y), abs=3)
        lines = good("predict", "m.bmrm", file).stdout.splitlines()
        predicted = model.predict(data.X)
        wanted = [",".join(str(first + int(j)) for j in np.flatnonzero(row)) for row in predicted]
        assert lines == wanted
        found = json.loads(good("evaluate", "m.bmrm", file, "--json").stdout)
        assert found["hamming_loss"] == metrics.hamming_loss(Y, predicted)
        assert found["subset_accuracy"] == metrics.accuracy_score(Y, predicted)
        assert found["macro_f1"] == metrics.f1_score(Y, predicted, average="macro")
        assert found["micro_f1"] == metrics.f1_score(Y, predicted, average="micro")
        assert found["mean_loss"] < 1.0
    assert len(lines[0].split(",")) != len(good("predict", "m.bmrm", file, "--scores").stdout.splitlines()[0].split())


def test_the_threshold_makes_the_fewest_mistakes():
    good("train", "sets.svm", "--loss", "multilabel_hinge", "--model", "m.bmrm", "--quiet")
    model, data, Y = bmrm.load("m.bmrm"), bmrm.read("sets.svm"), bmrm.read("sets.npz").y
    scores = model.decision_function(data.X)
    best = min(np.sum((scores > t) != Y) for t in [-np.inf, *scores.reshape(-1)])
    assert np.sum(model.predict(data.X) != Y) == best


def test_files_with_one_label_each_are_label_sets_too(files):
    good("train", "three.svm", "--loss", "multilabel_hinge", "--model", "m.bmrm")
    assert bmrm.load("m.bmrm").classes.tolist() == [0, 1, 2]
    (files / "more.svm").write_text("10,11 1:1\n")
    assert "row 0 has the label 10, which is not one of the model's" in bad("evaluate", "m.bmrm", "more.svm")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("three.svm --loss roc_area", "three.svm: loss 'roc_area' is for two classes, but the labels are 3"),
        ("three.svm --loss fbeta --multiclass joint", "knows no loss of all scores in the place of 'fbeta'"),
        ("three.svm --loss softmax --multiclass one_vs_rest", "cannot be fitted one against the rest"),
        ("three.svm --loss huber --multiclass joint", "--multiclass joint is for classification"),
        ("three.svm --loss squared_hinge --multiclass joint", "knows no loss of all scores"),
        ("three.svm --loss softmax --loss-param n_classes=5", "is given 5 classes, but the file has 3"),
        ("three.svm --loss hierarchical_hinge", "give the tree of classes by --hierarchy"),
        ("three.svm --loss hinge --hierarchy none.txt", "a hierarchy is for the losses hierarchical_*"),
        ("three.svm --loss hierarchical_hinge --hierarchy none.txt", "none.txt: cannot be read"),
        ("three.svm --loss softmax --costs good.txt", "costs are for multiclass_hinge"),
        ("three.svm --loss hinge --costs good.txt", "costs are for multiclass_hinge"),
        ("three.svm --loss multiclass_hinge --costs none.txt", "none.txt: cannot be read"),
        ("three.svm --loss multiclass_hinge --costs none.npy", "none.npy: cannot be read"),
        ("three.svm --loss multiclass_hinge --costs two.txt", "two.txt: has shape (2, 2); expected 3 x 3"),
        ("three.svm --loss multiclass_hinge --costs odd.txt", "odd.txt, line 2: 2 numbers; expected 3"),
        ("three.svm --loss multiclass_hinge --costs word.txt", "word.txt, line 1: could not convert"),
        ("three.svm --loss multiclass_hinge --costs empty.txt", "empty.txt: has no numbers"),
        ("three.svm --loss multiclass_hinge --costs negative.txt", "negative.txt: parameter 'delta'"),
        ("sets.svm --loss hinge", "sets.svm: has examples with several labels, or none"),
        ("sets.npz --loss hinge", "sets.npz: labels have shape (120, 4); expected one for each row"),
        ("several.npz --loss multilabel_hinge", "several.npz: the indicator of label"),
        ("same.svm --loss multilabel_hinge", "same.svm: there are 1 different labels"),
        ("three.svm --loss ndcg", "three.svm: the rows have no queries: expected qid:NUMBER after the label"),
        ("flat.svm --loss pairwise_rank", "flat.svm: loss 'pairwise_rank': no query is left"),
        ("same.svm --loss ordinal", "same.svm: loss 'ordinal' needs rows of different grades"),
        ("same.svm --loss roc_area", "same.svm: all 3 labels are 2.0"),
        ("two.svm --loss precision_at_k --loss-param k=500", "needs at least as many rows, but there are 120"),
        ("words.npz --loss ordinal", "words.npz: targets must be real numbers"),
        ("sets.svm --loss multivariate_regression", "numbers, another one"),
    ],
)
def test_bad_input(files, arguments, message):
    texts = {
        "good": "0 1 1\n1 0 1\n1 1 0\n",
        "two": "0 1\n1 0\n",
        "odd": "0 1 1\n1 0\n",
        "word": "a b\n",
        "empty": "\n",
        "negative": "0 1 -1\n1 0 1\n1 1 0\n",
    }
    for name, text in texts.items():
        (files / f"{name}.txt").write_text(text)
    (files / "same.svm").write_text("2 1:1\n2 2:1\n2 1:3\n")
    (files / "flat.svm").write_text("1 qid:1 1:1\n1 qid:1 2:1\n2 qid:2 1:1\n")
    assert message in bad("train", *arguments.split())


def test_queries_that_do_not_count_are_named(files):
    lines = (files / "query.svm").read_text()
    (files / "more.svm").write_text(lines + "1 qid:77 1:1\n")
    result = good("train", "more.svm", "--loss", "pairwise_rank")
    assert "warning: loss 'pairwise_rank' leaves out 1 of 13 queries" in result.stderr
    assert "warning" not in good("train", "more.svm", "--loss", "pairwise_rank", "--quiet").stderr
    found = json.loads(good("evaluate", "more.bmrm", "more.svm", "--json").stdout)
    assert (found["queries"], found["queries_that_count"]) == (13, 12)


@pytest.mark.parametrize(("given", "ties"), [((), "together"), (("--loss-param", "ties=rows"), "rows")])
def test_documents_of_one_grade_are_together_if_not_said_else(given, ties):
    good("train", "query.svm", "--loss", "ndcg", "--lam", 0.01, "--model", f"{ties}.bmrm", *given)
    assert bmrm.load(f"{ties}.bmrm").loss.ties == ties


@pytest.mark.parametrize("loss", ["ndcg_pairs", "pairwise_rank", "ndcg", "mrr", "expected_rank_utility"])
def test_ranking(loss):
    found, y, predicted, scores = evaluated("query.svm", "--loss", loss, "--lam", 0.01)
    data = bmrm.read("query.svm")
    assert np.array_equal(predicted, scores)
    queries = [data.groups == q for q in np.unique(data.groups)]
    ndcg = [metrics.ndcg_score([2.0 ** y[q] - 1.0], [scores[q]], k=10) for q in queries]
    assert found["ndcg@10"] == pytest.approx(np.mean(ndcg), rel=1e-12)
    assert found["ndcg_gains"] == "2^grade - 1"
    first = [1.0 / (1 + np.argmax(y[q][np.argsort(-scores[q])] > 0)) for q in queries]
    assert found["mrr"] == pytest.approx(np.mean(first), rel=1e-12)
    model = bmrm.load("m.bmrm")
    same_objective(model, minimum(bmrm.LinearRisk(data.X, y, model.loss, groups=data.groups), 0.01, 1e-4))
    other = json.loads(good("evaluate", "m.bmrm", "query.svm", "--json", "--k", 3).stdout)
    ndcg = [metrics.ndcg_score([2.0 ** y[q] - 1.0], [scores[q]], k=3) for q in queries]
    assert other["ndcg@3"] == pytest.approx(np.mean(ndcg), rel=1e-12)
    assert "share of rows" in bad("evaluate", "m.bmrm", "query.svm", "--k", 0.5)
    assert "no queries" in bad("evaluate", "m.bmrm", "real.svm")


def test_the_reciprocal_rank_is_scikit_learns_where_one_document_is_relevant(files):
    rng = np.random.default_rng(3)
    X, groups = rng.normal(size=(60, 2)), np.repeat(np.arange(10), 6)
    X[:12, 0] = 0.5  # equal scores
    y = np.zeros(60)
    y[6 * np.arange(10) + rng.integers(6, size=10)] = 1.0
    bmrm.write("one.npz", X, y, groups=groups)
    good("train", "one.npz", "--loss", "pairwise_rank", "--lam", 0.1, "--quiet")
    model = bmrm.load("one.bmrm")
    X[:12] = 1.0
    bmrm.write("one.npz", X, y, groups=groups)
    found = json.loads(good("evaluate", "one.bmrm", "one.npz", "--json").stdout)
    by_query = y.reshape(10, 6), model.decision_function(X).reshape(10, 6)
    assert found["mrr"] == pytest.approx(metrics.label_ranking_average_precision_score(*by_query), rel=1e-12)


@pytest.mark.filterwarnings("ignore::bmrm.MeaninglessObjectiveWarning")  # k is not the number of positives
@pytest.mark.parametrize(
    ("loss", "parameters"),
    [
        ("roc_area", ()),
        ("fbeta", ("beta=2.0",)),
        ("precision_at_k", ("k=20",)),
        ("recall_at_k", ("k=0.25",)),
        ("break_even", ()),
    ],
)
def test_scores_of_the_whole_set(loss, parameters):
    settings = [part for parameter in parameters for part in ("--loss-param", parameter)]
    found, y, predicted, scores = evaluated("two.svm", "--loss", loss, "--lam", 0.01, *settings)
    data = bmrm.read("two.svm")
    assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(y, scores))
    assert found["accuracy"] == metrics.accuracy_score(y, predicted)
    assert np.array_equal(predicted > 0, scores > 0)
    values = {name: json.loads(text) for name, text in (parameter.split("=") for parameter in parameters)}
    fitted = bmrm.ScoreClassifier(score=loss, score_params=values, lam=0.01).fit(data.X, data.y)
    assert np.mean(fitted.predict(data.X) == predicted) > 0.9
    n = {"precision_at_k": 20, "recall_at_k": 30, "break_even": int(np.sum(y > 0))}.get(loss)
    if loss == "fbeta":
        best = max(metrics.fbeta_score(y, np.where(scores > t, 1, -1), beta=2.0) for t in [-np.inf, *scores][1:])
        assert found["f_beta(2)"] == metrics.fbeta_score(y, predicted, beta=2.0)
        assert found["f_beta(2)"] == pytest.approx(best)
    elif n is not None:
        top = np.zeros(ROWS, bool)
        top[np.argsort(-scores, kind="stable")[:n]] = True
        assert found[f"precision@{n}"] == pytest.approx(metrics.precision_score(y > 0, top))
        assert found[f"recall@{n}"] == pytest.approx(metrics.recall_score(y > 0, top))
        assert np.sum(predicted > 0) == n
    else:
        same_objective(bmrm.load("m.bmrm"), minimum(bmrm.LinearRisk(data.X, y, RocArea()), 0.01, 1e-5))
        assert found["mean_loss"] == pytest.approx(
            bmrm.LinearRisk(data.X, y, RocArea()).at(bmrm.load("m.bmrm").coef[0]).value
        )


def test_measures_that_are_asked_for():
    good("train", "two.svm", "--quiet")
    found = json.loads(good("evaluate", "two.bmrm", "two.svm", "--json", "--k", 0.1, "--beta", 0.5).stdout)
    assert {"precision@12", "recall@12", "f_beta(0.5)"} <= set(found)
    assert json.loads(good("evaluate", "two.bmrm", "two.svm", "--json", "--k", 500).stdout)["precision@500"] is None
    for k in ("0", "x", "1.5", "-3"):
        assert "expected a number of rows, or a share" in bad("evaluate", "two.bmrm", "two.svm", "--k", k)
    assert "exclude each other" in bad("predict", "two.bmrm", "two.svm", "--scores", "--proba")
    assert "'hinge' yields no probabilities" in bad("predict", "two.bmrm", "two.svm", "--proba")
    assert "--path is for models of a hierarchy" in bad("predict", "two.bmrm", "two.svm", "--path")


def test_grades():
    found, y, predicted, _scores = evaluated("query.svm", "--loss", "ordinal", "--lam", 0.01)
    model, data = bmrm.load("m.bmrm"), bmrm.read("query.svm")
    assert model.classes.tolist() == sorted(set(y))
    assert found["mae"] == metrics.mean_absolute_error(y, predicted)
    assert found["rmse"] == metrics.root_mean_squared_error(y, predicted)
    assert found["accuracy"] == pytest.approx(np.mean(y == predicted))
    fitted = bmrm.OrdinalRegressor(lam=0.01).fit(data.X, data.y)
    assert np.mean(np.abs(fitted.predict(data.X) - y)) == pytest.approx(found["mae"], abs=0.02)
    lines = good("predict", "m.bmrm", "query.svm").stdout.split()
    assert lines == [str(int(grade)) for grade in predicted]
    report = json.loads(good("train", "query.svm", "--loss", "ordinal", "--json").stdout)
    assert report["classes"] == [0, 1, 2, 3]
    assert len(report["thresholds"]) == 3


def test_several_numbers():
    found, y, predicted, _ = evaluated("several.npz", "--loss", "multivariate_regression")
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, predicted))
    assert found["r2"] == pytest.approx(metrics.r2_score(y, predicted))
    lines = good("predict", "m.bmrm", "several.npz").stdout.splitlines()
    assert np.array_equal(np.array([line.split() for line in lines], float), predicted)
    data = bmrm.read("several.npz")
    bmrm.write("several.svm", data.X, [tuple(row) for row in data.y])
    good("train", "several.svm", "--loss", "multivariate_regression", "--model", "other.bmrm")
    np.testing.assert_allclose(bmrm.load("other.bmrm").coef, bmrm.load("m.bmrm").coef, rtol=1e-9)


def test_weights_reach_the_thresholds():
    data = bmrm.read("two.svm")
    weight = np.random.default_rng(0).integers(0, 3, size=ROWS).astype(float)
    bmrm.write("w.npz", data.X, data.y, weight=weight)
    rows = np.repeat(np.arange(ROWS), weight.astype(int))
    bmrm.write("r.npz", data.X[rows], data.y[rows])
    for file in ("w", "r"):
        good("train", f"{file}.npz", "--loss", "roc_area", "--lam", 0.01, "--tol", 1e-8, "--quiet")
    weighted, repeated = bmrm.load("w.bmrm"), bmrm.load("r.bmrm")
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-3)
    assert np.array_equal(weighted.predict(data.X[rows]), repeated.predict(data.X[rows]))


def test_weighted_measures():
    rng = np.random.default_rng(5)
    data, queries = bmrm.read("sets.npz"), bmrm.read("query.svm")
    weight = rng.uniform(0.5, 2.0, size=ROWS)
    bmrm.write("w.npz", data.X, data.y, weight=weight)
    found, Y, predicted, _ = evaluated("w.npz", "--loss", "multilabel_hinge")
    assert found["hamming_loss"] == metrics.hamming_loss(Y, predicted, sample_weight=weight)
    assert found["micro_f1"] == metrics.f1_score(Y, predicted, average="micro", sample_weight=weight)
    shares = weight[np.unique(queries.groups, return_inverse=True)[1]]
    bmrm.write("q.npz", queries.X, queries.y, groups=queries.groups, weight=shares)
    found, y, _, scores = evaluated("q.npz", "--loss", "pairwise_rank")
    chosen = [queries.groups == q for q in np.unique(queries.groups)]
    ndcg = [metrics.ndcg_score([2.0 ** y[q] - 1.0], [scores[q]], k=10) for q in chosen]
    assert found["ndcg@10"] == pytest.approx(np.average(ndcg, weights=[shares[q][0] for q in chosen]))


def test_settings_from_a_file(files):
    np.save("costs.npy", np.ones((3, 3)) - np.eye(3))
    (files / "run.toml").write_text('loss = "hinge"\nmulticlass = "joint"\ncosts = "costs.npy"\n')
    good("train", "three.svm", "--config", "run.toml")
    model = bmrm.load("three.bmrm")
    assert model.loss.name == "multiclass_hinge"
    assert model.config["costs"] == "costs.npy"
    (files / "run.toml").write_text("multiclass = 3\n")
    assert "expected text" in bad("train", "three.svm", "--config", "run.toml")


def test_ctrl_c_leaves_a_joint_model(monkeypatch):
    from bmrm.cli.fit import solve

    def hurried(problem, solver, **options):
        return solve(problem, solver, **options | {"max_iter": 1, "tol": 0.0})

    monkeypatch.setattr("bmrm.cli.fit.solve", hurried)
    for loss, file in (("multilabel_hinge", "sets.svm"), ("hierarchical_hinge", "paths.npz"), ("ordinal", "query.svm")):
        result = run("train", file, "--loss", loss, "--model", "m.bmrm")
        assert result.exit_code == 3, result.output
        assert len(bmrm.load("m.bmrm").certificates) == 1


def test_the_multiclass_hinge_is_liblinears():
    good("train", "three.svm", "--loss", "multiclass_hinge", "--C", 1.0, "--tol", 1e-6, "--no-intercept")
    model, data = bmrm.load("three.bmrm"), bmrm.read("three.svm")
    problem = bmrm.Problem(bmrm.LinearRisk(data.X, data.y.astype(int), MulticlassHinge()), "l2", 1.0 / ROWS)
    peer = LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-10, max_iter=100_000).fit(data.X, data.y)
    assert model.certificate.upper == pytest.approx(problem.objective(peer.coef_.T.reshape(-1)), rel=1e-5)
