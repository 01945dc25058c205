"""Deadlines: nested, in threads, with checkpoints, in programs of others; and loops that once had no end."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from scipy import sparse

from bmrm import Checkpoint, LinearClassifier, LinearRisk, Problem, Status, _core, solve
from bmrm._deadline import GRACE, Overdue, look, seconds_left, until, within, without_deadline
from bmrm.bundle import lp
from bmrm.losses import Hinge, Loss
from bmrm.solvers import BMRM, SOLVERS
from bmrm.solvers.cholesky import factored, factored_in_place, factored_with_pivot, upper_factor
from bmrm.solvers.proximal_bundle import Balance

LATE = 4.0  # seconds on a busy machine, where half of one is promised


def test_the_sooner_deadline_counts_and_comes_back() -> None:
    assert seconds_left() == np.inf
    with within(100.0):
        with within(1000.0):
            assert 90.0 < seconds_left() < 100.0
        with without_deadline() as at, within(np.inf):
            assert at < np.inf
            assert seconds_left() == np.inf
        with within(-1.0), pytest.raises(Overdue):
            look()
        assert 90.0 < seconds_left() < 100.0
    assert seconds_left() == np.inf
    look()


def test_only_the_making_of_items_has_a_deadline() -> None:
    def items():
        yield seconds_left()
        look()
        yield 0.0

    made = until(_core.clock() + 0.05, items())
    assert 0.0 < next(made) <= 0.05
    assert seconds_left() == np.inf
    time.sleep(0.06)
    with pytest.raises(Overdue):
        next(made)


def test_a_deadline_is_that_of_its_thread() -> None:
    seen: list[float] = []
    with within(0.0):
        thread = threading.Thread(target=lambda: seen.append(seconds_left()))
        thread.start()
        thread.join()
    assert seen == [np.inf]


def test_kernels_stop_even_if_each_takes_no_time() -> None:
    risk = LinearRisk([[1.0], [2.0]], [1.0, -1.0], "hinge", n_threads=1)
    with within(0.0), pytest.raises(Overdue):
        risk.evaluate(np.ones(1))
    assert risk.evaluate(np.ones(1))[0] == 1.5


class Slow:
    """|w - 1|, 0.6 seconds of work in small pieces for each answer but the first."""

    dim, floor = 1, 0.0

    def __init__(self, inner: float | None = None) -> None:
        self.asked, self.inner, self.found = 0, inner, []

    def evaluate(self, w):
        self.asked += 1
        if self.inner is not None:
            self.found.append(solve(Problem(Slow(), "l2", 1e-3), "bmrm", tol=0.0, max_seconds=self.inner))
        elif self.asked > 1:
            for _ in range(60):
                time.sleep(0.01)
                look()
        return abs(float(w[0]) - 1.0), np.sign(w - 1.0)


def test_a_step_is_cut() -> None:
    result = solve(Problem(Slow(), "l2", 1e-3), "bmrm", tol=0.0, max_seconds=0.05)
    assert result.status is Status.TIME_LIMIT
    assert result.iterations == 1
    assert result.certificate.lower <= result.certificate.upper
    assert result.seconds >= 0.05 + GRACE


def test_the_outer_deadline_ends_the_inner_run_too() -> None:
    oracle = Slow(inner=100.0)
    result = solve(Problem(oracle, "l2", 1e-3), "bmrm", tol=0.0, max_seconds=0.05)
    assert result.status is Status.TIME_LIMIT
    assert [inner.status for inner in oracle.found[:1]] == [Status.TIME_LIMIT]
    assert result.seconds < 0.05 + GRACE + 2.0 + LATE


def test_the_inner_deadline_is_not_that_of_the_outer_run() -> None:
    oracle = Slow(inner=0.01)
    result = solve(Problem(oracle, "l2", 1e-3), "bmrm", tol=0.0, max_iter=1, max_seconds=100.0)
    assert result.status is Status.ITERATION_LIMIT
    assert {inner.status for inner in oracle.found} == {Status.TIME_LIMIT}


def test_threads_have_deadlines_of_their_own() -> None:
    X, y = np.random.default_rng(0).normal(size=(200, 5)), np.where(np.arange(200) % 3, 1.0, -1.0)
    found = {}

    def run(seconds: float) -> None:
        risk = LinearRisk(X, y, "hinge", n_threads=1)
        found[seconds] = solve(Problem(risk, "l2", 1e-4), "bmrm", tol=1e-4, max_seconds=seconds)

    threads = [threading.Thread(target=run, args=(seconds,)) for seconds in (1e-6, 1e3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[1e-6].status is Status.TIME_LIMIT
    assert found[1e3].converged


class SlowThird(BMRM):
    """Takes long for its third step, unless told not to."""

    patient = False

    def steps(self, problem, start):
        for number, step in enumerate(super().steps(problem, start)):
            if number == 2 and not self.patient:
                time.sleep(0.5)
                look()
            yield step


def test_a_step_that_is_cut_is_not_saved(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is that of the step before, and the run that goes on from it is the run that was never cut."""
    monkeypatch.setitem(SOLVERS, "bmrm", SlowThird)
    X, y = np.random.default_rng(0).normal(size=(60, 5)), np.where(np.arange(60) % 3, 1.0, -1.0)

    def problem() -> Problem:
        return Problem(LinearRisk(X, y, "hinge", n_threads=1), "l2", 1e-4)

    file = tmp_path / "run"
    cut = solve(problem(), SlowThird(), tol=1e-9, max_seconds=0.2, checkpoint=Checkpoint(file, seconds=0.0))
    assert cut.status is Status.TIME_LIMIT
    assert cut.iterations == 2
    monkeypatch.setattr(SlowThird, "patient", True)
    rest = solve(problem(), SlowThird(), tol=1e-9, checkpoint=Checkpoint(file, resume=True))
    whole = solve(problem(), SlowThird(), tol=1e-9)
    assert [record.lower for record in rest.history] == [record.lower for record in whole.history]
    assert rest.w.tobytes() == whole.w.tobytes()


