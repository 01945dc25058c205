"""What extreme problems must not do: print, warn, or fail for the form of the regularizer."""

from __future__ import annotations

import subprocess
import sys

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


_ONE_SIDED = """
import numpy as np
from bmrm.bundle.box import _multipliers
E = np.array([
    [1.0, 1.0, -1.0, 1.0],
    [0.9998730034745134, 1.0, -0.9999233218467134, 0.9998730034747085],
    [1.0, 0.997707858687734, -0.9988354442014646, 0.999999999985906],
    [0.97561785577286, 0.9126204658786219, -1.0, 0.9756178528422609],
])
room = np.array([0.02895714485568427, 1.7126059861524106, 8.513566427717523, 15.9752227595863])
print(_multipliers(E, room, np.eye(4)[0]))
"""


def test_an_unbounded_polytope_is_found_without_a_word():
    found = subprocess.run([sys.executable, "-c", _ONE_SIDED], capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("None\n", "")


def test_the_box_of_a_polytope():
    found = box._polytope(np.vstack([np.eye(2), -np.eye(2)]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert found == pytest.approx([3.03, 4.04])


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


def test_planes_without_a_slope_bound_nothing():
    """A program without variables is one that SciPy refuses."""
    assert box._polytope(np.zeros((3, 2)), np.ones(3)).tolist() == [np.inf, np.inf]
