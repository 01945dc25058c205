"""Checkpoints of runs with owners: what tells their data from others, and the check when a run goes on.

The owners tell no scores, so a run does not go on bit for bit: its w, planes and bounds are kept, and the owners are
asked again. Planes are below R only as long as the data are the same. Three things are compared: what is counted and
R(0) with its slopes, a checksum where the answers are in the clear, and R at the last w before the stop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bmrm._errors import DataError
from bmrm.owners.guard import Refused
from bmrm.owners.risk import Memory, OwnersRisk
from bmrm.risks.base import Array
from bmrm.risks.entries import digest
from bmrm.risks.fingerprint import described, fingerprint

_SAME = 1e-9  # of R: what two computations of it may differ by; a changed row of m changes it by about 1 / m
_UNIT = 2.0**-30  # of the norm: a billionth


@fingerprint.register
def _(risk: OwnersRisk) -> dict[str, Any]:
    if risk.planes_noise is not None:
        raise DataError("runs with owners that answer with noise (privacy) have no checkpoints")
    zero = risk.at_zero
    owners = sorted(f"{rows} rows that count {mass:.9g}" for rows, mass in zip(risk.owners.rows, risk.parts.masses))
    return {
        "loss": described(risk.loss),
        "floor": risk.floor,
        "owners": ", ".join(owners),
        "columns": risk.owners.n_features,
        "constant": risk.intercept,
        "length of w": risk.dim,
        "labels": digest([risk.terms.classes, risk.terms.positive]),
        "masked": f"by steps of {risk.scale:g}" if risk.masked else False,
        "R(0)": f"{zero.value:.9g}",
        "slopes at 0": _slopes(zero.subgradient),
        "data of the owners": _checksums(risk),
    }


def _slopes(a: Array) -> str:
    """Return <a, u> for two vectors u without a zero: a change of one entry of X changes both.

    In units of 2^-30 of the norm of a, in which the rounding of slopes that cancel is 0.
    """
    j = np.arange(1.0, a.size + 1.0)
    size = float(np.sqrt(a @ a)) or 1.0
    along = (1.0 + 0.5 * np.cos(j), 1.0 + 0.5 * np.sin(j * j))
    return " ".join([f"{size:.9g}", *(str(round(float(a @ u) / (_UNIT * size))) for u in along)])


def _checksums(risk: OwnersRisk) -> str:
    """Return a digest of the owners' checksums, in any order; none are asked for under masks."""
    if risk.masked:
        return "not told"
    try:
        answers = risk.owners.placed.call("checksum", risk.owners.n_features)
    except Refused:
        return "not told"
    return digest(sorted(header["checksum"] for header, _ in answers))


def check_resumed(risk: OwnersRisk, memory: Memory) -> None:
    """Raise DataError if R at the last w is another one than before the stop."""
    w, before, above = (memory.get(name) for name in ("w", "value", "rounding"))
    fits = isinstance(w, np.ndarray) and w.dtype == np.float64 and w.shape == (risk.dim,) and np.isfinite(w).all()
    if not (fits and isinstance(before, float) and isinstance(above, float)):
        raise DataError("the checkpoint has no w with its value that fits the owners' data")
    assert w is not None
    point = risk.at(w)
    now, room = point.value, _SAME * max(abs(before), abs(risk.at_zero.value)) + risk.inexact(w)
    # What is told is at most R(w), and at most the rounding below: both times R(w) is between these.
    if not (now <= before + above + room and before <= now + point.rounding + room):
        raise DataError(
            f"the owners' data have changed since the checkpoint: at its last w the mean loss was {before:.12g}, now "
            f"it is {now:.12g}"
        )
