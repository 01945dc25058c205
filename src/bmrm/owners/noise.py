"""Gaussian noise on a grid, from the cryptographic generator of the operating system."""

from __future__ import annotations

import os

import numpy as np

from bmrm.risks.base import Array

# The step of the grid in standard deviations. Smaller steps cost less privacy: rounding adds sqrt(d) steps to the
# sensitivity, 0.05 % of it for 124 numbers and a noise of 20 sensitivities. With larger ones each value of the noise
# is hit by more of the 2^53 uniform numbers behind it, here by 2^33 of them near 0.
GRID = 2.0**-20


def steps_of_noise(n: int) -> Array:
    """Return n independent draws of round(N(0, 1) / GRID), by the method of Box and Muller.

    The values are whole numbers: no last bits of a sum with them depend on what they are added to.

    Examples
    --------
    >>> from bmrm.owners.noise import GRID, steps_of_noise
    >>> noise = GRID * steps_of_noise(10_000)
    >>> 0.9 < float(noise.std()) < 1.1
    True
    """
    pairs = (n + 1) // 2
    words = np.frombuffer(os.urandom(16 * pairs), np.uint64) >> np.uint64(11)
    u = (words.astype(np.float64) + 0.5) * 2.0**-53
    radius, angle = np.sqrt(-2.0 * np.log(u[:pairs])), 2.0 * np.pi * u[pairs:]
    normal = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:n]
    return np.rint(normal / GRID)


def on_grid(x: Array, sigma: Array, noise: Array) -> Array:
    """Return x on the grid of its noise, plus the noise.

    Both are whole multiples of the step sigma GRID. The sum is what rounding a continuous Gaussian mechanism on the
    rounded x would give, so it is as private as that, and its bits show nothing else (Mironov 2012 shows what the last
    bits of plain floating-point noise give away).

    Parameters
    ----------
    x : array
    sigma : array
        The standard deviation for each number.
    noise : array
        From `steps_of_noise`.
    """
    step = sigma * GRID
    return (np.rint(x / step) + noise) * step
