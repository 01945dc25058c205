"""Losses of the whole set of scores: ROC area, F-beta, precision and recall at k, break-even point, ordinal pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._traits import Trait
from bmrm.losses.base import Array, Loss, Targets, finite_targets, positive
from bmrm.losses.binary import draw_signs, signs
from bmrm.losses.growth import largest_pair_slopes, rise, with_wider_margin
from bmrm.losses.sets import Grades, Index, by_grade, is_uniform


class WholeSetLoss(Loss):
    """A loss of all rows that stands for a score of the whole set."""

    couples: ClassVar[Literal["all"]] = "all"
    takes_offset: ClassVar[bool] = False


class PairLoss(WholeSetLoss):
    """The mean of max(0, 1 - (f_i - f_j)) over the pairs with y_i > y_j; weights of rows multiply, p_i p_j."""

    threaded: ClassVar[bool] = True

    def evaluate(self, scores: Array, targets: Grades, weight: Array, n_threads: int = 1) -> tuple[float, Array]:
        """Return the weighted mean over the pairs and its slopes; the scale of the weights does not matter."""
        slopes = np.empty(scores.size)
        given = None if is_uniform(weight) else weight
        if given is not None:
            self.check_weight(targets, given)
        value = _core.pair_hinge(scores, *targets, np.ones(1), given, slopes, n_threads)
        return value, slopes

    def shift_slope(self, targets: Grades) -> float:
        """Return 0: only differences of scores count."""
        return 0.0

    def largest_slopes(self, targets: Grades, weight: Array) -> float:
        """Return a bound from the weights of each row's pairs."""
        return largest_pair_slopes(targets, np.ones(1), weight)

    def growth(self, scores: Array, targets: Grades, weight: Array, e: float) -> float:
        """Return what a margin adds that is wider by what two scores are wrong."""

        def value(f: Array) -> float:
            return self.evaluate(f, targets, weight)[0]

        return rise(value(scores), with_wider_margin(value, scores, e))

    def check_weight(self, targets: Grades, weight: Array) -> None:
        """Raise unless rows of two grades have a weight above 0."""
        totals = np.add.reduceat(weight[targets.rows], targets.blocks[:-1])
        if np.count_nonzero(totals) < 2:
            raise ValueError(f"loss '{self.name}': rows of a weight above 0 are all of one grade, there is no pair")


@dataclass(frozen=True)
class RocArea(PairLoss, name="roc_area"):
    """sum_ij max(0, 1 - (f_i - f_j)) / (m+ m-), i positive, j negative: one minus the area under the ROC curve.

    The number of swapped pairs, made convex with a margin. With weights of rows a pair counts p_i p_j, and the sum is
    divided by the total of those; 2 is then the same as the row twice. Computed in O(m log m) by one sort of the
    positives and one of the negatives, and one walk along both; ties are exact. Targets are -1 and 1 (or 0 and 1),
    and both must occur.

    Adding a constant to all scores changes nothing: an intercept would be arbitrary.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.RocArea()
    >>> loss.evaluate(np.array([1.0, 0.0, 0.5]), loss.encode([1, 1, -1]), np.ones(3))
    (1.0, array([-0.5, -0.5,  1. ]))

    References
    ----------
    T07 section 3.1; Joachims, A support vector method for multivariate performance measures, 2005.
    """

    task = "classification"
    floor = 0.0

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Return the rows, negatives first."""
        self.refuse_groups(groups)
        values = both_signs(y, self.name)
        return by_grade(values, np.zeros(values.size, np.int64), np.arange(values.size))

    def decide(self, scores: Array) -> Array:
        """Return the sign of each score; the loss itself knows no threshold."""
        return np.where(scores >= 0.0, 1.0, -1.0)

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Array, None]:
        """Draw random signs, both present."""
        return draw_signs(rng, m), None


@dataclass(frozen=True)
class Ordinal(PairLoss, name="ordinal"):
    """sum_ij max(0, 1 - (f_i - f_j)) / (number of pairs), y_i > y_j: the ROC area for more than two grades.

    Grades are any numbers, of which only the order counts; rows of one grade make no pair, each other pair costs the
    same. Weights of rows multiply as in `RocArea`. The blocks of equal grade are sorted and merged two by two, lower
    with higher ones, and the pairs between two blocks counted by one walk along both: O(m log m) for any number of
    grades. Data of a single grade are refused.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.Ordinal()
    >>> loss.evaluate(np.array([0.0, 0.5, 3.0]), loss.encode([1, 2, 3]), np.ones(3))[0]
    0.16666666666666666

    References
    ----------
    T07 section 3.1.
    """

    task = "ordinal"
    floor = 0.0

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Return the rows by increasing grade."""
        self.refuse_groups(groups)
        values = finite_targets(y)
        if values.size == 0 or values.min() == values.max():
            raise ValueError(f"loss '{self.name}' needs rows of different grades, but all {values.size} are the same")
        return by_grade(values, np.zeros(values.size, np.int64), np.arange(values.size))

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Array, None]:
        """Draw one of five grades for each row, two of them for sure."""
        y = rng.integers(1, 6, size=m).astype(np.float64)
        y[:2] = [2.0, 4.0][:m]
        return y, None


