"""Agreement: what an owner says of its key for a masked run, and what it demands of those of the others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bmrm.owners import binding
from bmrm.owners.guard import Refused
from bmrm.owners.identity import check_peers
from bmrm.owners.masks import Masks
from bmrm.owners.names import number, whole
from bmrm.owners.wire import WireError

if TYPE_CHECKING:
    from bmrm.owners.owner import Owner

_KEY = re.compile(r"[0-9a-f]{64}\Z")
_IDENTITY, _SIGNATURE = re.compile(r"([0-9a-f]{64})?\Z"), re.compile(r"([0-9a-f]{128})?\Z")  # empty: there is none


@dataclass(frozen=True)
class Agreement:
    """How many owners take part, the step of their numbers, and the hash that masks are bound to."""

    parties: int
    step: float
    bound: bytes


def announced(owner: Owner, masks: Masks, terms: dict[str, Any]) -> dict[str, str]:
    """Return this owner's key for a run; with an identity, also its fingerprint and signature."""
    key = masks.public.hex()
    if owner.identity is None:
        return {"key": key}
    return {"key": key, "identity": owner.identity.fingerprint, "signature": owner.identity.signature(key, terms)}


def agree(owner: Owner, peer: str, masks: Masks, terms: dict[str, Any], size: float, header: Any) -> Agreement:
    """Agree on masks with the owners whose keys the coordinator relays; what is agreed on is in the log.

    Parameters
    ----------
    owner : Owner
    peer : str
        The coordinator, for the log.
    masks : Masks
    terms : dict
        Of the run.
    size : float
        The largest number of this owner at w = 0, as it told.
    header : dict
        Of the request "join".
    """
    keys = _texts(header["keys"], _KEY)
    identities, signatures = _texts(header["identities"], _IDENTITY), _texts(header["signatures"], _SIGNATURE)
    if not len(keys) == len(identities) == len(signatures):
        raise WireError(f"{len(keys)} keys, {len(identities)} identities and {len(signatures)} signatures")
    place, step, total = whole(header["place"]), number(header["step"]), number(header["total"])
    if place >= len(keys):
        raise WireError(f"place {place} of {len(keys)}")
    if not 0.0 < step <= size:
        raise Refused(f"the step of masked sums is {step:g}; this owner's numbers need one above 0, at most {size:g}")
    if len(keys) < (owner.masked_only or 2):
        raise Refused(f"this owner answers in runs of at least {owner.masked_only} owners; there are {len(keys)}")
    if owner.peers is not None:
        check_peers(owner.peers, owner.masked_only, terms, keys, identities, signatures)
    masks.join([bytes.fromhex(key) for key in keys], place)
    unchecked = "not authenticated, so that a coordinator that has exchanged them can take the masks off (--peers)"
    how = unchecked if owner.peers is None else "signed by this owner's peers"
    owner.log.noted(peer, "masks", f"keys of all owners, {how}: {' '.join(keys)}")
    return Agreement(len(keys), step, binding.of_run(terms, keys, identities, total, step))


def _texts(value: Any, pattern: re.Pattern[str]) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) and pattern.match(text) for text in value):
        raise WireError("keys, identities or signatures that are none; expected hexadecimal digits")
    return value
