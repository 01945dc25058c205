"""A proven box for the constants that nothing penalizes, from the loss of scores that are all moved by a constant."""

from __future__ import annotations

import numpy as np

from bmrm.bundle.box import farthest, inside_polytope
from bmrm.problem import Problem
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array
from bmrm.risks.linear import LinearRisk
from bmrm.risks.normal_error import UNIT, norm_of

_SHIFTS = 2.0 ** np.arange(0, 60, 5)  # of all scores: margins are 1, targets may be far away
_SEVERAL = 1  # the first shift of several scores: there the shifted one is above all others, as it should be


def constant_box(problem: Problem) -> Array:
    """Return a bound of |w_j| at each minimizer of J for each free constant; inf where none is proved.

    The plane at w = 0, scores moved by h d, needs no product: its slopes in the constants are sums of the slopes s, and
    the rest of its normal is no longer than |s| |X|. Wherever J(w) <= J(0), it is an inequality for the constants,
    because lam Omega(w) <= J(0) - floor bounds the rest of w. Directions d are both sides of each score. The box
    depends on the problem alone, so that a resumed run has the same.

    Parameters
    ----------
    problem : Problem
        Of a linear risk, whose free coordinates are constants.

    Examples
    --------
    >>> import bmrm
    >>> from bmrm.solvers.constant_box import constant_box
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], "hinge", intercept=True)
    >>> bool(constant_box(bmrm.Problem(risk, "l2", 1.0))[0] < 10.0)
    True
    """
    risk, regularizer = problem.risk, problem.regularizer
    assert isinstance(risk, LinearRisk)
    assert isinstance(regularizer, Separable)
    ends = [
        np.abs(np.broadcast_to(side, (risk.dim,)))[regularizer.free] for side in (regularizer.lower, regularizer.upper)
    ]
    box: Array = np.maximum(*ends)
    upper = problem.at_most(regularizer.clip(np.zeros(risk.dim)))
    if not (np.isfinite(risk.floor) and np.isfinite(upper)):
        return box
    far = farthest(regularizer, max(upper - risk.floor, 0.0) / problem.lam)
    for shift in _SHIFTS[_SEVERAL if risk.n_outputs > 1 else 0 :]:
        box = np.minimum(box, inside_polytope(*_planes(risk, regularizer, float(shift), upper, far)))
        if np.isfinite(box).all():
            break
    return box


def _planes(risk: LinearRisk, regularizer: Separable, h: float, upper: float, far: float) -> tuple[Array, Array, Array]:
    """Return E, its errors and room: E v <= room for the constants v at each minimizer."""
    k, m = risk.n_outputs, risk.design.n_rows
    which = regularizer.free - (risk.dim - k)
    start, extent = risk.scores(np.zeros(risk.dim)), risk.extent / float(np.sqrt(k))
    E, errors, room = [], [], []
    for column in range(k):
        for side in (-h, h):
            moved = start.reshape(-1, k).copy()
            moved[:, column] += side
            value, slopes, _ = risk.loss_and_slopes(moved.reshape(-1))
            if not (np.isfinite(value) and np.isfinite(slopes).all()):
                continue
            steepness, sums = norm_of(slopes), slopes.reshape(-1, k).sum(axis=0)
            along = float(sums[column]) * side
            size = abs(value) + abs(along) + abs(upper) + steepness * np.sqrt(m) * h
            E.append(sums[which] + risk.loss.tilt)
            errors.append(np.full(which.size, UNIT * (m + 16.0) * steepness * np.sqrt(m)))
            room.append(upper - value + along + steepness * extent * far + 1e-9 * size)
    if not E:
        return np.empty((0, which.size)), np.empty((0, which.size)), np.empty(0)
    return np.array(E), np.array(errors), np.array(room)
