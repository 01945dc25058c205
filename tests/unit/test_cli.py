from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from commands import COLUMNS, FILES, ROWS, bad, good, run, write_files

import bmrm
from bmrm.data.threads import default_threads


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def files(folder):
    write_files()
    return folder


def process(*args, **options):
    return subprocess.run(
        [sys.executable, "-m", "bmrm", *map(str, args)], capture_output=True, text=True, timeout=60, **options
    )


def test_train_predict_evaluate(files):
    result = good("train", "two.svm", "--lam", 1e-3)
    assert "objective" in result.stdout
    assert "at most" in result.stdout
    assert "certified" in result.stdout
    assert "two.bmrm" in result.stdout
    assert "gap" in result.stderr
    model = bmrm.load("two.bmrm")
    assert model.certificate.closes(1e-3)
    assert model.config["lam"] == 1e-3
    assert model.history["iterations"] > 1
    data = bmrm.read("two.svm")
    lines = good("predict", "two.bmrm", "two.svm").stdout.splitlines()
    assert set(lines) == {"1", "-1"}
    assert np.array_equal(np.array(lines, float), model.predict(data.X))
    scores = good("predict", "two.bmrm", "two.svm", "--scores").stdout.split()
    assert np.array_equal(np.array(scores, float), model.decision_function(data.X))
    assert "accuracy" in good("evaluate", "two.bmrm", "two.svm").stdout


def test_the_objective_is_the_library_s(files):
    good("train", "two.svm", "--C", 2.0, "--tol", 1e-6)
    data, model = bmrm.read("two.svm"), bmrm.load("two.bmrm")
    risk = bmrm.LinearRisk(data.X, data.y, bmrm.losses.Hinge(), intercept=True)
    problem = bmrm.Problem(risk, "l2", 1.0 / (2.0 * ROWS))
    assert model.lam == model.config["lam"] == problem.lam
    w = np.append(model.coef[0], model.intercept)
    assert problem.objective(w) == pytest.approx(model.certificate.upper, rel=1e-12)
    assert np.array_equal(w, bmrm.solve(problem, tol=1e-6).w)


@pytest.mark.parametrize("name", sorted(bmrm.losses.LOSSES))
def test_every_loss_goes_all_the_way(files, name):
    loss = bmrm.losses.get(name)
    file, key = FILES[loss.task]
    arguments = ["--max-seconds", 5, "--quiet", "--lam", 0.1, "--model", "m.bmrm"]
    good("train", file, "--loss", name, *arguments)
    model = bmrm.load("m.bmrm")
    assert model.certificate.closes(1e-3)
    lines = good("predict", "m.bmrm", file).stdout.splitlines()
    assert len(lines) == ROWS
    assert len(set(lines)) > 1 or loss.task == "novelty" or not model.coef.any()
    found = json.loads(good("evaluate", "m.bmrm", file, "--json").stdout)
    assert np.isfinite(found[key])
    assert f"{key.replace('_', ' ')} " in good("evaluate", "m.bmrm", file).stdout


@pytest.mark.parametrize("solver", sorted(bmrm.solvers.SOLVERS))
@pytest.mark.parametrize("regularizer", sorted(bmrm.regularizers.REGULARIZERS))
def test_every_solver_or_a_clear_refusal(files, solver, regularizer):
    arguments = ["train", "two.svm", "--loss", "logistic", "--solver", solver, "--regularizer", regularizer]
    result = run(*arguments, "--lam", 0.01, "--max-iter", 3000, "--max-seconds", 5)
    if result.exit_code == 2:
        assert "does not fit this problem" in result.stderr
    else:
        assert result.exit_code == 0, result.output


def test_more_labels_are_trained_one_against_the_rest(files):
    for file in ("words.npz", "three.svm"):
        result = good("train", file, "--loss", "logistic", "--model", "m.bmrm")
        assert "3 classes one against the rest" in result.stdout
        assert "class 3 of 3" in result.stderr
        model, data = bmrm.load("m.bmrm"), bmrm.read(file)
        assert model.coef.shape == (3, COLUMNS)
        for j, label in enumerate(model.classes):
            y = np.where(data.y == label, 1.0, -1.0)
            risk = bmrm.LinearRisk(data.X, y, bmrm.losses.Logistic(), intercept=True)
            w = np.append(model.coef[j], model.intercept[j])
            value = bmrm.Problem(risk, "l2", 1e-4).objective(w)
            assert value == pytest.approx(model.certificates[j].upper, rel=1e-12)
        lines = good("predict", "m.bmrm", file).stdout.splitlines()
        wanted = [str(label).removesuffix(".0") for label in model.predict(data.X)]
        assert lines == wanted
        assert len(good("predict", "m.bmrm", file, "--scores").stdout.splitlines()[0].split()) == 3
        text = good("evaluate", "m.bmrm", file).stdout
        assert "macro f1" in text
        assert "true \\ predicted" in text
    assert set(lines) == {"0", "1", "2"}


