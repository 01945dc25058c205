"""The outputs that a structured model found worst, example by example, and the planes that remembered ones make."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from bmrm import _sparse as sparse
from bmrm._deadline import look
from bmrm._states import kept
from bmrm.risks.base import Array
from bmrm.structured.base import Examples, Indices, Scaling, StructuredModel, as_pair

T = TypeVar("T")

LIE = 1e-9  # of the numbers that make a loss: what rounding may leave of one that should be at least 0


class OracleError(ValueError):
    """A model's answer that cannot be right: an output that is worse than the true one, or a loss below 0."""


@kept
class Rows:
    """One output for each example: l_i(w) >= costs_i + <rows_i, w> for all w, equal where it was found.

    Parameters
    ----------
    costs : array of shape (m,)
    rows : sparse matrix of shape (m, dim)
    """

    def __init__(self, costs: Array, rows: sparse.csr_array) -> None:
        self.costs, self.rows = costs, rows

    def __getstate__(self) -> tuple[Any, ...]:
        return self.costs, self.rows.data, self.rows.indices, self.rows.indptr, self.rows.shape[1]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        costs, *parts, dim = state
        self.costs, self.rows = costs, sparse.csr_array(tuple(parts), shape=(costs.size, dim))

    def at(self, w: Array) -> Array:
        """Return what each output makes of its example's loss."""
        values: Array = self.costs + self.rows @ w
        return values


class WorstOutputs:
    """Asks a model for the worst output of every example, in parallel, and remembers the last answers.

    Parameters
    ----------
    model : StructuredModel
    examples : Examples
    scaling : {"margin", "slack"}
    n_threads : int
    remembered : int
        Outputs of each example that are kept.
    """

    def __init__(
        self, model: StructuredModel, examples: Examples, scaling: Scaling, n_threads: int, remembered: int
    ) -> None:
        assert examples.Y is not None
        self.model, self.examples, self.scaling = model, examples, scaling
        self.n_threads, self.blocks = n_threads, deque[Rows](maxlen=remembered)
        self.truths = [as_pair(model.joint_feature(x, y), model.dim) for x, y in zip(examples.X, examples.Y)]

    def find(self, w: Array) -> Rows:
        """Ask the model about every example."""
        assert self.examples.Y is not None
        ask = self.model.slack_argmax if self.scaling == "slack" else self.model.augmented_argmax
        X, Y = self.examples.X, self.examples.Y

        def one(i: int) -> tuple[float, Indices, Array]:
            return self._row(i, Y[i], ask(X[i], Y[i], w.copy()), w)

        found = in_parallel(one, len(X), self.n_threads)
        sizes = np.array([len(indices) for _, indices, _ in found])
        rows = sparse.csr_array(
            (
                np.concatenate([values for *_, values in found]),
                np.concatenate([indices for _, indices, _ in found]),
                np.concatenate([[0], np.cumsum(sizes)]),
            ),
            shape=(len(X), self.model.dim),
        )
        rows.sum_duplicates()
        answer = Rows(np.array([cost for cost, *_ in found]), rows)
        if self.blocks.maxlen:
            self.blocks.append(answer)
        return answer

    def _row(self, i: int, y: Any, other: Any, w: Array) -> tuple[float, Indices, Array]:
        """Return the cost of an output and its joint feature less the true one; they must not make a loss below 0."""
        model, truth = self.model, self.truths[i]
        cost = float(model.delta(y, other))
        indices, values = as_pair(model.joint_feature(self.examples.X[i], other), model.dim)
        gained, own = float(values @ w[indices]), float(truth[1] @ w[truth[0]])
        loss = cost + gained - own if self.scaling == "margin" else cost * (1.0 + gained - own)
        sizes = float(np.abs(values) @ np.abs(w[indices]) + np.abs(truth[1]) @ np.abs(w[truth[0]]))
        if not loss >= -LIE * (abs(cost) + sizes):
            raise OracleError(
                f"example {i}: the output of {type(model).__name__}.{self._asked} has loss {loss:.6g}, but the true "
                f"output alone has 0: {self._asked} must return the output with the largest loss"
            )
        share = cost if self.scaling == "slack" else 1.0
        return cost, np.concatenate([indices, truth[0]]), share * np.concatenate([values, -truth[1]])

    @property
    def _asked(self) -> str:
        return "slack_argmax" if self.scaling == "slack" else "augmented_argmax"

    def plane(self, w: Array, p: Array) -> tuple[Array, float] | None:
        """Return the plane of the remembered outputs that are worst at w; None where nothing is remembered.

        The loss of an example is at least that of any of its outputs, so the plane lies below R everywhere.
        """
        if not self.blocks:
            return None
        values = np.array([block.at(w) for block in self.blocks])
        which = values.argmax(axis=0)
        a, b = np.zeros(self.model.dim), 0.0
        for k, block in enumerate(self.blocks):
            chosen = np.where((which == k) & (values[which, np.arange(len(p))] > 0.0), p, 0.0)
            if chosen.any():
                a += block.rows.T @ chosen
                b += float(block.costs @ chosen)
        return a, b


def in_parallel(one: Callable[[int], T], n: int, n_threads: int) -> list[T]:
    """Return the results for 0 to n - 1, by several threads; they run side by side where the work leaves Python."""
    results: list[T] = []
    if n_threads <= 1 or n <= 1:
        for i in range(n):
            look()
            results.append(one(i))
        return results
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for part in pool.map(lambda part: [one(i) for i in part], _parts(n, n_threads)):
                look()
                results += part
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # what has not begun need not begin
            raise
    return results


def _parts(n: int, n_threads: int) -> list[range]:
    """Return ranges of examples, several for each thread, because some take longer."""
    size = max(1, n // (8 * n_threads))
    return [range(first, min(first + size, n)) for first in range(0, n, size)]
