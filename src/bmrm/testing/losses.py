"""What every loss must satisfy."""

from __future__ import annotations

import copy
import pickle
import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bmrm._traits import Trait
from bmrm.losses.base import Loss
from bmrm.losses.vector import VectorLoss
from bmrm.testing._assertions import (
    Array,
    magnitude,
    require,
    require_at_most,
    require_close,
    require_unchanged,
)
from bmrm.testing.growth import check_growth

_ROWS = 24
_ROUNDING = 1e-9
_STEP = 1e-6
# Scores at which losses may overflow: exp does beyond 709, its square beyond 354.
_FAR = tuple(sign * size for size in (1e2, 354.0, 710.0, 1e3, 1e4, 1e8) for sign in (1.0, -1.0))


@dataclass(frozen=True)
class _Case:
    """A loss with targets, weights and scores to look at."""

    loss: Loss
    y: Any
    groups: Any
    targets: Any
    weight: Array
    points: list[Array]

    @property
    def name(self) -> str:
        return f"loss '{self.loss}'"

    def at(self, f: Array, weight: Array | None = None) -> tuple[float, Array]:
        value, slopes = self.loss.evaluate(f, self.targets, self.weight if weight is None else weight)
        return float(value), np.asarray(slopes, dtype=np.float64)

    def rows(self, f: Array) -> Array:
        """Return the value of every row alone."""
        return np.array([self.at(f, unit)[0] for unit in np.eye(len(f))])


def check_loss(loss: Loss, rng: np.random.Generator | None = None) -> None:
    """Check that a loss is convex, that its slopes are subgradients, and that it handles weights and extremes.

    From one point to another it must not grow by more than its `growth` says.

    Losses of groups and of all rows must not mind the scale of the weights, and refuse weights they cannot take.
    Looked at are random scores, scores at the targets and at the loss's parameters (where kinks are likely), and
    scores up to 1e8. A loss may overflow there, to inf, if rows of weight 0 still count for nothing. A smooth loss is
    compared with finite differences, a compiled one with its `evaluate`; its proximal map must satisfy z + q s = v with
    s a subgradient at z.
    Pickling is tried where the class can be imported by its name.

    Parameters
    ----------
    loss : Loss
    rng : numpy.random.Generator, optional
        For targets, weights and scores; always the same by default.

    Raises
    ------
    AssertionError
        With a sentence that says what is violated, where, and by how much.

    Examples
    --------
    >>> import bmrm
    >>> bmrm.testing.check_loss(bmrm.losses.Hinge())
    >>> class Concave(bmrm.losses.Loss):
    ...     def evaluate(self, scores, targets, weight):
    ...         r = scores - targets
    ...         return -float(weight @ r**2), -2.0 * weight * r
    >>> bmrm.testing.check_loss(Concave())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    AssertionError: loss '...' is not convex: its value in the middle of two points exceeds ...
    """
    case = _case(loss, np.random.default_rng(0) if rng is None else rng)
    _check_shapes(case)
    with np.errstate(over="ignore", invalid="ignore"):
        _check_overflow(case)
    _check_inputs_untouched(case)
    _check_weights(case)
    _check_convex(case)
    _check_slopes(case)
    check_growth(loss, case.targets, case.weight, _pairs(case.points))
    _check_floor(case)
    if Trait.SMOOTH_RISK in loss.traits:
        _check_differences(case)
    _check_huge_scores(case)
    _check_decide(case)
    _check_bad_targets(case)
    _check_kernel(case)
    _check_prox(case)
    _check_pickle(case)


def _case(loss: Loss, rng: np.random.Generator) -> _Case:
    y, groups = loss.draw(rng, _ROWS)
    try:
        targets = loss.encode(y, groups)
    except ValueError as error:
        raise AssertionError(f"loss '{loss}' rejects the targets it draws itself: {error}") from error
    shape = (_ROWS, loss.n_scores(targets)) if isinstance(loss, VectorLoss) else (_ROWS,)
    points = _points(loss, targets if loss.couples == "row" else y, shape, rng)
    if loss.couples != "row":
        tied = 0.5 * rng.integers(-2, 3, size=(8, _ROWS)).astype(np.float64)  # many are equal, or 1 apart
        points += list(tied)
        points += [0.5 * np.asarray(y, dtype=np.float64), -0.5 * np.asarray(y, dtype=np.float64)]
    return _Case(loss, y, groups, targets, _weight(loss, groups, rng), points)


