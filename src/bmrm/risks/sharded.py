"""Risks of rows on workers: sums over shards, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm._traits import Trait
from bmrm.data.sharded import ShardedMatrix
from bmrm.losses import Loss
from bmrm.losses.vector import ClassLoss
from bmrm.parallel.base import Placed
from bmrm.risks.base import Array, Risk
from bmrm.risks.inputs import made_loss, normalized, row_vector
from bmrm.risks.linear import LinearRisk
from bmrm.risks.remote import Parts, RemotePoint, weighted_sum
from bmrm.structured.base import ScoredModel


def linear_risk(X: Any, y: Any, loss: Loss | str, *args: Any, **options: Any) -> LinearRisk:
    """Return a `ShardedRisk` where the rows are on workers and the loss is a sum over them, else a `LinearRisk`."""
    on_workers = isinstance(getattr(X, "matrix", None), ShardedMatrix)
    kind = ShardedRisk if on_workers and made_loss(loss).couples != "all" else LinearRisk
    return kind(X, y, loss, *args, **options)


class ShardedRisk(LinearRisk):
    """The risk of a linear model whose rows are on workers: w goes out, values and subgradients come back.

    Points and lines keep their scores on the workers: of a line search, only values and slopes at trial steps travel.
    For losses of rows and of queries; those of all rows together are a `LinearRisk` of the same shards, which collects
    the scores. Parameters are those of `LinearRisk`; queries must not be spread over shards.

    Parameters
    ----------
    X : Shards, or Design of them
    y, loss, sample_weight, groups, intercept, offset, n_threads
        As for `LinearRisk`, for all rows in the order of the shards.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> shards = bmrm.Shards.from_arrays([(np.array([[1.0]]), [1]), (np.array([[-1.0]]), [-1])])
    >>> risk = bmrm.ShardedRisk(shards, shards.y, bmrm.losses.Hinge())
    >>> risk.evaluate(np.array([0.5]))
    (0.5, array([-1.]))
    """

    def __init__(
        self,
        X: Any,
        y: npt.ArrayLike | None,
        loss: Loss | str,
        sample_weight: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        intercept: bool = False,
        offset: npt.ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(X, y, loss, sample_weight, groups, intercept, offset, n_threads)
        matrix: Any = self.design.matrix
        if not isinstance(matrix, ShardedMatrix):
            raise TypeError("a ShardedRisk needs Shards as X; for rows in memory or in a store take a LinearRisk")
        if self.loss.couples == "all":
            raise ValueError(f"loss '{self.loss.name}' looks at all rows together: take a LinearRisk of the shards")
        if self.loss.couples == "group":
            _check_groups(groups, matrix.parts)
        loss = self.loss
        if isinstance(loss, ClassLoss) and loss.n_classes is None and hasattr(loss, "__dataclass_fields__"):
            loss = replace(loss, n_classes=self.n_outputs)  # type: ignore[type-var]
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        targets = y if self.loss.needs_targets else None
        columns = (targets, weight, groups, self.offset)
        each = [tuple(None if column is None else column[part] for column in columns) for part in matrix.parts]  # type: ignore[index]
        self.parts = Parts(matrix.placed, "add_linear", (loss, self.design.intercept, matrix.n_cols), each)

    def evaluate(self, w: Array) -> tuple[float, Array]:
        """Return the value and one subgradient: one round trip."""
        point = self.touch(w)
        return point.value, point.subgradient

    def touch(self, w: Array) -> RemotePoint:  # type: ignore[override]
        """Return w with value and subgradient: one round trip."""
        point = self.at(w)
        point.find("value", "subgradient", "offset")
        return point

    def at(self, w: Array, remembered: Any = None) -> RemotePoint:  # type: ignore[override]
        """Return w; the shards are asked when something about it is."""
        point = RemotePoint(self, self.parts, self._checked(w))
        return point if remembered is None else point.recall(remembered)


def _check_groups(groups: Any, parts: Sequence[slice]) -> None:
    """Raise if a query has rows in two shards."""
    seen: dict[Any, int] = {}
    for shard, part in enumerate(parts):
        for group in set(np.asarray(groups[part], dtype=object).tolist()):
            if seen.setdefault(group, shard) != shard:
                raise ValueError(
                    f"query {group} has rows in shard {seen[group]} and in shard {shard}; the rows of a query must "
                    f"be in one shard"
                )


class ShardedStructuredRisk(Risk):
    """The mean loss of a structured model over examples on workers.

    Parameters
    ----------
    placed : Placed
        `Shard` objects, with or without rows of their own.
    X, y : sequences
        Inputs and outputs, in lists of about equal work for each shard, as the model takes them.
    loss : StructuredHinge or StructuredLog
        With the model.
    weight : sequence of arrays, optional
        Weights of the examples, in the same lists.
    remember : int, optional
        As for `StructuredRisk`.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> model = bmrm.ChainModel(n_labels=2, n_attributes=1)
    >>> X, y = [[np.array([[1.0], [-1.0]])], [np.array([[-2.0]])]], [[[0, 1]], [[1]]]
    >>> shards = bmrm.Shards.empty(2)
    >>> risk = bmrm.ShardedStructuredRisk(shards.placed, X, y, bmrm.losses.StructuredLog(model))
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.1)).converged
    True
    """

    def __init__(
        self, placed: Placed, X: Any, y: Any, loss: Any, weight: Any = None, remember: int | None = None
    ) -> None:
        if not len(X) == len(y) == placed.n_shards:
            raise ValueError(
                f"there are {placed.n_shards} shards, but {len(X)} lists of inputs and {len(y)} of outputs"
            )
        self.loss, self.model, self.traits, self.dim = loss, loss.model, loss.traits, loss.model.dim
        if isinstance(self.model, ScoredModel):
            self.traits |= {Trait.CACHED_LINE}
            self.cheap_lines = True
        weights = [None] * placed.n_shards if weight is None else [np.asarray(own, np.float64) for own in weight]
        for inputs, own in zip(X, weights):
            if own is not None and len(inputs):
                row_vector(own, len(inputs), "weight", "example")
        if weight is not None:
            normalized(np.concatenate([own for own in weights if own is not None]), sum(map(len, X)), "example")
        each = [(inputs, outputs, own, remember) for inputs, outputs, own in zip(X, y, weights)]
        self.parts = Parts(placed, "add_structured", (loss,), each)

    @property
    def busy(self) -> tuple[float, ...]:
        """How many seconds each shard has computed so far."""
        return tuple(self.parts.placed.seconds)

    def evaluate(self, w: Array) -> tuple[float, Array]:
        """Return the value and one subgradient: one round trip."""
        point = self.touch(w)
        return point.value, point.subgradient

    def touch(self, w: Array) -> RemotePoint:
        """Return w with value and subgradient: one round trip."""
        point = self.at(w)
        point.find("value", "subgradient", "offset")
        return point

    def at(self, w: Array, remembered: Any = None) -> RemotePoint:
        """Return w; the shards are asked when something about it is."""
        w = np.ascontiguousarray(w, dtype=np.float64)
        if w.shape != (self.dim,):
            raise ValueError(f"w has shape {w.shape}, expected ({self.dim},)")
        point = RemotePoint(self, self.parts, w)
        point.fine = self.cheap_lines
        return point if remembered is None else point.recall(remembered)

    def known_plane(self, w: Array) -> tuple[Array, float] | None:
        """Return the sum of the shards' planes, where all of them have one."""
        found = self.parts.ask("known_plane", lambda whole: (w,))
        if len(found) < sum(c > 0.0 for c in self.parts.c):
            return None
        return weighted_sum([(c, a) for c, (a, _) in found], self.dim), float(sum(c * b for c, (_, b) in found))

    @property
    def memory(self) -> Any:
        """What the shards remember."""
        found = self.parts.placed.call("memory", self.parts.number)
        return None if all(own is None for own in found) else tuple(found)

    def forget(self, memory: Any = None) -> None:
        """Forget all evaluations but for those given."""
        super().forget()
        each = [(None,)] * self.parts.placed.n_shards if memory is None else [(own,) for own in memory]
        self.parts.ask("forget", lambda whole: (), each)
