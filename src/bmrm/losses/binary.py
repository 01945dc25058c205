"""Losses of the margin y f with y in {-1, 1}, and the novelty losses, which have no target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._traits import Trait
from bmrm.losses.base import Array, Loss, Targets, between, finite_targets, positive, real_targets
from bmrm.losses.scalar import PIECEWISE, SMOOTH, SMOOTH_PIECEWISE, ScalarLoss


def signs(y: npt.ArrayLike, loss: str) -> Array:
    """Return targets -1 and 1, or 0 and 1 (or booleans), as -1.0 and 1.0."""
    values = real_targets(y)
    if _core.all_signs(values):
        return values
    finite_targets(values)
    if values.size and values.min() == 0.0 and np.all((values == 0.0) | (values == 1.0)):
        return 2.0 * values - 1.0
    found = ", ".join(f"{label:g}" for label in np.unique(values)[:6])
    row = int(np.argmax(~np.isin(values, (-1.0, 0.0, 1.0))))
    raise ValueError(
        f"target of row {row} is {values[row]:g}, but loss '{loss}' takes -1 and 1 (or 0 and 1); "
        f"the targets here are {found}"
    )


def draw_signs(rng: np.random.Generator, m: int) -> Array:
    """Draw random signs, both present."""
    y = np.where(rng.random(m) < 0.5, -1.0, 1.0)
    y[:2] = [1.0, -1.0][:m]
    return y


class MarginLoss(ScalarLoss):
    """A loss of the margin z = y f. Targets are -1 and 1; 0 and 1 (or booleans) are taken for them."""

    task: ClassVar[Literal["classification"]] = "classification"

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Return the targets as -1.0 and 1.0."""
        self.refuse_groups(groups)
        return signs(y, self.name)

    def decide(self, scores: Array) -> Array:
        """Return the sign of each score; 0 counts as positive."""
        return np.where(scores >= 0.0, 1.0, -1.0)

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Array, None]:
        """Draw random signs, both present."""
        return draw_signs(rng, m), None


@dataclass(frozen=True)
class Perceptron(MarginLoss, name="perceptron"):
    """max(0, -y f): the perceptron's loss, called hinge in T07.

    Piecewise linear, 0 where the sign is right. Its optimum under any norm is w = 0: it is here for completeness
    and for problems with constraints or offsets.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.losses.Perceptron().evaluate(np.array([2.0, -3.0]), np.array([1.0, 1.0]), np.ones(2))[0]
    3.0

    References
    ----------
    T07 table 1.
    """

    traits = PIECEWISE
    floor = 0.0


@dataclass(frozen=True)
class SquaredPerceptron(MarginLoss, name="squared_perceptron"):
    """1/2 max(0, -y f)^2: the smooth perceptron loss.

    Differentiable, 0 where the sign is right; like `Perceptron` its optimum under any norm is w = 0.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.losses.SquaredPerceptron().evaluate(np.array([-3.0]), np.array([1.0]), np.ones(1))[0]
    4.5

    References
    ----------
    T07 table 1.
    """

    traits = SMOOTH_PIECEWISE
    floor = 0.0


@dataclass(frozen=True)
class Hinge(MarginLoss, name="hinge"):
    """max(0, 1 - y f): the support vector machine's loss (soft margin).

    Piecewise linear, 0 for margins of 1 and more.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.losses.Hinge().evaluate(np.array([0.5, 2.0]), np.array([1.0, 1.0]), np.ones(2))[0]
    0.5

    References
    ----------
    T07 table 1 ("soft margin").
    """

    traits = PIECEWISE
    floor = 0.0


@dataclass(frozen=True)
class SquaredHinge(MarginLoss, name="squared_hinge"):
    """1/2 max(0, 1 - y f)^2: the smooth support vector machine's loss.

    Note the factor 1/2: C of LIBLINEAR is 1 / (2 lam m) for this loss.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.losses.SquaredHinge().evaluate(np.array([-1.0]), np.array([1.0]), np.ones(1))[0]
    2.0

    References
    ----------
    T07 table 1 ("squared soft margin").
    """

    traits = SMOOTH_PIECEWISE
    floor = 0.0


