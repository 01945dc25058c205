"""The space of the rows: where a plane of a linear risk is its slopes, one number for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bmrm._states import kept
from bmrm.risks.base import Array

if TYPE_CHECKING:
    from bmrm.risks.linear import LinearRisk


@kept
class RowSpace:
    """The maps u -> c X'u and v -> X (c v) between the space of the rows and that of w; c changes the units.

    Parameters
    ----------
    risk : LinearRisk
        Each map is one product with its data, and counted there.
    c : array or float
        One number for each coordinate of w.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> risk = bmrm.LinearRisk([[1.0, 0.0, 2.0]], [1], bmrm.losses.Hinge())
    >>> space = risk.space()
    >>> space.pull_back(np.array([0.5])), space.push(np.ones(3))
    (array([0.5, 0. , 1. ]), array([3.]))
    """

    def __init__(self, risk: LinearRisk, c: Array | float = 1.0) -> None:
        self._risk, self._c = risk, c

    @property
    def size(self) -> int:
        """The number of scores."""
        return self._risk.design.n_scores

    @property
    def entries(self) -> int:
        """The numbers read for one product."""
        return self._risk.design.matrix.n_entries

    def pull_back(self, u: Array) -> Array:
        """Return c X'u."""
        self._risk.products += 1
        a = self._risk.design.tdot(u, float(np.sum(u)))
        return a if np.ndim(self._c) == 0 and self._c == 1.0 else self._c * a

    def push(self, v: Array) -> Array:
        """Return X (c v)."""
        self._risk.products += 1
        return self._risk.design.dot(v if np.ndim(self._c) == 0 and self._c == 1.0 else self._c * v)

    def rescaled(self, c: Array | float) -> RowSpace:
        """Return the space for planes in v, where w = c v."""
        product = self._c * c
        return RowSpace(self._risk, 1.0 if np.all(product == 1.0) else product)
