"""Solvers: a problem and a start come in, an endless stream of steps goes out, each with a proven bound.

One algorithm for each file. A solver decides where to go next, never when to stop, what to print or how to
count: that is the driver's. It sees the risk through values and subgradients only, and must not know data,
losses or where they live.
"""

from __future__ import annotations

from typing import Any

from bmrm.solvers.adaptive_online import AdaptiveOnline
from bmrm.solvers.auto import Auto
from bmrm.solvers.base import SOLVERS, Solver, Start, Step
from bmrm.solvers.bmrm import BMRM
from bmrm.solvers.bmrm_line import BMRMLine
from bmrm.solvers.coordinate import Coordinate
from bmrm.solvers.dual_coordinate import DualCoordinate
from bmrm.solvers.folos import Folos
from bmrm.solvers.heavy_ball import HeavyBall
from bmrm.solvers.hybrid import Hybrid
from bmrm.solvers.interior_point import InteriorPoint
from bmrm.solvers.lbfgs import LBFGS
from bmrm.solvers.ls_bmrm import LsBMRM
from bmrm.solvers.newton import Newton
from bmrm.solvers.owlqn import OWLQN, OWLQNStar
from bmrm.solvers.pegasos import Pegasos
from bmrm.solvers.proximal_bundle import ProximalBundle
from bmrm.solvers.proximal_online import ProximalOnline
from bmrm.solvers.row_lbfgs import RowLBFGS
from bmrm.solvers.scipy import SciPy
from bmrm.solvers.semismooth_newton import SemismoothNewton
from bmrm.solvers.sgd import SGD
from bmrm.solvers.sgd_qn import SGDQN
from bmrm.solvers.subgradient import Subgradient
from bmrm.solvers.subgradient_bfgs import SubgradientBFGS, SubgradientLBFGS

__all__ = [
    "BMRM",
    "LBFGS",
    "OWLQN",
    "SGD",
    "SGDQN",
    "SOLVERS",
    "AdaptiveOnline",
    "Auto",
    "BMRMLine",
    "Coordinate",
    "DualCoordinate",
    "Folos",
    "HeavyBall",
    "Hybrid",
    "InteriorPoint",
    "LsBMRM",
    "Newton",
    "OWLQNStar",
    "Pegasos",
    "ProximalBundle",
    "ProximalOnline",
    "RowLBFGS",
    "SciPy",
    "SemismoothNewton",
    "Solver",
    "Start",
    "Step",
    "Subgradient",
    "SubgradientBFGS",
    "SubgradientLBFGS",
    "get",
]


def get(name: str | Solver, **parameters: Any) -> Solver:
    """Return the solver of that name; a solver passes through.

    Examples
    --------
    >>> import bmrm
    >>> bmrm.solvers.get("ls_bmrm", mu=0.2)
    LsBMRM(mu=0.2, max_cuts=None)
    """
    if isinstance(name, Solver):
        return name
    return SOLVERS.make(name, parameters)
