"""The nu-trick: a margin, or a width, that is learned, with a share nu of the rows beyond it (S08 section 2).

A learned number rho that counts nu rho in the risk can be minimized away: what is left is the mean of the worst rows,
those with a total weight of nu. So these losses look at all rows, and bring no coordinate of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bmrm._traits import Trait
from bmrm.losses.base import Array, Loss, Targets, finite_targets
from bmrm.losses.binary import draw_signs, signs


def worst_share(losses: Array, weight: Array, nu: float) -> tuple[float, Array]:
    """Return the largest sum theta_i losses_i with 0 <= theta_i <= p_i and sum theta_i = nu, and theta.

    p are the weights divided by their sum: the rows with the largest losses take theta_i = p_i until nu is used up.
    """
    p = weight / weight.sum()
    order = np.argsort(-losses, kind="stable")
    theta = np.empty_like(p)
    before = np.concatenate([[0.0], np.cumsum(p[order])[:-1]])
    theta[order] = np.clip(nu - before, 0.0, p[order])
    counts = theta > 0.0  # a row of weight 0 may have any loss
    return float(theta[counts] @ losses[counts]), theta


class NuLoss(Loss):
    """A loss with a learned margin; `learned` tells where it lies."""

    couples: ClassVar[Literal["all"]] = "all"
    nu: float

    def _check(self) -> None:
        number = isinstance(self.nu, (int, float, np.number)) and not isinstance(self.nu, bool)
        if not (number and 0.0 < self.nu <= 1.0):
            raise ValueError(f"parameter 'nu' of loss '{self.name}' must be above 0 and at most 1, got {self.nu!r}")

    def largest_slopes(self, targets: Targets, weight: Array) -> float:
        """Return twice the norm of the weights: no row counts more, and the sum of what cancels is rounded."""
        return 2.0 * float(np.linalg.norm(weight / weight.sum()))

    def growth(self, scores: Array, targets: Targets, weight: Array, e: float) -> float:
        """Return e times the largest slopes."""
        return e * self.largest_slopes(targets, weight)


@dataclass(frozen=True)
class NuHinge(NuLoss, name="nu_hinge"):
    """min over rho of sum_i p_i max(0, rho - y f) - nu rho: the hinge with a margin rho that is learned.

    Equal to minus the sum of the smallest margins y_i f_i, those with a total weight of nu: at the optimum at most a
    share nu of the rows lies inside the margin, and at least that share on it or inside. Piecewise linear, 0 at 0, and
    without a lower bound: it needs a penalty that grows like a square. With an intercept nu must not exceed twice the
    share of the smaller class. Targets are -1 and 1 (or 0 and 1). Solved by the bundle methods.

    Parameters
    ----------
    nu : float
        Above 0, at most 1.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.NuHinge(nu=0.5)
    >>> f, y = np.array([2.0, -1.0, 0.5, 0.0]), loss.encode([1, -1, 1, 1])
    >>> loss.evaluate(f, y, np.ones(4))[0], loss.learned(f, y, np.ones(4))
    (-0.125, 0.5)

    References
    ----------
    S08 section 2.
    """

    nu: float = 0.5

    task: ClassVar[Literal["classification"]] = "classification"
    traits = frozenset({Trait.UNBOUNDED_RISK})
    floor = -np.inf

    def __post_init__(self) -> None:
        self._check()

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Return the targets as -1.0 and 1.0."""
        self.refuse_groups(groups)
        return signs(y, self.name)

    def evaluate(self, scores: Array, targets: Targets, weight: Array) -> tuple[float, Array]:
        """Return the loss and its slopes; the scale of the weights does not matter."""
        value, theta = worst_share(-targets * scores, weight, self.nu)
        return value, -theta * targets

    def learned(self, scores: Array, targets: Targets, weight: Array) -> float:
        """Return the margin rho: the largest of the margins that count."""
        z = targets * scores
        return float(np.max(z[worst_share(-z, weight, self.nu)[1] > 0.0]))

    def decide(self, scores: Array) -> Array:
        """Return the sign of each score; 0 counts as positive."""
        return np.where(scores >= 0.0, 1.0, -1.0)

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Array, None]:
        """Draw random signs, both present."""
        return draw_signs(rng, m), None


@dataclass(frozen=True)
class NuEpsilonInsensitive(NuLoss, name="nu_epsilon_insensitive"):
    """min over eps >= 0 of sum_i p_i max(0, |f - y| - eps) + nu eps: regression in a tube whose width is learned.

    Equal to the sum of the largest errors |f_i - y_i|, those with a total weight of nu: at the optimum at most a share
    nu of the rows lies outside the tube, and at least that share on its edge or outside. Piecewise linear. With nu = 1
    it is `LeastAbsolute`. Solved by the bundle methods.

    Parameters
    ----------
    nu : float
        Above 0, at most 1.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.NuEpsilonInsensitive(nu=0.5)
    >>> f, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.5, 1.0, 4.0])
    >>> loss.evaluate(f, y, np.ones(4))[0], loss.learned(f, y, np.ones(4))
    (0.625, 0.5)

    References
    ----------
    S08 section 2.
    """

    nu: float = 0.5
    floor = 0.0

    def __post_init__(self) -> None:
        self._check()

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Return the targets as numbers."""
        self.refuse_groups(groups)
        return finite_targets(y)

    def evaluate(self, scores: Array, targets: Targets, weight: Array) -> tuple[float, Array]:
        """Return the loss and its slopes; the scale of the weights does not matter."""
        residual = scores - targets
        value, theta = worst_share(np.abs(residual), weight, self.nu)
        return value, theta * np.sign(residual)

    def learned(self, scores: Array, targets: Targets, weight: Array) -> float:
        """Return half the width of the tube: the least of the errors that count."""
        errors = np.abs(scores - targets)
        return float(np.min(errors[worst_share(errors, weight, self.nu)[1] > 0.0]))
