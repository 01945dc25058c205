"""Owner: rows that stay where they are, and the conditions under which sums over them are told."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bmrm._errors import DataError
from bmrm.data.columns import names_of
from bmrm.data.dataset import Dataset
from bmrm.data.files import read
from bmrm.owners.guard import GuardSettings, GuardTripped, Refused
from bmrm.owners.identity import Identity, fingerprints
from bmrm.owners.labels import names_told
from bmrm.owners.ledger import Ledger
from bmrm.owners.log import DepartureLog
from bmrm.owners.memory import MOST_BYTES, Room
from bmrm.owners.privacy import Privacy
from bmrm.owners.private_session import PrivateSession
from bmrm.owners.record import Records
from bmrm.owners.session import Session

_GONE = 1.0  # seconds until the end of a coordinator that has just gone is noticed


class Owner:
    """One party's data. Others learn values and subgradients of the mean loss of its rows, nothing else.

    Parameters
    ----------
    data : Dataset, tuple (X, y), (X, y, groups) or (X, y, groups, weight), or path
        As `bmrm.read` takes it.
    name : str, optional
        For messages: the file by default.
    min_rows : int
        With fewer rows that count, the data are refused: a sum over few rows says too much about each.
    masked_only : int, optional
        Answer under masks only, in runs of at least so many owners.
    identity : Identity or path, optional
        Signs this owner's key for each masked run: the others can tell it from one of the coordinator's.
    peers : sequence of str, optional
        Fingerprints of the other owners' identities. Answer under masks only, in runs of exactly these owners, whose
        keys must be signed; with ``masked_only``, of at least so many of them.
    max_memory : int or str
        Bytes, or text such as "2GB", that coordinators may take: w, points that are kept, messages, wider copies of the
        rows.
    guard : GuardSettings, optional
        When to stop answering.
    allow_scores : bool
        Also tell labels, weights and scores of single rows, for losses that need them (roc_area, ordinal, fbeta, ...).
        From these, rows can be solved for: only for a coordinator who may know the data.
    log : path, optional
        Where all that leaves is noted (`DepartureLog`).
    n_threads : int, optional
        All cores by default, or for -1 (all but one for -2).
    privacy : Privacy, optional
        Answer with noise, from a budget of differential privacy; rows are scaled to its norm at once.

    Attributes
    ----------
    stopped : str or None
        Why the guard has stopped it; `resume` lets it answer again.
    answers : int
        How many evaluations got a plane of their own, over all runs.
    requests : int
        How many were answered, by new planes or by earlier ones.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X = np.linspace(-1.0, 1.0, 400).reshape(200, 2)
    >>> y = np.where(X[:, 0] > 0, 1, -1)
    >>> owners = [bmrm.Owner((X[::2], y[::2])), bmrm.Owner((X[1::2], y[1::2]))]
    >>> with bmrm.OwnersRisk(owners, "logistic", lam=0.01) as risk:
    ...     bmrm.solve(risk.problem).converged
    True
    """

    def __init__(
        self,
        data: Any,
        name: str | None = None,
        *,
        min_rows: int = 100,
        masked_only: int | None = None,
        identity: Identity | str | os.PathLike[str] | None = None,
        peers: Iterable[str] | None = None,
        max_memory: int | str = MOST_BYTES,
        guard: GuardSettings | None = None,
        allow_scores: bool = False,
        log: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
        privacy: Privacy | None = None,
    ) -> None:
        self.name = name or (os.fspath(data) if isinstance(data, (str, os.PathLike)) else "owner")
        self.data = _dataset(data)
        self.guard = GuardSettings() if guard is None else guard
        self.masked_only, self.n_threads, self.log = masked_only, n_threads, DepartureLog(log)
        self.identity = identity if identity is None or isinstance(identity, Identity) else Identity(identity)
        self.peers = None if peers is None else self._with_mine(fingerprints(peers))
        self.room, self.allow_scores = Room(max_memory), allow_scores
        if allow_scores and (masked_only is not None or peers is not None):
            other = "masked_only" if peers is None else "peers"
            raise DataError(f"{self.name}: allow_scores and {other} exclude each other: scores have no masks")
        self.stopped: str | None = None
        self.answers = self.requests = 0
        self.records = Records(self.guard, self.room)
        self._busy, self._sorting = threading.Lock(), threading.Lock()
        self._labels: list[Any] | None = None
        rows = self.data.n_examples if self.data.weight is None else int(np.count_nonzero(self.data.weight))
        if rows < min_rows:
            raise DataError(
                f"{self.name}: has {rows} rows that count; sums over fewer than {min_rows} say too much about each "
                f"(min_rows)"
            )
        self.privacy = privacy
        if privacy is not None:
            self._make_private(privacy, data)

    def _make_private(self, privacy: Privacy, source: Any) -> None:
        if self.masked_only is not None or self.peers is not None:
            other = "masked_only" if self.peers is None else "peers"
            raise DataError(f"{self.name}: answers with noise (privacy) or under masks only ({other}), not both")
        if self.allow_scores:
            raise DataError(f"{self.name}: privacy and allow_scores exclude each other: scores of rows have no noise")
        self.data = privacy.applied_to(self.data, self.name)
        self.privacy = privacy.planned_for(*self.data.X.shape)
        path = privacy.ledger
        if path is None and isinstance(source, (str, os.PathLike)):
            path = f"{os.fspath(source)}.privacy"
        self.ledger = Ledger(path)

    def resume(self) -> None:
        """Answer again after the guard has stopped it; the answers counted so far stay counted."""
        self.stopped = None

    def stop(self, peer: str, reason: str) -> None:
        """Answer nobody any more."""
        self.stopped = reason
        self.log.noted(peer, "stopped", reason)

    def asked(self) -> None:
        """Count a request; raise GuardTripped when there have been too many."""
        self.requests += 1
        if self.requests > self.guard.budget * (1 + self.guard.repeats):
            raise GuardTripped(f"{self.requests - 1} requests have been answered, which is all that this owner answers")

    def counted(self) -> None:
        """Count a new answer; raise GuardTripped when there have been too many."""
        if self.answers >= self.guard.budget:
            raise GuardTripped(f"{self.answers} new answers have been given, which is all that this owner gives")
        self.answers += 1

    def _with_mine(self, others: frozenset[str]) -> frozenset[str]:
        if self.identity is None:
            raise DataError(f"{self.name}: peers needs an identity, by which the others know this owner")
        if not others - {self.identity.fingerprint}:
            raise DataError(f"{self.name}: peers has no fingerprint of another owner")
        return others | {self.identity.fingerprint}

    def labels(self) -> list[Any]:
        """Return the labels, if they are classes; they are sorted once, however many ask."""
        with self._sorting:
            if self._labels is None:
                self._labels = names_told(self.data.y)
            return self._labels

    @contextmanager
    def session(self, peer: str) -> Iterator[Session]:
        """Talk to one coordinator. Several may say hello; one at a time has runs (`taken`)."""
        private = None if self.privacy is None else PrivateSession(self, peer, self.privacy, self.ledger)
        session = Session(self, peer) if private is None else private
        try:
            yield session
        finally:
            session.end()

    def taken(self) -> None:
        """Belong to one session, until `free`; a second one at the same time is refused."""
        if not self._busy.acquire(timeout=_GONE):
            raise Refused("another coordinator is at work with this owner")

    def free(self) -> None:
        """Let another session begin a run."""
        self._busy.release()


def _dataset(data: Any) -> Dataset:
    if isinstance(data, Dataset):
        return data
    if isinstance(data, (str, os.PathLike)):
        return read(data)
    X, y, groups, weight = [*data, None, None, None][:4]
    names, X = names_of(X), X if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)
    y = [tuple(own) for own in y] if _is_sets(y) else y if y is None else np.asarray(y)
    groups, weight = (None if column is None else np.asarray(column) for column in (groups, weight))
    return Dataset(X, y, groups, weight, feature_names=names)


def _is_sets(y: Any) -> bool:
    """Whether y has a set of labels for each row."""
    return isinstance(y, list) and all(isinstance(own, (tuple, list, set, frozenset)) for own in y)