class SlowLoss(Loss):
    """The hinge loss in Python, slowly."""

    seconds = 0.02
    task = "classification"

    def evaluate(self, scores, targets, weight):
        time.sleep(self.seconds)
        margin = 1.0 - targets * scores
        return float(weight @ np.maximum(margin, 0.0)), -weight * targets * (margin > 0.0)


def test_estimators_share_their_deadline() -> None:
    X, y = np.random.default_rng(0).normal(size=(300, 5)), np.arange(300) % 12
    begun = time.perf_counter()
    with pytest.warns(UserWarning, match="max_seconds"):
        model = LinearClassifier(loss=SlowLoss(), solver="bmrm", lam=1e-4, tol=1e-9, max_seconds=0.1).fit(X, y)
    assert time.perf_counter() - begun < 0.1 + GRACE + 13 * SlowLoss.seconds + LATE
    assert model.status_ is Status.TIME_LIMIT
    assert np.isfinite(model.objective_)


def long_program() -> object:
    import highspy

    rng = np.random.default_rng(0)
    program = highspy.Highs()
    program.setOptionValue("output_flag", False)
    none = np.empty(0, np.int32)
    program.addCols(400, rng.random(400), np.zeros(400), np.full(400, 10.0), 0, none, none, np.empty(0))
    for _ in range(400):
        program.addRow(1.0, np.inf, 400, np.arange(400, dtype=np.int32), rng.random(400))
    return program


@pytest.mark.parametrize("cells", [1, 10**9], ids=["at once", "in a thread"])
def test_a_linear_program_stops_at_the_deadline(cells: int) -> None:
    program = long_program()
    with within(0.0), pytest.raises(Overdue):
        lp._run(program, program.getBasis(), cells)


def test_a_linear_program_that_is_not_done_at_once_has_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for seconds in (1e-3, 1e3):
        monkeypatch.setattr(lp, "_AT_ONCE", seconds)
        program = long_program()
        lp._run(program, program.getBasis(), 1)
        assert program.getModelStatus().name == "kOptimal"
        answers.append(np.asarray(program.getSolution().col_value))
    assert np.array_equal(*answers)


