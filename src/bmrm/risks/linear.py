"""The risk of a linear model: the weighted mean of a loss of X w."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._cached import cached_property
from bmrm.data.matrix import Design
from bmrm.losses import Loss, VectorLoss
from bmrm.risks.base import Array, Line, Point, Risk
from bmrm.risks.inputs import made_loss, normalized, raw_targets, row_vector, traits_of
from bmrm.risks.normal_error import UNIT, SlopesError, norm_of, roundings
from bmrm.risks.score_error import rounding_of
from bmrm.risks.space import RowSpace
from bmrm.risks.unseen import unseen


class LinearRisk(Risk):
    """R(w) = sum_i p_i l(<x_i, w> + offset_i, y_i), p the sample weights divided by their sum.

    For a loss with k scores for each row (`VectorLoss`), w is a (d, k) matrix, flat, row by row.

    Parameters
    ----------
    X : array or sparse matrix (m, d), Store, or Design
        float32 and float64, C-ordered or CSR, are used in place; the rows of a store stay on disk.
    y : array-like (m,) or None
        Raw targets; the loss checks and encodes them. None for losses without targets.
    loss : Loss or str
    sample_weight : array-like (m,), optional
        Numbers >= 0; a weight of 2 is the same as the row twice, 0 the same as no row.
    groups : array-like (m,), optional
        For losses that look at groups of rows.
    intercept : bool
        Whether w has one more coordinate, the constant: free unless the regularizer has a weight for it.
    offset : array-like (m,), optional
        A known shift of each score (exposure).
    n_threads : int, optional
        All cores by default, or for -1 (all but one for -2). Results are the same for any number.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> value, subgradient = risk.evaluate(np.array([0.5]))
    >>> value, subgradient
    (0.5, array([-1.]))
    """

    cheap_lines = True
    shift_size = 0.0

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
        loss = made_loss(loss)
        with_constant = intercept or loss.learns_offset
        self.design = X if isinstance(X, Design) else Design(X, with_constant, n_threads)
        if loss.learns_offset and not self.design.intercept:
            raise ValueError(f"loss '{loss.name}' learns an offset: the Design needs intercept=True")
        m = self.design.n_rows
        if m == 0:
            raise ValueError("X has no rows")
        self.loss, self.kernel = loss, loss.kernel()
        self.targets = loss.encode(*raw_targets(y, groups, loss, m))
        self.vectors = None
        if isinstance(loss, VectorLoss):
            self.vectors = loss.compiled(self.targets)
            self.design = self.design.widened(loss.n_scores(self.targets))
            if offset is not None:
                raise ValueError(f"loss '{loss.name}' has several scores for each row and takes no offset")
        self.scale = 1.0 / m
        self.weight = None if sample_weight is None else normalized(sample_weight, m)
        if self.weight is not None:
            loss.check_weight(self.targets, self.weight)
        self._total = loss.shift_slope(self.targets)
        if self.design.intercept and self._total:
            raise ValueError(
                f"loss '{loss.name}' changes by {self._total:g} for each 1 added to all scores, without end: "
                f"it takes no intercept"
            )
        self.offset = None if offset is None else row_vector(offset, m, "offset")
        self.dim = self.design.dim
        if self.dim == 0:
            raise ValueError("X has no columns and there is no intercept; expected one of them")
        self.floor, self.shift_size = loss.floor, loss.shift_size(self.targets)
        self.unpenalized = ()
        if self.design.intercept:
            k = self.n_outputs
            free = loss.free_constants(self.targets) if isinstance(loss, VectorLoss) else range(k)
            self.unpenalized = tuple(int(self.dim - k + c) for c in free)
        self.traits = traits_of(loss, self.kernel is not None, self.vectors is not None, self.design.streamed)
        self.plane_bytes, self.n_threads = self.design.plane_bytes, self.design.n_threads
        self.products = 0
        self._unseen: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]] | None = None
        self._last: tuple[Array, Array] | None = None  # w and its scores, until a run begins

    @property
    def n_outputs(self) -> int:
        """The number of scores for each row."""
        return self.design.n_scores // self.design.n_rows

    def by_rows(self, scores: Array) -> Array:
        """Return scores or slopes as the loss sees them: (m, k) where a row has several."""
        return scores.reshape(-1, self.n_outputs) if isinstance(self.loss, VectorLoss) else scores

    def scores(self, w: Array, new: bool = False) -> Array:
        """Return X w + offset, not to be changed; no product for 0 and the last w. A new w is not copied."""
        if not w.any():
            return np.zeros(self.design.n_scores) if self.offset is None else self.offset.copy()
        last = self._last
        if new or last is None or not (last[0] is w or np.array_equal(last[0], w)):
            self.products += 1
            scores = self.design.dot(w)
            last = self._last = w if new else w.copy(), scores if self.offset is None else scores + self.offset
        return last[1]

    @property
    def busy(self) -> tuple[float, ...]:
        """How many seconds each shard has computed so far; nothing where there are no shards."""
        return getattr(self.design.matrix, "busy", ())

    def evaluate(self, w: Array) -> tuple[float, Array]:
        """Return the value and one subgradient: two products, fused into one reading where that is faster."""
        return (point := self.touch(w)).value, point.subgradient

    def touch(self, w: Array) -> LinearPoint:
        """Return w with its scores, slopes and subgradient, by one reading of the data where that is faster."""
        w = self._checked(w)
        if self.kernel is None:
            return LinearPoint(self, w, self.scores(w))
        self.products += 2
        design = self.design
        columns, constant = design.split(w)
        scores, slopes, g = np.empty(design.n_rows), np.empty(design.n_rows), np.empty(design.dim)
        value, total = design.matrix.evaluate(
            self.kernel, columns, constant, self.offset, self.targets, self.weight, self.scale,
            scores, slopes, g[: design.n_cols], design.n_threads,
        )  # fmt: skip
        if design.intercept:
            g[-1] = total + self.loss.tilt
        point = LinearPoint(self, w, scores)
        point._loss, point._subgradient = (value, slopes, total), g
        return point

    def space(self) -> RowSpace | None:
        """Return the space of the rows; none where a subgradient has a part from no row, or rows are on disk."""
        return None if self.loss.tilt or self.design.streamed else RowSpace(self)

    def at(self, w: Array, remembered: Array | None = None) -> LinearPoint:
        """Return w with its scores: one product, none if the scores are remembered."""
        w = self._checked(w)
        return LinearPoint(self, w, self.scores(w) if remembered is None else remembered)

    def forget(self, memory: Any = None) -> None:
        """Forget all evaluations, and check again that the indices of X lie within it: a run begins."""
        super().forget(memory)
        self.design.check_again()

    def loss_and_slopes(self, scores: Array) -> tuple[float, Array, float]:
        """Return the weighted loss of the scores, its weighted slopes, and their sum."""
        if self.vectors is not None:
            slopes = np.empty(scores.size)
            f, out = self.by_rows(scores), self.by_rows(slopes)
            value = self.vectors.evaluate(f, self.weight, self.scale, out, self.n_threads)
            return value, slopes, 0.0
        if self.kernel is None:
            _core.look()  # a loss in Python does not, and a search asks for it many times
            f = self.by_rows(scores)
            options = {"n_threads": self.n_threads} if self.loss.threaded else {}
            value, slopes = self.loss.evaluate(f, self.targets, self.full_weight, **options)
            slopes = np.ascontiguousarray(slopes, dtype=np.float64)
            if np.ndim(value) != 0 or slopes.shape != f.shape:
                raise ValueError(
                    f"{type(self.loss).__name__}.evaluate must return a number and one slope for each of the "
                    f"{scores.size} scores, got shapes {np.shape(value)} and {slopes.shape}"
                )
            return float(value), slopes.reshape(-1), float(np.sum(slopes)) if self._total is None else self._total
        slopes = np.empty(scores.size)
        value, total = self.kernel.evaluate(scores, self.targets, self.weight, self.scale, slopes, self.n_threads)
        return value, slopes, total

    def line(self, scores: Array, along: Array) -> Any:
        """Return the weighted loss on a line of scores, compiled; None where the loss is not."""
        if self.kernel is not None:
            return _core.line(self.kernel, scores, along, self.targets, self.weight, self.scale)
        if self.vectors is not None:
            return self.vectors.line(self.by_rows(scores), self.by_rows(along), self.weight, self.scale)
        return None

    def pull_back(self, slopes: Array, total: float) -> Array:
        """Return the subgradient X' slopes: one product."""
        self.products += 1
        return self.design.tdot(slopes, total + self.loss.tilt)

    def unseen(self, free: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the free coordinates that the loss does not see or others can stand for; found once for a set."""
        known = self._unseen
        if known is None or not np.array_equal(known[0], free):
            known = self._unseen = free, unseen(self, free)
        return known[1]

    def sizes(self) -> Array:
        """Return the root of the mean square of each column's entries that are not 0."""
        squares, counts = self._squares
        return self.design.join(np.sqrt(squares / np.maximum(counts, 1)), 1.0)

    @property
    def normal_error(self) -> SlopesError | None:
        """How far normals may be from the true ones."""
        return SlopesError(self)

    @cached_property
    def norms(self) -> Array:
        """The Euclidean norm of each column, that of the constant included."""
        return self.design.join(np.sqrt(self._squares[0]), float(np.sqrt(self.design.n_rows)))

    @cached_property
    def extent(self) -> float:
        """The root of the sum of the squares of all entries, the constant included: read once, counted for no run."""
        squares = self.design.matrix.square_sum(self.n_threads) + self.design.intercept * self.design.n_rows
        return float(np.sqrt(self.n_outputs * squares))

    @cached_property
    def _squares(self) -> tuple[Array, npt.NDArray[np.int64]]:
        """The sum of squares of each column and the number of its entries that are not 0: read once, as `extent`."""
        return self.design.column_sizes()

    def bracket(self) -> list[Array]:
        """Return w = 0 with the constant on both sides of the scores, where the loss has one constant and no floor."""
        if np.isfinite(self.floor) or not self.design.intercept or self.n_outputs > 1:
            return []
        points = np.zeros((2, self.dim))
        points[:, -1] = [-1.0, 1.0]
        return list(points)

    @cached_property
    def full_weight(self) -> Array:
        """The normalized weights as an array."""
        return np.full(self.design.n_rows, self.scale) if self.weight is None else self.weight

    @cached_property
    def largest_slopes(self) -> float:
        """A bound of the norm of the weighted slopes at any scores; inf if the loss has none."""
        return self.loss.largest_slopes(self.targets, self.full_weight)

    def tilted(self, w: Array) -> float:
        """Return what the learned offset adds to the loss."""
        return self.loss.tilt * float(w[-1]) if self.loss.tilt else 0.0

    def _checked(self, w: Array) -> Array:
        w = np.ascontiguousarray(w, dtype=np.float64)
        if w.shape != (self.dim,):
            raise ValueError(f"w has shape {w.shape}, expected ({self.dim},)")
        return w


class LinearPoint(Point):
    """w with its scores: the loss is evaluated, and the subgradient pulled back, when they are asked for."""

    risk: LinearRisk

    def __init__(self, risk: LinearRisk, w: Array, scores: Array) -> None:
        super().__init__(risk, w)
        self.scores = scores
        self._subgradient: Array | None = None

    @cached_property
    def _loss(self) -> tuple[float, Array, float]:
        return self.risk.loss_and_slopes(self.scores)

    @property
    def loss(self) -> float:
        """The loss of the scores."""
        return self._loss[0]

    @property
    def value(self) -> float:
        """R(w)."""
        return self._loss[0] + self.risk.tilted(self.w)

    @property
    def slopes(self) -> Array:
        """The weighted slopes of the loss at the scores."""
        return self._loss[1]

    @property
    def subgradient(self) -> Array:
        """One subgradient of R at w: one product, once."""
        if self._subgradient is None:
            self._subgradient = self.risk.pull_back(*self._loss[1:])
        return self._subgradient

    @property
    def remembered(self) -> Array:
        """The scores."""
        return self.scores

    @property
    def factors(self) -> tuple[Array, Array]:
        """The slopes, and the scores without the offset."""
        return self.slopes, self.scores if self.risk.offset is None else self.scores - self.risk.offset

    @property
    def plane(self) -> tuple[Array, float]:
        """The normal X'l and the offset L(f) - <l, f - o> for slopes l at the scores f, less the rounding in it.

        L(X v + o) >= L(f) + <l, X v + o - f> holds for any f, however few digits of X w + o the scores have, as at a
        far w or after many lines. L(f) + ... - <X'l, w> would have the error of the scores in it, which <|X'l|, |w|>
        does not show where X'l cancels. The rounding of the normal is charged to bounds: see `SlopesError`.
        """
        return self.subgradient, self.plane_offset

    @property
    def plane_offset(self) -> float:
        """The offset of the plane, without its normal: no product."""
        (value, slopes, _), products = self._loss, self.factors[1]
        size = abs(value) + _core.inner_of_sizes(slopes, products) + self.steepness * self.risk.shift_size
        return value - _core.inner(slopes, products) - (8.0 + roundings(slopes.size)) * UNIT * size

    @property
    def steepness(self) -> float:
        """The norm of the slopes."""
        return norm_of(self.slopes)

    @cached_property
    def rounding(self) -> float:
        """How much larger than the value computed R(w) may be, because the scores are rounded."""
        return rounding_of(self)

    def extreme(self, d: Array) -> Array:
        """Return the subgradient that is largest in direction d: two products."""
        risk = self.risk
        slopes = np.empty_like(self.scores)
        along = risk.design.dot(np.ascontiguousarray(d))
        risk.products += 1
        if risk.vectors is not None:
            f, g, out = (risk.by_rows(x) for x in (self.scores, along, slopes))
            risk.vectors.extreme(f, g, risk.weight, risk.scale, out)
        else:
            risk.kernel.extreme(self.scores, along, risk.targets, risk.weight, risk.scale, slopes)
        return risk.pull_back(slopes, float(np.sum(slopes)))

    def toward(self, w: Array) -> LinearLine:
        """Return the line to w: one product."""
        return LinearLine(self, w)


class LinearLine(Line):
    """A line in the space of scores: no product with X from here on."""

    start: LinearPoint

    def __init__(self, start: LinearPoint, end: Array) -> None:
        super().__init__(start, end)
        risk = start.risk
        # The product of the difference, not the difference of products: errors must not grow from line to line.
        self.score_direction: Array = risk.design.dot(self.direction)
        risk.products += 1
        self._slope_of_tilt = risk.tilted(self.direction)
        self._line = risk.line(start.scores, self.score_direction)

    def at(self, t: float) -> LinearPoint:
        """Return the point at t; its scores are combined, not recomputed."""
        if t not in self._points:
            start = self.start
            scores = t * self.score_direction
            scores += start.scores
            self._points[t] = LinearPoint(start.risk, start.w + t * self.direction, scores)
        return self._points[t]  # type: ignore[return-value]

    def evaluate(self, t: float) -> tuple[float, float, float]:
        """Return the value and both one-sided slopes at t."""
        if self._line is None:
            value, slopes, _ = (self.start if t == 0.0 else self.at(t))._loss  # kept: the search ends at one of them
            left = right = _core.inner(slopes, self.score_direction)
        else:
            value, left, right = self._line.evaluate(t, self.start.risk.n_threads)
        tilt = self._slope_of_tilt
        return value + self.start.risk.tilted(self.start.w) + t * tilt, left + tilt, right + tilt

    def slope_at(self, t: float) -> float:
        """Return the slope at t, from the slopes of the point there, which keeps them."""
        return _core.inner(self.at(t).slopes, self.score_direction) + self._slope_of_tilt

    def terms(self) -> list[tuple[Any, float]]:
        """Return the compiled line and the slope that comes on top of it."""
        return [] if self._line is None else [(self._line, self._slope_of_tilt)]
