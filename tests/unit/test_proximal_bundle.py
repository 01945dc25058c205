"""The proximal bundle method as the paper has it, where lam is tiny, and the planes of one run for another lam."""

from __future__ import annotations

import numpy as np
import pytest

import bmrm
from bmrm.solvers import LsBMRM, ProximalBundle


def risk_in(units):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    return bmrm.LinearRisk(units * X, np.sign(X[:, 0] + 0.5 * rng.normal(size=300)), "hinge", n_threads=1)


@pytest.fixture
def risk():
    return risk_in(1.0)


def test_the_method_of_the_paper(risk):
    problem = bmrm.Problem(risk, "l2", 0.01)
    result = bmrm.solve(problem, ProximalBundle(line_search=False), tol=1e-3)
    assert result.converged
    assert result.certificate.upper == pytest.approx(bmrm.solve(problem, "ls_bmrm", tol=1e-9).certificate.upper, 1e-3)


def test_raw_columns_and_a_tiny_lam():
    """|a|^2 / lam is 1e16: without the proximal term rounding decides where the master's solution lies."""
    assert bmrm.solve(bmrm.Problem(risk_in(1e5), "l2", 1e-6), ProximalBundle(), tol=1e-6, max_iter=100).converged


@pytest.mark.parametrize("solver", [LsBMRM(), ProximalBundle()], ids=lambda solver: solver.name)
def test_a_path_needs_fewer_passes_than_its_runs_alone(risk, solver):
    lams = np.logspace(-1, -4, 10)
    together = bmrm.path(risk, "l2", lams, solver)
    alone = [bmrm.solve(bmrm.Problem(risk, "l2", lam), solver) for lam in lams]
    assert all(result.converged for result in together)
    assert sum(result.passes for result in together) < 0.7 * sum(result.passes for result in alone)


class Oracle:
    """A risk of which nothing but values and subgradients is known, so many times as large."""

    floor = 0.0

    def __init__(self, risk, times=1.0):
        self.dim, self.risk, self.times = risk.dim, risk, times

    def evaluate(self, w):
        value, a = self.risk.evaluate(w)
        return self.times * value, self.times * a


@pytest.mark.parametrize("solver", [LsBMRM(), ProximalBundle()], ids=lambda solver: solver.name)
def test_no_evaluation_of_an_oracle_is_wasted(risk, solver):
    """Every trial of a line search leaves its plane, as the start does."""
    result = bmrm.solve(bmrm.Problem(Oracle(risk), "l2", 1e-3), solver, tol=1e-9, max_iter=12)
    assert len(result.state.bundle) == result.passes


@pytest.mark.parametrize("line_search", [True, False])
@pytest.mark.parametrize(("units", "times"), [(16.0, 1.0), (2.0**-10, 1.0), (1.0, 256.0), (1.0, 2.0**-12)])
def test_the_run_is_the_same_in_other_units(risk, line_search, units, times):
    solver = ProximalBundle(line_search=line_search)
    usual = bmrm.solve(bmrm.Problem(Oracle(risk), "l2", 1e-4), solver, tol=1e-2)
    scaled = bmrm.solve(bmrm.Problem(Oracle(risk_in(units), times), "l2", 1e-4 * times * units**2), solver, tol=1e-2)
    assert usual.converged
    assert abs(scaled.iterations - usual.iterations) <= 3
    np.testing.assert_allclose(scaled.w * units, usual.w, atol=0.1 * np.abs(usual.w).max())
