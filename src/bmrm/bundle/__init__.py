"""Bundles and masters: planes of the risk come in, the minimizer of the model and a lower bound of J go out.

The bundle holds planes of R only, so it serves every lam and every regularizer; the master is chosen by the
regularizer's type. Neither may know losses, data or the solver that feeds them.
"""

from __future__ import annotations

from typing import cast

from bmrm.bundle.lp import L1Master, ZeroMaster
from bmrm.bundle.master import Master, MasterSolution, master_for
from bmrm.bundle.piecewise_qp import PiecewiseMaster
from bmrm.bundle.planes import Bundle
from bmrm.bundle.qp import L2Master
from bmrm.regularizers import L1, L2, ElasticNet, Zero

__all__ = ["Bundle", "Master", "MasterSolution", "master_for"]


@master_for.register
def _(regularizer: L2) -> Master:
    return L2Master(regularizer) if regularizer.bounds is None else PiecewiseMaster(regularizer)


@master_for.register
def _(regularizer: L1) -> Master:
    return L1Master(regularizer)


@master_for.register
def _(regularizer: Zero) -> Master:
    return ZeroMaster(regularizer)


@master_for.register
def _(regularizer: ElasticNet) -> Master:
    if regularizer.r == 1.0:
        return L1Master(cast(L1, L1(regularizer.weights, regularizer.bounds).holding(regularizer.held)))
    if regularizer.r == 0.0:
        return master_for(L2(regularizer.weights, regularizer.bounds).holding(regularizer.held))
    return PiecewiseMaster(regularizer)
