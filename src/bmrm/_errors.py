"""Exceptions that more than one part of the library raises."""

from __future__ import annotations


class DataError(ValueError):
    """Data that cannot be read, written or used; the message says where and what would be accepted."""


class FloorError(ValueError):
    """A loss or a risk has a value below the floor it declares; the message names both."""


class ContradictionError(RuntimeError):
    """A proved lower bound lies above the objective by more than rounding: a fault of this library.

    Parameters
    ----------
    upper, lower : float
        The objective and the bound.
    source : str
        The solver.
    """

    def __init__(self, upper: float, lower: float, source: str) -> None:
        self.upper, self.lower, self.source = upper, lower, source
        super().__init__(
            f"internal error: solver '{source}' proved the lower bound {lower!r} for a problem whose objective is "
            f"{upper!r}, by more than rounding; neither number can be trusted. Please report it with the data, the "
            f"loss, the regularizer and lam"
        )

    def __reduce__(self) -> tuple[type[ContradictionError], tuple[float, float, str]]:
        return type(self), (self.upper, self.lower, self.source)
