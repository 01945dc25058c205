"""Differential privacy of an owner's answers: settings, rows of bounded norm, and planes with Gaussian noise."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bmrm._cached import cached_property
from bmrm._errors import DataError
from bmrm.data.dataset import Dataset
from bmrm.owners.accountant import ratio_of, rho_of
from bmrm.owners.guard import Refused
from bmrm.owners.noise import GRID, on_grid, steps_of_noise
from bmrm.owners.row_bounds import RowBounds
from bmrm.risks.base import Array
from bmrm.risks.noise import FARTHEST

_ROUNDING = 2.0**-53
_ROUNDINGS = 16.0  # of a number on its way into a sum, beside the additions
_OFFSET_SHARE = 0.1  # of an answer's privacy pays for the offset of the plane, the rest for its normal
_SCORES = 4.0  # margins of a trained model mostly lie between -2 and 2; in units of the heights of a row
_LARGEST = 1e100  # of all settings, and the inverse of the smallest: no product of two overflows or vanishes
_STEPS = 0.15  # see `Privacy.planned_for`
# Answers by default. Fewer leave the steps of momentum unfinished; more are waited for (covtype, logistic, lam 1e-4,
# epsilon 1, 100 and 1000: 70.1 and 73.5 % of the test rows right, 74.2 without noise).
_FEWEST, _MOST = 30, 1000
_GRID_SHARE = 0.5  # of an answer's privacy that rounding to the grid may take: beyond, w has too many numbers


@dataclass(frozen=True)
class Privacy:
    """How much the answers of an owner may say about one row: they are (epsilon, delta) differentially private.

    Two data sets are neighbors if one row, with its label, is replaced by another. Whatever is asked, for any set S of
    things that could be learned from all answers over all runs together::

        P(learned from one data set in S) <= exp(epsilon) P(learned from its neighbor in S) + delta

    Public, and told as they are: the numbers of rows and columns, names of columns, the set of labels, these settings.

    Parameters
    ----------
    epsilon, delta : float
        The budget of all answers together. 1 is strong, 8 is weak. delta should be far below 1 / rows.
    row_norm : float
        B: rows with a larger Euclidean norm are scaled down to it. Choose it without looking at the rows (for columns
        in [0, 1] of which q are not 0, sqrt(q)): a smaller B means less noise, and a model of shorter rows.
    answers : int, optional
        So many planes share the budget, over all runs. By default as many as suit one training of one model
        (`planned_for`): fewer leave it unfinished, more make each one noisier.
    target_bound : float, optional
        Y: targets that are numbers are cut off at -Y and Y. Needed for regression.
    ledger : path, optional
        Where it is written down what is spent. An owner of a file keeps FILE.privacy by default, others forget what was
        spent when they end.

    Examples
    --------
    >>> import bmrm
    >>> bmrm.Privacy(epsilon=1.0, delta=1e-6, row_norm=2.0).planned_for(30_000, 123).answers
    89
    """

    epsilon: float
    delta: float
    row_norm: float
    answers: int | None = None
    target_bound: float | None = None
    ledger: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "row_norm", "target_bound"):
            value = getattr(self, name)
            if not (_is_positive(value) or (value is None and name == "target_bound")):
                raise DataError(f"{name} must be a number from {1.0 / _LARGEST:g} to {_LARGEST:g}, got {value!r}")
        if not (_is_positive(self.delta) and self.delta < 1.0):
            raise DataError(f"delta must lie between 0 and 1, got {self.delta!r}")
        whole = isinstance(self.answers, int) and not isinstance(self.answers, bool) and self.answers >= 1
        if not (whole or self.answers is None):
            raise DataError(f"answers must be a whole number of at least 1, got {self.answers!r}")

    @cached_property
    def budget(self) -> float:
        """The rho that all answers together may have."""
        return rho_of(self.epsilon, self.delta)

    @property
    def rho(self) -> float:
        """The rho of one answer."""
        assert self.answers is not None
        return self.budget / self.answers

    def planned_for(self, n: int, d: int) -> Privacy:
        """Return the settings with a number of answers, by the numbers of rows and columns, which are public.

        The noise carries w by about step sigma sqrt(d T) in T steps, and sigma grows like sqrt(T). As long as that is
        less than three times the size of a trained w, more steps are better. With the step of `heavy_ball` this is
        T <= 0.15 n sqrt(2 rho / d), whatever the norm of the rows.
        """
        if self.answers is not None:
            return self
        most = _STEPS * n * ratio_of(self.budget) / math.sqrt(d + 1.0)
        return replace(self, answers=int(min(max(most, _FEWEST), _MOST)))

    def applied_to(self, data: Dataset, name: str) -> Dataset:
        """Return the data with rows of bounded norm, and targets within their bound.

        Parameters
        ----------
        data : Dataset
        name : str
            Of the owner, for messages.
        """
        if data.weight is not None:
            raise DataError(f"{name}: has weights of rows; with privacy every row counts the same")
        if not (isinstance(data.X, np.ndarray) or hasattr(data.X, "tocsr")):
            raise DataError(f"{name}: privacy needs rows in memory, got {type(data.X).__name__}")
        y: Any = data.y
        if self.target_bound is not None:
            if not (isinstance(y, np.ndarray) and y.dtype.kind in "iuf"):
                raise DataError(f"{name}: target_bound is for targets that are numbers")
            y = np.clip(y.astype(np.float64), -self.target_bound, self.target_bound)
        return replace(data, X=clipped(data.X, self.row_norm), y=y)


def _is_positive(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 1.0 / _LARGEST < value < _LARGEST


def clipped(X: Any, most: float) -> Any:
    """Return X in double precision, with rows longer than `most` scaled down to it.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.owners.privacy import clipped
    >>> clipped(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0).round(6).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    if hasattr(X, "tocsr"):
        rows = X.tocsr().astype(np.float64)
        rows.sum_duplicates()
        _check_finite(rows.data)
        of_entry = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        largest = np.zeros(rows.shape[0])
        np.maximum.at(largest, of_entry, np.abs(rows.data))
        unit = rows.data / np.where(largest > 0.0, largest, 1.0)[of_entry]  # squares of large entries overflow
        size = largest * np.sqrt(np.bincount(of_entry, unit * unit, rows.shape[0]))
        rows.data = rows.data * _factors(size, most)[of_entry]
        return rows
    dense = np.asarray(X, dtype=np.float64)
    _check_finite(dense)
    largest = np.abs(dense).max(axis=1, initial=0.0)
    unit = dense / np.where(largest > 0.0, largest, 1.0)[:, None]
    return dense * _factors(largest * np.sqrt((unit * unit).sum(axis=1)), most)[:, None]


