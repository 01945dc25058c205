"""Values of losses that compare scores, from exact scores: sums and differences as fractions.

Planes and costs come from `sets` and the losses themselves; what is rounded in them, 1e-16 of a margin, is rounded
back where it is a ratio of small integers. A constant that all scores share, in a query or in a row, is taken away
before, for those losses do not see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from reference import sets

Scores = list[list[Fraction]]


def scores_of(X: np.ndarray, w: np.ndarray, k: int = 1) -> Scores:
    """Return X W exactly, row by row."""
    W = [[Fraction(x) for x in row] for row in np.reshape(w, (-1, k)).tolist()]
    rows = [[Fraction(x) for x in row] for row in np.asarray(X, float).tolist()]
    return [[sum((x * W[j][c] for j, x in enumerate(row)), Fraction(0)) for c in range(k)] for row in rows]


def simple(x: float) -> Fraction:
    """Return the ratio of small integers that the number stands for, if there is one."""
    near = Fraction(x).limit_denominator(1000)
    return near if abs(near - Fraction(x)) <= Fraction(1, 10**14) * max(1, abs(near)) else Fraction(x)


def of_terms(terms: Iterable[sets.Term], scores: Scores) -> Fraction:
    """Return sum share max(A f + b); a plane whose slopes cancel sees differences only."""
    total = Fraction(0)
    for share, A, b in terms:
        values = []
        for a, constant in zip(A, b):
            used = np.flatnonzero(a)
            slopes = [simple(a[i]) for i in used]
            base = scores[used[0]][0] if used.size and abs(a.sum()) < 1e-12 else Fraction(0)
            moved = sum((s * (scores[i][0] - base) for s, i in zip(slopes, used)), Fraction(0))
            values.append(simple(constant) + moved)
        total += simple(share) * max(values)
    return total


def log_sum(differences: list[Fraction]) -> Fraction:
    """Return log sum exp, correct to 1e-15 of itself, of numbers the largest of which counts."""
    largest = max(differences)
    return largest + Fraction(math.log(math.fsum(math.exp(max(float(d - largest), -745.0)) for d in differences)))


def of_rows(loss: Any, targets: Any, scores: Scores) -> Fraction:
    """Return the mean over rows of a loss of several scores."""
    if hasattr(loss, "tree"):
        scores = [[sum(row[v] for v in loss.tree.path(c)) for c in loss.classes().tolist()] for row in scores]
    values = []
    for i, f in enumerate(scores):
        if loss.task == "multilabel":
            has = targets.indicator()[i]
            cost = np.full((targets.k, targets.k), loss.margin) if loss.delta is None else np.array(loss.delta)
            pairs = [Fraction(cost[z, o]) + f[o] - f[z] for z in np.flatnonzero(has) for o in np.flatnonzero(~has)]
            values.append(max([Fraction(0), *pairs]))
            continue
        y = int(targets.ids[i])
        if "softmax" in loss.name:
            values.append(log_sum([one - f[y] for one in f]))
            continue
        if loss.name == "scaled_multiclass_hinge":
            factor, constant = loss.parts(targets.k)
        else:
            costs = loss.costs() if hasattr(loss, "tree") else loss.costs(targets.k)
            factor, constant = np.ones((targets.k, targets.k)), costs
        values.append(max(Fraction(a) * (one - f[y]) + Fraction(c) for a, one, c in zip(factor[y], f, constant[y])))
    return sum(values, Fraction(0)) / len(values)


def risk(loss: Any, targets: Any, X: np.ndarray, y: Any, groups: Any, w: np.ndarray) -> Fraction:
    """Return R(w) for rows of equal weight."""
    if loss.name in sets.TERMS:
        terms = sets.TERMS[loss.name](loss, y, groups, np.full(len(X), 1.0 / len(X)))
        return of_terms(terms, scores_of(X, w))
    return of_rows(loss, targets, scores_of(X, w, loss.n_scores(targets)))


LOSSES_OF_ROWS = (
    "multiclass_hinge", "scaled_multiclass_hinge", "softmax", "multilabel_hinge", "hierarchical_hinge",
    "hierarchical_softmax",
)  # fmt: skip
