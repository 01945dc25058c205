"""Owner: rows that stay where they are, and the conditions under which sums over them are told."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bmrm._errors import DataError
from bmrm.data.columns import names_of
from bmrm.data.dataset import Dataset
from bmrm.data.files import read
from bmrm.owners.guard import GuardSettings, GuardTripped, Refused
from bmrm.owners.ledger import Ledger
from bmrm.owners.log import DepartureLog
from bmrm.owners.privacy import Privacy
from bmrm.owners.private_session import PrivateSession
from bmrm.owners.session import Session


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
    guard : GuardSettings, optional
        When to stop answering.
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
        How many evaluations have been answered.

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
        guard: GuardSettings | None = None,
        log: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
        privacy: Privacy | None = None,
    ) -> None:
        self.name = name or (os.fspath(data) if isinstance(data, (str, os.PathLike)) else "owner")
        self.data = _dataset(data)
        self.guard = GuardSettings() if guard is None else guard
        self.masked_only, self.n_threads, self.log = masked_only, n_threads, DepartureLog(log)
        self.stopped: str | None = None
        self.answers = 0
        self._busy = threading.Lock()
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
        if self.masked_only is not None:
            raise DataError("an owner answers with noise (privacy) or under masks only (masked_only), not both")
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

    def counted(self) -> None:
        """Count an answer; raise GuardTripped when there have been too many."""
        if self.answers >= self.guard.budget:
            raise GuardTripped(f"{self.answers} answers have been given, which is all that this owner gives")
        self.answers += 1

    @contextmanager
    def session(self, peer: str) -> Iterator[Session]:
        """Serve one coordinator; a second one at the same time is refused."""
        if not self._busy.acquire(blocking=False):
            raise Refused("another coordinator is at work with this owner")
        try:
            yield Session(self, peer) if self.privacy is None else PrivateSession(self, peer, self.privacy, self.ledger)
        finally:
            self._busy.release()


def _dataset(data: Any) -> Dataset:
    if isinstance(data, Dataset):
        return data
    if isinstance(data, (str, os.PathLike)):
        return read(data)
    X, y, groups, weight = [*data, None, None, None][:4]
    names, X = names_of(X), X if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)
    y = y if y is None or isinstance(y, list) else np.asarray(y)
    groups, weight = (None if column is None else np.asarray(column) for column in (groups, weight))
    return Dataset(X, y, groups, weight, feature_names=names)
