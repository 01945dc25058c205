"""The losses as CVXPY expressions, and the optimum of small problems by an interior-point method (Clarabel).

Its own error is about 1e-9 relative, which `ERROR` allows for generously. A whole catalogue takes seconds, so
nothing is stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np

from reference import sets

ERROR = 1e-7


def piecewise_quadratic(loss: Any, f: cp.Expression, y: np.ndarray) -> tuple[cp.Expression, list]:
    """Split z into what lies left of the first knot and within each later piece: slopes grow, so they fill in order."""
    z = {"residual": f - y, "margin": cp.multiply(y, f), "score": f}[loss.of]
    knots, pieces = np.array(loss.knots), np.array(loss.coefficients)
    first = knots[0]
    parts = [cp.Variable(f.shape, nonneg=True) for _ in pieces]
    constraints = [z == first - parts[0] + sum(parts[1:])]
    constraints += [part <= width for part, width in zip(parts[1:-1], np.diff(knots))]
    value = np.polyval(pieces[0], first)
    for (a, b, _), begin, part, sign in zip(pieces, [first, *knots], parts, [-1.0] + [1.0] * len(knots)):
        value = value + a * cp.square(part) + sign * (2 * a * begin + b) * part
    return value, constraints


def true_scores(F: cp.Expression, ids: np.ndarray) -> cp.Expression:
    return cp.sum(cp.multiply(np.eye(F.shape[1])[ids], F), axis=1, keepdims=True)


def multiclass(F: cp.Expression, ids: np.ndarray, delta: np.ndarray, factor: np.ndarray) -> cp.Expression:
    difference = F - true_scores(F, ids) @ np.ones((1, F.shape[1]))
    return cp.max(cp.multiply(factor[ids], difference) + delta[ids], axis=1)


def softmax(F: cp.Expression, ids: np.ndarray) -> cp.Expression:
    return cp.log_sum_exp(F, axis=1) - cp.sum(true_scores(F, ids), axis=1)


def multilabel(loss: Any, F: cp.Expression, y: Any) -> cp.Expression:
    k = y.k
    cost = np.full((k, k), loss.margin) if loss.delta is None else np.array(loss.delta)
    rows = []
    for i, has in enumerate(y.indicator()):
        pairs = [cost[z, o] + F[i, o] - F[i, z] for z in np.flatnonzero(has) for o in np.flatnonzero(~has)]
        rows.append(cp.maximum(0.0, *pairs) if pairs else cp.Constant(0.0))
    return cp.hstack(rows)


def on_classes(loss: Any, F: cp.Expression) -> cp.Expression:
    return F @ loss.tree.on_paths()[loss.classes()].T


def multivariate(loss: Any, F: cp.Expression, y: np.ndarray) -> cp.Expression:
    values, vectors = np.linalg.eigh(np.eye(y.shape[1]) if loss.M is None else np.array(loss.M))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return 0.5 * cp.sum(cp.square((F - y) @ root), axis=1)


VECTOR_LOSSES: dict[str, Callable] = {
    "multiclass_hinge": lambda loss, F, y: multiclass(F, y.ids, loss.costs(y.k), np.ones((y.k, y.k))),
    "scaled_multiclass_hinge": lambda loss, F, y: multiclass(F, y.ids, *reversed(loss.parts(y.k))),
    "softmax": lambda loss, F, y: softmax(F, y.ids),
    "multivariate_regression": multivariate,
    "multilabel_hinge": multilabel,
    "hierarchical_hinge": lambda loss, F, y: multiclass(on_classes(loss, F), y.ids, loss.costs(), np.ones((y.k, y.k))),
    "hierarchical_softmax": lambda loss, F, y: softmax(on_classes(loss, F), y.ids),
}

LOSSES: dict[str, Callable] = {
    **VECTOR_LOSSES,
    "perceptron": lambda loss, f, y: cp.pos(-cp.multiply(y, f)),
    "squared_perceptron": lambda loss, f, y: 0.5 * cp.square(cp.pos(-cp.multiply(y, f))),
    "hinge": lambda loss, f, y: cp.pos(1 - cp.multiply(y, f)),
    "squared_hinge": lambda loss, f, y: 0.5 * cp.square(cp.pos(1 - cp.multiply(y, f))),
    "huber_hinge": lambda loss, f, y: cp.huber(cp.pos(1 + loss.h - cp.multiply(y, f)), 2 * loss.h) / (4 * loss.h),
    "exponential": lambda loss, f, y: cp.exp(-cp.multiply(y, f)),
    "logistic": lambda loss, f, y: cp.logistic(-cp.multiply(y, f)),
    "novelty": lambda loss, f, y: cp.pos(loss.rho - f),
    "nu_novelty": lambda loss, f, y: cp.pos(-f),
    "least_squares": lambda loss, f, y: 0.5 * cp.square(f - y),
    "least_absolute": lambda loss, f, y: cp.abs(f - y),
    "quantile": lambda loss, f, y: cp.maximum(loss.tau * (y - f), (1 - loss.tau) * (f - y)),
    "epsilon_insensitive": lambda loss, f, y: cp.pos(cp.abs(f - y) - loss.eps),
    "squared_epsilon_insensitive": lambda loss, f, y: 0.5 * cp.square(cp.pos(cp.abs(f - y) - loss.eps)),
    "huber": lambda loss, f, y: 0.5 * cp.huber(f - y, loss.delta),
    "poisson": lambda loss, f, y: cp.exp(f) - cp.multiply(y, f) + y * np.log(np.where(y > 0, y, 1.0)) - y,
    "piecewise_quadratic": piecewise_quadratic,
}

REGULARIZERS: dict[str, Callable] = {
    "zero": lambda reg, s, w: cp.Constant(0.0),
    "l2": lambda reg, s, w: 0.5 * cp.sum(cp.multiply(s, cp.square(w))),
    "l1": lambda reg, s, w: cp.sum(cp.multiply(s, cp.abs(w))),
    "elastic_net": lambda reg, s, w: cp.sum(cp.multiply(s, reg.r * cp.abs(w) + (1 - reg.r) / 2 * cp.square(w))),
}


def solved(objective: cp.Expression, constraints: list) -> float:
    """Return the least value, to all the digits that the interior-point method gives."""
    problem = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the status below decides
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11, max_iter=400)
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    return float(problem.value)


def penalty(regularizer: Any, lam: float, w: cp.Variable) -> tuple[cp.Expression, list]:
    """Return lam Omega(w) and the bounds as constraints."""
    s = np.broadcast_to(regularizer.s, w.shape)
    constraints = []
    for side, sign in ((regularizer.lower, 1.0), (regularizer.upper, -1.0)):
        bound = np.broadcast_to(side, w.shape)
        finite = np.isfinite(bound)
        if finite.any():
            constraints.append(sign * w[finite] >= sign * bound[finite])
    return lam * REGULARIZERS[regularizer.name](regularizer, s, w), constraints


def optimum(
    loss: Any,
    X: np.ndarray,
    y: np.ndarray,
    regularizer: Any,
    lam: float,
    weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> float:
    """Return min J for a dense X that holds the constant column already; the regularizer is bound to its width.

    y are the encoded targets; the raw ones for losses of several rows.
    """
    m, d = X.shape
    k = loss.n_scores(y) if loss.name in VECTOR_LOSSES else 0
    w = cp.Variable(d * k if k else d)
    scores = X @ cp.reshape(w, (d, k), order="C") if k else X @ w
    omega, bounds = penalty(regularizer, lam, w)
    shares = np.full(m, 1.0 / m) if weight is None else weight / np.sum(weight)
    if loss.name in sets.TERMS:
        return solved(omega + of_terms(sets.TERMS[loss.name](loss, y, groups, shares), scores), bounds)
    rows = LOSSES[loss.name](loss, scores, y)
    rows, constraints = rows if isinstance(rows, tuple) else (rows, [])
    tilt = loss.tilt * w[d - 1] if loss.tilt else 0.0
    return solved(omega + shares @ rows + tilt, constraints + bounds)


def of_terms(terms: list[sets.Term], f: cp.Expression) -> cp.Expression:
    """Return sum of share * max(A f + b); terms of as many planes go together."""
    total = 0.0
    for n in {len(b) for _, _, b in terms}:
        some = [term for term in terms if len(term[2]) == n]
        A, b = np.concatenate([A for _, A, _ in some]), np.concatenate([b for _, _, b in some])
        planes = cp.reshape(A @ f + b, (len(some), n), order="C")
        total = total + np.array([share for share, _, _ in some]) @ cp.max(planes, axis=1)
    return total


def master_optimum(normals: np.ndarray, offsets: np.ndarray, regularizer: Any, lam: float) -> float:
    """Return min lam Omega(w) + the largest plane."""
    w = cp.Variable(normals.shape[1])
    omega, bounds = penalty(regularizer, lam, w)
    return solved(omega + cp.max(normals @ w + offsets), bounds)
