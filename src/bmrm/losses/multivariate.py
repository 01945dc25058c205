"""Several numbers to predict for each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._traits import Trait
from bmrm.losses.base import Array, Loss
from bmrm.losses.bend import MatrixBend
from bmrm.losses.vector import CompiledRows, Costs, VectorLoss


class QuadraticRows:
    """The loss as plain least squares of z = f B, where M = B B'."""

    def __init__(self, targets: Array, M: Array | None) -> None:
        self._targets, self._M, self._B = targets, M, None
        if M is not None:
            values, vectors = np.linalg.eigh(M)
            self._B = vectors * np.sqrt(np.maximum(values, 0.0))

    def evaluate(self, scores: Array, weight: Array | None, scale: float, slopes: Array, n_threads: int = 1) -> float:
        """Return the weighted sum, write its slopes p_i M (f_i - y_i)."""
        residual = scores - self._targets
        p = np.full(len(scores), scale) if weight is None else weight
        slopes[...] = residual if self._M is None else residual @ self._M
        # A row of weight 0 counts for nothing, even where its square overflows.
        values = np.where(p > 0.0, np.sum(slopes * residual, axis=1), 0.0)
        slopes *= p[:, None]
        return 0.5 * float(p @ values)

    def extreme(self, scores: Array, along: Array, weight: Array | None, scale: float, slopes: Array) -> None:
        """Write the slopes: there is one set of them."""
        self.evaluate(scores, weight, scale, slopes)

    def line(self, f: Array, g: Array, weight: Array | None, scale: float) -> Any:
        """Return the sum on a line through f in direction g."""
        z, dz, y = (np.ascontiguousarray(x if self._B is None else x @ self._B) for x in (f, g, self._targets))
        p = None if weight is None else np.repeat(weight, z.shape[1])
        square = _core.scalar_loss("least_squares")
        return _core.line(square, z.reshape(-1), dz.reshape(-1), y.reshape(-1), p, scale)


@dataclass(frozen=True)
class MultivariateRegression(VectorLoss, name="multivariate_regression"):
    """1/2 |f - y|^2 in the norm of M, (f - y)' M (f - y): least squares for k numbers whose errors count together.

    Smooth and quadratic. M says what an error in one number costs, given the errors in the others: the inverse of the
    covariance of the noise, where that is known.

    Parameters
    ----------
    M : matrix (k, k), optional
        Symmetric, no negative eigenvalues; the identity by default.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.MultivariateRegression()
    >>> loss.evaluate(np.array([[1.0, 3.0]]), loss.encode([[1.0, 1.0]]), np.ones(1))
    (2.0, array([[0., 2.]]))

    References
    ----------
    T07 table 2.
    """

    M: Costs | None = None

    task: ClassVar[Literal["multivariate"]] = "multivariate"
    traits = frozenset({Trait.SMOOTH_RISK, Trait.CURVED_ROWS})
    floor = 0.0

    def __post_init__(self) -> None:
        if self.M is not None:
            object.__setattr__(self, "M", _checked(self.M))

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Array:
        """Return the targets as a matrix (m, k) of finite numbers."""
        self.refuse_groups(groups)
        try:
            values: Array = np.ascontiguousarray(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"targets must be numbers, as many for each row: {error}") from None
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or not values.shape[1]:
            raise ValueError(f"targets must be k numbers for each row, got an array of shape {values.shape}")
        if self.M is not None and values.shape[1] != len(self.M):
            raise ValueError(f"targets have {values.shape[1]} numbers for each row, but M is for {len(self.M)}")
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise ValueError(f"target {column} of row {row} is {values[row, column]}; targets must be finite")
        return values

    def n_scores(self, targets: Array) -> int:
        """Return the number of targets of a row."""
        return int(targets.shape[1])

    def compiled(self, targets: Array) -> CompiledRows:
        """Return rows that are least squares in other coordinates."""
        return QuadraticRows(targets, None if self.M is None else np.array(self.M))

    def growth(self, scores: Array, targets: Array, weight: Array, e: float) -> float:
        """Return |l| e + 1/2 |p M| e^2, and what squares lose that cancel in M."""
        slopes = self.evaluate(scores, targets, weight)[1]
        norm = 1.0 if self.M is None else float(np.linalg.norm(np.array(self.M)))
        squares = float(weight @ np.square(scores - targets).sum(axis=1))
        lost = 0.0 if self.M is None else 4.0 * float(np.finfo(np.float64).eps) * norm * squares
        return float(np.linalg.norm(slopes)) * e + 0.5 * norm * float(weight.max()) * e * e + lost

    def bend(self, scores: Array, weight: Array, n_threads: int = 1) -> MatrixBend:
        """Return p M."""
        return MatrixBend(np.eye(scores.shape[1]) if self.M is None else np.array(self.M), weight)

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return the plain one and one with errors that count together."""
        return [cls(), cls(((2.0, -1.0), (-1.0, 1.0)))]

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Array, None]:
        """Draw normal targets, two for each row."""
        return rng.normal(size=(m, 2)), None


def _checked(M: Any) -> Costs:
    try:
        matrix = np.asarray(M, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"parameter 'M' of loss 'multivariate_regression' must be numbers: {error}") from None
    what = "parameter 'M' of loss 'multivariate_regression' must be a symmetric matrix without negative eigenvalues"
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ValueError(f"{what}, got shape {matrix.shape}")
    if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0.0):
        raise ValueError(f"{what}, got {matrix.tolist()}")
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < -1e-12 * float(np.abs(matrix).max()):
        raise ValueError(f"{what}; its least eigenvalue is {least:g}")
    return tuple(map(tuple, (0.5 * (matrix + matrix.T)).tolist()))
