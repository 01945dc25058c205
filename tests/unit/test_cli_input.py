from __future__ import annotations

import gzip

import numpy as np
import pytest
from commands import ROWS, bad, good, run, write_files

import bmrm


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def files(folder):
    write_files()
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train", "give either FILE or --owners host:port,host:port"),
        ("trian two.svm", "Did you mean 'train'"),
        ("train none.svm", "none.svm: cannot be read"),
        ("train .", "is a directory"),
        ("train two.svm --loss hingo", "unknown loss 'hingo'. Did you mean 'hinge'"),
        ("train two.svm --regularizer l3", "unknown regularizer 'l3'. Did you mean 'l2'"),
        ("train two.svm --solver atuo", "unknown solver 'atuo'. Did you mean 'auto'"),
        ("train two.svm --lam 0", "'--lam'"),
        ("train two.svm --lam -1", "'--lam'"),
        ("train two.svm --lam nan", "lam must be a finite number above 0"),
        ("train two.svm --lam inf", "lam must be a finite number above 0"),
        ("train two.svm --lam x", "'--lam'"),
        ("train two.svm --C 0", "'--C'"),
        ("train two.svm --C nan", "lam must be a finite number"),
        ("train two.svm --C 1 --lam 1", "either lam or C"),
        ("train two.svm --tol -1", "tol must be"),
        ("train two.svm --tol nan", "tol must be"),
        ("train two.svm --max-iter 0", "'--max-iter'"),
        ("train two.svm --max-seconds 0", "'--max-seconds'"),
        ("train two.svm --threads 0", "'--threads'"),
        ("train two.svm --seed -1", "'--seed'"),
        ("train two.svm --zero-based maybe", "'--zero-based'"),
        ("train two.svm --zero-based true --bogus", "No such option"),
        ("train two.svm --loss-param tau", "expected NAME=VALUE"),
        ("train two.svm --loss-param tau=1", "loss 'hinge' has no parameter 'tau'"),
        ("train two.svm --loss quantile --loss-param tau=2", "must lie between 0 and 1"),
        ("train two.svm --loss quantile --loss-param tau=x", "must lie between 0 and 1"),
        ("train two.svm --solver-param mu=1", "solver 'auto' has no parameter 'mu'"),
        ("train two.svm --solver lbfgs", "does not fit this problem"),
        ("train two.svm --loss nu_novelty --regularizer l1", "strongly convex"),
        ("train real.svm", "take a loss for regression"),
        ("train real.svm --loss poisson", "at least 0"),
        ("train one.svm", "all 2 labels are 1.0"),
        ("train empty.svm", "no examples"),
        ("train nan.npz", "not finite in row 0, column 1"),
        ("train nanlabel.npz", "label of row 1 is nan"),
        ("train infinite.npz --loss huber", "target of row 1 is inf"),
        ("train none.npz", "no labels"),
        ("train several.svm", "several labels"),
        ("train rows.npz", "no examples"),
        ("train broken.svm", "broken.svm, line 2"),
        ("train cut.svm.gz", "truncated or corrupt"),
        ("train cut.npz", "not a readable .npz file"),
        ("train two.svm --model .", "is a directory"),
        ("train two.svm --model none/m.bmrm", "none/m.bmrm: cannot be written"),
        ("train two.svm --model two.svm/m.bmrm", "cannot be written"),
        ("train two.svm --history none/h.csv", "none/h.csv: cannot be written"),
        ("train two.svm --model two.svm", "would be overwritten"),
        ("train two.svm --weights none.npy", "none.npy: cannot be read"),
        ("train two.svm --weights short.npy", "expected 120 numbers"),
        ("train two.svm --weights negative.npy", "weights must be at least 0"),
        ("train two.svm --config none.toml", "none.toml: cannot be read"),
        ("train two.svm --config two.svm", "not a TOML file"),
        ("predict none.bmrm two.svm", "none.bmrm: cannot be read"),
        ("predict two.svm two.svm", "two.svm: not a usable model file"),
        ("predict . two.svm", "is a directory"),
        ("evaluate empty.svm two.svm", "not a usable model file"),
        ("list looses", "is not one of 'losses'"),
    ],
)  # fmt: skip
def test_wrong_input(files, arguments, message):
    X = np.ones((2, 2))
    bmrm.write("one.svm", X, [1, 1])
    (files / "empty.svm").write_text("# nothing\n")
    bmrm.write("nan.npz", np.array([[1.0, np.nan], [1.0, 1.0]]), [0, 1])
    bmrm.write("nanlabel.npz", X, [0.0, np.nan])
    bmrm.write("infinite.npz", X, [0.0, np.inf])
    bmrm.write("none.npz", X)
    bmrm.write("several.svm", X, [(1, 2), (3,)])
    bmrm.write("rows.npz", np.ones((0, 2)), np.ones(0))
    (files / "broken.svm").write_text("1 1:1\n1 1:x\n")
    (files / "cut.svm.gz").write_bytes(gzip.compress((files / "two.svm").read_bytes())[:-30])
    (files / "cut.npz").write_bytes((files / "words.npz").read_bytes()[:-30])
    np.save("short.npy", np.ones(3))
    np.save("negative.npy", -np.ones(ROWS))
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    assert message in bad(*arguments.split())
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


