"""Owners: several owners that a coordinator is connected to, and what they have in common."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Any

import numpy.typing as npt

from bmrm._cached import cached_property
from bmrm.owners.client import OwnersPlaced, connected
from bmrm.owners.columns import agreed
from bmrm.owners.guard import OwnerError
from bmrm.owners.owner import Owner
from bmrm.owners.terms import labels_union
from bmrm.owners.tls import TLS


class Owners:
    """Connections to owners, who agree on a version and a number of features.

    Parameters
    ----------
    owners : sequence of str or Owner
        Addresses host:port, or owners in this process.
    tls : TLS, optional
        What owners' certificates must be signed by, and the coordinator's own certificate.
    insecure : bool
        Accept other machines without TLS.
    timeout : float
        Seconds to wait for an answer.

    Attributes
    ----------
    names : list of str
    feature_names : tuple of str, or None
        The names of the columns, which owners must agree about.
    n_features, n_rows : int
    widest : str
        The owner with the most features.
    rows : list of int
        The number of rows of each owner.
    n_targets : list of int
        How many numbers each owner's rows have as labels; 0 where that differs from row to row, or there are none.
    tell_scores : list of bool
        Which owners tell scores and labels of single rows.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X = np.linspace(-1.0, 1.0, 200).reshape(100, 2)
    >>> with bmrm.owners.Owners([bmrm.Owner((X, np.where(X[:, 0] > 0, "a", "b")))]) as owners:
    ...     owners.n_rows, owners.classes.tolist()
    (100, ['a', 'b'])
    """

    def __init__(
        self,
        owners: Sequence[str | Owner],
        tls: TLS | None = None,
        insecure: bool = False,
        timeout: float = 600.0,
    ) -> None:
        if isinstance(owners, (str, Owner)) or not owners:
            raise ValueError(f"owners must be a list of addresses host:port or Owner objects, got {owners!r}")
        repeated = [owner for k, owner in enumerate(owners) if owner in owners[:k]]
        if repeated:
            raise ValueError(f"owner {getattr(repeated[0], 'name', repeated[0])} is given twice")
        self.placed = OwnersPlaced(connected(owners, tls, insecure, timeout))
        self.names = self.placed.workers()
        try:
            self._agree()
        except BaseException:
            self.close()
            raise

    def _agree(self) -> None:
        from bmrm import __version__

        found = self.placed.call("hello")
        for name, answer in zip(self.names, found):
            if answer.get("version") != __version__:
                raise OwnerError(f"{name}: has version {answer.get('version')} of bmrm, but this process {__version__}")
        self.feature_names = agreed(found, self.names)
        features = [int(answer["features"]) for answer in found]
        self.n_features, self.rows = max(features), [int(answer["rows"]) for answer in found]
        self.widest = self.names[features.index(self.n_features)]
        self.n_targets = [int(answer["targets"]) for answer in found]
        self.tell_scores = [bool(answer["scores"]) for answer in found]
        if min(features) < max(features):
            warnings.warn(
                f"the owners have {min(features)} ({self.names[features.index(min(features))]}) to {max(features)} "
                f"features; taken as {max(features)}",
                UserWarning,
                stacklevel=3,
            )

    @cached_property
    def classes(self) -> npt.NDArray[Any]:
        """The labels of all owners, sorted; owners tell them where they are classes, or labels of sets."""
        return labels_union([answer["labels"] for answer in self.placed.call("classes")], self.names)

    @property
    def n_rows(self) -> int:
        """The rows of all owners."""
        return sum(self.rows)

    def leave(self, names: Collection[str]) -> None:
        """Go on without some owners; the number of features stays as it is."""
        stay = [place for place, name in enumerate(self.names) if name not in names]
        self.rows, self.n_targets = [self.rows[place] for place in stay], [self.n_targets[place] for place in stay]
        self.tell_scores = [self.tell_scores[place] for place in stay]
        self.placed.leave(names)
        self.names = self.placed.workers()

    def close(self) -> None:
        """End all connections."""
        self.placed.release()

    def __enter__(self) -> Owners:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
