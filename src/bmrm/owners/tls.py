"""TLS with the parties' own certificates, on both sides of a connection."""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass

from bmrm._errors import DataError

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class TLS:
    """Files of one side, in PEM.

    Parameters
    ----------
    certificate, key : paths, optional
        Its own; an owner must have one, a coordinator where owners ask for it.
    ca : path, optional
        What the other side's certificate must be signed by: this authority and no other, whatever the system trusts. A
        coordinator without one accepts the system's authorities; an owner without one accepts coordinators without a
        certificate.

    Examples
    --------
    >>> from bmrm.owners import TLS
    >>> TLS(ca="ca.pem").certificate is None
    True
    """

    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise DataError("a certificate and its key go together; one of them is missing")

    def of_owner(self) -> ssl.SSLContext:
        """Return what a server needs."""
        if self.certificate is None or self.key is None:
            raise DataError("an owner needs a certificate and its key for TLS")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load(context)
        if self.ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def of_coordinator(self) -> ssl.SSLContext:
        """Return what a client needs: the owner's certificate and its name are verified."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load(context)
        if self.ca is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        files = [os.fspath(path) for path in (self.certificate, self.key, self.ca) if path is not None]
        try:
            if self.certificate is not None and self.key is not None:
                context.load_cert_chain(self.certificate, self.key)
            if self.ca is not None:
                context.load_verify_locations(self.ca)
        except (OSError, ssl.SSLError) as error:
            raise DataError(f"{', '.join(files)}: cannot be used for TLS ({error})") from error


def is_here(host: str) -> bool:
    """Return whether a host is this machine, so that nothing travels over a network.

    Examples
    --------
    >>> from bmrm.owners.tls import is_here
    >>> is_here("localhost"), is_here("127.0.0.1"), is_here("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