def test_output_is_checked_before_any_work(files, monkeypatch):
    monkeypatch.setattr("bmrm.cli.stored.read_data", lambda *args, **kwargs: pytest.fail("read too early"))
    bad("train", "two.svm", "--model", "none/m.bmrm")
    bad("train", "two.svm", "--loss", "hingo")


def test_help_without_arguments():
    result = run()
    assert result.exit_code == 2
    assert "Usage" in result.stderr
    for command in ("train", "predict", "evaluate", "list", "demo"):
        assert good(command, "--help").stdout.startswith("Usage")


def test_config(files):
    (files / "run.toml").write_text(
        'loss = "quantile"\nlam = 0.5\ntol = 1e-2\nmax-iter = 50\nintercept = true\nmodel = "c.bmrm"\n'
        'quiet = true\nzero_based = "false"\n[loss_param]\ntau = 0.9\n'
    )
    assert good("train", "real.svm", "--config", "run.toml").output == ""
    model = bmrm.load("c.bmrm")
    assert (model.loss, model.lam, model.tol) == (bmrm.losses.Quantile(tau=0.9), 0.5, 1e-2)
    assert model.intercept[0] != 0.0
    assert model.config["max_iter"] == 50
    good("train", "real.svm", "--config", "run.toml", "--lam", 0.25, "--no-intercept", "--loss-param", "tau=0.2")
    model = bmrm.load("c.bmrm")
    assert (model.loss, model.lam, model.intercept[0]) == (bmrm.losses.Quantile(tau=0.2), 0.25, 0.0)
    good("train", "real.svm", "--config", "run.toml", "--C", 2)
    assert bmrm.load("c.bmrm").lam == 1.0 / (2 * ROWS)
    (files / "file.toml").write_text('file = "two.svm"\nC = 1\n')
    good("train", "--config", "file.toml")
    assert bmrm.load("two.bmrm").lam == 1.0 / ROWS
    (files / "file.toml").write_text('file = ["two.svm", "two.svm"]\nC = 1\n')
    good("train", "--config", "file.toml")
    assert bmrm.load("two.bmrm").lam == 0.5 / ROWS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lamm = 1", "unknown setting 'lamm'. Did you mean 'lam'"),
        ("config = 'x.toml'", "unknown setting 'config'"),
        ("lam = 'x'", "lam = 'x'; expected a number"),
        ("lam = true", "expected a number"),
        ("max_iter = 1.5", "expected a whole number"),
        ("quiet = 1", "expected true or false"),
        ("loss = 3", "expected text"),
        ("loss = ['a']", "expected text"),
        ("loss_param = 'tau=1'", "expected a table"),
        ("lam = -1", "'--lam'"),
        ("lam = 1\nC = 1", "either lam or C"),
        ("zero_based = 'x'", "'--zero-based'"),
    ],
)
def test_wrong_config(files, text, message):
    (files / "run.toml").write_text(text)
    assert message in bad("train", "two.svm", "--config", "run.toml")