class Labels(NamedTuple):
    """The rows of both classes."""

    positives: Index
    negatives: Index


class LabelingLoss(WholeSetLoss):
    """max over y' of Delta(y, y') + 1/m sum_i f_i (y'_i - y_i) / 2, Delta a function of the table of y and y'.

    For a given number a of true positives and b of false ones, the best y' has the a positives and the b negatives
    of the highest scores: two sorts and sums of prefixes reduce the 2^m labelings to a choice of a and b.
    """

    weighted_by: ClassVar[Literal["none"]] = "none"
    task: ClassVar[Literal["classification"]] = "classification"

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Return the rows of both classes."""
        self.refuse_groups(groups)
        values = both_signs(y, self.name)
        return Labels(np.flatnonzero(values > 0.0), np.flatnonzero(values < 0.0))

    def check_weight(self, targets: Labels, weight: Array) -> None:
        """Raise unless all rows weigh the same: the score counts rows."""
        if not is_uniform(weight):
            raise ValueError(f"loss '{self.name}' counts rows and takes no sample weights; repeat rows instead")

    def largest_slopes(self, targets: Labels, weight: Array) -> float:
        """Return a bound of the norm of slopes of 1/m, and more: of equal sums the wrong one may be taken."""
        return 2.0 / float(np.sqrt(sum(rows.size for rows in targets)))

    def growth(self, scores: Array, targets: Labels, weight: Array, e: float) -> float:
        """Return the loss with positives moved down, negatives up: by m e, for sums over m scores are rounded too.

        Each label that differs adds 2 e at least then, more than what of equal sums the wrong one can be worth.
        """
        step = 2.0 * (sum(rows.size for rows in targets) + 1) * e
        moved = scores.copy()
        moved[targets.positives] -= step
        moved[targets.negatives] += step
        return rise(self.evaluate(scores, targets, weight)[0], self.evaluate(moved, targets, weight)[0])

    def decide(self, scores: Array) -> Array:
        """Return the sign of each score; 0 counts as positive."""
        return np.where(scores >= 0.0, 1.0, -1.0)

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Array, None]:
        """Draw random signs, both present."""
        return draw_signs(rng, m), None


@dataclass(frozen=True)
class FBeta(LabelingLoss, name="fbeta"):
    """max over y' of 1 - F_beta(y, y') + sum_i f_i (y'_i - y_i) / (2m): the F-measure of a whole labeling.

    F_beta = (1 + beta^2) a / (a + b + beta^2 m+) for a true positives and b false ones, m+ the number of positives.
    For a given a the best b is found by a search, because Delta and the sum of the b highest scores are both concave
    in b: O(m log m) in all, never the m+ m- tables. Both classes must occur; there are no sample weights.

    Two positives with scores (1, 0) and one negative with score 0, beta = 1: the tables (a, b) give 2/3 for (0, 0)
    and (0, 1), 1/3 for (1, 0), 1/2 for (1, 1), 0 for (2, 0) and 1/5 for (2, 1). So the loss is 2/3, and its slopes
    are -1/3 for both positives, which the worst labeling calls negative.

    Parameters
    ----------
    beta : float
        How many times more recall counts than precision, above 0.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.FBeta()
    >>> value, slopes = loss.evaluate(np.array([1.0, 0.0, 0.0]), loss.encode([1, 1, -1]), np.ones(3))
    >>> round(value, 12), slopes[:2].round(3)
    (0.666666666667, array([-0.333, -0.333]))

    References
    ----------
    T07 section 3.1; Joachims, A support vector method for multivariate performance measures, 2005.
    """

    beta: float = 1.0
    takes_offset = True
    floor = 0.0

    def __post_init__(self) -> None:
        positive(self.beta, "beta", self.name)

    def evaluate(self, scores: Array, targets: Labels, weight: Array) -> tuple[float, Array]:
        """Return the loss of the worst labeling and its slopes."""
        self.check_weight(targets, weight)
        slopes = np.empty(scores.size)
        return _core.fbeta(scores, *targets, self.beta, slopes), slopes

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return recall and precision equal, and one counting more."""
        return [cls(), cls(beta=0.5), cls(beta=2.0)]


class AtKLoss(LabelingLoss):
    """A loss over the labelings with exactly k positives: O(m log m) for the sorts, then one walk over a + b = k."""

    def _k(self, targets: Labels) -> int:
        raise NotImplementedError

    def _per(self, targets: Labels) -> int:
        """Return what the number of true positives is divided by."""
        return self._k(targets)

    def shift_slope(self, targets: Labels) -> float:
        """Return (k - m+) / m: y' has k positives, y has m+."""
        plus, minus = (rows.size for rows in targets)
        return (self._k(targets) - plus) / (plus + minus)

    def evaluate(self, scores: Array, targets: Labels, weight: Array) -> tuple[float, Array]:
        """Return the loss of the worst labeling and its slopes."""
        self.check_weight(targets, weight)
        slopes = np.empty(scores.size)
        return _core.at_k(scores, *targets, self._k(targets), float(self._per(targets)), slopes), slopes


@dataclass(frozen=True)
class PrecisionAtK(AtKLoss, name="precision_at_k"):
    """max over y' with k positives of 1 - a/k + sum_i f_i (y'_i - y_i) / (2m): precision among the first k.

    a is the number of true positives of y'. The labeling y itself is among the y' only if k = m+ (see `BreakEven`):
    otherwise the loss has no lower bound (adding t to all scores adds t (k - m+) / m to it), so the regularizer must
    be strongly convex, and a risk with an intercept is refused. A risk below 0 says nothing about the score: fits
    warn, see `bmrm.MeaninglessObjectiveWarning`. Both classes must occur; there are no sample weights.

    Parameters
    ----------
    k : int or float
        A number of rows, at least 1, or a share of them, between 0 and 1 and rounded to at least one row.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.PrecisionAtK(k=1)
    >>> loss.evaluate(np.array([2.0, 0.0, 1.0]), loss.encode([1, -1, -1]), np.ones(3))[0]
    0.6666666666666667

    References
    ----------
    S08 section 2; Joachims, A support vector method for multivariate performance measures, 2005.
    """

    k: int | float = 0.1
    traits = frozenset({Trait.UNBOUNDED_RISK})
    floor = -np.inf

    def __post_init__(self) -> None:
        check_k(self.k, self.name)

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Return the rows of both classes; k must not be larger than their number."""
        targets: Labels = super().encode(y, groups)
        m = sum(rows.size for rows in targets)
        if self.k > m:
            raise ValueError(f"loss '{self.name}' with k = {self.k} needs at least as many rows, but there are {m}")
        return targets

    def _k(self, targets: Labels) -> int:
        return number_of(self.k, sum(rows.size for rows in targets))

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return a number and a share."""
        return [cls(k=2), cls(k=0.5)]


@dataclass(frozen=True)
class RecallAtK(PrecisionAtK, name="recall_at_k"):
    """max over y' with k positives of 1 - a/m+ + sum_i f_i (y'_i - y_i) / (2m): recall among the first k.

    As `PrecisionAtK`, with the true positives a divided by the number m+ of positives.

    Parameters
    ----------
    k : int or float
        A number of rows, at least 1, or a share of them, between 0 and 1 and rounded to at least one row.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.RecallAtK(k=1)
    >>> loss.evaluate(np.array([3.0, 0.0, 0.0]), loss.encode([1, 1, -1]), np.ones(3))[0]
    0.5

    References
    ----------
    Joachims, A support vector method for multivariate performance measures, 2005.
    """

    floor = -np.inf

    def _per(self, targets: Labels) -> int:
        return targets.positives.size


@dataclass(frozen=True)
class BreakEven(AtKLoss, name="break_even"):
    """max over y' with m+ positives of 1 - a/m+ + sum_i f_i (y'_i - y_i) / (2m): where precision equals recall.

    `PrecisionAtK` with k the number m+ of positives, which makes it at least 0.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.BreakEven()
    >>> loss.evaluate(np.array([3.0, 0.0, 0.0]), loss.encode([1, 1, -1]), np.ones(3))[0]
    0.5

    References
    ----------
    Joachims, A support vector method for multivariate performance measures, 2005.
    """

    floor = 0.0

    def _k(self, targets: Labels) -> int:
        return targets.positives.size


def both_signs(y: npt.ArrayLike, loss: str) -> Array:
    """Return the targets as -1.0 and 1.0, both present."""
    values = signs(y, loss)
    if values.size == 0 or values.min() == values.max():
        present = f"all {values.size} are {values[0]:g}" if values.size else "there are none"
        raise ValueError(f"loss '{loss}' needs positive and negative targets, but {present}")
    return values


def check_k(k: Any, loss: str) -> None:
    """Raise unless k is a whole number of at least 1, or a share between 0 and 1."""
    whole = isinstance(k, (int, np.integer)) and not isinstance(k, bool)
    share = isinstance(k, (float, np.floating)) and 0.0 < k < 1.0
    if not ((whole and k >= 1) or share):
        raise ValueError(
            f"parameter 'k' of loss '{loss}' must be a whole number, at least 1, or a share between 0 and 1, got {k!r}"
        )


def number_of(k: int | float, m: int) -> int:
    """Return k of m rows as a number; a share is rounded, to at least 1."""
    return int(k) if isinstance(k, (int, np.integer)) else max(1, round(float(k) * m))
