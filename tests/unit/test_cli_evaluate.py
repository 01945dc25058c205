from __future__ import annotations

import json

import numpy as np
import pytest
from commands import ROWS, bad, evaluated, good, write_files
from scipy import sparse
from scipy.special import expit
from sklearn import metrics

import bmrm
from bmrm.cli.demo import text_like


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def files(folder):
    write_files()
    return folder


def test_binary_measures(files):
    found, y, predicted, scores = evaluated("two.svm", "--loss", "logistic", "--max-iter", 50)
    assert found == {
        "n_examples": ROWS,
        "accuracy": metrics.accuracy_score(y, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted),
        "roc_auc": metrics.roc_auc_score(y, scores),
        "f1": metrics.f1_score(y, predicted),
        "log_loss": metrics.log_loss(y, expit(scores)),
        "mean_loss": pytest.approx(np.mean(np.log1p(np.exp(-y * scores)))),
    }


def test_multiclass_measures(files):
    found, y, predicted, _ = evaluated("words.npz")
    assert found["accuracy"] == metrics.accuracy_score(y, predicted)
    assert found["macro_f1"] == metrics.f1_score(y, predicted, average="macro")
    assert found["micro_f1"] == metrics.f1_score(y, predicted, average="micro")
    assert found["classes"] == ["blue", "green", "red"]
    assert found["confusion"] == metrics.confusion_matrix(y, predicted).tolist()


def test_regression_measures(files):
    found, y, predicted, _ = evaluated("real.svm", "--loss", "quantile", "--loss-param", "tau=0.8")
    assert found["rmse"] == metrics.root_mean_squared_error(y, predicted)
    assert found["mae"] == metrics.mean_absolute_error(y, predicted)
    assert found["r2"] == metrics.r2_score(y, predicted)
    assert found["pinball"] == metrics.mean_pinball_loss(y, predicted, alpha=0.8)
    assert found["mean_loss"] == pytest.approx(found["pinball"])
    found, y, predicted, _ = evaluated("count.svm", "--loss", "poisson")
    assert found["poisson_deviance"] == metrics.mean_poisson_deviance(y, predicted)
    assert found["mean_loss"] == pytest.approx(found["poisson_deviance"] / 2)


def test_novelty_measures(files):
    found, y, predicted, scores = evaluated("two.svm", "--loss", "novelty")
    assert found["rejected"] == np.mean(predicted == -1)
    assert found["roc_auc"] == metrics.roc_auc_score(y, scores)
    bmrm.write("plain.npz", bmrm.read("two.svm").X)
    found = json.loads(good("evaluate", "m.bmrm", "plain.npz", "--json").stdout)
    assert set(found) == {"n_examples", "rejected"}


def test_measures_that_are_not_defined(files):
    good("train", "two.svm", "--quiet")
    (files / "same.svm").write_text("1 1:1\n1 2:1\n")
    assert json.loads(good("evaluate", "two.bmrm", "same.svm", "--json").stdout)["roc_auc"] is None
    assert "undefined here" in good("evaluate", "two.bmrm", "same.svm").stdout
    assert "label 0 is not one of the model's, which are -1, 1" in bad("evaluate", "two.bmrm", "three.svm")
    bmrm.write("plain.npz", bmrm.read("two.svm").X)
    assert "no labels" in bad("evaluate", "two.bmrm", "plain.npz")


def test_weighted_measures(files):
    data, weight = bmrm.read("two.svm"), np.arange(1.0, ROWS + 1)
    bmrm.write("w.npz", data.X, data.y, weight=weight)
    found, y, predicted, _ = evaluated("w.npz")
    assert found["accuracy"] == metrics.accuracy_score(y, predicted, sample_weight=weight)


def test_list(files):
    found = json.loads(good("list", "--json").stdout)
    assert set(found) == {"losses", "regularizers", "solvers"}
    assert {row["name"] for row in found["losses"]} == {*bmrm.losses.LOSSES, *bmrm.losses.STRUCTURED_LOSSES}
    rows = {row["name"]: row for row in found["losses"]}
    assert rows["quantile"]["parameters"] == {"tau": 0.5}
    assert rows["hinge"]["piecewise"]
    assert not rows["hinge"]["smooth"]
    assert rows["logistic"]["smooth"]
    assert all(row["description"] for kind in found.values() for row in kind)
    for kind, registry in (("losses", bmrm.losses.LOSSES), ("solvers", bmrm.solvers.SOLVERS)):
        text = good("list", kind).stdout
        assert all(name in text for name in registry)
    assert "l2" in good("list").stdout


def test_demo(folder):
    result = good("demo", "--output", "out")
    assert "certified" in result.stdout
    assert "LinearSVC stopped at least" in result.stdout
    assert "50.0228" in result.stdout
    assert (folder / "out" / "convergence.png").read_bytes()[:4] == b"\x89PNG"
    assert bmrm.load("out/text.bmrm").status is bmrm.Status.CONVERGED
    (folder / "taken").write_text("x")
    assert "taken" in bad("demo", "--output", "taken")


def test_demo_without_matplotlib(folder, monkeypatch):
    monkeypatch.setattr("bmrm.cli.demo.find_spec", lambda name: None)
    assert "pip install 'bmrm[plot]'" in bad("demo", "--output", "out")
    assert not (folder / "out").exists()


def test_demo_data():
    data = text_like(200, seed=0)
    assert isinstance(data.X, sparse.csr_array)
    np.testing.assert_allclose((data.X * data.X).sum(axis=1), 1.0)
    assert set(data.y) == {-1.0, 1.0}
