"""How a run ended, in words and in plain numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bmrm.certificate import Certificate, Status
from bmrm.model import Model
from bmrm.sequence_model import SequenceModel

AnyModel = TypeVar("AnyModel", Model, SequenceModel)

_ADVICE = {
    Status.ITERATION_LIMIT: "stopped at --max-iter: raise it for a smaller gap",
    Status.TIME_LIMIT: "stopped at --max-seconds: raise it for a smaller gap",
}
_SAVED = "the best weights so far are in the model"

_LOOSE = 0.99  # relative gap from which on the objective may be a hundred times the optimum


def advice(status: Status, signal: str = "") -> str:
    """Return the status's advice in the words of the command line, with the name of a signal that ended the run."""
    if status is Status.INTERRUPTED:
        return f"interrupted {'from the keyboard' if signal in ('', 'SIGINT') else f'by {signal}'}: {_SAVED}"
    return _ADVICE.get(status, status.advice)


def ended_by(model: AnyModel, signal: str) -> AnyModel:
    """Return the model with the signal that ended its run in its history, if there was one."""
    return replace(model, history={**model.history, "signal": signal}) if signal else model


def ending(certificate: Certificate, status: Status, signal: str = "") -> list[str]:
    """Return two lines: what was proved, and whether that is what was asked for."""
    certified = "certified" if status is Status.CONVERGED else "NOT certified"
    return [f"{certificate}", f"{certified}: {advice(status, signal)}"]


def loose_bound(certificate: Certificate, status: Status) -> list[str]:
    """Return a line with what to do where a run with ``--memory`` ended and its bound says next to nothing."""
    if status is Status.CONVERGED or not np.isfinite(certificate.upper) or certificate.relative_gap < _LOOSE:
        return []
    return [
        f"the lower bound {certificate.lower:.3g} says next to nothing about the optimum: give more --max-seconds or "
        "--max-iter (with --checkpoint FILE, --resume goes on from there) or a larger --lam; if the rows fit into "
        "memory, train without --memory, because the solvers that close such gaps need them there"
    ]


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
        "advice": advice(status, model.history.get("signal", "")),
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
