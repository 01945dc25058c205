"""Losses of several rows by brute force: all pairs, all labelings, all permutations, from raw targets and groups.

Each is a list of terms (share, A, b): the loss is the sum over terms of share * max(A f + b). A pair is a term with
the two planes 0 and 1 - (f_i - f_j).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product

import numpy as np

Term = tuple[float, np.ndarray, np.ndarray]


def queries(y, groups):
    """The rows of each query that has more than one grade."""
    rows = [[i for i in range(len(y)) if groups[i] == name] for name in dict.fromkeys(groups)]
    return [np.array(query) for query in rows if len({y[i] for i in query}) > 1]


def pairs(y, rows, p):
    """All pairs of different grades among the rows, with their shares of the total weight."""
    found = [(i, j) for i in rows for j in rows if y[i] > y[j]]
    total = sum(p[i] * p[j] for i, j in found)
    terms = []
    for i, j in found:
        A = np.zeros((2, len(y)))
        A[1, i], A[1, j] = -1.0, 1.0
        terms.append((p[i] * p[j] / total, A, np.array([0.0, 1.0])))
    return terms


def over_all_pairs(loss, y, groups, p):
    return pairs(y, range(len(y)), p)


def over_query_pairs(loss, y, groups, p):
    chosen = queries(y, groups)
    total = sum(p[rows[0]] for rows in chosen)
    return [
        (p[rows[0]] / total * share, A, b)
        for rows in chosen
        for share, A, b in pairs(y, rows, np.ones(len(y)))
    ]  # fmt: skip


def over_gain_pairs(loss, y, groups, p):
    """Pairs weighted by what NDCG@k loses if they are swapped in the ideal order: the mean over all ideal orders."""
    chosen = queries(y, groups)
    total = sum(p[rows[0]] for rows in chosen)
    found = []
    for rows in chosen:
        grades = sorted((y[i] for i in rows), reverse=True)
        costs = [swap_cost(loss, grades, y[i], y[j]) if y[i] > y[j] else 0.0 for i in rows for j in rows]
        costs = np.reshape(costs, (len(rows), len(rows))) / dcg(loss, grades)
        for a, b in zip(*np.nonzero(costs)):
            A = np.zeros((2, len(y)))
            A[1, rows[a]], A[1, rows[b]] = -1.0, 1.0
            found.append((p[rows[0]] / total * costs[a, b], A, np.array([0.0, 1.0])))
    return found


def swap_cost(loss, grades, better, worse):
    """The mean loss of DCG@k over all places of two documents of those grades in the ideal order."""
    losses = []
    for a in (place for place, grade in enumerate(grades) if grade == better):
        for b in (place for place, grade in enumerate(grades) if grade == worse):
            swapped = list(grades)
            swapped[a], swapped[b] = grades[b], grades[a]
            losses.append(dcg(loss, grades) - dcg(loss, swapped))
    return np.mean(losses)


def over_labelings(score, allowed):
    """max over y' of 1 - score + 1/m sum_i f_i (y'_i - y_i) / 2."""

    def terms(loss, y, groups, p):
        y = np.where(np.asarray(y) > 0, 1.0, -1.0)
        m, plus = len(y), np.sum(y > 0)
        chosen = [z for z in map(np.array, product([-1.0, 1.0], repeat=m)) if allowed(loss, np.sum(z > 0), plus, m)]
        deltas = [1.0 - score(loss, np.sum((z > 0) & (y > 0)), np.sum(z > 0), plus) for z in chosen]
        return [(1.0, (np.array(chosen) - y) / (2.0 * m), np.array(deltas))]

    return terms


def is_k(loss, positives, plus, m):
    return positives == (loss.k if isinstance(loss.k, int) else max(1, round(loss.k * m)))


def over_permutations(score):
    """max over pi of sum_i c_i (f_pi(i) - f_i) + 1 - score(pi) / score(identity), for each query."""

    def terms(loss, y, groups, p):
        found = []
        for rows in queries(y, groups):
            rows = rows[np.argsort(-np.asarray(y)[rows], kind="stable")]
            grades = np.asarray(y, float)[rows]
            c = [1.0 / (i + 1) ** 0.25 for i in range(len(rows))]
            if loss.ties == "together":
                c = [np.mean([c[j] for j in range(len(rows)) if grades[j] == grade]) for grade in grades]
            A, b = [], []
            for order in map(list, permutations(range(len(rows)))):
                a = np.zeros(len(y))
                for i, c_i in enumerate(c):
                    a[rows[order[i]]] += c_i
                    a[rows[i]] -= c_i
                A.append(a)
                b.append(1.0 - score(loss, grades[order]) / score(loss, grades))
            found.append((p[rows[0]], np.array(A), np.array(b)))
        total = sum(share for share, _, _ in found)
        return [(share / total, A, b) for share, A, b in found]

    return terms


def dcg(loss, grades):
    return sum((2.0**g - 1.0) / np.log2(1.0 + rank) for rank, g in enumerate(grades, 1) if rank <= loss.k)


def reciprocal_rank(loss, grades):
    return 1.0 / (1 + next(i for i, g in enumerate(grades) if g > 0))


def rank_utility(loss, grades):
    return sum(g / 2.0 ** ((rank - 1) / (loss.half_life - 1)) for rank, g in enumerate(grades, 1))


def over_shares(signs):
    """max over theta and signs s of sum_i theta_i s_i (f_i - y_i), theta a vertex of 0 <= theta <= p, sum = nu."""

    def terms(loss, y, groups, p):
        y, p = np.asarray(y, float), np.asarray(p) / np.sum(p)
        planes = set()
        for order in permutations(range(len(y))):
            theta, left = np.zeros(len(y)), loss.nu
            for i in order:
                theta[i] = min(p[i], left)
                left -= theta[i]
            for s in signs(y):
                a = theta * s
                planes.add((*a.round(15), float(-a @ y if loss.name == "nu_epsilon_insensitive" else 0.0)))
        table = np.array(sorted(planes))
        return [(1.0, table[:, :-1], table[:, -1])]

    return terms


TERMS: dict[str, Callable] = {
    "nu_hinge": over_shares(lambda y: [-np.where(y > 0, 1.0, -1.0)]),
    "nu_epsilon_insensitive": over_shares(lambda y: map(np.array, product([-1.0, 1.0], repeat=len(y)))),
    "roc_area": over_all_pairs,
    "ordinal": over_all_pairs,
    "pairwise_rank": over_query_pairs,
    "ndcg_pairs": over_gain_pairs,
    "fbeta": over_labelings(
        lambda loss, a, k, plus: (1 + loss.beta**2) * a / (k + loss.beta**2 * plus), lambda loss, k, plus, m: True
    ),
    "precision_at_k": over_labelings(lambda loss, a, k, plus: a / k, is_k),
    "recall_at_k": over_labelings(lambda loss, a, k, plus: a / plus, is_k),
    "break_even": over_labelings(lambda loss, a, k, plus: a / plus, lambda loss, k, plus, m: k == plus),
    "ndcg": over_permutations(dcg),
    "mrr": over_permutations(reciprocal_rank),
    "expected_rank_utility": over_permutations(rank_utility),
}


def rows_for(loss, otherwise):
    """A number of rows for which brute force is quick: 2^8 labelings, queries of four rows, orders of five rows."""
    if loss.name.startswith("nu_") and loss.couples == "all":
        return 5
    return {"none": 8, "group": 12}.get(loss.weighted_by, otherwise)


def value(terms: list[Term], f: np.ndarray) -> float:
    return sum(share * np.max(A @ f + b) for share, A, b in terms)
