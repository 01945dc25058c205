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
from bmrm.solvers.folos import Folos
from bmrm.solvers.lbfgs import LBFGS
from bmrm.solvers.ls_bmrm import LsBMRM
from bmrm.solvers.pegasos import Pegasos
from bmrm.solvers.proximal_online import ProximalOnline
from bmrm.solvers.scipy import SciPy
from bmrm.solvers.sgd import SGD
from bmrm.solvers.sgd_qn import SGDQN

__all__ = [
    "BMRM",
    "LBFGS",
    "SGD",
    "SGDQN",
    "SOLVERS",
    "AdaptiveOnline",
    "Auto",
    "BMRMLine",
    "Folos",
    "LsBMRM",
    "Pegasos",
    "ProximalOnline",
    "SciPy",
    "Solver",
    "Start",
    "Step",
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
