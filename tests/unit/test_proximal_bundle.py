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
