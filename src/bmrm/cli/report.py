"""How a run ended, in words and in plain numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bmrm.certificate import Certificate, Status
from bmrm.model import Model
from bmrm.sequence_model import SequenceModel

_ADVICE = {
    Status.ITERATION_LIMIT: "stopped at --max-iter: raise it for a smaller gap",
    Status.TIME_LIMIT: "stopped at --max-seconds: raise it for a smaller gap",
    Status.INTERRUPTED: "interrupted from the keyboard: the best weights so far are in the model",
}


def advice(status: Status) -> str:
    """Return the status's advice in the words of the command line."""
    return _ADVICE.get(status, status.advice)


def ending(certificate: Certificate, status: Status) -> list[str]:
    """Return two lines: what was proved, and whether that is what was asked for."""
    certified = "certified" if status is Status.CONVERGED else "NOT certified"
    return [f"{certificate}", f"{certified}: {advice(status)}"]


def trained(model: Model | SequenceModel, path: Path) -> dict[str, Any]:
    """Return how a model was trained, as plain JSON values; numbers that are not finite are null."""
    certificate, status = model.certificate, model.status
    numbers = {
        "objective": certificate.upper,
        "lower_bound": certificate.lower,
        "gap": certificate.gap,
        "relative_gap": certificate.relative_gap,
    }
    return {
        "status": status.name,
        "converged": status is Status.CONVERGED,
        "advice": advice(status),
        **{name: float(value) if np.isfinite(value) else None for name, value in numbers.items()},
        **model.history,
        "model": str(path),
        "task": model.task,
        "loss": model.loss.name,
        "regularizer": model.regularizer,
        "lam": model.lam,
        "solver": model.solver,
        "tol": model.tol,
    }
