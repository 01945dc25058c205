"""Owners for tests: their rows, their certificates, and a recording of all that leaves them."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import re
import subprocess
import sys

import numpy as np

import bmrm
from bmrm.owners.client import DirectChannel

# Exact numbers, without end: what a test of the sums needs, and no owner should allow.
OPEN = bmrm.owners.GuardSettings(
    budget=10**6, losses=100, patience=10**6, min_lam=1e-9, resolution=0.0, per_line=10**6, changed=0.0, coarse=0.0
)


def rows(rng, m=300, d=5):
    X = rng.normal(size=(m, d))
    return X, np.where(X @ np.arange(1.0, d + 1) + rng.normal(size=m) > 0.0, 1.0, -1.0)


def given_back(owner):
    """Whether coordinators hold no memory of an owner any more; what it has told, it remembers."""
    return owner.room.left == owner.room.most - owner.records.n_bytes


def labels_of(loss, y):
    """Return the labels of a run, where the loss has labels: owners of few rows tell theirs to nobody."""
    if loss.task == "multilabel":
        return np.arange(y.shape[1])
    return np.unique(y) if loss.task in ("classification", "hierarchy") else None


def halves(X, y, groups=None):
    """Return the rows in two parts, queries in one piece."""
    first = np.arange(len(X)) < len(X) // 2 if groups is None else groups <= np.median(groups) - 0.5
    return [tuple(None if c is None else c[part] for c in (X, y, groups)) for part in (first, ~first)]


def parties(X, y, n=3, **options):
    """Return n owners, each with every n-th row; their guards are open unless given."""
    options = {"guard": OPEN} | options
    return [bmrm.Owner((X[s::n], y[s::n]), f"owner {s}", min_rows=10, **options) for s in range(n)]


@contextlib.contextmanager
def served(owners, **options):
    """Give the addresses of servers of the owners, on free ports."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(bmrm.ShardServer(owner, **options)).address for owner in owners]


@contextlib.contextmanager
def serving(file, *options):
    """Give the address of a server and its process."""
    command = [sys.executable, "-m", "bmrm", "serve-shard", file, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            found = re.search(r"at (\S+:\d+)", process.stdout.readline())
            assert found is not None, process.stderr.read()
            yield found.group(1), process
        finally:
            process.kill()


@contextlib.contextmanager
def recorded(monkeypatch):
    """Give a list of all bytes that owners in this process send."""
    sent = []
    reply = bmrm.owners.session.Session.reply

    def recording(self, request):
        payload = reply(self, request)
        sent.append(payload)
        return payload

    with monkeypatch.context() as patch:
        patch.setattr(bmrm.owners.session.Session, "reply", recording)
        yield sent


def channel(owner):
    """Return a way to talk to an owner by hand."""
    return DirectChannel(owner)


def certificates(folder, *names):
    """Write ca.pem and NAME.pem, NAME.key for each name, signed by it, good for localhost."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def name(text):
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    now = datetime.datetime.now(datetime.UTC)

    def signed(subject, key, issuer, issuer_key, ca):
        alternatives = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = (
            x509.CertificateBuilder()
            .subject_name(name(subject))
            .issuer_name(name(issuer))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        )
        if ca:
            usage = dict.fromkeys(
                ["content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only",
                 "decipher_only"], False,
            )  # fmt: skip
            allowed = x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **usage)
            builder = builder.add_extension(allowed, critical=True)
        return builder.sign(issuer_key, hashes.SHA256())

    authority = ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(signed("ca", authority, "ca", authority, True).public_bytes(pem))
    for each in names:
        key = ec.generate_private_key(ec.SECP256R1())
        (folder / f"{each}.pem").write_bytes(signed(each, key, "ca", authority, False).public_bytes(pem))
        plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (folder / f"{each}.key").write_bytes(key.private_bytes(pem, *plain))
    return folder
