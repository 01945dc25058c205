"""What a checkpoint says, compared with what one evaluation of the risk shows.

A file with a valid checksum may still have been written by somebody else. The objective at its w is computed anew; its
lower bound and its planes must not lie above. A bound that is too high by less than the gap cannot be told from a true
one without the whole run: whoever may write checkpoints is trusted that far.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from bmrm._errors import DataError
from bmrm.bundle import Bundle
from bmrm.certificate import Status
from bmrm.checkpoint import Snapshot
from bmrm.problem import Problem
from bmrm.risks.base import Array

_SLACK = 1e-8  # of the numbers that are compared: they were computed in another order, perhaps
_OURS = {"bmrm", "numpy", "scipy", "highspy", "sklearn", "click"} | set(sys.stdlib_module_names)
_DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)


def checked(problem: Problem, saved: Snapshot, numbers: tuple[str, ...]) -> float:
    """Return the objective at the saved w, computed anew; DataError unless all else that was saved agrees with it.

    Parameters
    ----------
    problem : Problem
    saved : Snapshot
    numbers : tuple of str
        Those of the driver that must be there.
    """
    _check_kinds(problem, saved, numbers)
    point = problem.risk.at(saved.w)
    value, upper = point.value, problem.at_most(saved.w)
    slack = _SLACK * max(abs(upper), float(saved.numbers["scale"]))
    # R(w) is between the value, less what is told too high, and the value plus its rounding error.
    off = problem.risk.inexact(point.w)
    least = upper - point.rounding - off
    for said in {float(saved.numbers["upper"]), float(saved.bounds[0])}:
        if said < least - slack:
            raise DataError(f"its objective is {said!r}, and that of its w is {upper!r}")
    for said in {float(saved.numbers["lower"]), float(saved.bounds[1])}:
        if said > upper + slack:
            raise DataError(f"its lower bound is {said!r}, and the objective of its w is {upper!r}")
    if saved.bundle is not None and np.isfinite(value):
        _check_planes(saved.bundle, saved.w, value, point.rounding + off)
    return upper


def _check_kinds(problem: Problem, saved: Snapshot, numbers: tuple[str, ...]) -> None:
    dim = problem.risk.dim
    for name, w in (("w", saved.w), ("start", saved.start)):
        fits = isinstance(w, np.ndarray) and w.dtype == np.float64 and w.shape == (dim,) and np.isfinite(w).all()
        if not fits and (name == "w" or w is not None):
            raise DataError(f"its {name} is no vector of {dim} finite numbers")
    if not isinstance(saved.numbers, dict) or not all(
        _is_number(saved.numbers.get(name)) for name in (*numbers, "seconds", "products")
    ):
        raise DataError("its bounds and counters are not all there, or no numbers")
    if not (0.0 < saved.numbers["scale"] <= 1.0 and 0.0 <= saved.numbers["seconds"] < math.inf):
        raise DataError("its counters are no numbers of a run")
    if not (isinstance(saved.bounds, tuple) and len(saved.bounds) == 2 and all(map(_is_number, saved.bounds))):
        raise DataError("its certificate is no pair of numbers")
    if not (saved.status is None or saved.status in Status.__members__):
        raise DataError(f"its status is {saved.status!r}; expected one of {', '.join(Status.__members__)}")
    if not (saved.bundle is None or (isinstance(saved.bundle, Bundle) and saved.bundle.dim == dim)):
        raise DataError(f"its planes are no planes in {dim} coordinates")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not math.isnan(value)


def _check_planes(bundle: Bundle, w: Array, value: float, off: float) -> None:
    """Raise DataError if a plane lies above the risk at w."""
    v = w / bundle.units
    products, offsets = bundle.products(v), bundle.offsets
    slack = off + _SLACK * (np.abs(products) + np.abs(offsets) + abs(value) + bundle.steepness * np.linalg.norm(v))
    above = np.flatnonzero(~(products + offsets <= value + slack))
    if above.size:
        k = int(above[0])
        raise DataError(f"its plane {k} is {products[k] + offsets[k]:.6g} at its w, where the risk is {value:.6g}")


@contextlib.contextmanager
def typed(path: Path) -> Iterator[None]:
    """Turn the errors of a run that goes on from a file that does not fit into DataError; those of users' code stay.

    A solver's state is what the solver made it: only the solver could tell whether it is one.
    """
    try:
        yield
    except _DAMAGE as error:
        if type(error).__module__.partition(".")[0] == "bmrm" and not isinstance(error, DataError):
            raise
        if not _is_ours(error.__traceback__):
            raise
        reason = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
        if reason.startswith(f"{path}:"):
            raise
        raise DataError(f"{path}: the checkpoint does not fit its run ({reason}); remove it to start afresh") from error


def _is_ours(traceback: TracebackType | None) -> bool:
    """Whether no code but that of this library, and of those it uses, was running."""
    while traceback is not None:
        if str(traceback.tb_frame.f_globals.get("__name__")).partition(".")[0] not in _OURS:
            return False
        traceback = traceback.tb_next
    return True
