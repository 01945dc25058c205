"""What estimators and the command line warn of when a fit has ended: models that are optimal and of no use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bmrm._warnings import ConstantModelWarning, MeaninglessObjectiveWarning, UselessModelWarning
from bmrm.certificate import Certificate, Status
from bmrm.constant_model import constant_cause
from bmrm.meaningless_objective import meaningless_cause
from bmrm.problem import Problem
from bmrm.risks.base import Array


@dataclass(frozen=True)
class Findings:
    """Causes, as clauses with their cures, why one solved problem is of no use; None where there is none."""

    constant: str | None = None
    meaningless: str | None = None


NOTHING_FOUND = Findings()


def findings(problem: Problem, w: Array, certificate: Certificate, status: Status) -> Findings:
    """Look at the end of a run. Whether w is constant is not asked where a limit ended it: it may be at its start.

    Parameters
    ----------
    problem : Problem
    w : array
    certificate : Certificate
    status : Status
    """
    if not np.isfinite(certificate.upper) or problem.risk.planes_noise is not None:
        return NOTHING_FOUND  # what it looks at would be answered with noise, and paid for
    ended = status in (Status.CONVERGED, Status.STALLED)
    constant = constant_cause(problem, w, certificate) if ended else None
    return Findings(constant, meaningless_cause(problem, w, certificate))


def warnings_of(found: Sequence[Findings]) -> list[UselessModelWarning]:
    """Return the warnings of a model of one problem, or of one problem for each class.

    Parameters
    ----------
    found : sequence of Findings
        One for each problem.
    """
    raised: list[UselessModelWarning] = []
    constant = [each.constant for each in found if each.constant is not None]
    if constant and len(constant) == len(found):
        raised.append(ConstantModelWarning(f"the model predicts one thing for everybody: {constant[0]}"))
    elif constant:
        raised.append(
            ConstantModelWarning(
                f"{len(constant)} of {len(found)} one-vs-rest problems give one score to everybody: {constant[0]}"
            )
        )
    meaningless = [each.meaningless for each in found if each.meaningless is not None]
    if meaningless:
        raised.append(MeaninglessObjectiveWarning(f"the objective says nothing about the score: {meaningless[0]}"))
    return raised
