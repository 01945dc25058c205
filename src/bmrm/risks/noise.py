"""Noise: what a solver knows of planes that come with Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_FAILURE = 1e-3
FARTHEST = 250.0  # in units of the size of a trained w


@dataclass(frozen=True)
class Noise:
    """The noise of the planes of a risk, which come once for each w and are independent of each other.

    Attributes
    ----------
    normal, offset : float
        Standard deviations of the noise of each number of a normal, and of the offset.
    answers : int
        How many planes there will be.
    bend : float
        About how fast the gradient changes with w: the inverse of a step size.
    size : float
        About the largest norm of a trained w, for step sizes only.
    failure : float
        The probability that a certificate may fail with.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.risks.noise import Noise
    >>> Noise(normal=0.3, offset=0.4, answers=10, bend=1.0, size=2.0).variance(np.zeros(2))
    0.16000000000000003
    """

    normal: float
    offset: float
    answers: int
    bend: float
    size: float
    failure: float = _FAILURE

    @property
    def farthest(self) -> float:
        """The largest norm of a w that is answered."""
        return FARTHEST * self.size

    def variance(self, w: Array) -> float:
        """Return the variance of the noise of a plane at w."""
        return self.normal**2 * float(w @ w) + self.offset**2

    @staticmethod
    def quantile(failure: float) -> float:
        """Return z with P(N(0, 1) > z) = failure.

        Examples
        --------
        >>> from bmrm.risks.noise import Noise
        >>> round(Noise.quantile(1e-3), 2)
        3.09
        """
        return -NormalDist().inv_cdf(failure)

    def within(self, w: Array) -> Array:
        """Return w, or the nearest point in the ball that is answered."""
        size = float(np.linalg.norm(w))
        most = self.farthest * (1.0 - 1e-9)  # so that rounding leaves none outside
        return w if size <= most else w * (most / size)

    def rates(self, m: int) -> Array:
        """Return rates lambda for `deviation` of means of m planes, by factors of 2 over all sizes of w answered."""
        least, most = (math.sqrt(v / m) for v in (self.offset**2, self.offset**2 + (self.normal * self.farthest) ** 2))
        doublings = np.arange(math.ceil(math.log2(most / least)) + 1, dtype=np.float64)
        return np.asarray(4.0 / (least * np.exp2(doublings)))

    def deviation(self, variance: float, m: int, failure: float) -> float:
        """Return how far a mean of the noise at m points w may be off, each w chosen after the noise at earlier ones.

        With V the sum of the variances of the terms given what came before, exp(lambda M - lambda^2 V / 2) is a
        supermartingale for each lambda, so M <= lambda V / 2 + log(K / failure) / lambda for K of them at once.
        """
        rates = self.rates(m)
        return float(np.min(0.5 * rates * variance + math.log(rates.size / failure) / rates))
