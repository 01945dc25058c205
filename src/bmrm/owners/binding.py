"""What masks are bound to: a hash of everything that must be equal for all owners, in one canonical encoding.

Owners draw their masks from the hash. Owners that were told different things draw different masks, which do not cancel:
the coordinator is left with noise.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from bmrm.risks.base import Array


def digest(kind: str, values: dict[str, Any], arrays: Sequence[Array] = ()) -> bytes:
    """Return the SHA-256 of a kind, plain values by name, and arrays; no two different inputs have the same bytes.

    Lengths come before contents, names are sorted, and floats are written with all their digits.

    Examples
    --------
    >>> from bmrm.owners.binding import digest
    >>> digest("run", {"lam": 0.1, "total": 3.0}) == digest("run", {"total": 3.0, "lam": 0.1})
    True
    >>> digest("run", {"lam": 0.1}) == digest("run", {"lam": 0.1 + 1e-18})
    True
    >>> digest("run", {"lam": 0.1}) == digest("run", {"lam": 0.1 + 2e-17})
    False
    """
    found = hashlib.sha256()
    text = json.dumps([kind, values], sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    for part in (text, *(np.ascontiguousarray(array, "<f8").tobytes() for array in arrays)):
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


def of_run(terms: dict[str, Any], keys: Sequence[str], identities: Sequence[str], total: float, step: float) -> bytes:
    """Return the hash of what is fixed for a run.

    Parameters
    ----------
    terms : dict
        ``Terms.header``.
    keys : sequence of str
        The public keys of all owners for this run, in their order.
    identities : sequence of str
        Their long-lived public keys, empty where they have none.
    total : float
        What all owners count together.
    step : float
        The quantum of the fixed-point numbers.
    """
    values = {"terms": terms, "keys": list(keys), "identities": list(identities), "total": total, "step": step}
    return digest("bmrm run 1", values)


def of_request(run: bytes, header: dict[str, Any], wants: Sequence[Any], arrays: Sequence[Array]) -> bytes:
    """Return the hash of one request of a run.

    Parameters
    ----------
    run : bytes
        The hash of the run.
    header : dict
        Of the request: method, round and announcements count.
    wants : sequence
        What is asked for: the parts of an answer, or the steps on a line.
    arrays : sequence of arrays
        w, or the start of a line and its direction, as this owner uses them.
    """
    values = {name: header[name] for name in ("method", "round", "best", "zero")}
    return digest("bmrm request 1", values | {"run": run.hex(), "wants": list(wants)}, arrays)
