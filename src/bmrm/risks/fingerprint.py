"""What a risk is told apart by: numbers and text that another process finds again for the same data, and only then."""

from __future__ import annotations

import dataclasses
from functools import singledispatch
from typing import Any

import numpy as np

from bmrm import _core
from bmrm.data.sharded import ShardedMatrix
from bmrm.risks.base import Risk
from bmrm.risks.entries import digest, entries_digest
from bmrm.risks.linear import LinearRisk

_LONGEST = 80  # of a description; longer ones are cut, with a digest of the whole


@singledispatch
def fingerprint(risk: Risk) -> dict[str, Any]:
    """Return what tells the risk from others, by name: of a risk known as an oracle only, what it says at w = 0.

    Examples
    --------
    >>> import bmrm
    >>> from bmrm.risks.fingerprint import fingerprint
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> fingerprint(risk)["rows"], fingerprint(risk)["loss"]
    (2, 'hinge()')
    """
    products = risk.products
    value, a = risk.evaluate(np.zeros(risk.dim))
    risk.products = products
    size = float(np.sqrt(_core.inner(a, a)))
    known = {"risk": type(risk).__name__, "length of w": risk.dim, "floor": risk.floor}
    return known | {"R(0)": f"{value:.6g}", "slope at 0": f"{size:.6g}"}


@fingerprint.register
def _(risk: LinearRisk) -> dict[str, Any]:
    matrix: Any = risk.design.matrix
    shards = {"number of shards": len(matrix.parts)} if isinstance(matrix, ShardedMatrix) else {}
    return {
        "loss": described(risk.loss),
        "floor": risk.floor,
        "rows": matrix.n_rows,
        "columns": matrix.n_cols,
        "entries": matrix.n_entries,
        "constant": risk.design.intercept,
        "length of w": risk.dim,
        **shards,
        "X": entries_digest(matrix, risk.design.n_threads),
        "y": digest(risk.targets),
        "weights": digest(risk.weight),
        "offsets": digest(risk.offset),
    }


def described(thing: Any) -> str:
    """Return a loss, a regularizer or a solver with its parameters as text, cut where it is long."""
    fields = dataclasses.fields(thing) if dataclasses.is_dataclass(thing) else ()
    given = ", ".join(f"{field.name}={_short(getattr(thing, field.name))}" for field in fields if field.init)
    text = f"{getattr(thing, 'name', '') or type(thing).__name__}({given})"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... [{digest(text)}]"


def _short(value: Any) -> str:
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return digest(value)
