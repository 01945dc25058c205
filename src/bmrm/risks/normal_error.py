"""How far a computed normal of a plane may be from the true one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from bmrm import _core
from bmrm._states import kept
from bmrm.risks.base import Array

if TYPE_CHECKING:
    from bmrm.risks.linear import LinearRisk

UNIT = 0.5 * float(np.finfo(np.float64).eps)  # the relative error of one rounding
_MORE = 12  # roundings of a term beside those of its sum: of the slope (8), the weight, the product, units, spare
_BLOCK, _LANES, _JOIN = 1024, 4, 6.0  # the core's inner products: blocks, each with sums side by side that are joined


def roundings(n: int) -> float:
    """Return the most roundings on the way of a term into an inner product of vectors of length n.

    Examples
    --------
    >>> from bmrm.risks.normal_error import roundings
    >>> roundings(2048)
    264.0
    """
    return min(n, _BLOCK) / _LANES + _JOIN + n / _BLOCK


def norm_of(slopes: Array) -> float:
    """Return the Euclidean norm: the steepness of the plane of these slopes."""
    return float(np.sqrt(_core.inner(slopes, slopes)))


class NormalError(ABC):
    """A bound of the rounding in normals: at most t e_j in coordinate j of a plane of steepness t.

    A combination sum_i alpha_i a_i of planes is off by at most sum_i alpha_i t_i e_j. The number of planes is an
    argument, because their sum is rounded as well.
    """

    @abstractmethod
    def norm(self, n_planes: int) -> float:
        """Return at least the Euclidean norm of e, without reading the data."""

    @abstractmethod
    def each(self, n_planes: int) -> Array:
        """Return e."""

    @abstractmethod
    def constant(self, n_planes: int) -> float:
        """Return the largest e_j of the constant columns, without reading the data."""

    @property
    @abstractmethod
    def n_constants(self) -> int:
        """The number of columns at the end for which `constant` holds."""

    @abstractmethod
    def rescaled(self, c: Array | float) -> NormalError:
        """Return the errors of planes in v, where w = c v."""


@kept
class SlopesError(NormalError):
    """That of normals X'l of a linear risk; the steepness of a plane is the Euclidean norm of its slopes l.

    With n roundings on the way of each term and u = 2^-53, an entry of the product is off by at most
    n u sum_i |l_i| |x_ij| <= n u |l| |X_j|. A column has no more terms than entries that are not 0; a kernel that sums
    by blocks has fewer.

    Parameters
    ----------
    risk : LinearRisk
    c : array or float
        The units: planes are those of R(c v).

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.risks.normal_error import SlopesError
    >>> risk = bmrm.LinearRisk([[1.0, 0.0], [1.0, 1e8]], [1, -1], bmrm.losses.Hinge())
    >>> error = SlopesError(risk)
    >>> error.each(1) / 2.0**-53, bool(np.linalg.norm(error.each(1)) <= error.norm(1))
    (array([2.12132034e+01, 1.50000000e+09]), True)
    """

    def __init__(self, risk: LinearRisk, c: Array | float = 1.0) -> None:
        self._risk, self._c = risk, c

    def norm(self, n_planes: int) -> float:
        """Return at least the Euclidean norm of e, without reading the data."""
        if np.ndim(self._c):
            e = self.each(n_planes)
            return float(np.sqrt(np.sum(e * e)))
        extent = self._risk.extent / float(np.sqrt(self._risk.n_outputs))  # each slope meets one copy of the data
        return UNIT * float(self._c) * (self._depth + n_planes + _MORE) * extent

    def each(self, n_planes: int) -> Array:
        """Return e."""
        risk = self._risk
        depths = risk.design.join(np.minimum(risk._squares[1], self._depth).astype(float), self._constant_depth)
        e: Array = UNIT * self._c * (depths + (n_planes + _MORE)) * risk.norms
        return e

    def constant(self, n_planes: int) -> float:
        """Return the largest e_j of the constant columns, without reading the data."""
        risk, k = self._risk, self._risk.n_outputs
        c = float(np.max(np.broadcast_to(self._c, (risk.dim,))[-k:])) if np.ndim(self._c) else float(self._c)
        return UNIT * c * (self._constant_depth + n_planes + _MORE) * float(np.sqrt(risk.design.n_rows))

    @property
    def n_constants(self) -> int:
        """The number of constant columns."""
        return self._risk.n_outputs if self._risk.design.intercept else 0

    @property
    def _depth(self) -> int:
        """The most additions on the way of a term into an entry of X'l."""
        return self._risk.design.matrix.sum_depth(self._risk.n_outputs)

    @property
    def _constant_depth(self) -> float:
        """That of the constant columns: the slopes are added by blocks, those of several scores one after the other."""
        risk = self._risk
        return float(risk.design.n_rows) if risk.n_outputs > 1 else roundings(risk.design.n_rows)

    def rescaled(self, c: Array | float) -> SlopesError:
        """Return the errors of planes in v, where w = c v."""
        product = self._c * c
        return SlopesError(self._risk, 1.0 if np.all(product == 1.0) else product)


@kept
class KnownError(NormalError):
    """Errors that are the same for every plane, whose steepness is 1.

    Parameters
    ----------
    e : array
    """

    def __init__(self, e: Array) -> None:
        self._e = e

    def norm(self, n_planes: int) -> float:
        """Return the Euclidean norm of e."""
        return float(np.sqrt(np.sum(np.square(self.each(n_planes)))))

    def each(self, n_planes: int) -> Array:
        """Return e."""
        return self._e * (1.0 + n_planes / _MORE)

    def constant(self, n_planes: int) -> float:
        """Return the largest of all."""
        return float(np.max(self.each(n_planes), initial=0.0))

    @property
    def n_constants(self) -> int:
        """The number of columns."""
        return self._e.size

    def rescaled(self, c: Array | float) -> KnownError:
        """Return the errors of planes in v, where w = c v."""
        return KnownError(self._e * c)
