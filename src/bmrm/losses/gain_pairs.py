"""The hinge over the pairs of a query, weighted by what swapping the two documents costs in NDCG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm.losses.base import Array, Loss, Targets, finite_targets
from bmrm.losses.gains import check_gradable, check_ranks, discounts, gains
from bmrm.losses.growth import with_wider_margin
from bmrm.losses.ranking import QueryLoss
from bmrm.losses.sets import Index, all_equal, by_grade, kept_rows, query_codes, query_shares


class WorthyGrades(NamedTuple):
    """Rows as in `Grades`; `gain` and `discount` are those of each block, and rise from block to block of a query."""

    rows: Index
    starts: Index
    turns: Index
    blocks: Index
    queries: Index
    gain: Array
    discount: Array


@dataclass(frozen=True)
class NdcgPairs(QueryLoss, name="ndcg_pairs"):
    """sum_ij D_ij max(0, 1 - (f_i - f_j)), y_i > y_j: pairs by what swapping them costs in NDCG@k, mean over queries.

    D_ij = (g_i - g_j) (d_i - d_j) / ideal is what NDCG@k loses when documents i and j of the ideal order are swapped:
    g = 2^grade - 1 is the gain, d the discount 1 / log2(1 + rank) up to rank k and 0 beyond it, ideal = sum_i g_i d_i.
    d is averaged over the ranks that documents of one grade share in the ideal order, so the order of the rows does not
    matter.

    The loss is at least 1 - NDCG@k of the order by the scores, for a pair in the wrong order costs at least D_ij.
    Proof: g and d are sums of steps with positive factors, 1 for the a best documents and for the first b ranks. DCG
    and D are linear in both. If t is lost with such steps, at least t of the min(a, b) best documents stand after rank
    b, and at least t of those beyond the max(a, b) best do not: t^2 pairs in the wrong order, each with D = 1.

    Time O(n log n + n b) for a query of n documents, b <= k the number of grades among the k best. Queries run on all
    threads, the largest first.

    Grades are numbers from 0 to 1000. A k larger than a query means the whole query. Queries that have no pair (one
    document, or all grades equal) are left out with a warning. The rows of a query must have the same sample weight,
    which is the weight of the query.

    Parameters
    ----------
    k : int
        The number of ranks that count, at least 1.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.NdcgPairs(k=2)
    >>> targets = loss.encode([2, 1, 0], groups=[7, 7, 7])
    >>> value, slopes = loss.evaluate(np.array([0.0, 0.5, 0.0]), targets, np.ones(3))
    >>> round(value, 3), slopes.round(3)
    (1.218, array([-1.03,  0.03,  1.  ]))

    References
    ----------
    Burges, Ragno and Le, Learning to rank with nonsmooth cost functions, 2006, where the ranks are those of the scores:
    with those of the ideal order the loss is convex.
    """

    k: int = 10
    floor = 0.0

    def __post_init__(self) -> None:
        check_ranks(self.k, self.name)

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Return the rows by query and increasing gain, with the gain and the discount of each block."""
        grades = finite_targets(y)
        check_gradable(grades, self.name)
        codes, gain = query_codes(groups, grades.size, self.name), gains(grades)
        kept = kept_rows(codes, all_equal(gain, codes), self.name, "no pair of different grades")
        rows, starts, turns, blocks, queries = by_grade(gain, codes, kept)
        sizes, first = np.diff(starts), blocks[:-1]
        discount = discounts(int(sizes.max()), self.k)[np.repeat(starts[1:] - 1, sizes) - np.arange(rows.size)]
        ideal = np.repeat(np.add.reduceat(gain[rows] * discount, starts[:-1]), np.diff(queries))
        shared = np.add.reduceat(discount, first) / np.diff(blocks)
        return WorthyGrades(rows, starts, turns, blocks, queries, gain[rows[first]] / ideal, shared)

    def evaluate(self, scores: Array, targets: WorthyGrades, weight: Array, n_threads: int = 1) -> tuple[float, Array]:
        """Return the mean over queries and its slopes; the scale of the weights does not matter."""
        slopes = np.empty(scores.size)
        share = query_shares(targets.rows, targets.starts, weight, self.name)
        return _core.gain_pairs(scores, *targets, share, slopes, n_threads), slopes

    def largest_slopes(self, targets: WorthyGrades, weight: Array) -> float:
        """Return a bound: a row differs from lower ones at most as from the lowest, from higher ones likewise."""
        share = query_shares(targets.rows, targets.starts, weight, self.name)
        _, starts, _, blocks, queries, g, d = targets
        n_blocks = np.diff(queries)
        lowest, highest = np.repeat(queries[:-1], n_blocks), np.repeat(queries[1:] - 1, n_blocks)
        lower = (blocks[:-1] - np.repeat(starts[:-1], n_blocks)) * (g - g[lowest]) * (d - d[lowest])
        higher = (np.repeat(starts[1:], n_blocks) - blocks[1:]) * (g[highest] - g) * (d[highest] - d)
        most = np.repeat(share, n_blocks) * np.maximum(lower, higher)
        return float(np.linalg.norm(most * np.sqrt(np.diff(blocks))))

    def _worse(self, scores: Array, targets: WorthyGrades, weight: Array, e: float) -> float:
        return with_wider_margin(lambda f: self.evaluate(f, targets, weight)[0], scores, e)

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return one that looks at the whole query, and one at its beginning."""
        return [cls(), cls(k=2)]