def _weight(loss: Loss, groups: Any, rng: np.random.Generator) -> Array:
    """Return weights of the kind that the loss takes."""
    weight = rng.uniform(0.2, 2.0, size=_ROWS)
    if loss.weighted_by == "none":
        return np.full(_ROWS, weight[0])
    return weight[np.unique(groups, return_inverse=True)[1]] if loss.weighted_by == "group" else weight


def _points(loss: Loss, targets: Any, shape: tuple[int, ...], rng: np.random.Generator) -> list[Array]:
    """Return random scores, and scores where a loss of such targets and parameters may have its kinks."""
    random = [size * rng.normal(size=shape) for size in (0.1, 1.0, 1.0, 10.0)]
    fields = [getattr(loss, name) for name in getattr(loss, "__dataclass_fields__", {})]
    shifts = {0.0, 1.0, *(float(value) for value in fields if isinstance(value, (int, float)))}
    special = [np.full(shape, sign * s) for s in sorted(shifts) for sign in (-1.0, 1.0)]
    if len(shape) == 2:  # ties between the scores of a row
        special += [np.round(f) for f in random]
    if isinstance(targets, np.ndarray) and targets.shape == shape:
        y = targets.astype(np.float64)
        special += [y + sign * s for s in sorted(shifts) for sign in (-1.0, 1.0)]
        special += [y * (1.0 + sign * s) for s in sorted(shifts) for sign in (-1.0, 1.0)]
    return [*random, *special]


def _check_shapes(case: _Case) -> None:
    for f in case.points:
        answer = case.loss.evaluate(f, case.targets, case.weight)
        require(isinstance(answer, tuple) and len(answer) == 2, f"{case.name} must return the pair (value, slopes)")
        value, slopes = answer
        require(np.ndim(value) == 0, f"the value of {case.name} has shape {np.shape(value)}, not a number")
        require(
            np.shape(slopes) == f.shape,
            f"the slopes of {case.name} have shape {np.shape(slopes)}, not the shape {f.shape} of the scores",
        )
        what = "overflows: its value" if np.isinf(value) else "is no number: its value"
        require(np.isfinite(value), f"{case.name} {what} is {value} at scores of at most {np.abs(f).max():g} in size")
        bad = np.flatnonzero(~np.isfinite(slopes))
        require(bad.size == 0, f"the slope of {case.name} is not finite in row {bad[:1]} at moderate scores")


def _check_overflow(case: _Case) -> None:
    """What overflows is inf, which says so, and is not seen of rows of weight 0."""
    for score in _FAR:
        f = np.full_like(case.points[0], score)
        value, slopes = case.at(f)
        if np.isfinite(value):
            continue
        where = f"{case.name} overflows at a score of {score:g}"
        require(value == np.inf, f"{where}: its value is {value} there, and must be inf")
        require(not np.isnan(slopes).any(), f"{where}: its slope is nan there")
        if case.loss.couples != "row":
            continue
        value, slopes = case.at(f, np.zeros(_ROWS))
        counts = f"{where}, and rows of weight 0 then count {value} instead of 0 (0 times inf): leave them out"
        require(value == 0.0 and not slopes.any(), counts)


def _check_inputs_untouched(case: _Case) -> None:
    f, weight, targets = case.points[0].copy(), case.weight.copy(), copy.deepcopy(case.targets)
    y = copy.deepcopy(case.y)
    case.loss.evaluate(f, targets, weight)
    case.loss.encode(y, case.groups)
    require_unchanged(case.points[0], f, f"the scores given to {case.name}")
    require_unchanged(case.weight, weight, f"the weights given to {case.name}")
    require_unchanged(case.targets, targets, f"the targets given to {case.name}")
    require_unchanged(case.y, y, f"the raw targets given to encode of {case.name}")


def _check_weights(case: _Case) -> None:
    if case.loss.couples != "row":
        _check_weights_of_sets(case)
        return
    for f in case.points[:3]:
        value, slopes = case.at(f)
        twice, twice_slopes = case.at(f, 2.0 * case.weight)
        slack = _ROUNDING * magnitude(value)
        require_close(twice, 2.0 * value, slack, f"the value of {case.name} does not double with the weights")
        require_close(
            twice_slopes,
            2.0 * slopes,
            _ROUNDING * magnitude(slopes),
            f"the slopes of {case.name} do not include the weights: they do not double with them",
        )
    _check_zero_weights(case)


