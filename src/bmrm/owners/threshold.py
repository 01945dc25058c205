"""Where labels of sets begin: a threshold for all scores, from sums over the owners' rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bmrm.owners.connected import Owners
from bmrm.owners.risk import OwnersRisk
from bmrm.regularizers import Regularizer
from bmrm.risks.base import Array


def label_threshold(
    owners: Owners, labels: Sequence[Any], coef: Array, constants: Array, lam: float, regularizer: Regularizer | str
) -> float:
    """Return the threshold of two normal distributions of one width, of the scores of true labels and of the others.

    The least mistakes need scores of single rows. The means of both kinds of scores, c labels for each row and the
    spread follow from sums: those of least squares with y_z = 1 for the labels z of a row, else 0, ::

        R(0) = c / 2,   <R'(0), w> = -mean sum_z y_z f_z,   R(w) = mean sum_z (f_z - y_z)^2 / 2,

    and the slopes along the constants, mean (f_z - y_z). That is two answers of each owner.

    Parameters
    ----------
    owners : Owners
    labels : sequence
    coef, constants : arrays of shape (k, d) and (k,)
    lam, regularizer
        Of the run: the owners' guards compare the size of w with them.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.owners.threshold import label_threshold
    >>> X = np.linspace(-1.0, 1.0, 400).reshape(200, 2)
    >>> owner = bmrm.Owner((X, [(0,) if x[0] > 0 else (1,) for x in X]))
    >>> with bmrm.owners.Owners([owner]) as owners:
    ...     t = label_threshold(owners, [0, 1], np.array([[1.0, 0.0], [-1.0, 0.0]]), np.zeros(2), 0.1, "l2")
    >>> abs(t) < 1e-9
    True
    """
    risk = OwnersRisk(
        owners, "multivariate_regression", lam=lam, regularizer=regularizer, intercept=True, classes=list(labels),
        checked=False,
    )  # fmt: skip
    k = len(constants)
    w: Array = np.vstack([coef.T, constants]).reshape(-1)
    point, zero = risk.touch(w), risk.at_zero
    count = 2.0 * zero.value
    true = -float(zero.subgradient @ w)
    total = float(point.subgradient[-k:].sum()) + count
    squares = 2.0 * point.value + 2.0 * true - count
    if not 0.0 < count < k:
        return 0.0
    above, below = true / count, (total - true) / (k - count)
    spread = max(squares - count * above**2 - (k - count) * below**2, 0.0) / k
    middle = 0.5 * (above + below)
    return middle + spread / (above - below) * float(np.log((k - count) / count)) if above > below else middle
