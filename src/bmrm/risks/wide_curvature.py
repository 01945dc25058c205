"""Second derivatives of a linear risk with k scores for each row: products with them, and parts that are factored."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from bmrm import _core
from bmrm.data.matrix import WideDesign
from bmrm.losses import VectorLoss
from bmrm.losses.bend import Bend
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk

__all__ = ["Bend", "WideCurvature"]


class WideCurvature:
    """X'(p_i l''(f_i) X V)_i for matrices V (d, k), all of them flat; the constants are included.

    Parameters
    ----------
    risk : LinearRisk
        Of a loss with several scores and second derivatives (trait CURVED_ROWS).
    """

    def __init__(self, risk: LinearRisk) -> None:
        self.risk, self.design = risk, cast(WideDesign, risk.design)
        self.k = self.design.k

    def at(self, scores: Array) -> Bend:
        """Return the rows' second derivatives at these scores."""
        risk = self.risk
        loss = cast(VectorLoss, risk.loss)
        bend = loss.bend(scores.reshape(-1, self.k), risk.full_weight, risk.n_threads)
        assert bend is not None
        return bend

    def times(self, bend: Bend, v: Array) -> Array:
        """Return the product with a vector: two products with the data."""
        self.risk.products += 2
        along = bend.times(self.design.dot(v).reshape(-1, self.k))
        return self.design.tdot(along.reshape(-1), 0.0)

    def diagonal(self, bend: Bend) -> Array:
        """Return the diagonal of the matrix: one product."""
        design, c = self.design, np.ascontiguousarray(bend.diagonal().T)
        out = np.empty((self.k, design.n_cols + design.intercept))
        for weights, squares in zip(c, out):
            design.matrix.squares(weights, squares[: design.n_cols], design.n_threads)
            if design.intercept:
                squares[-1] = weights.sum()
        self.risk.products += 1
        return np.ascontiguousarray(out.T).reshape(-1)

    def block_inverse(self, bend: Bend, r: Array, most_rows: int, ridge: float) -> Callable[[Array], Array]:
        """Return V -> the solutions for X' diag(c) X + diag(r) of each score by itself, from some of the rows.

        With more rows than `most_rows` every n-th one stands for n.
        """
        H, n_threads = self._grams(bend, most_rows), self.design.n_threads
        d = H.shape[1]
        H.reshape(self.k, -1)[:, :: d + 1] += r.reshape(-1, self.k).T
        factors = _core.block_factors(H, ridge, n_threads)

        def solve(V: Array) -> Array:
            out = np.empty_like(V)
            factors.solve(V, out, n_threads)
            return out

        return solve

    def _grams(self, bend: Bend, most_rows: int) -> Array:
        """Return X' diag(c) X for each score, (k, d, d), lower triangles."""
        design, m = self.design, self.design.n_rows
        apart = max(1, m // most_rows)
        rows = np.arange(0, m, apart, dtype=np.int64)
        c = np.ascontiguousarray(apart * bend.diagonal()[::apart].T)
        d = design.n_cols
        H = np.zeros((self.k, d + design.intercept, d + design.intercept))
        for weights, out in zip(c, H):
            if not design.intercept:
                design.matrix.gram(rows, weights, out, design.n_threads)
                continue
            inner, all_weights = np.empty((d, d)), np.zeros(m)
            design.matrix.gram(rows, weights, inner, design.n_threads)
            all_weights[rows] = weights
            out[:d, :d] = inner
            design.matrix.tdot(all_weights, out[d, :d], design.n_threads)
            out[d, d] = weights.sum()
        self.risk.products += 1
        return H