@dataclass(frozen=True)
class HuberHinge(MarginLoss, name="huber_hinge"):
    """Hinge smoothed on |1 - z| <= h: 0 if z > 1 + h; (1 + h - z)^2 / (4h) within; 1 - z below; z = y f.

    Parameters
    ----------
    h : float
        Half the width of the quadratic part, above 0.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.losses.HuberHinge(h=0.5).evaluate(np.array([1.0]), np.array([1.0]), np.ones(1))[0]
    0.125
    """

    h: float = 0.5
    floor = 0.0

    def __post_init__(self) -> None:
        positive(self.h, "h", "huber_hinge")

    def shift_size(self, targets: Targets) -> float:
        """Return the norm of 1 + h, from which margins are taken off."""
        return (1.0 + self.h) * float(np.sqrt(len(targets)))

    traits = SMOOTH_PIECEWISE

    @classmethod
    def examples(cls) -> list[Loss]:
        """Narrow and wide."""
        return [cls(h=0.5), cls(h=2.0)]


@dataclass(frozen=True)
class Exponential(MarginLoss, name="exponential"):
    """exp(-y f): the loss of boosting.

    Differentiable, never 0. It is +inf where y f < -709.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.losses.Exponential().evaluate(np.zeros(1), np.array([1.0]), np.ones(1))[0]
    1.0

    References
    ----------
    T07 table 1.
    """

    traits = SMOOTH
    floor = 0.0


@dataclass(frozen=True)
class Logistic(MarginLoss, name="logistic"):
    """log(1 + exp(-y f)): logistic regression.

    Differentiable; P(y = 1 | x) = 1 / (1 + exp(-f)).

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> round(bmrm.losses.Logistic().evaluate(np.zeros(1), np.array([1.0]), np.ones(1))[0], 6)
    0.693147

    References
    ----------
    T07 table 1.
    """

    traits = SMOOTH
    floor = 0.0


class _OneClass(ScalarLoss):
    """A loss without targets: large scores are normal, small ones are novel."""

    task: ClassVar[Literal["novelty"]] = "novelty"
    needs_targets: ClassVar[bool] = False

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Array, None]:
        """Return zeros: there are no targets."""
        return np.zeros(m), None

    traits = PIECEWISE


@dataclass(frozen=True)
class Novelty(_OneClass, name="novelty"):
    """max(0, rho - f): one-class novelty detection with a fixed threshold rho.

    Parameters
    ----------
    rho : float
        The score that a normal row should reach.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.losses.Novelty(rho=1.0).evaluate(np.array([0.25]), np.zeros(1), np.ones(1))[0]
    0.75

    References
    ----------
    T07 table 1 (the slope is 0 from f >= rho on).
    """

    rho: float = 1.0
    floor = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.rho, (int, float)) or not np.isfinite(self.rho):
            raise ValueError(f"parameter 'rho' of loss 'novelty' must be finite, got {self.rho!r}")

    def decide(self, scores: Array) -> Array:
        """Return 1 where the score reaches rho, else -1."""
        return np.where(scores >= self.rho, 1.0, -1.0)

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return two thresholds."""
        return [cls(), cls(rho=0.3)]


@dataclass(frozen=True)
class NuNovelty(_OneClass, name="nu_novelty"):
    """max(0, rho - f) - nu rho, rho learned and not penalized: one-class novelty detection by the nu-trick.

    At most a share nu of the rows ends up below the threshold rho. The risk's constant column carries -rho, so
    that a score is f - rho: the loss proper is max(0, -score) and the term -nu rho is the risk's `tilt`. The
    risk has no lower bound of its own; the regularizer must be strongly convex.

    Parameters
    ----------
    nu : float
        Share of the rows that may be called novel, between 0 and 1.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> risk = bmrm.LinearRisk(np.eye(2), None, bmrm.losses.NuNovelty(nu=0.5))
    >>> risk.evaluate(np.array([1.0, 0.0, -1.0]))[0]  # rho = 1, scores 0 and -1
    0.0

    References
    ----------
    S08 section 2.
    """

    nu: float = 0.1

    def __post_init__(self) -> None:
        between(self.nu, "nu", "nu_novelty")

    traits = PIECEWISE | {Trait.UNBOUNDED_RISK}
    floor = -np.inf
    learns_offset = True

    @property
    def tilt(self) -> float:  # type: ignore[override]
        """Return nu: the constant column holds -rho."""
        return self.nu

    def kernel(self) -> _core.ScalarLoss:
        """Return the compiled loss of a score from which rho is already taken away."""
        return _core.scalar_loss("novelty", [0.0])

    def decide(self, scores: Array) -> Array:
        """Return 1 where the score is not below the learned threshold, else -1."""
        return np.where(scores >= 0.0, 1.0, -1.0)

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return a small and a large share."""
        return [cls(nu=0.1), cls(nu=0.5)]
