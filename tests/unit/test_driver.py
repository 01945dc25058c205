"""The driver: each way a run can end, limits, warm starts, paths and certificates of foreign points."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from catalogue import data_for
from reference import models

import bmrm
from bmrm import Certificate, LinearRisk, Problem, Status, certify, path, solve
from bmrm.losses import Exponential, Hinge, LeastSquares
from bmrm.solvers import BMRM, LsBMRM, Step


def hinge_problem(lam=0.01, m=200, d=10, kind="l2", **options):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(m, d))
    y = np.where(X @ np.ones(d) + rng.normal(size=m) > 0, 1.0, -1.0)
    return Problem(LinearRisk(X, y, Hinge(), n_threads=1, **options), kind, lam)


def test_converged():
    result = solve(hinge_problem(), tol=1e-5)
    assert result.status is Status.CONVERGED
    assert result.converged
    assert result.certificate.relative_gap <= 1e-5
    assert "optimum" in str(result)
    assert result.iterations == len(result.history)
    assert result.passes >= result.history[-1].passes > 0
    assert 0.0 < result.history[-1].seconds <= result.seconds


def test_iteration_limit():
    result = solve(hinge_problem(), tol=1e-9, max_iter=3)
    assert result.status is Status.ITERATION_LIMIT
    assert result.iterations == 3
    assert not result.converged


def test_time_limit():
    begin = time.perf_counter()
    result = solve(hinge_problem(lam=1e-7, m=3000, d=60), "bmrm", tol=1e-12, max_seconds=0.1)
    assert result.status is Status.TIME_LIMIT
    assert time.perf_counter() - begin < 5.0


def test_stopped_by_the_monitor():
    seen = []

    def monitor(record):
        seen.append(record)
        return len(seen) == 4

    result = solve(hinge_problem(), tol=1e-9, monitor=monitor)
    assert result.status is Status.STOPPED
    assert result.history == tuple(seen)


def test_keyboard_interrupt_in_the_monitor():
    def monitor(record):
        if record.iteration == 2:
            raise KeyboardInterrupt

    problem = hinge_problem()
    result = solve(problem, tol=1e-9, monitor=monitor)
    assert result.status is Status.INTERRUPTED
    assert result.iterations == 2
    assert result.certificate.upper == pytest.approx(problem.objective(result.w), rel=1e-12)
    assert np.isfinite(result.certificate.lower)


def test_other_errors_of_the_monitor_come_through():
    def monitor(record):
        raise RuntimeError("from the monitor")

    with pytest.raises(RuntimeError, match="from the monitor"):
        solve(hinge_problem(), monitor=monitor)


def interrupt_after(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


@pytest.mark.parametrize("solver", ["bmrm", "ls_bmrm"])
@pytest.mark.parametrize("kind", ["l2", "l1"])
def test_interrupted_from_the_keyboard(solver, kind):
    problem = hinge_problem(lam=1e-6, m=20000, d=100, kind=kind)
    timer = interrupt_after(0.3)
    try:
        result = solve(problem, solver, tol=1e-12, max_seconds=20)
    finally:
        timer.join()
    assert result.status is Status.INTERRUPTED
    assert result.seconds < 10.0
    assert result.certificate.upper == pytest.approx(problem.objective(result.w), rel=1e-12)
    again = solve(problem, solver, tol=0.5, start=result, max_iter=2)
    assert again.certificate.upper <= result.certificate.upper * (1 + 1e-12)


def test_ctrl_c_stops_a_long_product_quickly(capsys):
    """One evaluation of a big matrix is interrupted between the blocks it is cut into, or soon after it ends."""
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(1000, 500)).astype(np.float32), (60, 1))
    risk = LinearRisk(X, np.tile(rng.normal(size=1000), 60), LeastSquares(), n_threads=1)
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.2, send)
    timer.start()
    end = time.perf_counter() + 30.0

    def evaluate_again_and_again():
        while time.perf_counter() < end:
            risk.evaluate(np.ones(500))

    with pytest.raises(KeyboardInterrupt):
        evaluate_again_and_again()
    latency = time.perf_counter() - sent[0]
    timer.join()
    with capsys.disabled():
        print(f"[Ctrl-C answered after {1e3 * latency:.0f} ms]", end=" ")
    assert latency < 1.0


@pytest.mark.parametrize("solver", ["bmrm", "ls_bmrm", "auto"])
def test_stalled_with_tolerance_zero(solver):
    """No float is exactly optimal here: the run must end by itself, with a tiny gap."""
    result = solve(hinge_problem(m=60, d=4), solver, tol=0.0, max_seconds=60)
    assert result.status in (Status.STALLED, Status.CONVERGED)
    assert result.certificate.relative_gap <= 1e-9


@pytest.mark.parametrize("solver", ["bmrm", "ls_bmrm"])
def test_stalled_is_reached(solver):
    """An objective of about 1e8 has no digits left for the absolute 1e-12 of convergence."""
    X, y = data_for(LeastSquares())
    result = solve(Problem(LinearRisk(X, 1e4 * y, LeastSquares()), "l2", 0.1), solver, tol=0.0, max_seconds=60)
    assert result.status is Status.STALLED
    assert result.certificate.relative_gap <= 1e-9
    assert "ls_bmrm" in result.status.advice


@pytest.mark.parametrize("solver", ["bmrm", "ls_bmrm", "bmrm_line", "lbfgs", "scipy", "auto"])
def test_non_finite_at_the_start(solver):
    risk = LinearRisk([[1.0], [2.0]], [1, -1], Exponential())
    result = solve(Problem(risk, "l2", 0.1), solver, start=[1e4])
    assert result.status in (Status.NON_FINITE, Status.CONVERGED)
    if solver in ("lbfgs", "ls_bmrm"):
        assert result.status is Status.NON_FINITE
    if solver == "auto":  # begins where the scores are small
        assert result.status is Status.CONVERGED
    assert not np.isnan(result.certificate.gap)


@pytest.mark.parametrize("status", Status)
def test_every_status_has_advice(status):
    assert len(status.advice) > 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": -1.0}, "tol"),
        ({"tol": np.nan}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_seconds": 0.0}, "max_seconds"),
        ({"max_seconds": np.nan}, "max_seconds"),
        ({"seed": -1}, "seed"),
        ({"start": np.zeros(3)}, "shape"),
        ({"start": np.full(10, np.nan)}, "finite"),
        ({"solver": "bmrn"}, "Did you mean"),
    ],
    ids=str,
)
def test_bad_arguments(options, message):
    problem = hinge_problem()
    before = problem.risk.products
    with pytest.raises(ValueError, match=message):
        solve(problem, **options)
    assert problem.risk.products == before


@pytest.mark.parametrize("lam", [0.0, -1.0, np.nan, np.inf, "much", None])
def test_bad_lam(lam):
    with pytest.raises(ValueError, match="lam"):
        hinge_problem(lam=lam)


@pytest.mark.parametrize("solver", [BMRM(max_cuts=5), LsBMRM(max_cuts=5)], ids=repr)
@pytest.mark.parametrize("kind", ["l2", "l1"])
def test_few_planes(solver, kind):
    """Aggregation keeps what was proved. With l2 five planes are enough, if slowly; a linear program needs d + 1."""
    problem = hinge_problem(lam=0.1, m=80, d=4, kind=kind)
    result = solve(problem, solver, tol=1e-2, max_iter=3000 if kind == "l2" else 100)
    assert result.converged or kind == "l1"
    assert len(result.state.bundle) <= 5
    best = solve(problem, tol=1e-8)
    assert result.certificate.lower <= best.certificate.upper + 1e-12


@pytest.mark.parametrize("solver", ["bmrm", "ls_bmrm"])
@pytest.mark.parametrize("kind", ["l2", "l1"])
def test_warm_start_for_another_lam_saves_passes(solver, kind):
    first = hinge_problem(lam=0.012, kind=kind)
    result = solve(first, solver, tol=1e-4)
    second = first.with_lam(0.01)
    cold = solve(second, solver, tol=1e-4)
    warm = solve(second, solver, tol=1e-4, start=result)
    assert warm.converged
    assert warm.passes <= 0.75 * cold.passes
    assert warm.certificate.upper == pytest.approx(cold.certificate.upper, rel=1e-4)


def test_warm_start_for_another_regularizer():
    result = solve(hinge_problem(), "bmrm", tol=1e-5)
    lasso = Problem(result.state.problem.risk, "l1", 0.01)
    cold, warm = (solve(lasso, "bmrm", tol=1e-5, start=start) for start in (None, result))
    assert warm.passes < cold.passes
    assert warm.certificate.upper == pytest.approx(cold.certificate.upper, rel=1e-5)


def test_planes_of_another_risk_are_not_used():
    result = solve(hinge_problem(), "bmrm", tol=1e-5)
    other = hinge_problem(sample_weight=np.random.default_rng(0).random(200))
    best = solve(other, tol=1e-7).certificate
    warm = solve(other, "bmrm", tol=1e-5, start=result)
    assert warm.certificate.lower <= best.upper * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["bmrm", "ls_bmrm"])
def test_a_result_may_be_resumed_twice(solver):
    """A result is a value: what later runs do must not change it."""
    problem = hinge_problem()
    part = solve(problem, solver, tol=1e-6, max_iter=5)
    planes = len(part.state.bundle)
    first = solve(problem, solver, tol=1e-6, start=part)
    assert len(part.state.bundle) == planes
    second = solve(problem, solver, tol=1e-6, start=part)
    np.testing.assert_array_equal(first.w, second.w)
    assert first.iterations == second.iterations


def test_max_cuts_holds_for_a_warm_start_too():
    problem = hinge_problem(lam=0.05, m=80, d=4)
    first = solve(problem, "bmrm", tol=1e-6)
    assert len(first.state.bundle) > 5
    second = solve(problem, BMRM(max_cuts=5), tol=1e-3, start=first, max_iter=2000)
    assert len(second.state.bundle) <= 5


@pytest.mark.parametrize("kind", ["l2", "l1"])
def test_certificate_of_a_foreign_point(kind):
    X, y = data_for(Hinge())
    problem = Problem(LinearRisk(X, y, Hinge()), kind, 0.05)
    optimum = models.optimum(Hinge(), X, y, problem.regularizer, 0.05)
    w = solve(problem, "bmrm", tol=1e-3).w + 0.01
    certificate = certify(problem, w, tol=1e-6)
    assert certificate.upper == pytest.approx(problem.objective(w), rel=1e-14)
    assert certificate.lower == pytest.approx(optimum, rel=2e-6)
    assert certificate.lower <= optimum * (1 + 1e-8)
    assert certificate.gap == pytest.approx(certificate.upper - optimum, rel=1e-3)


def test_certificate_of_a_support_vector_machine():
    """scikit-learn's LinearSVC solves the same problem for C = 1 / (lam m), without an intercept."""
    svm = pytest.importorskip("sklearn.svm", reason="scikit-learn is missing")
    problem = hinge_problem(lam=0.01)
    risk = problem.risk
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 10))
    model = svm.LinearSVC(loss="hinge", C=1.0 / (0.01 * 200), fit_intercept=False, tol=1e-10, max_iter=10**6)
    model.fit(X, risk.targets)
    certificate = certify(problem, model.coef_.ravel(), tol=1e-6)
    assert certificate.relative_gap <= 1e-5


