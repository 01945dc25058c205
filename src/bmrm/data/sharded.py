"""A matrix whose rows are on workers: products by shards, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm.data.memory import room_for_planes
from bmrm.parallel.base import Placed

Array: TypeAlias = npt.NDArray[np.float64]


class ShardedMatrix:
    """The products of a compiled matrix, for rows on workers. Scores and slopes of all rows travel.

    That is what losses of all rows together need; risks that are sums over rows do not go through here (see
    `bmrm.risks.sharded`).

    Parameters
    ----------
    placed : Placed
        Objects with the methods `dot`, `tdot`, `row_norms`, `square_sum` and `column_sizes`.
    rows : sequence of int
        The number of rows of each shard.
    n_cols, n_entries : int
    memory : int, optional
        The most bytes that may be resident here, where the planes are.
    source : str
        For messages.

    Attributes
    ----------
    has_risks : bool
        Whether the workers make risks of their rows, so that sums need not go through here.
    """

    has_risks = True

    def __init__(
        self, placed: Placed, rows: Sequence[int], n_cols: int, n_entries: int, memory: int | None = None,
        source: str = "",
    ) -> None:  # fmt: skip
        self.placed, self.n_cols, self.n_entries = placed, n_cols, n_entries
        self._memory, self._source = memory, source
        ends = np.cumsum([0, *rows])
        self.parts = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.n_rows = int(ends[-1])

    @property
    def busy(self) -> tuple[float, ...]:
        """How many seconds each shard has computed so far."""
        return tuple(self.placed.seconds)

    def dot(self, w: Array, out: Array, n_threads: int = 1) -> None:
        """out = X w"""
        for part, scores in zip(self.parts, self.placed.call("dot", w)):
            out[part] = scores

    dot_wide = dot

    def sum_depth(self, k: int = 1) -> int:
        """Return the most additions on the way of one row's term into an entry of X' g."""
        return max(part.stop - part.start for part in self.parts) + 2 * len(self.parts)

    def tdot(self, g: Array, out: Array, n_threads: int = 1) -> None:
        """out = X' g"""
        out.fill(0.0)
        for share in self.placed.call("tdot", self.n_cols, each=[(g[part],) for part in self.parts]):
            out += share

    tdot_wide = tdot

    def evaluate(
        self, loss: _core.ScalarLoss, w: Array, constant: float, offset: Array | None, y: Array, weight: Array | None,
        scale: float, scores: Array, slopes: Array, gradient: Array, n_threads: int = 1,
    ) -> tuple[float, float]:  # fmt: skip
        """Scores, weighted slopes and X' slopes; returns the weighted value and the sum of the slopes."""
        self.dot(w, scores)
        scores += constant if offset is None else constant + offset
        value, total = loss.evaluate(scores, y, weight, scale, slopes, n_threads)
        self.tdot(slopes, gradient)
        return value, total

    def row_norms(self, out: Array, n_threads: int = 1) -> None:
        """out[i] = |x_i|^2"""
        for part, norms in zip(self.parts, self.placed.call("row_norms")):
            out[part] = norms

    def square_sum(self, n_threads: int = 1) -> float:
        """Return the sum of the squares of all entries."""
        return float(sum(self.placed.call("square_sum")))

    def column_sizes(self) -> tuple[Array, npt.NDArray[np.int64]]:
        """Return the sum of squares of each column and the number of its entries that are not 0."""
        answers: list[Any] = self.placed.call("column_sizes", self.n_cols)
        return sum(squares for squares, _ in answers), sum(counts for _, counts in answers)

    def identity(self) -> list[str]:
        """Return what tells the rows of each shard from others."""
        found: list[str] = self.placed.call("identity", self.n_cols)
        return found

    def room_for_planes(self, n_scores: int, dim: int) -> int | None:
        """Return how many bytes the limit leaves for planes in this process; None without a limit."""
        return None if self._memory is None else room_for_planes(self._memory, 0, n_scores, dim, self._source)
