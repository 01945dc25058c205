"""Bundles and masters: planes of the risk come in, the minimizer of the model and a lower bound of J go out.

The bundle holds planes of R only, so it serves every lam and every regularizer; the master is chosen by the
regularizer's type. Neither may know losses, data or the solver that feeds them.
"""

from __future__ import annotations

from bmrm.bundle.bounded_qp import BoundedMaster
from bmrm.bundle.lp import L1Master, ZeroMaster
from bmrm.bundle.master import Master, MasterSolution, master_for
from bmrm.bundle.planes import Bundle
from bmrm.bundle.qp import L2Master
from bmrm.regularizers import L1, L2, Zero

__all__ = ["Bundle", "Master", "MasterSolution", "master_for"]


@master_for.register
def _(regularizer: L2) -> Master:
    return L2Master(regularizer) if regularizer.bounds is None else BoundedMaster(regularizer)


@master_for.register
def _(regularizer: L1) -> Master:
    return L1Master(regularizer)


@master_for.register
def _(regularizer: Zero) -> Master:
    return ZeroMaster(regularizer)
