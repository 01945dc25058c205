"""The losses once more, from their formulas: exact numbers in, exact numbers out, by brute force."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, permutations
from typing import Any, TypeAlias

import numpy as np

from bmrm.losses import Loss
from bmrm.losses.gains import discounts, gains
from bmrm.losses.scores import number_of
from bmrm.testing.hunt_numbers import ONE, ZERO, Number, exp, fractions, log, log_sum_exp

Values: TypeAlias = list[Number]


@dataclass(frozen=True)
class Rows:
    """Targets, groups and weights of the rows; `targets` are as the loss has encoded them, `p` adds up to 1."""

    y: Any
    groups: Any
    targets: Any
    p: Values


def mean_of(row: Callable[[Any, Number, Number], Number]) -> Callable[[Any, list[Values], Rows], Values]:
    """Return the terms p_i l(f_i, y_i) of a loss of single scores."""

    def terms(loss: Any, F: list[Values], rows: Rows) -> Values:
        ys = fractions(rows.y) if loss.needs_targets else [ZERO] * len(F)
        return [p * row(loss, f[0], y) for p, f, y in zip(rows.p, F, ys) if p]

    return terms


def mean_of_vectors(row: Callable[[Any, Values, Any], Number]) -> Callable[[Any, list[Values], Rows], Values]:
    """Return the terms p_i l(f_i, y_i) of a loss of several scores."""

    def terms(loss: Any, F: list[Values], rows: Rows) -> Values:
        return [p * row(loss, f, y) for p, f, y in zip(rows.p, F, _each(rows)) if p]

    return terms


def _each(rows: Rows) -> Any:
    """Return the target of each row: a class, its labels, or several numbers."""
    targets = rows.targets
    if hasattr(targets, "ids"):
        return [(int(i), targets.k) for i in targets.ids]
    return targets.indicator() if hasattr(targets, "indicator") else targets


def _huber_hinge(loss: Any, f: Number, y: Number) -> Number:
    z, h = y * f, exact(loss.h)
    if z > ONE + h:
        return ZERO
    return (ONE + h - z) ** 2 / (4 * h) if z >= ONE - h else ONE - z


def exact(value: float) -> Number:
    """Return the number as a fraction."""
    return fractions([value])[0]


def _huber(loss: Any, f: Number, y: Number) -> Number:
    r, delta = abs(f - y), exact(loss.delta)
    return r * r / 2 if r < delta else delta * (r - delta / 2)


def _softplus(x: Number) -> Number:
    return log_sum_exp([ZERO, x])


def _poisson(loss: Any, f: Number, y: Number) -> Number:
    return exp(f) - y * f + (y * log(y) - y if y else ZERO)


def _piecewise(loss: Any, f: Number, y: Number) -> Number:
    z = {"residual": f - y, "margin": y * f, "score": f}[loss.of]
    piece = sum(z > knot for knot in fractions(loss.knots))
    a, b, c = fractions(loss.coefficients[piece])
    return a * z * z + b * z + c


def _squares(loss: Any, f: Values, y: Any) -> Number:
    r = [a - b for a, b in zip(f, fractions(y))]
    M = np.eye(len(r)) if loss.M is None else np.array(loss.M)
    return sum((a * b * m for a, row in zip(r, M) for b, m in zip(r, fractions(row))), ZERO) / 2


def _max_margin(loss: Any, f: Values, y: tuple[int, int]) -> Number:
    true, k = y
    factor, cost = loss.parts(k) if hasattr(loss, "parts") else (np.ones((k, k)), loss.costs(k))
    a, b = fractions(factor[true]), fractions(cost[true])
    return max(a[c] * (f[c] - f[true]) + b[c] for c in range(k))


def _multilabel(loss: Any, f: Values, has: Any) -> Number:
    k = len(f)
    cost = np.full((k, k), loss.margin) if loss.delta is None else np.array(loss.delta)
    pairs = [(z, o) for z in range(k) for o in range(k) if has[z] and not has[o]]
    return max([ZERO, *(exact(cost[z, o]) + f[o] - f[z] for z, o in pairs)])


def _on_classes(loss: Any, f: Values) -> Values:
    return [sum((f[int(v)] for v in loss.tree.path(int(c))), ZERO) for c in loss.classes()]


def _path_hinge(loss: Any, f: Values, y: tuple[int, int]) -> Number:
    s, costs = _on_classes(loss, f), fractions(loss.costs()[y[0]])
    return max(s_c - s[y[0]] + cost for s_c, cost in zip(s, costs))


def _path_softmax(loss: Any, f: Values, y: tuple[int, int]) -> Number:
    s = _on_classes(loss, f)
    return log_sum_exp(s) - s[y[0]]


def worst_share(losses: Values, p: Values, nu: Number) -> Values:
    """Return the terms of the worst rows, those with a total weight of nu."""
    terms, left = [], nu
    for loss, share in sorted(zip(losses, p), reverse=True):
        taken = min(share, left)
        terms.append(taken * loss if taken else ZERO)
        left -= taken
    return terms


def _nu_hinge(loss: Any, F: list[Values], rows: Rows) -> Values:
    return worst_share([-y * f[0] for y, f in zip(fractions(rows.y), F)], rows.p, exact(loss.nu))


def _nu_tube(loss: Any, F: list[Values], rows: Rows) -> Values:
    return worst_share([abs(f[0] - y) for y, f in zip(fractions(rows.y), F)], rows.p, exact(loss.nu))


def _pairs(loss: Any, F: list[Values], rows: Rows) -> Values:
    """Return p_i p_j max(0, 1 - (f_i - f_j)) for all y_i > y_j, divided by the sum of the p_i p_j."""
    order = sorted(range(len(F)), key=lambda i: float(rows.y[i]))
    terms, total = [], ZERO
    for i in order:
        lower = [j for j in order if rows.y[j] < rows.y[i] and rows.p[j]]
        total += rows.p[i] * sum((rows.p[j] for j in lower), ZERO)
        over = sum((rows.p[j] * max(ZERO, ONE - F[i][0] + F[j][0]) for j in lower), ZERO)
        terms.append(rows.p[i] * over)
    return [term / total for term in terms]


def by_query(term: Callable[[Any, Values, list[int], Rows], Number]) -> Callable[[Any, list[Values], Rows], Values]:
    """Return the terms of the queries that count, as the loss has sorted their rows."""

    def terms(loss: Any, F: list[Values], rows: Rows) -> Values:
        starts = rows.targets.starts
        queries = [[int(i) for i in rows.targets.rows[a:b]] for a, b in pairwise(starts)]
        total = sum((rows.p[query[0]] for query in queries), ZERO)
        counted = [query for query in queries if rows.p[query[0]]]
        return [rows.p[q[0]] / total * term(loss, [F[i][0] for i in q], q, rows) for q in counted]

    return terms


def _query_pairs(loss: Any, f: Values, query: list[int], rows: Rows) -> Number:
    y = [rows.y[i] for i in query]
    pairs = [(i, j) for i in range(len(f)) for j in range(len(f)) if y[i] > y[j]]
    return sum((max(ZERO, ONE - f[i] + f[j]) for i, j in pairs), ZERO) / len(pairs)


def _gain_pairs(loss: Any, f: Values, query: list[int], rows: Rows) -> Number:
    """Return sum_ij D_ij max(0, 1 - (f_i - f_j)), D_ij what swapping the two costs; equal grades share their ranks."""
    grades, n = np.asarray(rows.y, dtype=np.float64)[query], len(query)
    g, ranks = fractions(gains(grades)), fractions(discounts(n, loss.k))
    above = [int(np.sum(grades > grade)) for grade in grades]
    equal = [int(np.sum(grades == grade)) for grade in grades]
    d = [sum(ranks[a : a + e], ZERO) / e for a, e in zip(above, equal)]
    ideal = sum((a * b for a, b in zip(g, d)), ZERO)
    pairs = [(i, j) for i in range(n) for j in range(n) if grades[i] > grades[j]]
    return sum(((g[i] - g[j]) * (d[i] - d[j]) * max(ZERO, ONE - f[i] + f[j]) for i, j in pairs), ZERO) / ideal


def _permutations(loss: Any, f: Values, query: list[int], rows: Rows) -> Number:
    """Return the worst of all orders; what ranks and grades are worth is in the tables of the loss."""
    n, y = len(query), np.asarray(rows.y, dtype=np.float64)[query]
    c = fractions(rows.targets.margin[np.isin(rows.targets.rows, query)])  # in the order of the query's rows
    own = sum((a * b for a, b in zip(c, f)), ZERO)

    def cost(order: tuple[int, ...]) -> Number:
        if loss.name == "mrr":
            return ONE - ONE / (1 + next(rank for rank, i in enumerate(order) if y[i] > 0))
        return ONE - sum((d * gain[i] for d, i in zip(discount, order)), ZERO) / ideal

    if loss.name != "mrr":
        gain, discount = fractions(loss._gains(y)), fractions(loss._discounts(n))
        ideal = sum((a * b for a, b in zip(gain, discount)), ZERO)
    return max(sum((a * f[i] for a, i in zip(c, o)), ZERO) - own + cost(o) for o in permutations(range(n)))


def _labelings(score: Callable[[Any, int, int, int], Number], k: Callable[[Any, int, int], int | None]) -> Any:
    """Return max over y' of 1 - score + sum_i f_i (y'_i - y_i) / (2m), over all or over those with k positives."""

    def terms(loss: Any, F: list[Values], rows: Rows) -> Values:
        m = len(F)
        plus = sorted((f[0] for f, y in zip(F, rows.y) if y > 0), reverse=True)
        minus = sorted((f[0] for f, y in zip(F, rows.y) if y <= 0), reverse=True)
        kept, taken = [ZERO, *accumulate(plus)], [ZERO, *accumulate(minus)]
        wanted = k(loss, len(plus), m)
        tables = [(a, b) for a in range(len(kept)) for b in range(len(taken)) if wanted in (None, a + b)]
        return [
            max(ONE - score(loss, a, a + b, len(plus)) + (kept[a] - kept[-1] + taken[b]) / m for a, b in tables)
        ]  # fmt: skip

    return terms


def _f_beta(loss: Any, a: int, called: int, plus: int) -> Number:
    square = exact(loss.beta) ** 2
    return (ONE + square) * a / (called + square * plus)


def _number(loss: Any, plus: int, m: int) -> int:
    return number_of(loss.k, m)


TERMS: dict[str, Callable[[Any, list[Values], Rows], Values]] = {
    "perceptron": mean_of(lambda loss, f, y: max(ZERO, -y * f)),
    "squared_perceptron": mean_of(lambda loss, f, y: max(ZERO, -y * f) ** 2 / 2),
    "hinge": mean_of(lambda loss, f, y: max(ZERO, ONE - y * f)),
    "squared_hinge": mean_of(lambda loss, f, y: max(ZERO, ONE - y * f) ** 2 / 2),
    "huber_hinge": mean_of(_huber_hinge),
    "exponential": mean_of(lambda loss, f, y: exp(-y * f)),
    "logistic": mean_of(lambda loss, f, y: _softplus(-y * f)),
    "novelty": mean_of(lambda loss, f, y: max(ZERO, exact(loss.rho) - f)),
    "nu_novelty": mean_of(lambda loss, f, y: max(ZERO, -f)),
    "least_squares": mean_of(lambda loss, f, y: (f - y) ** 2 / 2),
    "least_absolute": mean_of(lambda loss, f, y: abs(f - y)),
    "quantile": mean_of(lambda loss, f, y: max(exact(loss.tau) * (y - f), (1 - exact(loss.tau)) * (f - y))),
    "epsilon_insensitive": mean_of(lambda loss, f, y: max(ZERO, abs(f - y) - exact(loss.eps))),
    "squared_epsilon_insensitive": mean_of(lambda loss, f, y: max(ZERO, abs(f - y) - exact(loss.eps)) ** 2 / 2),
    "huber": mean_of(_huber),
    "poisson": mean_of(_poisson),
    "piecewise_quadratic": mean_of(_piecewise),
    "multivariate_regression": mean_of_vectors(_squares),
    "multiclass_hinge": mean_of_vectors(_max_margin),
    "scaled_multiclass_hinge": mean_of_vectors(_max_margin),
    "softmax": mean_of_vectors(lambda loss, f, y: log_sum_exp(f) - f[y[0]]),
    "multilabel_hinge": mean_of_vectors(_multilabel),
    "hierarchical_hinge": mean_of_vectors(_path_hinge),
    "hierarchical_softmax": mean_of_vectors(_path_softmax),
    "nu_hinge": _nu_hinge,
    "nu_epsilon_insensitive": _nu_tube,
    "roc_area": _pairs,
    "ordinal": _pairs,
    "pairwise_rank": by_query(_query_pairs),
    "ndcg_pairs": by_query(_gain_pairs),
    "ndcg": by_query(_permutations),
    "mrr": by_query(_permutations),
    "expected_rank_utility": by_query(_permutations),
    "fbeta": _labelings(_f_beta, lambda loss, plus, m: None),
    "precision_at_k": _labelings(lambda loss, a, called, plus: ONE * a / called, _number),
    "recall_at_k": _labelings(lambda loss, a, called, plus: ONE * a / plus, _number),
    "break_even": _labelings(lambda loss, a, called, plus: ONE * a / plus, lambda loss, plus, m: plus),
}


def terms_of(loss: Loss, F: Sequence[Values], rows: Rows) -> Values | None:
    """Return the terms whose sum is the risk at these scores; None for a loss whose formula is not known here."""
    terms = TERMS.get(loss.name)
    return None if terms is None else terms(loss, list(F), rows)
