"""How much one row can say: bounds of its slope and of the height of its tangent, for the losses that have them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from bmrm.losses import Loss
from bmrm.losses.binary import Hinge, HuberHinge, Logistic, Novelty, Perceptron
from bmrm.losses.multiclass import MulticlassHinge, Softmax
from bmrm.losses.regression import EpsilonInsensitive, Huber, LeastAbsolute, Quantile


@dataclass(frozen=True)
class RowBounds:
    """What holds for one row at any scores f, with s = l'(f), for targets up to the bound in size.

    Attributes
    ----------
    slope : float
        G: the Euclidean norm of s is at most G.
    least, most : float
        The tangent's height at f = 0, l(f) - <s, f>, lies between them: the offset of a plane is a mean of these.
    bend : float
        About how fast slopes change with the score; for step sizes only, no proof rests on it.
    """

    slope: float
    least: float
    most: float
    bend: float

    @property
    def range(self) -> float:
        """The length of the interval of heights."""
        return self.most - self.least


_Rule: TypeAlias = Callable[[Any, int, float], RowBounds]

_SCORES = 4.0  # margins of a trained model mostly lie between -2 and 2: slopes change over about that


def _residual(left: float, right: float, kink: float, y: float) -> RowBounds:
    """Return the bounds of a loss of f - y with slopes from -left to right and heights off by at most a kink."""
    steepest = max(left, right)
    height = steepest * y + kink
    return RowBounds(steepest, -height, steepest * y, (left + right) / (2.0 * y) if y > 0.0 else 1.0)


def _huber_hinge(loss: HuberHinge, k: int, y: float) -> RowBounds:
    at_zero = 1.0 if loss.h <= 1.0 else (1.0 + loss.h) ** 2 / (4.0 * loss.h)
    return RowBounds(1.0, 0.0, at_zero, 1.0 / _SCORES)


def _multiclass_hinge(loss: MulticlassHinge, k: int, y: float) -> RowBounds:
    return RowBounds(math.sqrt(2.0), 0.0, float(loss.costs(k).max(initial=0.0)), 2.0 / _SCORES)


def _novelty(loss: Novelty, k: int, y: float) -> RowBounds:
    return RowBounds(1.0, min(0.0, loss.rho), max(0.0, loss.rho), 1.0 / _SCORES)


_RULES: dict[type[Loss], _Rule] = {
    Perceptron: lambda loss, k, y: RowBounds(1.0, 0.0, 0.0, 1.0 / _SCORES),
    Hinge: lambda loss, k, y: RowBounds(1.0, 0.0, 1.0, 1.0 / _SCORES),
    HuberHinge: _huber_hinge,
    Logistic: lambda loss, k, y: RowBounds(1.0, 0.0, math.log(2.0), 1.0 / _SCORES),
    Novelty: _novelty,
    LeastAbsolute: lambda loss, k, y: _residual(1.0, 1.0, 0.0, y),
    Quantile: lambda loss, k, y: _residual(loss.tau, 1.0 - loss.tau, 0.0, y),
    EpsilonInsensitive: lambda loss, k, y: _residual(1.0, 1.0, loss.eps, y),
    Huber: lambda loss, k, y: _residual(loss.delta, loss.delta, 0.5 * loss.delta**2, y),
    MulticlassHinge: _multiclass_hinge,
    Softmax: lambda loss, k, y: RowBounds(math.sqrt(2.0), 0.0, math.log(k), 2.0 / _SCORES),
}


def private_losses() -> list[str]:
    """Return the names of the losses whose rows have bounds.

    Examples
    --------
    >>> from bmrm.owners.row_bounds import private_losses
    >>> "hinge" in private_losses(), "least_squares" in private_losses()
    (True, False)
    """
    return sorted(loss.name for loss in _RULES)


def row_bounds(loss: Loss, n_classes: int, largest_target: float | None) -> RowBounds:
    """Return the bounds of one row; raise ValueError for a loss that has none.

    Parameters
    ----------
    loss : Loss
    n_classes : int
    largest_target : float or None
        The bound of targets that are numbers: larger ones are cut off there.

    Examples
    --------
    >>> import bmrm
    >>> from bmrm.owners.row_bounds import row_bounds
    >>> row_bounds(bmrm.losses.Hinge(), 2, None).slope
    1.0
    """
    rule = _RULES.get(type(loss))
    if rule is None:
        raise ValueError(
            f"loss '{loss.name}' does not bound what one row can say; with privacy these work: "
            f"{', '.join(private_losses())}"
        )
    if loss.task == "regression" and largest_target is None:
        raise ValueError(f"loss '{loss.name}' with privacy needs a bound of the targets (target_bound, --target-bound)")
    return rule(loss, n_classes, 0.0 if largest_target is None else largest_target)
