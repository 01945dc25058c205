"""Who declares the floor of a risk, and how to, for messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmrm._traits import Trait
from bmrm.risks.base import Risk


def declarer(risk: Risk) -> Any:
    """Return the object that declares the risk's floor: its loss, a user's oracle, or the risk."""
    return getattr(risk, "loss", None) or getattr(risk, "oracle", risk)


def described(risk: Risk) -> str:
    """Return the name of what declares the floor.

    Examples
    --------
    >>> import bmrm
    >>> from bmrm.risks.floor import described
    >>> described(bmrm.LinearRisk([[1.0]], [1], "hinge"))
    "loss 'hinge'"
    """
    one = declarer(risk)
    kind = "loss" if one is getattr(risk, "loss", None) else "risk"
    return f"{kind} '{getattr(one, 'name', '') or type(one).__name__}'"


def missing_floor(risk: Risk) -> str:
    """Return how to declare a floor, for errors of what needs one; empty where there is one, or can be none."""
    if risk.floor > -np.inf or Trait.UNBOUNDED_RISK in risk.traits:
        return ""
    return (
        f"{described(risk)} declares no floor: if its values are never negative, write 'floor = 0.0' in class "
        f"{type(declarer(risk)).__name__}, or another lower bound of them"
    )


def is_declared_by_user(risk: Risk) -> bool:
    """Whether a floor is there and comes from code outside of this library, whose own floors are tested.

    That of a structured loss is 0 because the true output is among those compared; `OracleError` names models that
    leave it out.
    """
    return risk.floor > -np.inf and not type(declarer(risk)).__module__.startswith("bmrm.")