def test_json_is_all_there_is_on_standard_output(files):
    report = json.loads(good("train", "two.svm", "--json").stdout)
    assert report["status"] == "CONVERGED"
    assert report["converged"] is True
    assert report["lower_bound"] <= report["objective"]
    assert report["relative_gap"] <= 1e-3
    assert report["model"] == "two.bmrm"
    assert report["classes"] == [-1, 1]
    assert report["n_examples"] == ROWS
    report = json.loads(good("train", "words.npz", "--json").stdout)
    assert report["classes"] == ["blue", "green", "red"]
    assert good("train", "two.svm", "--quiet").output == ""


def test_stopping_early_is_said_and_saved(files):
    result = good("train", "two.svm", "--max-iter", 2, "--lam", 1e-6, code=3)
    assert "NOT certified: stopped at --max-iter" in result.stdout
    assert bmrm.load("two.bmrm").status is bmrm.Status.ITERATION_LIMIT
    report = json.loads(good("train", "three.svm", "--max-seconds", 1e-6, "--tol", 0, "--json", code=3).stdout)
    assert report["status"] == "TIME_LIMIT"
    assert report["converged"] is False
    assert len(bmrm.load("three.bmrm").certificates) == 3


class Interrupting:
    calls = 0

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        return None

    def __call__(self, record):
        Interrupting.calls += 1
        if Interrupting.calls == 2:
            raise KeyboardInterrupt


def test_ctrl_c_with_several_classes(files, monkeypatch):
    monkeypatch.setattr("bmrm.cli.fit.progress_monitor", Interrupting)
    result = good("train", "three.svm", "--tol", 1e-9, code=3)
    assert "interrupted from the keyboard" in result.stdout
    model = bmrm.load("three.bmrm")
    assert model.statuses[0] is bmrm.Status.INTERRUPTED
    assert all(status is not bmrm.Status.CONVERGED for status in model.statuses)
    assert np.isfinite(model.certificate.upper)
    assert model.predict(bmrm.read("three.svm").X).shape == (ROWS,)


