"""X' diag(c) X from the one before: only rows whose c_i has changed are read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm import _core
from bmrm._states import kept
from bmrm.risks.base import Array
from bmrm.risks.curvature import RowCurvature, Rows

_SAME = 1e-12  # relative: two curvatures of one row that differ by less are equal
_WORTH = 0.5  # of the rows that count: if more have changed, reading the former is as fast
_MOST_CHANGES = 20  # after so many, rounding is done away with
NEAR = 0.25  # of the rows that count: with fewer changes, no other matrix is cheaper


@dataclass(frozen=True)
class Change:
    """The new c is `times` the old one but in some rows, which are so large a share of those that count."""

    times: float
    rows: Rows
    share: float


@kept
class KeptGram:
    """The matrix of the last c, for losses whose second derivatives are constant but for jumps.

    From one Newton step to the next few rows enter or leave a curved piece or the neighborhood of a kink, and all
    others keep their c_i up to one common factor, the width. What the rows that changed add to the matrix is added to
    it; after 20 changes it is formed anew. It is a part of what a solver needs to go on: a matrix that was formed anew
    has other last digits.

    Examples
    --------
    >>> import bmrm, numpy as np
    >>> from bmrm.risks.curvature import RowCurvature
    >>> from bmrm.risks.kept_gram import KeptGram
    >>> curvature = RowCurvature(bmrm.LinearRisk([[1.0], [2.0], [3.0]], [1, -1, 1], bmrm.losses.SquaredHinge()))
    >>> gram = KeptGram()
    >>> float(gram.at(curvature, np.array([1.0, 1.0, 1.0]))[0, 0])
    14.0
    >>> float(gram.at(curvature, np.array([2.0, 2.0, 0.0]))[0, 0])
    10.0
    """

    def __init__(self) -> None:
        self.c: Array | None = None
        self.H: Array | None = None
        self.changes = 0

    def change(self, c: Array) -> Change | None:
        """Return what separates c from the last one; None if there is none, or the matrix is to be formed anew."""
        if self.c is None or self.changes >= _MOST_CHANGES:
            return None
        times, rows = _core.changes(c, self.c, _SAME)
        return None if times == 0.0 else Change(times, rows, rows.size / max(int(np.count_nonzero(c)), 1))

    def at(self, curvature: RowCurvature, c: Array, change: Change | None = None) -> Array:
        """Return the matrix for c, its lower triangle; it must not be written to."""
        change = change or self.change(c)
        if change is None or self.c is None or self.H is None or change.share > _WORTH:
            self.c, self.H, self.changes = c, curvature.gram(c), 0
            return self.H
        if change.times != 1.0:
            self.c, self.H = change.times * self.c, change.times * self.H
        if change.rows.size:
            rows, before = change.rows, self.c
            after = before.copy()
            after[rows] = c[rows]
            H = self.H + curvature.gram(after - before, rows)  # may be interrupted: c and H change together
            self.c, self.H, self.changes = after, H, self.changes + 1
        return self.H