def test_certificate_where_the_objective_is_infinite():
    problem = Problem(LinearRisk([[1.0], [2.0]], [1, -1], Exponential()), "l2", 0.1)
    certificate = certify(problem, [1e4])
    assert certificate.upper == np.inf
    assert np.isfinite(certificate.lower)
    assert not certificate.closes(1.0)


def test_certificates():
    assert Certificate.of(1.0, 1.0 + 1e-16, "x").gap == 0.0
    assert Certificate.of(1.0, -np.inf, "x").gap == np.inf
    assert "no bound" in str(Certificate.of(1.0, -np.inf, "x"))
    assert Certificate.of(0.0, 0.0, "x").closes(0.0)
    assert not Certificate.of(1.0, 0.9, "x").closes(0.05)
    assert Certificate.of(-1.0, -1.01, "x").closes(0.01)


def test_path_ends_early_when_stopped():
    risk = hinge_problem().risk
    results = path(risk, "l2", [1.0, 0.1, 0.01], monitor=lambda record: True, tol=1e-12)
    assert [result.status for result in results] == [Status.STOPPED]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork is missing on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_computes_the_same():
    """The thread pool does not survive a fork; the child must notice and build its own."""
    rng = np.random.default_rng(0)
    risk = LinearRisk(rng.normal(size=(20000, 30)), rng.normal(size=20000), LeastSquares(), n_threads=2)
    w = rng.normal(size=30)
    expected = risk.evaluate(w)[0]
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if risk.evaluate(w)[0] == expected else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert risk.evaluate(w)[0] == expected


def test_solve_is_exported():
    assert bmrm.solve is solve


def test_rounding_far_below_the_start_is_no_contradiction():
    """Bounds of 1e-29 and 1e-45 differ by nothing, where the objective began at 1e-13."""

    class Settled(LsBMRM):
        def steps(self, problem, start):
            yield Step(np.zeros(1), 1e-45, 1e-29)

    risk = LinearRisk([[1.0]], [1e-6], "least_squares")
    result = solve(Problem(risk, "l2", 1e-3), Settled(), start=[0.0], max_iter=1)
    assert result.certificate.lower <= result.certificate.upper


def test_solvers_know_the_accuracy_asked():
    class Curious(LsBMRM):
        def steps(self, problem, start):
            asked.append(start.tol)
            yield from super().steps(problem, start)

    asked = []
    first = solve(hinge_problem(), Curious(), tol=1e-2)
    solve(hinge_problem(), Curious(), tol=1e-4, start=first)
    assert asked == [1e-2, 1e-4]
