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


def true_scores(F, ids):
    return F[np.arange(len(F)), ids][:, None]


def zero_one(k):
    return 1.0 - np.eye(k)


def multiclass(F, ids, delta, factor=1.0):
    return np.max(factor * (F - true_scores(F, ids)) + delta, axis=1)


def scaled_multiclass(loss, F, y):
    delta = (zero_one(y.k) if loss.delta is None else np.array(loss.delta))[y.ids]
    if loss.rescaling == "slack":
        return np.max(delta * (1 + F - true_scores(F, y.ids)), axis=1)
    return np.max(np.where(delta > 0, delta**loss.beta, 0.0) * (F - true_scores(F, y.ids) + delta), axis=1)


def softmax(F, ids):
    return np.logaddexp.reduce(F, axis=1) - true_scores(F, ids)[:, 0]


def multilabel(loss, F, y):
    values = []
    for f, has in zip(F, y.indicator()):
        cost = np.full((y.k, y.k), loss.margin) if loss.delta is None else np.array(loss.delta)
        pairs = [cost[z, o] + f[o] - f[z] for z in np.flatnonzero(has) for o in np.flatnonzero(~has)]
        values.append(max([0.0, *pairs]))
    return np.array(values)


def class_scores(loss, F):
    """The scores of the classes: sums over paths, each written out."""
    return np.stack([F[:, loss.tree.path(c)].sum(axis=1) for c in loss.classes()], axis=1)


def tree_costs(loss):
    if loss.delta is not None:
        return np.array(loss.delta)
    paths = [set(loss.tree.path(c)) for c in loss.classes()]
    return np.array([[len(a ^ b) for b in paths] for a in paths], dtype=float)


def multivariate(loss, F, y):
    M = np.eye(F.shape[1]) if loss.M is None else np.array(loss.M)
    return 0.5 * np.einsum("ia,ab,ib->i", F - y, M, F - y)


NAIVE: dict[str, Callable] = {
    "multiclass_hinge": lambda loss, F, y: multiclass(F, y.ids, loss.costs(y.k)[y.ids]),
    "scaled_multiclass_hinge": scaled_multiclass,
    "softmax": lambda loss, F, y: softmax(F, y.ids),
    "multivariate_regression": multivariate,
    "multilabel_hinge": multilabel,
    "hierarchical_hinge": lambda loss, F, y: multiclass(class_scores(loss, F), y.ids, tree_costs(loss)[y.ids]),
    "hierarchical_softmax": lambda loss, F, y: softmax(class_scores(loss, F), y.ids),
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