def test_softmax_that_fits_all_rows_ends() -> None:
    """The classes' curvature is 0 there, and so was the ridge: nothing made the matrix definite."""
    model = LinearClassifier(loss="softmax", lam=1e-9, max_seconds=10)
    model.fit([[1.0, 0], [0, 1], [-1, -1]], [0, 1, 2])
    assert model.converged_


@pytest.mark.parametrize("ridge", [0.0, 1e-14, 1.0])
@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf, -np.inf, -1.0])
def test_every_matrix_is_factored_or_given_up(bad: float, ridge: float) -> None:
    for M in (np.full((3, 3), bad), np.diag([1.0, bad, 2.0])):
        solution = factored(M.copy(), ridge)(np.ones(3))
        assert solution.shape == (3,)
        if ridge == 0.0 and not M.any():
            assert not solution.any()
            assert factored_with_pivot(M.copy(), ridge)[1] == 0.0
        elif np.isfinite(bad):
            assert np.isfinite(solution).all()


def test_large_matrices_are_factored_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmrm.solvers.cholesky._WHOLE", 10)
    monkeypatch.setattr("bmrm.solvers.cholesky._BLOCK", 16)
    A = np.random.default_rng(0).normal(size=(60, 50))
    M = A.T @ A
    upper = upper_factor(np.asfortranarray(M))
    assert upper is not None
    np.testing.assert_allclose(np.triu(upper).T @ np.triu(upper), M, rtol=1e-10, atol=1e-10)
    g = np.arange(50.0)
    np.testing.assert_allclose(factored(M.copy(), 0.0)(g), np.linalg.solve(M, g), rtol=1e-8)
    inverse = factored_in_place(M.copy())
    assert inverse is not None
    np.testing.assert_allclose(inverse(g), np.linalg.solve(M, g), rtol=1e-8)
    assert factored_in_place(M - 100.0 * np.eye(50)) is None


@pytest.mark.parametrize("kind", ["l2", "l1"])
@pytest.mark.parametrize("huge", [1e160, 1e200])
@pytest.mark.parametrize("solver", ["folos", "sgd", "pegasos", "sgd_qn", "adaptive_online", "proximal_online"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers overflow
def test_lengths_of_rows_that_overflow(solver: str, huge: float, kind: str) -> None:
    """The first step tried is 0 then, and none shorter than that was ever short enough."""
    risk = LinearRisk([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [huge, 2.0]], [1, -1, 1, -1], "hinge")
    problem = Problem(risk, kind, 1e-3)
    if kind == "l2" or solver == "folos":
        assert solve(problem, solver, max_iter=3).iterations <= 3


def test_rows_without_entries_are_not_visited_for_ever() -> None:
    X = sparse.csr_array(([1.0, 2.0], ([0, 1], [0, 0])), shape=(20, 1))
    risk = LinearRisk(X, np.where(np.arange(20) % 2, 1.0, -1.0), "logistic", intercept=True, n_threads=1)
    assert solve(Problem(risk, "l2", 1e-3), "dual_coordinate", tol=0.0, max_iter=3, max_seconds=60).iterations <= 3


@pytest.mark.parametrize("norm", [np.inf, np.nan, 1e308])
def test_a_radius_grows_to_the_largest_number_only(norm: float) -> None:
    balance = Balance.first(1e-3, np.zeros(1), 1e-300, 1.0).after(1e-3, np.zeros(1), norm, 1.0)
    assert balance.t == 1


def test_the_hinge_of_slow_loss_is_the_hinge() -> None:
    scores, y, weight = np.array([0.5, -2.0]), np.array([1.0, 1.0]), np.array([0.5, 0.5])
    mine = SlowLoss().evaluate(scores, y, weight)[0]
    assert mine == pytest.approx(LinearRisk(scores[:, None], y, Hinge()).evaluate(np.ones(1))[0])