def _check_weights_of_sets(case: _Case) -> None:
    """The scale of the weights does not matter; weights that mean nothing are refused."""
    for f in case.points[:3]:
        value, slopes = case.at(f)
        for scale in (2.0, 1e-6):
            other, other_slopes = case.at(f, scale * case.weight)
            what = f"of {case.name} changes with the scale of the weights, which it should divide by their sum"
            require_close(other, value, _ROUNDING * magnitude(value), f"the value {what}")
            require_close(other_slopes, slopes, _ROUNDING * magnitude(slopes), f"the slope {what}")
    if case.loss.weighted_by == "row":
        return
    try:
        case.at(case.points[0], case.weight * (1.0 + np.arange(_ROWS)))
    except ValueError:
        return
    raise AssertionError(f"{case.name} takes a weight for each row, though it is weighted by {case.loss.weighted_by}")


def _check_zero_weights(case: _Case) -> None:
    """A row of weight 0 counts for nothing, whatever its score."""
    weight = case.weight.copy()
    weight[::3] = 0.0
    f = case.points[1].copy()
    value, slopes = case.at(f, weight)
    require(not slopes[::3].any(), f"{case.name} gives a slope to rows of weight 0")
    for far in (5.0, 1e8, -1e8):
        f[::3] = far
        moved, moved_slopes = case.at(f, weight)
        what = f"{case.name} looks at rows of weight 0 (their scores became {far:g})"
        require_close(moved, value, _ROUNDING * magnitude(value), f"the value of {what}")
        require_close(moved_slopes, slopes, _ROUNDING * magnitude(slopes), f"the slopes of {what}")


def _check_convex(case: _Case) -> None:
    """Chords lie above: for the sum, and for each row alone where rows do not look at each other."""
    sentence = f"{case.name} is not convex: its value in the middle of two points exceeds the mean of theirs"

    def total(f: Array) -> Array:
        return np.array([case.at(f)[0]])

    for value in (total, case.rows) if case.loss.couples == "row" else (total,):
        for f, g in _pairs(case.points):
            before, after = value(f), value(g)
            slack = _ROUNDING * magnitude(before, after)
            require_at_most(value(0.5 * (f + g)), 0.5 * (before + after), slack, sentence)


def _check_slopes(case: _Case) -> None:
    """L(g) >= L(f) + <slopes at f, g - f>: what makes every plane of a bundle valid."""
    sentence = f"the slopes of {case.name} are no subgradient: L(g) >= L(f) + <l, g - f>"
    by_row = case.loss.couples == "row"
    for f, g in _pairs(case.points):
        (at_f, slopes), (at_g, _) = case.at(f), case.at(g)
        products = (slopes * (g - f)).reshape(_ROWS, -1).sum(axis=1)
        slack = _ROUNDING * magnitude(at_f, at_g, np.abs(products).sum())
        require_at_most(at_f + products.sum(), at_g, slack, sentence)
        if by_row:
            rows_f, rows_g = case.rows(f) * case.weight, case.rows(g) * case.weight
            slack = _ROUNDING * magnitude(rows_f, rows_g, products)
            require_at_most(rows_f + products, rows_g, slack, sentence)


def _pairs(points: list[Array]) -> list[tuple[Array, Array]]:
    """Return neighbors in the list, both ways, and every point with the first random ones."""
    pairs = [*pairwise(points), *((g, f) for f, g in pairwise(points))]
    return pairs + [(f, g) for f in points for g in points[:2] if f is not g]


def _check_floor(case: _Case) -> None:
    floor, weight = case.loss.floor, case.weight / case.weight.sum()
    for f in case.points if np.isfinite(floor) else []:
        value = case.at(f, weight)[0]
        slack = _ROUNDING * magnitude(value, floor)
        require_at_most(floor, value, slack, f"{case.name} falls below its floor {floor:g}")


