"""A risk in other units: v -> R(c v), for columns of very different size.

With c a power of two in every coordinate nothing is rounded on the way: values, planes and bounds of the scaled
problem are those of the original one, digit for digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm.risks.base import Array, Line, Point, Risk
from bmrm.risks.inputs import OF_ROWS
from bmrm.risks.normal_error import NormalError
from bmrm.risks.space import RowSpace


def powers_of_two(sizes: Array) -> Array:
    """Return c with c_j sizes_j between 1/sqrt(2) and sqrt(2), each a power of two; 1 where the size is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.risks.scaled import powers_of_two
    >>> powers_of_two(np.array([1000.0, 0.3, 0.0]))
    array([9.765625e-04, 4.000000e+00, 1.000000e+00])
    """
    exponent = np.zeros(sizes.shape)
    np.log2(sizes, out=exponent, where=sizes > 0.0)
    return np.exp2(-np.clip(np.round(exponent), -200.0, 200.0))


class ScaledRisk(Risk):
    """R(c v), c > 0 in every coordinate.

    Offers values, subgradients, points and lines; no rows, whose entries are in the original units.

    Parameters
    ----------
    risk : Risk
    c : array
        One number above 0 for each coordinate.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.risks.scaled import ScaledRisk
    >>> risk = bmrm.LinearRisk([[1000.0], [-1000.0]], [1, -1], bmrm.losses.Hinge())
    >>> ScaledRisk(risk, np.array([2.0**-10])).evaluate(np.array([0.5]))
    (0.51171875, array([-0.9765625]))
    """

    def __init__(self, risk: Risk, c: Array) -> None:
        self.risk, self.c = risk, c
        self.dim, self.floor = risk.dim, risk.floor
        self.traits = risk.traits - OF_ROWS
        self.cheap_lines, self.noise = risk.cheap_lines, risk.noise
        self.unpenalized, self.n_threads, self.plane_bytes = risk.unpenalized, risk.n_threads, risk.plane_bytes

    @property
    def products(self) -> int:
        """Products with the data so far, of the risk inside."""
        return self.risk.products

    @products.setter
    def products(self, n: int) -> None:
        self.risk.products = n

    @property
    def busy(self) -> tuple[float, ...]:
        """Seconds of the risk inside."""
        return self.risk.busy

    def unseen(self, free: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return those of the risk inside: a coordinate is 0 in all units."""
        return self.risk.unseen(free)

    def evaluate(self, w: Array) -> tuple[float, Array]:
        """Return the value and one subgradient at v."""
        value, a = self.risk.evaluate(self.c * w)
        return value, self.c * a

    def at(self, w: Array, remembered: Any = None) -> ScaledPoint:
        """Return v with what the risk itself keeps at c v."""
        return ScaledPoint(self, w, self.risk.at(self.c * w, remembered))

    def touch(self, w: Array) -> ScaledPoint:
        """Return v with what the risk itself finds at c v."""
        return ScaledPoint(self, w, self.risk.touch(self.c * w))

    def space(self) -> RowSpace | None:
        """Return the risk's own space, for planes in the new units."""
        space = self.risk.space()
        return None if space is None else space.rescaled(self.c)

    @property
    def normal_error(self) -> NormalError | None:
        """That of the risk inside, in the new units."""
        error = self.risk.normal_error
        return None if error is None else error.rescaled(self.c)

    def bracket(self) -> list[Array]:
        """Return the risk's own points in the new units."""
        return [w / self.c for w in self.risk.bracket()]


class ScaledPoint(Point):
    """v, and the point c v of the risk inside."""

    risk: ScaledRisk

    def __init__(self, risk: ScaledRisk, w: Array, inner: Point) -> None:
        super().__init__(risk, w)
        self.inner = inner

    @property
    def value(self) -> float:
        """R(c v)."""
        return self.inner.value

    @property
    def subgradient(self) -> Array:
        """One subgradient with respect to v."""
        return self.risk.c * self.inner.subgradient

    @property
    def plane(self) -> tuple[Array, float]:
        """That of the point inside, in the new units: the offset does not depend on them."""
        a, b = self.inner.plane
        return self.risk.c * a, b

    @property
    def steepness(self) -> float:
        """That of the point inside."""
        return self.inner.steepness

    @property
    def rounding(self) -> float:
        """That of the point inside."""
        return self.inner.rounding

    def toward(self, w: Array) -> ScaledLine:
        """Return the line to another v."""
        return ScaledLine(self, w)

    @property
    def remembered(self) -> Any:
        """What the risk inside needs to make the same point again."""
        return self.inner.remembered

    @property
    def factors(self) -> tuple[Array, Array] | None:
        """Those of the point inside: neither depends on the units."""
        return self.inner.factors


class ScaledLine(Line):
    """A line of v, and the same line of c v in the risk inside."""

    start: ScaledPoint

    def __init__(self, start: ScaledPoint, end: Array) -> None:
        super().__init__(start, end)
        self.inner = start.inner.toward(start.risk.c * end)
        self.fine = self.inner.fine

    def at(self, t: float) -> ScaledPoint:
        """Return the point at t."""
        if t not in self._points:
            self._points[t] = ScaledPoint(self.start.risk, self.start.w + t * self.direction, self.inner.at(t))
        return self._points[t]  # type: ignore[return-value]

    def evaluate(self, t: float) -> tuple[float, float, float]:
        """Return the value and both one-sided slopes at t."""
        return self.inner.evaluate(t)

    def evaluate_all(self, ts: Sequence[float]) -> list[tuple[float, float, float]]:
        """Return the same at several t."""
        return self.inner.evaluate_all(ts)

    def terms(self) -> list[Any]:
        """Return the compiled terms of the line inside."""
        return self.inner.terms()
