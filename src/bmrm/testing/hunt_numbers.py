"""Exact arithmetic for the hunt: floats as fractions, exact products, exponentials and logarithms to 50 digits."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Number: TypeAlias = Fraction
Integers: TypeAlias = npt.NDArray[Any]  # of Python's integers

ZERO, ONE = Fraction(0), Fraction(1)
_DIGITS = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN)
_SMALL = Fraction(1, 10**20)  # beyond its square log(1 + x) has no digit that counts
_FAR = 2000  # exp(-2000) is smaller than any float, exp(2000) larger


class Overflow(Exception):
    """A value that is larger than any float."""


def fractions(values: npt.ArrayLike) -> list[Number]:
    """Return the numbers as fractions; they must be finite."""
    return [Fraction(float(value)) for value in np.asarray(values, dtype=np.float64).reshape(-1)]


def integers(values: npt.ArrayLike) -> tuple[Integers, int]:
    """Return n and e with values = n 2^e.

    Examples
    --------
    >>> from bmrm.testing.hunt_numbers import integers
    >>> integers([0.75, -2.0])
    (array([3, -8], dtype=object), -2)
    """
    mantissas, exponents = np.frexp(np.asarray(values, dtype=np.float64))
    n = (mantissas * 2.0**53).astype(np.int64).astype(object)
    places = np.where(n == 0, 0, exponents - 53)
    least = int(places[n != 0].min(initial=0)) if n.size else 0
    n = n * (2 ** (np.where(n == 0, 0, places - least).astype(object)))
    common = int(np.gcd.reduce(n.reshape(-1), initial=0)) if n.size else 0
    twos = (common & -common).bit_length() - 1 if common else 0
    return n // 2**twos, least + twos


def scaled(n: int, exponent: int) -> Number:
    """Return n 2^exponent."""
    return Fraction(n * 2**exponent) if exponent >= 0 else Fraction(n, 2**-exponent)


def exact_dot(X: tuple[Integers, int], W: npt.ArrayLike) -> list[list[Number]]:
    """Return the rows of X W, exactly; X as `integers` gives it, W of shape (d, k)."""
    (n, e), (w, f) = X, integers(W)
    return [[scaled(int(number), e + f) for number in row] for row in n @ w]


def exp(x: Number) -> Number:
    """Return exp(x) to 50 digits; raise Overflow where no float is as large."""
    if x > _FAR:
        raise Overflow
    return ZERO if x < -_FAR else Fraction(_DIGITS.exp(_decimal(x)))


def log(x: Number) -> Number:
    """Return log(x) to 50 digits, x > 0."""
    return Fraction(_DIGITS.ln(_decimal(x)))


def log_sum_exp(xs: Sequence[Number]) -> Number:
    """Return log(sum exp(x)) to 40 digits, also where the sum is 1 but for a small part."""
    first, *others = sorted(xs, reverse=True)
    rest = sum((exp(x - first) for x in others), ZERO)
    return first + (rest - rest * rest / 2 if rest < _SMALL else log(ONE + rest))


def _decimal(x: Number) -> Decimal:
    return _DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))