def _check_finite(entries: Array) -> None:
    if not np.isfinite(entries).all():
        raise DataError("rows with entries that are not finite have no norm to bound")


def _factors(size: Array, most: float) -> Array:
    """Return what rows are multiplied by; a little less than most / size, for that is rounded."""
    return np.where(size > most, most * (1.0 - 1e-12) / np.where(size > 0.0, size, 1.0), 1.0)


@dataclass(frozen=True)
class Mechanism:
    """Planes of the mean loss of n rows, with noise: how much one row moves them, and how much noise hides that.

    One row moves the normal a = (1/n) sum s_i x_i by at most 2 G R / n, R^2 = B^2, plus 1 with a constant column, and
    the offset b = (1/n) sum (l_i - s_i f_i) by at most the length of the interval of heights over n. Neither depends on
    w. What sums are off by in floating point, n (n + d + 16) 2^-53 of that, is added. The offset is measured in units
    tau in which it takes a tenth of the privacy::

        Delta^2 = (2 G R / n)^2 + (tau range / n)^2,    noise of a: sigma,    noise of b: sigma / tau

    Parameters
    ----------
    bounds : RowBounds
    n : int
        The number of rows.
    row_norm : float
    intercept : bool
    dim : int
        The length of w.
    rho : float
        Of one answer.
    answers : int
        How many there may be, for `biases`.
    """

    bounds: RowBounds
    n: int
    row_norm: float
    intercept: bool
    dim: int
    rho: float
    answers: int

    @cached_property
    def radius(self) -> float:
        """R: the norm of a row with its constant."""
        return math.hypot(self.row_norm, 1.0 if self.intercept else 0.0)

    @cached_property
    def heights(self) -> float:
        """The largest size of the height of a row's tangent, at least G."""
        return max(abs(self.bounds.least), abs(self.bounds.most), self.bounds.slope)

    @property
    def size(self) -> float:
        """About the largest norm of a trained w."""
        return _SCORES * self.heights / (self.bounds.slope * self.radius)

    @property
    def farthest(self) -> float:
        """The largest norm of a w that is answered: farther out the rounding of offsets would need more noise."""
        return FARTHEST * self.size

    @cached_property
    def normal_sensitivity(self) -> float:
        """How far one row moves the normal."""
        exact = 2.0 * self.bounds.slope * self.radius
        return exact * (1.0 / self.n + (self.n + self.dim + _ROUNDINGS) * _ROUNDING)

    @cached_property
    def offset_sensitivity(self) -> float:
        """How far one row moves the offset."""
        sizes = self.heights + 2.0 * self.bounds.slope * self.radius * self.farthest
        return self.bounds.range / self.n + 2.0 * (self.n + self.dim + _ROUNDINGS) * _ROUNDING * sizes

    @cached_property
    def sigmas(self) -> tuple[float, float]:
        """The standard deviations of the noise of each number of a normal, and of the offset."""
        ratio = ratio_of(self.rho)
        if not (self.bounds.slope > 1.0 / _LARGEST and self.heights < _LARGEST):
            raise Refused(
                f"the loss has slopes up to {self.bounds.slope:g} and tangents of height {self.heights:g}; this owner "
                f"accepts numbers between {1.0 / _LARGEST:g} and {_LARGEST:g}"
            )
        rounding = GRID * math.sqrt(self.dim + 1.0)  # in standard deviations: each number is rounded by half a step
        if rounding > _GRID_SHARE * ratio:
            raise Refused(f"w has {self.dim} numbers, too many for the noise of this budget")
        tau = self.normal_sensitivity * math.sqrt(_OFFSET_SHARE / (1.0 - _OFFSET_SHARE)) / self.offset_sensitivity
        sigma = math.hypot(self.normal_sensitivity, tau * self.offset_sensitivity) / (ratio - rounding)
        return sigma, sigma / tau

    @property
    def biases(self) -> tuple[float, float]:
        """What to add to the standard deviations so that rounding is covered, also in a mean of all answers.

        The noise of such a mean is smaller by the root of their number; what all of them are rounded by is not.
        """
        (sigma, of_offset), root = self.sigmas, math.sqrt(self.answers)
        normal = self.normal_sensitivity - 2.0 * self.bounds.slope * self.radius / self.n
        offset = self.offset_sensitivity - self.bounds.range / self.n
        step = GRID * math.sqrt(self.dim + 1.0)
        return root * (normal + step * sigma), root * (offset + step * of_offset)

    @property
    def bend(self) -> float:
        """About the largest second derivative of the mean loss."""
        return self.bounds.bend * self.radius**2

    def accepts(self, w: Array) -> bool:
        """Return whether w is near enough to be answered."""
        return bool(np.linalg.norm(w) <= self.farthest)

    def noisy(self, a: Array, b: float) -> tuple[Array, float]:
        """Return a plane with fresh noise, on its grid."""
        sigma = np.append(np.full(self.dim, self.sigmas[0]), self.sigmas[1])
        numbers = on_grid(np.append(a, b), sigma, steps_of_noise(self.dim + 1))
        return numbers[:-1], float(numbers[-1])