def test_ctrl_c_before_there_is_a_result(files, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("bmrm.cli.stored.read_data", interrupted)
    result = run("train", "two.svm")
    assert result.exit_code == 130
    assert result.stderr.strip() == "error: interrupted before there was a result; nothing was written"
    assert not (files / "two.bmrm").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals are different there")
def test_ctrl_c_saves_the_model(folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 200))
    bmrm.write("big.npz", X, np.where(rng.random(len(X)) < 0.5, -1.0, 1.0))
    arguments = ["train", "big.npz", "--lam", "1e-9", "--tol", "1e-9", "--solver", "bmrm", "--threads", "1"]
    child = subprocess.Popen(
        [sys.executable, "-m", "bmrm", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stderr.readline().startswith("gap ")
    began = time.monotonic()
    for _ in range(3):
        child.send_signal(signal.SIGINT)
        time.sleep(0.02)
    out, err = child.communicate(timeout=30)
    assert time.monotonic() - began < 2.0
    assert child.returncode == 3, err
    assert "Traceback" not in err
    assert "NOT certified: interrupted" in out
    model = bmrm.load("big.bmrm")
    assert model.status is bmrm.Status.INTERRUPTED
    assert model.certificate.lower <= model.certificate.upper < np.inf


def test_processes(files):
    done = process("train", "two.svm", "--loss", "hinge")
    assert (done.returncode, done.stdout.count("\n")) == (0, 5)
    done = process("train", "two.svm", "--max-iter", 1, "--lam", "1e-9")
    assert done.returncode == 3
    done = process("train", "none.svm")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: none.svm: cannot be read (No such file or directory)\n"
    done = process("--version")
    assert (done.returncode, done.stdout) == (0, f"bmrm, version {bmrm.__version__}\n")


def test_a_closed_pipe_is_no_error(files):
    good("train", "real.svm", "--loss", "huber", "--quiet", "--model", "m.bmrm")
    child = subprocess.Popen(
        [sys.executable, "-m", "bmrm", "predict", "m.bmrm", "real.svm"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    child.stdout.close()
    assert child.stderr.read() == ""
    child.stderr.close()
    assert child.wait(30) == 1


def test_imports_are_lazy():
    code = (
        "import sys, bmrm; heavy = {'rich', 'click', 'sklearn', 'matplotlib'}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules); "
        "import bmrm.cli; assert not {'sklearn', 'matplotlib', 'rich'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_weights(files):
    weight = np.arange(1.0, ROWS + 1)
    np.save("w.npy", weight)
    good("train", "two.svm", "--weights", "w.npy", "--C", 1, "--tol", 1e-6, "--no-intercept")
    model, data = bmrm.load("two.bmrm"), bmrm.read("two.svm")
    risk = bmrm.LinearRisk(data.X, data.y, bmrm.losses.Hinge(), sample_weight=weight)
    expected = bmrm.solve(bmrm.Problem(risk, "l2", 1.0 / weight.sum()), tol=1e-6)
    assert model.certificate.upper == expected.certificate.upper
    bmrm.write("w.npz", data.X, data.y, weight=weight)
    good("train", "w.npz", "--C", 1, "--tol", 1e-6, "--no-intercept")
    assert np.array_equal(bmrm.load("w.bmrm").coef, model.coef)
    assert "weights of its own" in bad("train", "w.npz", "--weights", "w.npy")


def test_history(files):
    good("train", "two.svm", "--history", "h.csv")
    rows = np.loadtxt("h.csv", delimiter=",", skiprows=1)
    assert len(rows) == bmrm.load("two.bmrm").history["iterations"]


@pytest.mark.parametrize(
    ("name", "expected"), [("a/b/x.svm", "x.bmrm"), ("x.svm.gz", "x.bmrm"), ("x.y.svm", "x.y.bmrm"), ("x", "x.bmrm")]
)
def test_default_name_of_the_model(files, name, expected):
    (files / name).parent.mkdir(parents=True, exist_ok=True)
    bmrm.write(name, bmrm.read("two.svm"))
    good("train", name)
    assert (files / expected).exists()


def test_narrow_and_wide_files(files):
    good("train", "two.svm")
    data, model = bmrm.read("two.svm"), bmrm.load("two.bmrm")
    narrow = data.X.toarray()
    narrow[:, 3:] = 0.0
    bmrm.write("narrow.svm", narrow[:, :3], data.y)
    lines = good("predict", "two.bmrm", "narrow.svm").stdout.split()
    assert np.array_equal(np.array(lines, float), model.predict(narrow))
    bmrm.write("wide.svm", np.ones((2, COLUMNS + 1)), [1, -1])
    message = bad("predict", "two.bmrm", "wide.svm")
    assert "wide.svm, line 1" in message
    bmrm.write("wide.npz", np.ones((2, COLUMNS + 1)), [1, -1])
    assert "wide.npz: X has 7 features, but the model was trained with 6" in bad("predict", "two.bmrm", "wide.npz")


def test_zero_based_files_stay_zero_based(files):
    data = bmrm.read("two.svm")
    bmrm.write("zero.svm", data, zero_based=True)
    good("train", "zero.svm", "--zero-based", "true", "--no-intercept")
    (files / "test.svm").write_text("1 1:2.5\n")
    score = float(good("predict", "zero.bmrm", "test.svm", "--scores").stdout)
    assert score == pytest.approx(2.5 * bmrm.load("zero.bmrm").coef[0, 1])
    score = float(good("predict", "zero.bmrm", "test.svm", "--scores", "--zero-based", "false").stdout)
    assert score == pytest.approx(2.5 * bmrm.load("zero.bmrm").coef[0, 0])


def test_predictions_to_a_file(files):
    good("train", "two.svm", "--quiet")
    result = good("predict", "two.bmrm", "two.svm", "--output", "p.txt")
    assert result.stdout == ""
    assert "120 predictions written to p.txt" in result.stderr
    expected = good("predict", "two.bmrm", "two.svm").stdout
    assert (files / "p.txt").read_text() == expected
    assert good("predict", "two.bmrm", "two.svm", "--output", "p.txt", "--quiet").output == ""
    assert "would be overwritten" in bad("predict", "two.bmrm", "two.svm", "--output", "two.svm")
    assert "cannot be written" in bad("predict", "two.bmrm", "two.svm", "--output", "none/p.txt")
    bad("predict", "two.bmrm", "none.svm", "--output", "p.txt")
    assert (files / "p.txt").read_text() == expected


def test_a_second_file_counts_like_the_training_file(tmp_path):
    train, test = tmp_path / "train.svm", tmp_path / "test.svm"
    train.write_text("1 0:1 1:2\n-1 0:-1 1:-2\n" * 5)  # counts from 0
    test.write_text("1 1:2\n-1 1:-2\n")  # has no index 0 and would otherwise be taken to count from 1
    model = tmp_path / "m.bmrm"
    assert run("train", train, "--model", model, "--quiet").exit_code == 0
    assert bmrm.load(model).config["zero_based"] == "true"
    assert run("predict", model, test, "--quiet").output.split() == ["1", "-1"]


@pytest.mark.parametrize(
    ("alias", "name", "file"),
    [
        ("absolute_error", "least_absolute", "real.svm"),
        ("f1", "fbeta", "two.svm"),
        ("log_loss", "logistic", "two.svm"),
        ("pinball", "quantile", "real.svm"),
        ("roc_auc", "roc_area", "two.svm"),
        ("squared_error", "least_squares", "real.svm"),
    ],
)
def test_names_of_metrics(files, alias, name, file):
    good("train", file, "--loss", alias, "--model", "m.bmrm", "--lam", 0.1)
    assert bmrm.load("m.bmrm").loss.name == name


def test_unknown_losses_are_answered_with_aliases_too(files):
    assert "'log_loss'" in bad("train", "two.svm", "--loss", "logg_loss")


def test_all_cores(files):
    good("train", "two.svm", "--threads", -1, "--model", "m.bmrm")
    assert bmrm.load("m.bmrm").config["threads"] == default_threads()
    assert "--threads" in bad("train", "two.svm", "--threads", 0)
