"""Points and lines of structured risks whose losses see w through scores only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._cached import cached_property
from bmrm.risks.base import Array, Line, Point, Risk

_EPS = float(np.finfo(np.float64).eps)
_KEPT = 2  # trials of a line whose slopes are kept: a search ends at one of its last

Loss: TypeAlias = tuple[float, float, Array]


class Scored:
    """What a risk knows of scores: A w, A' slopes, and the loss on a line of scores.

    Parameters
    ----------
    risk : Risk
        Its `products` are counted.
    scores, pulled_back : callable
        w to A w, slopes to A' slopes.
    along : callable
        (f, d or None, t) to the loss at f + t d, its slope along d, and its slopes by the scores.
    room : callable
        n to an array for n scores.
    widest : (array, array of int)
        Sizes and segments of w: `ScoredModel.widest_feature`.
    terms : float
        The most numbers added up for one example: what rounding grows with.
    """

    def __init__(
        self,
        risk: Risk,
        scores: Callable[[Array], Array],
        pulled_back: Callable[[Array], Array],
        along: Callable[[Array, Array | None, float], Loss],
        room: Callable[[int], Array],
        widest: tuple[Array, npt.NDArray[np.int64]],
        terms: float,
    ) -> None:
        self.risk, self._scores, self._pulled_back, self.along = risk, scores, pulled_back, along
        self.room = room
        self.error = (8.0 + terms) * _EPS
        self._widest = widest

    def largest(self, w: Array) -> float:
        """Return what the scores of any outputs are made of at most, all signs left out."""
        sizes, starts = self._widest
        return float(np.maximum.reduceat(sizes * np.abs(w), starts).sum())

    def scores(self, w: Array) -> Array:
        """Return A w: one product."""
        self.risk.products += 1
        return self._scores(w)

    def pulled_back(self, slopes: Array) -> Array:
        """Return A' slopes: one product."""
        self.risk.products += 1
        return self._pulled_back(slopes)


class ScoredPoint(Point):
    """w with its scores; the loss and the subgradient when they are asked for."""

    def __init__(self, scored: Scored, w: Array, scores: Array, loss: Loss | None = None) -> None:
        super().__init__(scored.risk, w)
        self.scored, self.scores = scored, scores
        if loss is not None:
            self._loss = loss

    @cached_property
    def _loss(self) -> Loss:
        return self.scored.along(self.scores, None, 0.0)

    @property
    def value(self) -> float:
        """R(w)."""
        return self._loss[0]

    @property
    def slopes(self) -> Array:
        """The slopes of the loss by the scores."""
        return self._loss[2]

    @cached_property
    def subgradient(self) -> Array:
        """One subgradient of R at w: one product, once."""
        return self.scored.pulled_back(self.slopes)

    @property
    def remembered(self) -> Array:
        """The scores."""
        return self.scores

    @cached_property
    def rounding(self) -> float:
        """How much larger than the value computed R(w) may be: by the scores of the true outputs and of any others."""
        return self.scored.error * (abs(self.value) + 2.0 * self.scored.largest(self.w))

    @cached_property
    def _products(self) -> tuple[float, float]:
        """<l, f> and <|l|, |f|>."""
        return _core.inner_and_size(self.slopes, self.scores, self.risk.n_threads)

    @property
    def plane(self) -> tuple[Array, float]:
        """The normal A'l and the offset L(f) - <l, f> for slopes l at the scores f, less the rounding in it."""
        a = self.subgradient
        rounding = self.rounding + self.scored.error * self._products[1] + 4.0 * _EPS * _core.inner_of_sizes(a, self.w)
        return a, self.value - self._products[0] - rounding

    def toward(self, w: Array) -> ScoredLine:
        """Return the line to w: one product."""
        return ScoredLine(self, w)


class ScoredLine(Line):
    """A line in the space of scores: no product with the data from here on."""

    start: ScoredPoint

    def __init__(self, start: ScoredPoint, end: Array) -> None:
        super().__init__(start, end)
        self.score_direction: Array = start.scored.scores(self.direction)
        self._trials: dict[float, Loss] = {}

    def _trial(self, t: float) -> Loss:
        if t == 0.0:
            value, _, slopes = self.start._loss
            return value, _core.inner_and_size(slopes, self.score_direction, self.start.risk.n_threads)[0], slopes
        if t not in self._trials:
            while len(self._trials) >= _KEPT:
                self._trials.pop(next(iter(self._trials)))
            self._trials[t] = self.start.scored.along(self.start.scores, self.score_direction, t)
        return self._trials[t]

    def at(self, t: float) -> ScoredPoint:
        """Return the point at t; its scores are combined, not recomputed."""
        if t == 0.0:
            return self.start
        start = self.start
        scores = start.scored.room(start.scores.size)
        _core.combined(start.scores, self.score_direction, t, scores, start.risk.n_threads)
        return ScoredPoint(start.scored, start.w + t * self.direction, scores, self._trial(t))

    def evaluate(self, t: float) -> tuple[float, float, float]:
        """Return the value and the slope at t, as left and right one."""
        value, slope, _ = self._trial(t)
        return value, slope, slope

    def terms(self) -> list[Any]:
        """Return none: a trial is a pass over the sequences, not over the data."""
        return []
