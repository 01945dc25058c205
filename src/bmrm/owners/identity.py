"""Identity: a long-lived key of an owner, which signs its key for each masked run.

The coordinator relays the owners' keys. Owners that know each other's fingerprints refuse keys that it has exchanged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bmrm._errors import DataError
from bmrm.owners.binding import digest
from bmrm.owners.guard import Refused
from bmrm.owners.masks import cryptography

_FINGERPRINT = re.compile(r"[0-9a-f]{64}\Z")


class Identity:
    """An Ed25519 key pair of one owner.

    Parameters
    ----------
    path : path, optional
        A PEM file with the private key (`bmrm identity` makes it). Without one the key lives as long as the object.

    Examples
    --------
    >>> from bmrm.owners.identity import Identity
    >>> len(Identity().fingerprint)
    64
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        ed25519 = cryptography("asymmetric.ed25519")
        if path is None:
            self._private = ed25519.Ed25519PrivateKey.generate()
            return
        try:
            self._private = cryptography("serialization").load_pem_private_key(Path(path).read_bytes(), None)
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{path}: no private key in PEM without a password ({error})") from error
        if not isinstance(self._private, ed25519.Ed25519PrivateKey):
            raise DataError(f"{path}: has a key of another kind; expected Ed25519")

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Identity:
        """Make a key in a new file, which only its owner may read (mode 0600)."""
        _write(Path(path), cryptography("asymmetric.ed25519").Ed25519PrivateKey.generate())
        return cls(path)

    @property
    def fingerprint(self) -> str:
        """The public key, 64 hexadecimal digits: owners tell each other theirs, not by way of the coordinator."""
        return str(self._private.public_key().public_bytes_raw().hex())

    def signature(self, key: str, terms: dict[str, Any]) -> str:
        """Return the signature of this owner's public key for a run, which holds for these terms only."""
        return str(self._private.sign(_statement(key, terms)).hex())


def _write(path: Path, private: Any) -> None:
    serialization = cryptography("serialization")
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pem)
    except OSError as error:
        raise DataError(f"{path}: the key cannot be written ({error.strerror})") from error


def _statement(key: str, terms: dict[str, Any]) -> bytes:
    return digest("bmrm key of a run 1", {"key": key, "terms": terms})


def fingerprints(peers: Iterable[str]) -> frozenset[str]:
    """Return fingerprints, checked.

    Examples
    --------
    >>> from bmrm.owners.identity import fingerprints
    >>> fingerprints(["north"])
    Traceback (most recent call last):
    bmrm._errors.DataError: peers has 'north'; expected fingerprints of 64 hexadecimal digits ('bmrm identity')
    """
    found = [str(peer).strip().lower() for peer in peers]
    wrong = [peer for peer in found if not _FINGERPRINT.match(peer)]
    if wrong:
        raise DataError(f"peers has {wrong[0]!r}; expected fingerprints of 64 hexadecimal digits ('bmrm identity')")
    return frozenset(found)


def check_peers(
    expected: frozenset[str],
    fewest: int | None,
    terms: dict[str, Any],
    keys: Sequence[str],
    identities: Sequence[str],
    signatures: Sequence[str],
) -> None:
    """Raise Refused if a key is not signed by one of the owners expected.

    Parameters
    ----------
    expected : set of str
        The fingerprints of all owners, with the own one.
    fewest : int, optional
        So many of them are enough; by default a run needs all.
    terms : dict
        Of the run, as this owner was told them.
    keys, identities, signatures : sequence of str
        Of all owners of the run, in their order, as the coordinator relays them.
    """
    if len(set(identities)) < len(identities) or not set(identities) <= expected:
        raise Refused("a key for masks is not that of one of this owner's peers: the coordinator has exchanged it, or "
                      "the fingerprints are not those of this run's owners")  # fmt: skip
    if len(identities) < (len(expected) if fewest is None else fewest):
        raise Refused(
            f"{len(identities)} owners are in this run, but this owner has agreed with {len(expected) - 1} others on "
            f"masks; it accepts fewer if 'masked_only' says how many"
        )
    ed25519 = cryptography("asymmetric.ed25519")
    for key, identity, signature in zip(keys, identities, signatures):
        public = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(identity))
        try:
            public.verify(bytes.fromhex(signature), _statement(key, terms))
        except Exception as error:  # InvalidSignature, or a text that is none
            raise Refused(f"the key for masks of {identity[:16]}... is not signed by it for these terms") from error
