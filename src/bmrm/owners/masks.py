"""Pairwise masks: what each owner sends is noise, what they all send adds up to the sum.

A number x becomes the integer n = round(x / q) modulo 2^64. Owners s < t share a key by X25519; in each round both draw
the same stream of 64-bit words from it (ChaCha20), which s adds and t subtracts: in the sum over all owners the masks
cancel, to the last bit, because all of it are integers modulo 2^64. The stream's key is HMAC-SHA256 of that shared key
over a hash of all that must be equal for all owners (`bmrm.owners.binding`): where anything differs, noise remains.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm._errors import DataError
from bmrm.owners.guard import Refused
from bmrm.risks.base import Array

Words = npt.NDArray[np.uint64]

SCALE = 2.0**-40
_ROOM = 62  # bits for the sum of all owners


def cryptography(part: str) -> Any:
    """Return a part of the package, which is an extra of this one."""
    try:
        return importlib.import_module(f"cryptography.hazmat.primitives.{part}")
    except ImportError as error:
        raise DataError("masked sums need the cryptography package: pip install 'bmrm[owners]'") from error


class Masks:
    """The masks of one owner in one run: a private key of its own, made for this run.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.owners.masks import Masks, decoded, encoded
    >>> one, two = Masks(), Masks()
    >>> for place, masks in enumerate((one, two)):
    ...     masks.join([one.public, two.public], place)
    >>> sent = [masks.masked(1, encoded(np.array([x]), 0.25, 2), b"the same") for masks, x in ((one, 1.5), (two, -0.5))]
    >>> decoded(sent, 0.25)
    array([1.])
    """

    def __init__(self) -> None:
        self._private = cryptography("asymmetric.x25519").X25519PrivateKey.generate()
        self._keys: list[tuple[bool, bytes]] = []
        self.round = 0

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        key: bytes = self._private.public_key().public_bytes_raw()
        return key

    def join(self, keys: Sequence[bytes], place: int) -> None:
        """Agree on a key with each of the others.

        Parameters
        ----------
        keys : sequence of 32 bytes each
            The public keys of all owners, in their order.
        place : int
            This owner's.
        """
        if len(keys) < 2 or len(set(keys)) < len(keys) or keys[place] != self.public:
            raise Refused("the keys for masks must be those of at least two owners, all different, and have mine")
        x25519 = cryptography("asymmetric.x25519")
        self._keys = []
        run = hashlib.sha256(b"".join(keys)).digest()
        for other, key in enumerate(keys):
            if other != place:
                shared = self._private.exchange(x25519.X25519PublicKey.from_public_bytes(key))
                pair = b"".join(at.to_bytes(4, "little") for at in sorted((place, other)))
                derived = hashlib.sha256(b"bmrm masks" + run + pair + shared).digest()
                self._keys.append((place < other, derived))

    def masked(self, round: int, words: Words, bound: bytes) -> Words:
        """Return the words with all masks of a round; each round is answered once.

        Parameters
        ----------
        round : int
        words : array
        bound : bytes
            The hash of what must be equal for all owners (`bmrm.owners.binding.of_request`).
        """
        if round <= self.round:
            raise Refused(f"round {round} of the masks is over; the last one was {self.round}")
        if not self._keys:
            raise Refused("masks are not agreed on yet")
        self.round = round
        total = words.copy()
        for adds, key in self._keys:
            mask = _stream(hmac.digest(key, bound, "sha256"), round, words.size)
            total = total + mask if adds else total - mask
        return total


def _stream(key: bytes, round: int, n: int) -> Words:
    """Return n words that follow from a key, which is used for this alone, and a round."""
    ciphers = cryptography("ciphers")
    nonce = bytes(8) + round.to_bytes(8, "little")  # the block counter, then the round
    encryptor = ciphers.Cipher(cryptography("ciphers.algorithms").ChaCha20(key, nonce), mode=None).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * n)), "<u8").astype(np.uint64)


def encoded(x: Array, q: float, parties: int) -> Words:
    """Return round(x / q) modulo 2^64; numbers whose sum over the parties might overflow are refused."""
    n = np.rint(x / q)
    most = 2.0**_ROOM / parties
    if not (np.abs(n) < most).all():
        raise Refused(
            f"an answer has a number that is too large for masks with the step {q:.3g}: at most {most * q:.3g} is "
            f"possible; take a coarser scale (fewer bits)"
        )
    return n.astype(np.int64).view(np.uint64)


def decoded(sent: Sequence[Words], q: float) -> Array:
    """Return the sum of what all owners have sent, times q."""
    total = np.zeros_like(sent[0])
    for words in sent:
        total = total + words
    return total.view(np.int64).astype(np.float64) * q


def power_of_two(size: float) -> float:
    """Return the least power of two that is at least the size, 1 for 0."""
    return float(np.exp2(np.ceil(np.log2(size)))) if size > 0.0 else 1.0
