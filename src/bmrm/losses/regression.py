"""Losses of the residual f - y, and Poisson regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmrm.losses.base import Array, Loss, Targets, between, in_domain, positive
from bmrm.losses.scalar import PIECEWISE, SMOOTH, SMOOTH_PIECEWISE, ScalarLoss


@dataclass(frozen=True)
class LeastSquares(ScalarLoss, name="least_squares"):
    """1/2 (f - y)^2: least squares, ridge regression with `l2`, the lasso with `l1`.

    Differentiable; estimates the mean.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.losses.LeastSquares().evaluate(np.array([3.0]), np.array([1.0]), np.ones(1))[0]
    2.0

    References
    ----------
    T07 table 1.
    """

    traits = SMOOTH_PIECEWISE
    floor = 0.0


@dataclass(frozen=True)
class LeastAbsolute(ScalarLoss, name="least_absolute"):
    """|f - y|: least absolute deviation.

    Piecewise linear; estimates the median.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.losses.LeastAbsolute().evaluate(np.array([3.0]), np.array([1.0]), np.ones(1))[0]
    2.0

    References
    ----------
    T07 table 1.
    """

    traits = PIECEWISE
    floor = 0.0


@dataclass(frozen=True)
class Quantile(ScalarLoss, name="quantile"):
    """max(tau (y - f), (1 - tau)(f - y)): quantile regression (pinball loss).

    Piecewise linear; estimates the tau-quantile in scikit-learn's sense of the word (tau = 0.9: nine tenths of
    the targets lie below the prediction), which is the opposite of T07's.

    Parameters
    ----------
    tau : float
        The quantile, between 0 and 1.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.Quantile(tau=0.75)
    >>> loss.evaluate(np.array([0.0]), np.array([2.0]), np.ones(1))[0]  # too low costs more
    1.5

    References
    ----------
    T07 table 1.
    """

    tau: float = 0.5
    traits = PIECEWISE
    floor = 0.0

    def __post_init__(self) -> None:
        between(self.tau, "tau", "quantile")

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return the median and an upper quantile."""
        return [cls(tau=0.5), cls(tau=0.9)]


@dataclass(frozen=True)
class EpsilonInsensitive(ScalarLoss, name="epsilon_insensitive"):
    """max(0, |f - y| - eps): support vector regression.

    Piecewise linear, 0 within eps of the target.

    Parameters
    ----------
    eps : float
        Half the width of the tube, at least 0.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.losses.EpsilonInsensitive(eps=0.5).evaluate(np.array([3.0]), np.array([1.0]), np.ones(1))[0]
    1.5

    References
    ----------
    T07 table 1.
    """

    eps: float = 0.1
    traits = PIECEWISE
    floor = 0.0

    def __post_init__(self) -> None:
        positive(self.eps, "eps", "epsilon_insensitive", allow_zero=True)

    def shift_size(self, targets: Targets) -> float:
        """Return the norm of |y| + eps: eps is taken off a residual that is rounded."""
        return float(np.linalg.norm(np.abs(targets) + self.eps))

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return a narrow and a wide tube."""
        return [cls(eps=0.1), cls(eps=1.0)]


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(ScalarLoss, name="squared_epsilon_insensitive"):
    """1/2 max(0, |f - y| - eps)^2: smooth support vector regression.

    Differentiable, 0 within eps of the target. LIBLINEAR's version has no factor 1/2.

    Parameters
    ----------
    eps : float
        Half the width of the tube, at least 0.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.SquaredEpsilonInsensitive(eps=1.0)
    >>> loss.evaluate(np.array([4.0]), np.array([1.0]), np.ones(1))[0]
    2.0
    """

    eps: float = 0.1
    traits = SMOOTH_PIECEWISE
    floor = 0.0

    def __post_init__(self) -> None:
        positive(self.eps, "eps", "squared_epsilon_insensitive", allow_zero=True)

    def shift_size(self, targets: Targets) -> float:
        """Return the norm of |y| + eps: eps is taken off a residual that is rounded."""
        return float(np.linalg.norm(np.abs(targets) + self.eps))

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return a narrow and a wide tube."""
        return [cls(eps=0.1), cls(eps=1.0)]


@dataclass(frozen=True)
class Huber(ScalarLoss, name="huber"):
    """1/2 (f - y)^2 if |f - y| < delta, else delta (|f - y| - delta/2): Huber's robust loss.

    Differentiable. The scale is given, not learned: scikit-learn's HuberRegressor solves another problem.

    Parameters
    ----------
    delta : float
        Where the quadratic part ends, above 0.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.losses.Huber(delta=1.0).evaluate(np.array([3.0]), np.array([0.0]), np.ones(1))[0]
    2.5

    References
    ----------
    T07 table 1.
    """

    delta: float = 1.0
    traits = SMOOTH_PIECEWISE
    floor = 0.0

    def __post_init__(self) -> None:
        positive(self.delta, "delta", "huber")

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return a narrow and a wide quadratic part."""
        return [cls(delta=1.0), cls(delta=0.2)]


@dataclass(frozen=True)
class Poisson(ScalarLoss, name="poisson"):
    """exp(f) - y f + (y log y - y): Poisson regression of counts y >= 0 with mean exp(f).

    Differentiable; half the deviance, so its smallest value is 0. It is +inf where f > 709.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> bmrm.losses.Poisson().evaluate(np.array([0.0]), np.array([0.0]), np.ones(1))[0]
    1.0

    References
    ----------
    T07 table 1.
    """

    traits = SMOOTH
    floor = 0.0

    def shift_size(self, targets: Targets) -> float:
        """Return the norm of ones: exp(d) - 1 - d, with d = f - log y, is rounded as its terms are."""
        return float(np.sqrt(len(targets)))

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Return the targets, all at least 0."""
        values = super().encode(y, groups)
        return in_domain(values, values >= 0.0, "numbers that are at least 0", self.name)

    def decide(self, scores: Array) -> Array:
        """Return the mean exp(f)."""
        return np.exp(np.minimum(scores, 709.0))

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Array, None]:
        """Draw counts, zeros among them."""
        y = rng.poisson(1.5, size=m).astype(np.float64)
        y[:1] = 0.0
        return y, None
