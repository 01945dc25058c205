"""Checks for plug-ins: a loss, risk, regularizer or solver comes in, an AssertionError goes out if it breaks a rule.

They are the tests that everything in this library has passed, and they need NumPy only, so that a user's own
plug-in can be held to the same rules. Every message says what is violated, where, and by how much.
"""

from __future__ import annotations

from bmrm.testing.hunt_judge import Finding, hunt_case
from bmrm.testing.hunt_run import Report, hunt
from bmrm.testing.losses import check_loss
from bmrm.testing.regularizers import check_regularizer
from bmrm.testing.risks import check_risk
from bmrm.testing.solvers import check_solver
from bmrm.testing.structured import check_structured_model

__all__ = [
    "Finding",
    "Report",
    "check_loss",
    "check_regularizer",
    "check_risk",
    "check_solver",
    "check_structured_model",
    "hunt",
    "hunt_case",
]
