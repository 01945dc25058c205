"""What extreme problems must not do: print, warn, or fail for the form of the regularizer."""

from __future__ import annotations

import numpy as np
import pytest

import bmrm
from bmrm.bundle import box
from bmrm.problem import missing
from bmrm.regularizers import L2, ElasticNet
from bmrm.risks.curvature import RowCurvature
from bmrm.solvers.newton_system import NewtonSystem


@pytest.mark.parametrize("solver", [name for name in bmrm.solvers.SOLVERS if name != "auto"])
def test_an_elastic_net_of_squares_alone_is_l2(solver):
    risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], "squared_hinge")
    one, other = (bmrm.Problem(risk, regularizer, 0.5) for regularizer in (ElasticNet(r=0.0), L2()))
    assert missing(bmrm.solvers.get(solver), one) == missing(bmrm.solvers.get(solver), other)
    if not missing(bmrm.solvers.get(solver), one):
        found = [bmrm.solve(problem, solver, max_iter=30).certificate.upper for problem in (one, other)]
        assert found[0] == pytest.approx(found[1], rel=1e-3)


def test_a_polytope_without_end_in_one_direction_is_found_without_a_word(capfd):
    E = np.array(
        [
            [0.99988804, 1.0, 0.07216087],
            [0.99994662, 0.99994662, -1.0],
            [-1.0, -1.0, 0.99999912],
            [0.99994662, 0.99994662, -1.0],
            [-1.0, -1.0, 0.99999912],
        ]
    )
    room = np.array([-1.17169579e05, -2.54626227, 3.54626771, -2.54626227, 3.54626771])
    assert np.isinf(box._polytope(E, room)).any()
    bounded = box._polytope(np.vstack([np.eye(2), -np.eye(2)]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert bounded == pytest.approx([3.03, 4.04])
    assert capfd.readouterr() == ("", "")


def test_an_unpenalized_program_prints_nothing_at_a_tiny_lam(capfd):
    rng = np.random.default_rng(241)
    X = rng.normal(size=(18, 3)) * 10.0 ** rng.uniform(-8, 8, size=3)
    risk = bmrm.LinearRisk(X, rng.normal(size=18), "least_squares", intercept=True)
    for lam in (1e-15, 1.0):
        bmrm.solve(bmrm.Problem(risk, "zero", lam), "ls_bmrm", tol=1e-8, max_iter=60)
    assert capfd.readouterr() == ("", "")


class _Squares(bmrm.losses.Loss):
    task = "regression"
    floor = 0.0

    def evaluate(self, scores, targets, weight):
        rest = np.clip(scores - targets, -1e150, 1e150)
        return float(weight @ rest**2) / 2.0, weight * rest


def test_rounding_of_infinite_scores_warns_of_nothing():
    risk = bmrm.LinearRisk([[1e300], [-1e300]], [1.0, 2.0], _Squares())
    assert risk.at(np.array([1e300])).rounding == np.inf


def test_a_newton_system_beyond_floating_point_is_left_as_it_is():
    risk = bmrm.LinearRisk([[1.0, 0.5], [0.5, 1.0]], [1.0, -1.0], "least_squares")
    g = np.array([1e200, -1e200])
    step = NewtonSystem(RowCurvature(risk), np.ones(2)).at(np.full(2, 0.5))(g, 1e-8)
    H = np.array([[1.625, 0.5], [0.5, 1.625]])
    assert H @ step == pytest.approx(g)
