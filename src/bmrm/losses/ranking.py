"""Losses of the order of documents within queries: pairs, and the worst permutation for NDCG, MRR and rank utility."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm.losses.base import Array, Loss, Targets, finite_targets, in_domain
from bmrm.losses.gains import check_gradable, check_ranks, discounts, gains
from bmrm.losses.growth import largest_pair_slopes, rise, with_wider_margin
from bmrm.losses.sets import (
    Grades,
    Index,
    Ranking,
    all_equal,
    block_means,
    by_decreasing_grade,
    by_grade,
    kept_rows,
    query_codes,
    query_shares,
)


class QueryLoss(Loss):
    """A mean over queries. `groups` are the queries of the rows: any hashable ids, next to each other or not.

    A query with one document, or with all grades equal, has no order to learn: it is left out with a warning; if none
    is left, that is an error. Sample weights belong to queries: the rows of one must have the same weight.
    """

    couples: ClassVar[Literal["group"]] = "group"
    weighted_by: ClassVar[Literal["group"]] = "group"
    threaded: ClassVar[bool] = True
    task: ClassVar[Literal["ranking"]] = "ranking"
    takes_offset: ClassVar[bool] = False

    def shift_slope(self, targets: Grades | Ranking) -> float:
        """Return 0: only differences of scores count."""
        return 0.0

    @abstractmethod
    def largest_slopes(self, targets: Any, weight: Array) -> float:
        """Return a bound of the norm of the slopes."""

    @abstractmethod
    def _worse(self, scores: Array, targets: Any, weight: Array, e: float) -> float:
        """Return at least the largest loss of scores that are wrong by e."""

    def growth(self, scores: Array, targets: Any, weight: Array, e: float) -> float:
        """Return what the loss grows by at most where no score moves by more than e."""
        return rise(self.evaluate(scores, targets, weight)[0], self._worse(scores, targets, weight, e))

    def mass(self, targets: Grades | Ranking, weight: Array | None, m: int) -> float:
        """Return the number of queries, or the sum of their weights."""
        first = targets.rows[targets.starts[:-1]]
        return float(first.size) if weight is None else float(np.sum(weight[first]))

    def check_weight(self, targets: Grades | Ranking, weight: Array) -> None:
        """Raise unless the rows of each query have one weight, above 0 for some query."""
        query_shares(targets.rows, targets.starts, weight, self.name)

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Array, npt.NDArray[np.int64]]:
        """Draw grades 0, 1, 2 of queries of four documents or more, in turns; each query has a 0 and a 2."""
        n_queries = max(1, m // 4)
        y = rng.integers(0, 3, size=m).astype(np.float64)
        y[:n_queries], y[n_queries : 2 * n_queries] = 0.0, 2.0
        return y, np.arange(m) % n_queries


@dataclass(frozen=True)
class PairwiseRank(QueryLoss, name="pairwise_rank"):
    """sum_ij max(0, 1 - (f_i - f_j)) / (the query's number of pairs), y_i > y_j: the ranking SVM, mean over queries.

    Grades are any numbers, of which only the order counts. O(n log n) for n documents, by the same walk as
    `Ordinal`; queries run on all threads, the largest first.

    Queries that have no pair (one document, or all grades equal) are left out with a warning. The rows of a query
    must have the same sample weight, which is the weight of the query.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.PairwiseRank()
    >>> targets = loss.encode([1, 0, 2, 1], groups=["a", "a", "b", "b"])
    >>> loss.evaluate(np.array([0.0, 0.5, 3.0, 0.0]), targets, np.ones(4))
    (0.75, array([-0.5,  0.5,  0. ,  0. ]))

    References
    ----------
    Joachims, Optimizing search engines using clickthrough data, 2002; T07 section 3.1.
    """

    floor = 0.0

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Return the rows by query and increasing grade."""
        values = finite_targets(y)
        codes = query_codes(groups, values.size, self.name)
        rows = kept_rows(codes, all_equal(values, codes), self.name, "no pair of different grades")
        return by_grade(values, codes, rows)

    def evaluate(self, scores: Array, targets: Grades, weight: Array, n_threads: int = 1) -> tuple[float, Array]:
        """Return the mean over queries and its slopes; the scale of the weights does not matter."""
        slopes = np.empty(scores.size)
        share = query_shares(targets.rows, targets.starts, weight, self.name)
        return _core.pair_hinge(scores, *targets, share, None, slopes, n_threads), slopes

    def largest_slopes(self, targets: Grades, weight: Array) -> float:
        """Return a bound from the numbers of each row's pairs."""
        share = query_shares(targets.rows, targets.starts, weight, self.name)
        return largest_pair_slopes(targets, share, None)

    def _worse(self, scores: Array, targets: Grades, weight: Array, e: float) -> float:
        return with_wider_margin(lambda f: self.evaluate(f, targets, weight)[0], scores, e)


class PermutationLoss(QueryLoss):
    """max over pi of sum_i c_i (f_pi(i) - f_i) + Delta(pi), documents in order of decreasing grade, c_i falling.

    c_i = 1 / (i + 1)^(1/4), i = 0, 1, ...; documents of equal grade stand in the order of their rows. pi is the order
    in which the documents are shown, Delta what it loses against the order of the grades: the loss is at least that of
    the order by the scores, and at least 0.

    With ``ties="together"`` the places of one grade share the mean of their c. Otherwise scores that differ within a
    grade cost something, whatever their order: where most documents are irrelevant that may outweigh what the relevant
    ones gain, and w = 0 is the minimum (so it is on MQ2008). Both bound Delta in the same way, as c still falls.
    """

    ties: Literal["rows", "together"]
    _least: ClassVar[float] = -np.inf

    def _check_ties(self) -> None:
        if self.ties not in ("rows", "together"):
            raise ValueError(f"parameter 'ties' of loss '{self.name}' must be 'rows' or 'together', got {self.ties!r}")

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Return the rows by query and decreasing grade, with what Delta needs."""
        values = finite_targets(y)
        self._check_grades(values)
        codes = query_codes(groups, values.size, self.name)
        worst = np.full(int(codes.max(initial=-1)) + 1, -np.inf)
        np.maximum.at(worst, codes, values)
        bad = all_equal(values, codes) | (worst <= 0.0)
        reason = "one document, equal grades only or no grade above 0"
        rows, starts, turns = by_decreasing_grade(values, codes, kept_rows(codes, bad, self.name, reason))
        sizes = np.diff(starts)
        places = 1.0 + np.arange(rows.size) - np.repeat(starts[:-1], sizes)
        margin = np.asarray(places**-0.25, dtype=np.float64)
        if self.ties == "together":
            margin = block_means(margin, codes[rows], values[rows])
        return Ranking(rows, starts, turns, margin, self._extra(values[rows], starts, int(sizes.max())))

    def _check_grades(self, y: Array) -> None:
        in_domain(y, y >= self._least, f"grades of at least {self._least:g}", self.name)

    @abstractmethod
    def _extra(self, grades: Array, starts: Index, longest: int) -> tuple[npt.NDArray[Any], ...]:
        """Return what the kernel takes beside the order."""

    @abstractmethod
    def _run(self, scores: Array, targets: Ranking, share: Array, slopes: Array, n_threads: int) -> float:
        """Return the value and write the slopes."""

    def evaluate(self, scores: Array, targets: Ranking, weight: Array, n_threads: int = 1) -> tuple[float, Array]:
        """Return the mean over queries of the worst permutation's loss, and its slopes."""
        slopes = np.empty(scores.size)
        share = query_shares(targets.rows, targets.starts, weight, self.name)
        return self._run(scores, targets, share, slopes, n_threads), slopes

    def largest_slopes(self, targets: Ranking, weight: Array) -> float:
        """Return a bound: a document's margin becomes at most that of the first or the last place."""
        share = query_shares(targets.rows, targets.starts, weight, self.name)
        sizes, c = np.diff(targets.starts), targets.margin
        first, last = np.repeat(c[targets.starts[:-1]], sizes), np.repeat(c[targets.starts[1:] - 1], sizes)
        return float(np.linalg.norm(np.repeat(share, sizes) * np.maximum(first - c, c - last)))

    def _worse(self, scores: Array, targets: Ranking, weight: Array, e: float) -> float:
        """Return the loss where each document stands 3e higher than the one of the place before: 2e, but for rounding.

        A permutation takes sum_i (c_pi(i) - c_i) e_i of errors e_i, at most e times the sum of the |c_pi(i) - c_i|.
        Each step c_k - c_(k+1) is in that sum twice for each document that crosses it upward. With e_i = 2 i e, the
        documents that cross it upward have larger i than those that cross it downward, so it counts as often at least.
        """
        moved = scores.copy()
        place = np.arange(targets.rows.size) - np.repeat(targets.starts[:-1], np.diff(targets.starts))
        moved[targets.rows] += 3.0 * e * place
        return self.evaluate(moved, targets, weight)[0]


def for_ranking(loss: Loss, given: Iterable[str]) -> Loss:
    """Return the loss as the estimator and the command line mean its name: equal grades together, if not said else."""
    if isinstance(loss, PermutationLoss) and "ties" not in given:
        return replace(loss, ties="together")  # type: ignore[type-var]
    return loss


class GainLoss(PermutationLoss):
    """Delta(pi) = 1 - sum_i d_i g_pi(i) / sum_i d_i g_i for gains g of the grades and falling discounts d.

    The cost of document i at rank r is d_r g_i - c_r f_i: a matrix of rank two. Where d_r g_i = 0 for all documents in
    their sorted places it is as good as one of rank one, and a sort by the scores solves it (the rearrangement
    inequality). The dual solution of that sort is feasible in general, and leaves one shortest augmenting path of the
    assignment problem for each document with a gain in a rank with a discount: at most k of them, O(k n^2) at worst.
    """

    @abstractmethod
    def _gains(self, grades: Array) -> Array:
        """Return what a document of that grade is worth."""

    @abstractmethod
    def _discounts(self, n: int) -> Array:
        """Return what the ranks 0, 1, ... n - 1 are worth."""

    def _extra(self, grades: Array, starts: Index, longest: int) -> tuple[Array, Array]:
        gain, discount, sizes = self._gains(grades), self._discounts(longest), np.diff(starts)
        ranks = np.arange(grades.size) - np.repeat(starts[:-1], sizes)
        ideal = np.add.reduceat(gain * discount[ranks], starts[:-1])
        return gain / np.repeat(ideal, sizes), discount

    def _run(self, scores: Array, targets: Ranking, share: Array, slopes: Array, n_threads: int) -> float:
        rows, starts, turns, margin, (gain, discount) = targets
        return _core.gain_loss(scores, rows, starts, turns, margin, share, gain, discount, slopes, n_threads)


@dataclass(frozen=True)
class Ndcg(GainLoss, name="ndcg"):
    """max over pi of sum_i c_i (f_pi(i) - f_i) + 1 - NDCG@k(pi): normalized discounted cumulative gain by query.

    NDCG@k is the sum over the ranks 1 ... k of (2^grade - 1) / log2(1 + rank), divided by that of the order of the
    grades; c_i = 1 / (i + 1)^(1/4) with i = 0 for the first document; mean over queries. Documents stand in order of
    decreasing grade, equal ones in the order of their rows. The worst permutation comes from a sort by the scores
    where the gain does not matter and from linear assignment where it does (`GainLoss`); queries run on all threads,
    the largest first.

    On noisy queries the minimum may be w = 0 for every lam. The loss charges all orders but one for scores that differ,
    also for those of equal grades: that may outweigh the gain. So it is on MQ2008 with the equal grades in the order of
    their rows (J(0) = 0.7870, within 7e-4 of a lower bound at lam = 1), not there with ``ties="together"``. `NdcgPairs`
    compares different grades only and learns from such queries.

    Grades are numbers from 0 to 1000. A k larger than a query means the whole query. Queries with one document, equal
    grades only or no grade above 0 are left out with a warning. The rows of a query must have the same sample weight.

    Parameters
    ----------
    k : int
        The number of ranks that count, at least 1.
    ties : {"rows", "together"}
        Whether documents of equal grade stand in the order of their rows, or share the mean c of their places, which
        is better where many are equal (`PermutationLoss`).

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.Ndcg(k=1)
    >>> value, slopes = loss.evaluate(np.array([0.0, 0.0]), loss.encode([1, 0], groups=[7, 7]), np.ones(2))
    >>> value, slopes.round(3)
    (1.0, array([-0.159,  0.159]))

    References
    ----------
    T07 section 3.1; Le and Smola, Direct optimization of ranking measures, 2007.
    """

    k: int = 10
    ties: Literal["rows", "together"] = "rows"
    _least = 0.0
    floor = 0.0

    def __post_init__(self) -> None:
        self._check_ties()
        check_ranks(self.k, self.name)

    def _check_grades(self, y: Array) -> None:
        check_gradable(y, self.name)

    def _gains(self, grades: Array) -> Array:
        return gains(grades)

    def _discounts(self, n: int) -> Array:
        return discounts(n, self.k)

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return one that looks at the whole query, one at its beginning, and one with equal grades together."""
        return [cls(), cls(k=2), cls(ties="together")]


@dataclass(frozen=True)
class ExpectedRankUtility(GainLoss, name="expected_rank_utility"):
    """max over pi of sum_i c_i (f_pi(i) - f_i) + 1 - U(pi)/U(id), U = sum_i g_pi(i) 2^(-i/(h - 1)): half-life utility.

    i = 0, 1, ... are the ranks, h is the half-life: the rank (from 1) that is looked at half as often as the first
    one. The gain g is the grade, which must be at least 0. In all else as `Ndcg`, which says when w = 0 is the minimum.

    Parameters
    ----------
    half_life : float
        Above 1.
    ties : {"rows", "together"}
        As for `Ndcg`.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.ExpectedRankUtility(half_life=2.0)
    >>> loss.evaluate(np.array([0.0, 0.0]), loss.encode([1, 0], groups=[7, 7]), np.ones(2))[0]
    0.5

    References
    ----------
    Breese, Heckerman and Kadie, Empirical analysis of predictive algorithms, 1998; T07 section 3.1.
    """

    half_life: float = 5.0
    ties: Literal["rows", "together"] = "rows"
    _least = 0.0
    floor = 0.0

    def __post_init__(self) -> None:
        self._check_ties()
        number = isinstance(self.half_life, (int, float, np.number)) and not isinstance(self.half_life, bool)
        if not (number and 1.0 < self.half_life < np.inf):
            raise ValueError(
                f"parameter 'half_life' of loss '{self.name}' must be a number above 1, got {self.half_life!r}"
            )

    def _gains(self, grades: Array) -> Array:
        return grades

    def _discounts(self, n: int) -> Array:
        discount = np.exp2(-np.arange(n) / (self.half_life - 1.0))
        return np.where(discount < 2.0**-60, 0.0, discount)  # less than rounding: the rest is a sort


@dataclass(frozen=True)
class Mrr(PermutationLoss, name="mrr"):
    """max over pi of sum_i c_i (f_pi(i) - f_i) + 1 - 1/rank(pi): mean reciprocal rank of the first relevant document.

    Relevant is what has a grade above 0; c and the order of the documents are those of `Ndcg`. If t irrelevant
    documents are to stand before all relevant ones, the best order has the t highest-scored of them first and the
    rest sorted by score (the rearrangement inequality), so sorts suffice: one document is moved at a time, until what
    that costs exceeds what a later rank can still give.

    As for `Ndcg`, the minimum may be w = 0. Queries with one document, equal grades only or no grade above 0 are left
    out with a warning. The rows of a query must have the same sample weight.

    Parameters
    ----------
    ties : {"rows", "together"}
        As for `Ndcg`.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.Mrr()
    >>> loss.evaluate(np.array([0.0, 0.0]), loss.encode([1, 0], groups=[7, 7]), np.ones(2))[0]
    0.5

    References
    ----------
    T07 section 3.1.
    """

    ties: Literal["rows", "together"] = "rows"
    floor = 0.0

    def __post_init__(self) -> None:
        self._check_ties()

    def _extra(self, grades: Array, starts: Index, longest: int) -> tuple[Index]:
        return (np.add.reduceat((grades > 0.0).astype(np.int64), starts[:-1]),)

    def _run(self, scores: Array, targets: Ranking, share: Array, slopes: Array, n_threads: int) -> float:
        rows, starts, turns, margin, (n_relevant,) = targets
        return _core.reciprocal_rank_loss(scores, rows, starts, turns, margin, share, n_relevant, slopes, n_threads)
