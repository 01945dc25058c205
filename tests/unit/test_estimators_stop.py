"""Fits that end early: limits, Ctrl-C, callbacks; the object is usable and says what happened."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from bmrm import LinearClassifier, LinearRisk, Problem, Status, solve
from bmrm.estimators import minimizer
from bmrm.regularizers import L2


def hard() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 40))
    scores = X @ np.arange(40.0) + 100.0 * rng.normal(size=2000)
    return X, scores > np.median(scores)


def test_warns_with_gap_and_advice() -> None:
    with pytest.warns(ConvergenceWarning, match=r"did not converge: .*relative gap .*, tol=0.001.*max_iter") as caught:
        model = LinearClassifier(max_iter=2, lam=1e-6).fit(*hard())
    assert len(caught) == 1
    assert "warm_start=True" in str(caught[0].message)
    assert not model.converged_
    assert model.status_ is Status.ITERATION_LIMIT
    assert model.n_iter_ == 2
    X, y = load_iris(return_X_y=True)
    with pytest.warns(
        ConvergenceWarning, match="in 2 of 3 one-vs-rest problems|in 3 of 3 one-vs-rest problems"
    ) as caught:
        LinearClassifier(max_iter=2, lam=1e-6).fit(X, y)
    assert len(caught) == 1


def test_time_limit_is_for_the_whole_fit() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        model = LinearClassifier(max_seconds=1e-9, lam=1e-8).fit(X, y)
    assert [len(history) for history in model.history_] == [1, 1, 1]


def test_ctrl_c_leaves_a_usable_object() -> None:
    X, y = hard()
    model = LinearClassifier(lam=1e-9, tol=0.0, solver="bmrm")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        timer.join()
    assert model.status_ is Status.INTERRUPTED
    assert not model.converged_
    assert model.predict(X).shape == y.shape
    assert model.lower_bound_ <= model.objective_
    assert model.n_iter_ == len(model.history_) >= 1


def test_verbose_separates_the_problem_from_its_gap(capsys: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    LinearClassifier(verbose=True).fit(X, np.argmax(X, axis=1))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("gap")[0] for line in lines] == [f"problem {k} of 3 | " for k in (1, 2, 3)]


def test_verbose_shows_the_gap(capsys: pytest.CaptureFixture[str]) -> None:
    LinearClassifier(verbose=True).fit(*hard())
    shown = capsys.readouterr()
    assert "gap" in shown.err + shown.out


class Watcher:
    """A callback that notes what it is shown, and asks to stop after some iterations or raises."""

    def __init__(self, stop_after: int, error: type[BaseException] | None = None) -> None:
        self.stop_after, self.error = stop_after, error
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.objectives: list[float] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.begun.append("setup")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.ended.append("setup")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator: Any, context: Any, *, X: Any = None, fitted_estimator: Any = None) -> bool:
        self.ended.append(context.task_name)
        if fitted_estimator is None or context.task_name != "iteration":
            return False
        assert fitted_estimator.predict(X).shape == (X.shape[0],)
        self.objectives.append(fitted_estimator.objective_)
        stop = self.ended.count("iteration") >= self.stop_after
        if stop and self.error is not None:
            raise self.error
        return stop


def test_callbacks_see_iterations_and_stop_the_fit() -> None:
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    watcher = Watcher(stop_after=3)
    model = LinearClassifier(lam=1e-6).set_callbacks(watcher).fit(*hard())
    assert model.status_ is Status.STOPPED
    assert model.n_iter_ == 3
    assert watcher.objectives == [record.upper for record in model.history_]
    assert sorted(watcher.begun) == sorted(watcher.ended)
    assert watcher.begun.count("fit") == 1


def test_callbacks_see_every_class() -> None:
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    X, y = load_iris(return_X_y=True)
    watcher = Watcher(stop_after=10**9)
    model = LinearClassifier().set_callbacks(watcher).fit(X, y)
    assert model.converged_
    assert np.isfinite(model.relative_gap_)
    assert watcher.begun.count("class") == watcher.ended.count("class") == 3
    assert sorted(watcher.begun) == sorted(watcher.ended)


def test_interrupted_between_classes() -> None:
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    X, y = load_iris(return_X_y=True)
    model = LinearClassifier().set_callbacks(Watcher(stop_after=2, error=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert not model.coef_[1:].any()
    assert model.relative_gap_ == np.inf
    assert model.predict(X).shape == y.shape


def test_stopped_between_classes() -> None:
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    X, y = load_iris(return_X_y=True)

    class OneClassOnly(Watcher):
        def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
            return context.task_name == "class"

    model = LinearClassifier().set_callbacks(OneClassOnly(0)).fit(X, y)
    assert model.status_ is Status.STOPPED
    assert model.coef_[0].any()
    assert not model.coef_[1:].any()


def test_nothing_that_takes_passes_is_done_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(LinearRisk([[1.0], [2.0]], [-1, 1], "hinge", intercept=True), L2(), 0.1)
    result = replace(solve(problem), status=Status.INTERRUPTED)
    for name in ("centered", "findings"):
        monkeypatch.setattr(minimizer, name, lambda *a: pytest.fail("nobody waits for that"))
    assert minimizer._fit_of(problem, result).certificate == result.certificate
