"""Regularizers: a vector w comes in, Omega(w) and its minimum together with a plane go out.

Each takes weights for the coordinates, 0 for those that are not penalized, and bounds on w. A regularizer must
not know the risk, the data, or how much it is multiplied by: lam is passed in.
"""

from __future__ import annotations

from typing import Any

from bmrm.regularizers.base import REGULARIZERS, Along, Regularizer, Separable
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.regularizers.zero import Zero

__all__ = ["L1", "L2", "REGULARIZERS", "Along", "ElasticNet", "Regularizer", "Separable", "Zero", "get"]


def get(name: str | Regularizer, **parameters: Any) -> Regularizer:
    """Return the regularizer of that name; a regularizer passes through.

    Parameters
    ----------
    name : str or Regularizer
        A name of the registry ``REGULARIZERS``.
    **parameters
        The regularizer's own parameters.

    Examples
    --------
    >>> import bmrm
    >>> type(bmrm.regularizers.get("l1")).__name__
    'L1'
    """
    if isinstance(name, Regularizer):
        return name
    return REGULARIZERS.make(name, parameters)
