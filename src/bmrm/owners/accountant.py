"""The accountant: what a number of answers with Gaussian noise tells about one row, in the units of (epsilon, delta).

An answer whose sensitivity is Delta and whose noise has the standard deviation sigma is Renyi differentially private:
its divergence of order alpha is at most alpha rho with rho = Delta^2 / (2 sigma^2). The rho of several answers add up,
also where each question depends on the answers before it, and where they are stopped when their sum reaches a limit.
"""

from __future__ import annotations

import math

import numpy as np

_ORDERS = 1.0 + np.logspace(-4.0, 6.0, 4001)  # 0.6 % apart: the minimum over them is exact to 1e-5
_HALVINGS = 200


def epsilon_of(rho: float, delta: float) -> float:
    """Return the epsilon for which answers of that rho together are (epsilon, delta) private.

    The conversion of Canonne, Kamath and Steinke (2020, proposition 12)::

        epsilon = min over alpha > 1 of  alpha rho + log(1 - 1 / alpha) - log(delta alpha) / (alpha - 1)

    Parameters
    ----------
    rho : float
        The sum over all answers of Delta^2 / (2 sigma^2).
    delta : float
        Between 0 and 1.

    Examples
    --------
    >>> from bmrm.owners.accountant import epsilon_of
    >>> round(epsilon_of(0.01, 1e-6), 3)
    0.622
    """
    if rho <= 0.0:
        return 0.0
    found = _ORDERS * rho + np.log1p(-1.0 / _ORDERS) - np.log(delta * _ORDERS) / (_ORDERS - 1.0)
    return max(0.0, float(np.min(found)))


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho that is (epsilon, delta) private by `epsilon_of`.

    Examples
    --------
    >>> from bmrm.owners.accountant import epsilon_of, rho_of
    >>> epsilon_of(rho_of(2.0, 1e-6), 1e-6) <= 2.0
    True
    """
    least, most = 0.0, max(1.0, 2.0 * epsilon)
    for _ in range(_HALVINGS):
        middle = 0.5 * (least + most)
        if not least < middle < most:
            break
        if epsilon_of(middle, delta) <= epsilon:
            least = middle
        else:
            most = middle
    return least


def ratio_of(rho: float) -> float:
    """Return the Delta / sigma of one answer of that rho.

    Examples
    --------
    >>> from bmrm.owners.accountant import ratio_of
    >>> ratio_of(0.5)
    1.0
    """
    return math.sqrt(2.0 * rho)
