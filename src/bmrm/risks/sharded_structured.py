"""Structured risks of examples on workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bmrm._traits import Trait
from bmrm.parallel.base import Engine, Placed
from bmrm.risks.base import Array
from bmrm.risks.inputs import normalized, row_vector
from bmrm.risks.remote import Parts, RemotePoint, RemoteRisk, weighted_sum
from bmrm.risks.shards import Shards
from bmrm.risks.structured import StructuredRisk
from bmrm.structured.base import ScoredModel
from bmrm.structured.sequences import Sequences

_SHARDS = 2  # for each worker: one that is lost leaves less to be made anew


def structured_risk(
    X: Any, y: Any, loss: Any, weight: Any = None, n_threads: int | None = None, engine: Engine | None = None
) -> StructuredRisk | ShardedStructuredRisk:
    """Return the risk of the examples: here, or in parts of about equal work on the workers of an engine."""
    if engine is None:
        return StructuredRisk(X, y, loss, weight, n_threads)
    parts = _cut(_work(X, y), _SHARDS * engine.n_workers)
    placed = Shards.empty(len(parts), engine, n_threads).placed
    own = None if weight is None else [weight[part] for part in parts]
    inputs, outputs = zip(*[_examples(X, y, part) for part in parts])
    return ShardedStructuredRisk(placed, inputs, outputs, loss, own)


def _work(X: Any, y: Any) -> Array:
    """Return what each example costs: the number of its tokens, or the length of its output."""
    if isinstance(X, Sequences):
        return np.diff(X.offsets).astype(np.float64)
    return np.array([float(len(output)) if hasattr(output, "__len__") else 1.0 for output in y])


def _cut(work: Array, n: int) -> list[slice]:
    """Cut a list into at most n parts, one after the other, of about equal work."""
    ends = np.cumsum(np.maximum(work, 1.0))
    cuts = np.unique(np.searchsorted(ends, ends[-1] * np.arange(1, n) / n) + 1)
    return [slice(int(a), int(b)) for a, b in zip([0, *cuts], [*cuts, work.size]) if b > a]


def _examples(X: Any, y: Any, part: slice) -> tuple[Any, Any]:
    """Return some of the examples, in the form of all of them."""
    if not isinstance(X, Sequences):
        return list(X)[part], list(y)[part]
    offsets = X.offsets[part.start : part.stop + 1]
    rows = slice(offsets[0], offsets[-1])
    pairs = None if X.pairs is None else X.pairs[rows]
    return Sequences(X.tokens[rows], offsets - offsets[0], pairs), y[rows]


class ShardedStructuredRisk(RemoteRisk):
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
    >>> risk = bmrm.ShardedStructuredRisk(bmrm.Shards.empty(2).placed, X, y, bmrm.losses.StructuredLog(model))
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.1)).converged
    True
    """

    def __init__(
        self,
        placed: Placed,
        X: Sequence[Any],
        y: Sequence[Any],
        loss: Any,
        weight: Sequence[Any] | None = None,
        remember: int | None = None,
    ) -> None:
        if not len(X) == len(y) == placed.n_shards:
            raise ValueError(
                f"there are {placed.n_shards} shards, but {len(X)} lists of inputs and {len(y)} of outputs"
            )
        self.loss, self.model, self.traits, self.dim = loss, loss.model, loss.traits, loss.model.dim
        self.floor = loss.floor
        if isinstance(self.model, ScoredModel):
            self.traits |= {Trait.CACHED_LINE}
            self.cheap_lines = True
        weights = [None] * placed.n_shards if weight is None else [np.asarray(own, np.float64) for own in weight]
        for inputs, own in zip(X, weights):
            if own is not None and len(inputs):
                row_vector(own, len(inputs), "weight", "example")
        if weight is not None:
            normalized(np.concatenate([own for own in weights if own is not None]), sum(map(len, X)), "example")
        self.n_examples = sum(map(len, X))
        each = [(inputs, outputs, own, remember) for inputs, outputs, own in zip(X, y, weights)]
        self.parts = Parts(placed, "add_structured", (loss,), each)

    def at(self, w: Array, remembered: Any = None) -> RemotePoint:
        """Return w; the shards are asked when something about it is."""
        point = super().at(w, remembered)
        point.fine = False  # a trial is a pass over the examples
        return point

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
