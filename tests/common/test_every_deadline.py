"""Every solver with every master ends soon after its deadline, and its answer is good to go on from."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LAM, all_losses, all_pairs, all_regularizers, all_solvers, problem_for, tolerance
from deadlines import cut_after

from bmrm import LinearRisk, Problem, Status, StructuredRisk, solve
from bmrm.losses import Loss, StructuredHinge, StructuredLog, VectorLoss
from bmrm.problem import missing
from bmrm.solvers import BMRM, LsBMRM, ProximalBundle
from bmrm.structured import StructuredModel

CASES = 2  # of each solver: other losses and regularizers for each
SHARES = (0.2, 0.7)  # of a whole run's calls, after which the deadline passes
MOST_CALLS = 400  # of Python functions after a deadline, the evaluation of the answer included
MOST_PRODUCTS = 5  # one that runs when the deadline passes may end, and the answer is evaluated: a pass is two
STEPS = 40


def assert_ends_and_goes_on(problem: Problem, solver, tol: float) -> None:
    whole = cut_after(np.inf, problem, solver, tol=tol, max_iter=STEPS)
    low, high = whole.result.certificate.lower, whole.result.certificate.upper
    slack = 1e-6 * max(1e-3, abs(high))
    for share in SHARES:
        cut = cut_after(share * whole.calls, problem, solver, tol=tol, max_iter=STEPS)
        if cut.result.status is not Status.TIME_LIMIT:
            assert cut.result.status is whole.result.status  # the deadline was in no step any more
            continue
        assert cut.calls_after <= MOST_CALLS
        assert cut.products_after <= MOST_PRODUCTS
        assert cut.result.certificate.lower <= high + slack
        assert cut.result.certificate.upper >= low - slack
        assert cut.result.certificate.upper == pytest.approx(problem.objective(cut.result.w), rel=1e-9)
        rest = solve(problem, solver, tol=tol, max_iter=STEPS, start=cut.result, max_seconds=30.0)
        assert rest.certificate.lower <= high + slack
        assert rest.certificate.upper >= low - slack
        assert not whole.result.converged or rest.converged or rest.status is Status.ITERATION_LIMIT


def cases():
    """Return some problems for each solver, spread over what fits it; the others are slow."""
    for place, solver in enumerate(all_solvers()):
        fitting = [pair for pair in all_pairs() if not missing(solver, problem_for(*pair))]
        chosen = [fitting[(place + k * len(fitting)) // CASES % len(fitting)] for k in range(CASES)]
        for pair in fitting:
            marks = () if pair in chosen else pytest.mark.slow
            yield pytest.param(solver, *pair, id=f"{solver.name}-{pair[0]}-{pair[1]}", marks=marks)


@pytest.mark.parametrize(("solver", "loss", "example"), list(cases()))
def test_ends_soon_after_the_deadline(solver, loss: Loss, example: int):
    assert_ends_and_goes_on(problem_for(loss, example), solver, tolerance(solver))


def masters():
    """Return every regularizer with losses of rows, of several scores and of sets, for solvers around a master."""
    kinds = {(loss.couples, isinstance(loss, VectorLoss)): loss for loss in reversed(all_losses())}
    for loss in kinds.values():
        for pair in all_pairs():
            for solver in (BMRM(), LsBMRM(), ProximalBundle()):
                if pair[0] == loss and not missing(solver, problem_for(*pair)):
                    marks = () if isinstance(solver, LsBMRM) else pytest.mark.slow
                    yield pytest.param(solver, *pair, id=f"{solver.name}-{loss}-{pair[1]}", marks=marks)


@pytest.mark.parametrize(("solver", "loss", "example"), list(masters()))
def test_every_master_ends_soon(solver, loss: Loss, example: int):
    assert_ends_and_goes_on(problem_for(loss, example), solver, tolerance(solver))


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("example", range(len(all_regularizers(5))))
def test_more_columns_than_rows(example: int, intercept: bool):
    """Planes are kept by their slopes, and masters have more coordinates than planes."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(12, 60)), np.where(rng.random(12) < 0.5, -1.0, 1.0)
    risk = LinearRisk(X, y, "hinge", intercept=intercept, n_threads=1)
    assert_ends_and_goes_on(Problem(risk, all_regularizers(risk.dim)[example], LAM), LsBMRM(), 1e-6)


class Multiclass(StructuredModel):
    """Three classes as outputs, asked for in Python, one example at a time."""

    dim = 6

    def joint_feature(self, x, y):
        phi = np.zeros(6)
        phi[2 * y : 2 * y + 2] = x
        return phi

    def delta(self, y, other):
        return float(y != other)

    def augmented_argmax(self, x, y, w):
        return int(np.argmax(w.reshape(3, 2) @ x + (np.arange(3) != y)))

    def argmax(self, x, w):
        return int(np.argmax(w.reshape(3, 2) @ x))

    def log_partition(self, x, w):
        scores = w.reshape(3, 2) @ x
        odds = np.exp(scores - scores.max())
        return float(np.log(odds.sum()) + scores.max()), np.outer(odds / odds.sum(), x).reshape(-1)


@pytest.mark.parametrize("loss", [StructuredHinge(Multiclass()), StructuredLog(Multiclass())], ids=["hinge", "log"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_structured_models_end_soon(loss, n_threads: int):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 2)), rng.integers(3, size=20)
    risk = StructuredRisk(list(X), y.tolist(), loss, n_threads=n_threads)
    assert_ends_and_goes_on(Problem(risk, "l2", 1e-2), "auto", 1e-4)
