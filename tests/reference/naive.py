"""One line of NumPy for each loss, from the catalogue's formulas: name -> function(loss, f, y) -> value of each row.

Losses of several rows are in `sets`: name -> function(loss, y, groups, weight) -> terms.

`nu_novelty` takes scores from which rho is already taken away; its term -nu rho is the risk's, not the loss's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def positive_part(z):
    return np.maximum(0.0, z)


def huber_hinge(z, h):
    return np.where(z > 1 + h, 0.0, np.where(np.abs(1 - z) <= h, (1 + h - z) ** 2 / (4 * h), 1 - z))


def huber(r, delta):
    return np.where(np.abs(r) < delta, 0.5 * r**2, delta * (np.abs(r) - 0.5 * delta))


def poisson(f, y):
    return np.exp(f) - y * f + y * np.log(np.where(y > 0, y, 1.0)) - y


def piecewise_quadratic(loss, f, y):
    z = {"residual": f - y, "margin": y * f, "score": f}[loss.of]
    a, b, c = np.array(loss.coefficients)[np.searchsorted(loss.knots, z)].T
    return a * z**2 + b * z + c


NAIVE: dict[str, Callable] = {
    "perceptron": lambda loss, f, y: positive_part(-y * f),
    "squared_perceptron": lambda loss, f, y: 0.5 * positive_part(-y * f) ** 2,
    "hinge": lambda loss, f, y: positive_part(1 - y * f),
    "squared_hinge": lambda loss, f, y: 0.5 * positive_part(1 - y * f) ** 2,
    "huber_hinge": lambda loss, f, y: huber_hinge(y * f, loss.h),
    "exponential": lambda loss, f, y: np.exp(-y * f),
    "logistic": lambda loss, f, y: np.logaddexp(0.0, -y * f),
    "novelty": lambda loss, f, y: positive_part(loss.rho - f),
    "nu_novelty": lambda loss, f, y: positive_part(-f),
    "least_squares": lambda loss, f, y: 0.5 * (f - y) ** 2,
    "least_absolute": lambda loss, f, y: np.abs(f - y),
    "quantile": lambda loss, f, y: np.maximum(loss.tau * (y - f), (1 - loss.tau) * (f - y)),
    "epsilon_insensitive": lambda loss, f, y: positive_part(np.abs(f - y) - loss.eps),
    "squared_epsilon_insensitive": lambda loss, f, y: 0.5 * positive_part(np.abs(f - y) - loss.eps) ** 2,
    "huber": lambda loss, f, y: huber(f - y, loss.delta),
    "poisson": lambda loss, f, y: poisson(f, y),
    "piecewise_quadratic": piecewise_quadratic,
}
