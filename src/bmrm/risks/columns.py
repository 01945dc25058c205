"""A linear risk seen by columns: its quadratic model on a few coordinates, and planes from slopes of the rows.

Everything here is for losses with second derivatives (trait CURVATURE) that run compiled (trait ROWS).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._cached import cached_property
from bmrm._traits import Trait
from bmrm.risks.base import Array
from bmrm.risks.faces import Factored, Parts, to_face
from bmrm.risks.linear import LinearPoint, LinearRisk
from bmrm.risks.normal_error import UNIT, norm_of, roundings

Indices: TypeAlias = npt.NDArray[np.int64]
Exactly: TypeAlias = Callable[[Array, Array, Array, Array, Array], Array]

# Of a matrix X'DX on which the descent runs; with more, epochs on sparse columns cost less, unless the columns are as
# long as those of images: then its entries are a small part of theirs.
_MOST_COLUMNS, _MOST_LONG_COLUMNS, _SMALL_PART = 300, 1000, 0.25
MOST_FACE = 1500  # nonzeros for which X'DX is factored: 18 MB
_FACES = 1  # factored for one model
_MOST_EPOCHS = 150  # before a face is factored, however much that costs, and where it is too large for that
_MATRIX_EPOCHS = 200
_FIRST_EPOCHS = 6.0  # expected of the first descent: on text, X'DX of the first models costs more than their epochs
_FEW_COLUMNS = 75  # of X'DX, on whose faces the descent takes Newton's steps: it arrives at 1e-7 of tol as well
_PAIR, _CUBE = 1.6, 0.02  # what a pair, and a unit of k^3, cost in units of an entry in an epoch: measured
_LONG_PAIR, _LONG_ENTRY = 0.5, 12.0  # the same in long rows, where pairs lie side by side, and what an entry adds to it
_WORTH = 2.4  # epochs, for each that is expected: a descent whose epochs are free needs less care


@dataclass(frozen=True)
class Penalty:
    """u |z| + v z^2 / 2 on lower <= z <= upper, an entry for each coordinate."""

    u: Array
    v: Array
    lower: Array
    upper: Array

    def at(self, working: Indices | slice) -> tuple[Array, Array, Array, Array]:
        """Return the entries of some coordinates."""
        return self.u[working], self.v[working], self.lower[working], self.upper[working]

    def times(self, factor: float) -> Penalty:
        """Return the same penalty with so many times the weight."""
        return Penalty(factor * self.u, factor * self.v, self.lower, self.upper)

    def violation(self, w: Array, g: Array, working: Indices | slice) -> Array:
        """Return how far some coordinates are from optimal where R has gradient g, in units of the gradient."""
        (u, v, lower, upper), w = self.at(working), w[working]
        slope = g[working] + v * w
        right, left = slope + np.where(w >= 0.0, u, -u), slope + np.where(w > 0.0, u, -u)
        rising = np.where(w > lower, left, 0.0)
        return np.maximum(np.maximum(rising, np.where(w < upper, -right, 0.0)), 0.0)


@dataclass(frozen=True)
class Plane:
    """<a, w> + b <= R(w), from slopes of the rows; any multiple theta of the slopes gives another one.

    Attributes
    ----------
    risk : LinearRisk
    slopes : array (m,)
        In the range of the loss's slopes, without the rows' weights.
    a : array
        X' (weights * slopes).
    """

    risk: LinearRisk
    slopes: Array
    a: Array

    @property
    def steepness(self) -> float:
        """The norm of the weighted slopes."""
        return norm_of(self.risk.full_weight * self.slopes)

    def offset(self, theta: float) -> float:
        """Return b = sum_i p_i (theta s_i offset_i - l*(theta s_i)), less the rounding in it; -inf if there is none."""
        risk = self.risk
        value, size = _core.conjugate(risk.kernel, self.slopes, theta, risk.targets, risk.weight, risk.scale)
        shift = 0.0
        if risk.offset is not None:
            slopes = theta * risk.full_weight * self.slopes
            shift = _core.inner(slopes, risk.offset)
            size += _core.inner_of_sizes(slopes, risk.offset)
        if not np.isfinite(size):  # slopes of an exponential may be as large as numbers are
            return -np.inf
        return shift - value - (8.0 + roundings(self.slopes.size)) * UNIT * size


class ColumnModel:
    """The second-order model of a linear risk around a point.

    X'DX is formed on the working set where that is cheap. Otherwise the descent runs on a copy of the data by
    columns, which is made once and kept with the data: it takes as much memory as the data itself. Where that
    descent does not arrive, X'DX is formed and factored for the coordinates that are not 0; where those are too many,
    it goes on, for longer runs of conjugate gradients.

    Parameters
    ----------
    risk : LinearRisk
    """

    def __init__(self, risk: LinearRisk) -> None:
        self.risk = risk
        self.epochs = _FIRST_EPOCHS  # that a descent is expected to take
        self._piecewise = Trait.PIECEWISE in risk.traits

    @cached_property
    def bend(self) -> float:
        """The largest second derivative of the loss; inf if there is none."""
        return _core.largest_curvature(self.risk.kernel)

    @property
    def quadratic(self) -> bool:
        """Whether the loss is one parabola: the model is the risk itself."""
        knots = self.risk.kernel.knots()
        return knots is not None and not knots[1]

    @cached_property
    def norms(self) -> Array:
        """The norm of each column, rows weighted: one reading of the data, once."""
        design = self.risk.design
        squares, counts = np.zeros(design.n_cols), np.zeros(design.n_cols, np.int64)
        _core.column_sizes(design.matrix, self.risk.full_weight, squares, counts, design.n_threads)
        self.risk.products += 1
        return np.sqrt(design.join(squares, 1.0))

    def curvature(self, point: LinearPoint) -> Array:
        """Return p_i l''(f_i), a little more where a row has a slope but no curvature: the model must be bounded."""
        risk = self.risk
        D = np.empty_like(point.scores)
        risk.kernel.curvature(point.scores, risk.targets, risk.weight, risk.scale, D)
        if self._piecewise:
            flat = (D == 0.0) & (point.slopes != 0.0)
            D[flat] = 1e-3 * self.bend * risk.full_weight[flat]
        return D

    def minimize(
        self,
        D: Array,
        g: Array,
        w: Array,
        working: Indices,
        penalty: Penalty,
        tol: float,
        max_epochs: int,
        exactly: Exactly | None = None,
        factored: Factored | None = None,
    ) -> Array:
        """Return w with the coordinates of the working set moved to the minimum of the model plus the penalty.

        Parameters
        ----------
        D : array (m,)
            Curvatures of the rows.
        g : array
            The gradient of R at w.
        tol : float
            The largest move of an epoch, in units of the gradient, that ends the descent; a tenth of it where X'DX is
            formed, for epochs cost nothing there, and much less for few columns.
        exactly : callable, optional
            Minimizes the model from (X'DX, g, w, u, v) where it was formed and the descent has not arrived.
        factored : callable, optional
            Solves with a matrix, for faces on which the descent by columns has not arrived.
        """
        risk, moved, z = self.risk, w.copy(), w[working]
        parts = penalty.at(working)
        entries, pairs = _core.selected_size(risk.design.matrix, working)
        few = working.size <= _MOST_COLUMNS or (
            working.size <= _MOST_LONG_COLUMNS and working.size**2 <= _SMALL_PART * entries
        )
        price = min(_PAIR * pairs, _LONG_PAIR * pairs + _LONG_ENTRY * entries)
        if few and price <= _WORTH * self.epochs * entries:
            H = np.empty(working.size**2)
            _core.selected_gram(risk.design.matrix, working, D, H, risk.n_threads)
            risk.products += 1
            tol *= 1e-7 if working.size <= _FEW_COLUMNS else 0.1
            epochs, _ = _core.descend_with_matrix(H, g[working], *parts, z, tol, _MATRIX_EPOCHS)
            if exactly is not None and epochs >= _MATRIX_EPOCHS:
                z = exactly(H.reshape(z.size, z.size), g[working], w[working], *parts[:2])
        else:
            epochs = self._by_columns(D, g[working], working, parts, z, tol, max_epochs, factored)
            risk.products += round(2 * epochs * entries / max(1, risk.design.matrix.n_entries))
            self.epochs = float(epochs)
        moved[working] = z
        return moved

    def _by_columns(
        self,
        D: Array,
        slope: Array,
        working: Indices,
        parts: Parts,
        z: Array,
        tol: float,
        max_epochs: int,
        factored: Factored | None,
    ) -> int:
        """Move z to the minimum of the model by epochs; where they do not arrive, factor X'DX on the face.

        A face too large for that gets more epochs instead: conjugate gradients that begin anew with every model do not
        get anywhere. news20, logistic + l1, 1e-5, to 1e-3: 1748 passes with 30 epochs for a model, 946 with 150.
        """
        risk, spent, faces, most = self.risk, 0, 0, max_epochs
        q = np.zeros(risk.design.n_rows)
        while True:  # each trip spends an epoch of _MOST_EPOCHS, or one of _FACES
            epochs, violation = risk.design.columns.descend(working, D, slope, *parts, z, q, tol, most, risk.n_threads)
            spent += epochs
            face = np.flatnonzero(((z != 0.0) | (parts[0] == 0.0)) & (z > parts[2]) & (z < parts[3]))
            large = face.size > MOST_FACE
            arrived = not violation > tol or faces == _FACES or (large and spent >= _MOST_EPOCHS)
            if factored is None or arrived or not face.size:
                return spent
            price = _MOST_EPOCHS if large else min(round(self._price(working[face])), _MOST_EPOCHS)
            most = price - spent
            if large or most > max_epochs:
                continue
            faces, most = faces + 1, max_epochs
            q += self._onto_face(D, slope, working, face, parts, z, q, factored)

    def _onto_face(
        self,
        D: Array,
        slope: Array,
        working: Indices,
        face: Indices,
        parts: Parts,
        z: Array,
        q: Array,
        factored: Factored,
    ) -> Array:
        """Move z to the minimum on its face, and return by how much that changes q."""
        risk, whole = self.risk, np.zeros(self.risk.dim)
        H = np.empty(face.size**2)
        _core.selected_gram(risk.design.matrix, working[face], D, H, risk.n_threads)
        some = parts[0][face], parts[1][face], parts[2][face], parts[3][face]
        there = slope[face] + risk.design.tdot(q, float(np.sum(q)))[working[face]]
        to = to_face(H.reshape(face.size, face.size), there, some, z[face], factored)
        whole[working[face]] = to - z[face]
        z[face] = to
        risk.products += 3
        return D * risk.design.dot(whole)

    def _price(self, face: Indices) -> float:
        """Return how many epochs take the time of forming and factoring X'DX on the face: as many are tried first."""
        entries, pairs = _core.selected_size(self.risk.design.matrix, face)
        return float(_PAIR * pairs + _CUBE * face.size**3) / max(entries, 1.0)

    def plane(self, point: LinearPoint, D: Array, ahead: Array | None, level_constant: bool) -> Plane:
        """Return the plane of the slopes that the model predicts for scores moved ahead.

        With a free constant the slopes are first moved until they sum to 0, along the model.
        """
        risk = self.risk
        lw = point.slopes if ahead is None else point.slopes + D * ahead
        if ahead is None and not level_constant:
            s = _unweighted(lw, risk)
            _core.clip_slopes(risk.kernel, s, risk.targets)
            return Plane(risk, s, point.subgradient)
        total, bend = float(np.sum(lw)), float(np.sum(D))
        for _ in range(3 if level_constant and bend > 0.0 else 1):
            if level_constant and bend > 0.0:
                lw = lw - (total / bend) * D
            s = _unweighted(lw, risk)
            _core.clip_slopes(risk.kernel, s, risk.targets)
            lw = s * (risk.scale if risk.weight is None else risk.weight)
            total = float(np.sum(lw))
        return Plane(risk, s, risk.pull_back(lw, total))


def _unweighted(slopes: Array, risk: LinearRisk) -> Array:
    if risk.weight is None:
        return slopes / risk.scale
    return np.divide(slopes, risk.weight, out=np.zeros_like(slopes), where=risk.weight > 0.0)
