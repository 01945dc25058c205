"""Rows of owners that allow scores: losses of all rows together, with scores that come and slopes that go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm._cached import cached_property
from bmrm.data.elsewhere import Elsewhere
from bmrm.data.sharded import ShardedMatrix
from bmrm.losses import Loss
from bmrm.owners.agree import agreed_labels
from bmrm.owners.client import OwnerLost
from bmrm.owners.connected import Owners
from bmrm.owners.guard import OwnerError
from bmrm.owners.risk import OwnersRisk, checked_regularizer
from bmrm.owners.score_messages import sized
from bmrm.owners.terms import why_scores
from bmrm.regularizers import get as get_regularizer
from bmrm.risks.base import Array, Risk
from bmrm.risks.inputs import made_loss
from bmrm.risks.linear import LinearRisk


class OwnersMatrix(ShardedMatrix):
    """The products of a matrix whose rows are with owners, who have told their labels.

    Parameters
    ----------
    owners : Owners
    """

    has_risks = False

    def __init__(self, owners: Owners) -> None:
        self._names = owners.names
        super().__init__(owners.placed, owners.rows, owners.n_features, 0, source=", ".join(owners.names))

    def dot(self, w: Array, out: Array, n_threads: int = 1) -> None:
        """out = X w"""
        for name, part, (_, (scores,)) in zip(self._names, self.parts, self.placed.call("scores", w)):
            out[part] = sized(name, "scores", scores, part.stop - part.start)

    dot_wide = dot

    def tdot(self, g: Array, out: Array, n_threads: int = 1) -> None:
        """out = X' g"""
        out.fill(0.0)
        found = self.placed.call("pull", each=[(g[part],) for part in self.parts])
        for name, (_, (share,)) in zip(self._names, found):
            out += sized(name, "entries of X'g", share, self.n_cols)

    tdot_wide = tdot

    def row_norms(self, out: Array, n_threads: int = 1) -> None:
        """Raise: owners are not asked for them."""
        raise NotImplementedError("owners tell no norms of rows")

    @cached_property
    def _sizes(self) -> list[tuple[Array, npt.NDArray[np.int64], Array]]:
        found = self.placed.call("sizes")
        for name, (_, arrays) in zip(self._names, found):
            for array, n in zip(arrays, (self.n_cols, self.n_cols, 1)):
                sized(name, "sizes of columns", array, n)
        return [arrays for _, arrays in found]

    def square_sum(self, n_threads: int = 1) -> float:
        """Return the sum of the squares of all entries."""
        return float(sum(total[0] for _, _, total in self._sizes))

    def column_sizes(self) -> tuple[Array, npt.NDArray[np.int64]]:
        """Return the sum of squares of each column and the number of its entries that are not 0."""
        squares: Array = np.sum([own for own, _, _ in self._sizes], axis=0)
        counts: npt.NDArray[np.int64] = np.sum([own for _, own, _ in self._sizes], axis=0)
        return squares, counts

    def identity(self) -> list[str]:
        """Return what tells the rows of each owner from others."""
        return [header["checksum"] for header, _ in self.placed.call("checksum", self.n_cols)]


