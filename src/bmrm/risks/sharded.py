"""Risks of rows on workers: sums over shards, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm.data.sharded import ShardedMatrix
from bmrm.losses import Loss
from bmrm.losses.vector import ClassLoss
from bmrm.risks.inputs import made_loss
from bmrm.risks.linear import LinearRisk
from bmrm.risks.remote import Parts, RemoteRisk, watch


def linear_risk(X: Any, y: Any, loss: Loss | str, *args: Any, **options: Any) -> LinearRisk:
    """Return a `ShardedRisk` where the rows are on workers and the loss is a sum over them, else a `LinearRisk`."""
    matrix = getattr(X, "matrix", None)
    if isinstance(matrix, ShardedMatrix) and matrix.has_risks and made_loss(loss).couples != "all":
        return ShardedRisk(X, y, loss, *args, **options)
    options.pop("checked", None)
    return LinearRisk(X, y, loss, *args, **options)


class ShardedRisk(RemoteRisk, LinearRisk):  # type: ignore[misc]
    """The risk of a linear model whose rows are on workers: w goes out, values and subgradients come back.

    Points and lines keep their scores on the workers: of a line search, only values and slopes at trial steps travel.
    For losses of rows and of queries; those of all rows together are a `LinearRisk` of the same shards, which collects
    the scores. Parameters are those of `LinearRisk`; queries must not be spread over shards.

    Parameters
    ----------
    X : Shards, or Design of them
    y, loss, sample_weight, groups, intercept, offset, n_threads
        As for `LinearRisk`, for all rows in the order of the shards.
    checked : bool
        Whether the answers of each shard are compared with each other (`ConvexityCheck`, `Audit`): a worker that
        returns wrong numbers is named by a `LiarError`, unless its lies fit together.

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
        *,
        checked: bool = False,
    ) -> None:
        super().__init__(X, y, loss, sample_weight, groups, intercept, offset, n_threads)
        self.touched = (*self.touched, "steepness")
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
        if checked:
            names = [f"shard {s} (worker {worker})" for s, worker in enumerate(matrix.placed.workers())]
            watch(self, self.parts, names)


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