def _check_differences(case: _Case) -> None:
    """Slopes of a smooth loss agree with finite differences and do not jump."""
    for f in case.points:
        slopes = case.at(f)[1]
        before, after = case.at(f - _STEP)[1], case.at(f + _STEP)[1]
        slack = 1e-4 * magnitude(slopes)
        require_close(before, after, slack, f"{case.name} says that it is smooth, but its slope jumps")
        units = np.eye(f.size).reshape(f.size, *f.shape)
        ends = [[case.at(f + h * unit)[0] for unit in units] for h in (-_STEP, _STEP)]
        differences = (np.array(ends[1]) - np.array(ends[0])).reshape(f.shape) / (2.0 * _STEP)
        slack = 1e-4 * magnitude(slopes) + 1e-9 * magnitude(ends[0]).reshape(f.shape)
        require_close(slopes, differences, slack, f"the slopes of {case.name} differ from finite differences")


def _check_huge_scores(case: _Case) -> None:
    one = np.ones_like(case.points[0])
    signs = np.where(np.arange(one.size) % 2 == 0, 1.0, -1.0).reshape(one.shape)
    for size in (1e2, 1e4, 1e8):
        for f in (size * one, -size * one, size * signs):
            value, slopes = case.at(f)
            where = f"at scores of size {size:g}"
            require(not np.isnan(value), f"the value of {case.name} is NaN {where}")
            require(value > -np.inf, f"the value of {case.name} is -inf {where}")
            bad = np.isnan(slopes) if np.isinf(value) else ~np.isfinite(slopes)
            require(not bad.any(), f"the slope of {case.name} in row {np.argmax(bad)} is not finite {where}")


def _check_decide(case: _Case) -> None:
    for f in case.points[:3]:
        decided = np.asarray(case.loss.decide(f.copy()))
        require(len(decided) == _ROWS, f"decide of {case.name} returns {len(decided)} answers for {_ROWS} scores")
        if case.loss.task == "ranking":
            continue  # the answer is an order, not grades
        try:
            case.loss.encode(decided, case.groups)
        except ValueError as error:
            raise AssertionError(f"decide of {case.name} returns what encode rejects: {error}") from error


def _check_bad_targets(case: _Case) -> None:
    if not (case.loss.needs_targets and isinstance(case.y, np.ndarray)):
        return
    for bad in (np.nan, np.inf, -np.inf):
        y = case.y.astype(np.float64)
        y.flat[1] = bad
        try:
            case.loss.encode(y, case.groups)
        except ValueError:
            continue
        raise AssertionError(f"encode of {case.name} accepts a target that is {bad}")


def _check_kernel(case: _Case) -> None:
    kernel = case.loss.kernel()
    for f in case.points if kernel is not None else []:
        value, slopes = case.at(f)
        compiled = np.empty_like(f)
        compiled_value, total = kernel.evaluate(f, case.targets, case.weight, 1.0, compiled)
        what = f"of the kernel of {case.name} differs from evaluate"
        require_close(compiled_value, value, 1e-12 * magnitude(value), f"the value {what}")
        require_close(compiled, slopes, 1e-12 * magnitude(slopes), f"the slope {what}")
        slack = 1e-12 * magnitude(np.abs(slopes).sum())
        require_close(total, slopes.sum(), slack, f"the sum of slopes {what}")


def _check_prox(case: _Case) -> None:
    """z = v - q s with a subgradient s at z: that makes z the proximal point."""
    kernel = case.loss.kernel()
    for v in case.points if kernel is not None else []:
        for q in (0.0, 1e-6, 0.3, 1.0, 40.0):
            z, slopes = np.empty_like(v), np.empty_like(v)
            kernel.prox(v, case.targets, q, z, slopes)
            what = f"the proximal map of {case.name} (q = {q:g})"
            slack = _ROUNDING * magnitude(v, z, q * slopes)
            require_close(z + q * slopes, v, slack, f"{what} does not satisfy z + q s = v")
            at_z = case.rows(z)
            for g in case.points[:4]:
                at_g, products = case.rows(g), slopes * (g - z)
                slack = _ROUNDING * magnitude(at_z, at_g, products)
                require_at_most(at_z + products, at_g, slack, f"the slopes of {what} are no subgradients at z")


def _check_pickle(case: _Case) -> None:
    cls = type(case.loss)
    if getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is not cls:
        return
    again = pickle.loads(pickle.dumps(case.loss))
    value, slopes = case.at(case.points[1])
    other, other_slopes = again.evaluate(case.points[1], case.targets, case.weight)
    same = value == other and np.array_equal(slopes, other_slopes)
    require(same, f"{case.name} is another loss after pickling")