class OwnersRows(Elsewhere):
    """The rows of owners who all allow scores, in the place of X: labels and weights are told once, scores at each w.

    Parameters
    ----------
    owners : Owners
    loss : Loss, optional
        For messages: what needs the scores.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.owners.gathered import OwnersRows
    >>> X, y = np.linspace(-1.0, 1.0, 400).reshape(200, 2), np.arange(200) % 3
    >>> with bmrm.owners.Owners([bmrm.Owner((X, y), allow_scores=True)]) as owners:
    ...     OwnersRows(owners).shape, OwnersRows(owners).y[:4].tolist()
    ((200, 2), [0.0, 1.0, 2.0, 0.0])
    """

    def __init__(self, owners: Owners, loss: Loss | None = None) -> None:
        silent = [name for name, tells in zip(owners.names, owners.tell_scores) if not tells]
        if silent:
            needed = "" if loss is None else f", but loss '{loss.name}' {why_scores(loss)}"
            raise OwnerError(
                f"{silent[0]}: does not allow scores of single rows{needed}; all owners must, with --allow-scores "
                f"(serve-shard; in Python allow_scores=True of Owner)"
            )
        self.owners = owners

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return self.owners.n_rows, self.owners.n_features

    @cached_property
    def matrix(self) -> OwnersMatrix:
        """The rows as the products see them."""
        return OwnersMatrix(self.owners)

    @property
    def source(self) -> str:
        """The names of the owners."""
        return ", ".join(self.owners.names)

    @cached_property
    def _told(self) -> list[tuple[dict[str, Any], tuple[Array, ...]]]:
        found = self.owners.placed.call("gather", self.owners.n_features)
        for name, n, (_, arrays) in zip(self.owners.names, self.owners.rows, found):
            for array in arrays:
                sized(name, "labels or weights", array, n)
        return found

    @cached_property
    def y(self) -> npt.NDArray[Any] | None:
        """The labels of all rows, in the order of the owners."""
        texts = [header["text"] is not None for header, _ in self._told if header["labels"]]
        if len(set(texts)) > 1:
            raise OwnerError(f"the labels of some of {self.source} are text, those of others numbers")
        y: npt.NDArray[Any] | None = self._collected("labels", lambda told, arrays: _labels(told["text"], arrays[0]))
        return y

    @property
    def groups(self) -> None:
        """None: losses of queries are sums, for which no scores are gathered."""
        return None

    @cached_property
    def weight(self) -> Array | None:
        """The weight of each row."""
        weight: Array | None = self._collected("weighted", lambda told, arrays: arrays[-1])
        return weight

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The name of each column, or None."""
        return self.owners.feature_names

    def _collected(self, what: str, of: Callable[[dict[str, Any], tuple[Array, ...]], npt.NDArray[Any]]) -> Any:
        has = [bool(header[what]) for header, _ in self._told]
        if not any(has):
            return None
        if not all(has):
            lacks = self.owners.names[has.index(False)]
            raise OwnerError(f"{lacks}: has no {'labels' if what == 'labels' else 'weights'}, other owners have")
        return np.concatenate([of(header, arrays) for header, arrays in self._told])


def _labels(text: list[str] | None, y: Array) -> npt.NDArray[Any]:
    if text is None:
        return y
    if not (all(isinstance(label, str) for label in text) and np.isin(y, np.arange(len(text))).all()):
        raise OwnerError("an owner's labels are places in a list of text, but outside of it")
    return np.array(text, dtype=str)[y.astype(np.intp)]


def check_unmasked(loss: Loss, masked: bool) -> None:
    """Raise if scores should be told under masks."""
    if masked:
        raise ValueError(f"loss '{loss.name}' needs the scores of single rows, which masks hide: leave masks out")


class OwnersScoresRisk(LinearRisk, OwnersRisk):  # type: ignore[misc]
    """R(w) = L(X w) for a loss of all rows together: the owners tell X w, and X' l for the slopes l of the loss.

    It is what `OwnersRisk` makes of such losses. Every owner must allow scores; with d independent w the rows can be
    solved for. The certificate is that of rows in one place. Parameters are those of `OwnersRisk`; nothing is masked.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X = np.linspace(-1.0, 1.0, 400).reshape(200, 2)
    >>> y = np.where(X[:, 0] > 0, 1, -1)
    >>> owners = [bmrm.Owner((X[k::2], y[k::2]), allow_scores=True) for k in range(2)]
    >>> with bmrm.OwnersRisk(owners, "roc_area", lam=0.01) as risk:
    ...     bmrm.solve(risk.problem, tol=1e-6).converged
    True
    """

    def __init__(
        self,
        owners: Any,
        loss: Loss | str,
        *,
        lam: float,
        regularizer: Any = "l2",
        intercept: bool = False,
        classes: npt.ArrayLike | None = None,
        positive: Any = None,
        tree: Any = None,
        masked: bool = False,
        scale: float = 1.0,
        checked: bool = True,
        **connection: Any,
    ) -> None:
        made = made_loss(loss)
        check_unmasked(made, masked)
        self.lam, self.masked = float(lam), False
        self.regularizer = checked_regularizer(get_regularizer(regularizer), masked)
        self._own = not isinstance(owners, Owners)
        self.owners = owners if isinstance(owners, Owners) else Owners(owners, **connection)
        try:
            rows = OwnersRows(self.owners, made)
            labels = agreed_labels(self.owners, made, classes, positive, tree, isinstance(loss, str))
            self.classes = labels.classes
            y = rows.y
            if labels.positive is not None and y is not None:
                y = np.where(y == labels.names[labels.positive], 1.0, -1.0)  # type: ignore[index]
            super().__init__(rows, y if made.needs_targets else None, made, rows.weight, intercept=intercept)
        except BaseException:
            self.close()
            raise

    def inexact(self, w: Array) -> float:
        """Return 0: scores are told as they are."""
        return 0.0

    def go_on_without(self, lost: OwnerLost) -> None:
        """Raise the loss: the objective looks at all rows together, those of the lost owner as well."""
        raise OwnerError(
            f"{lost}; loss '{self.loss.name}' looks at all rows together: start again without it"
        ) from lost

    def forget(self, memory: Any = None) -> None:
        """Forget the last scores; points remember theirs, so a run goes on bit for bit."""
        Risk.forget(self, memory)
