"""Names of columns: what an owner tells of them, so that no two owners add up different features."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from bmrm.owners.guard import OwnerError

_MOST_BYTES = 1 << 19  # half of the largest header of a message; longer lists are told by their checksum only


def told(names: Sequence[str] | None) -> dict[str, Any]:
    """Return what an owner says of its columns: the names, and a checksum of them in their order."""
    if names is None:
        return {}
    text = json.dumps(list(names)).encode()
    found: dict[str, Any] = {"columns": hashlib.sha256(text).hexdigest()}
    return found | {"names": list(names)} if len(text) <= _MOST_BYTES else found


def agreed(answers: Sequence[dict[str, Any]], owners: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names that all owners have, None where none has; raise OwnerError if they differ.

    Examples
    --------
    >>> from bmrm.owners.columns import agreed, told
    >>> hello = {"features": 2} | told(["age", "size"])
    >>> agreed([hello, hello], ["north", "south"])
    ('age', 'size')
    """
    first = answers[0].get("columns")
    for name, answer in zip(owners, answers):
        own = answer.get("columns")
        if own == first:
            continue
        if own is None or first is None:
            has, lacks = (name, owners[0]) if first is None else (owners[0], name)
            raise OwnerError(f"{lacks}: has no names of columns, but {has} has; expected all owners to agree")
        raise OwnerError(f"{name}: its columns are not those of {owners[0]}: {_difference(answers[0], answer)}")
    names = answers[0].get("names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    if len(names) != int(answers[0]["features"]):
        raise OwnerError(f"{owners[0]}: names {len(names)} columns, but has {answers[0]['features']} features")
    return tuple(names)


def _difference(first: dict[str, Any], own: dict[str, Any]) -> str:
    a, b = first.get("names"), own.get("names")
    if not isinstance(a, list) or not isinstance(b, list):
        return "other names, or another order"
    absent, others = [name for name in a if name not in b], [name for name in b if name not in a]
    if absent:
        return f"{absent[0]!r} is missing"
    return f"{others[0]!r} is additional" if others else "they are in another order"
