"""One class for each row, chosen by the largest of k scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._traits import Trait
from bmrm.losses.base import LOSSES, Array, Loss, positive
from bmrm.losses.bend import ShareBend
from bmrm.losses.vector import Classes, ClassLoss, CompiledRows, Costs, checked_classes, checked_costs, probabilities

_JOINT = {"hinge": "multiclass_hinge", "logistic": "softmax"}
_EXAMPLE = ((0.0, 1.0, 2.0), (0.5, 0.0, 1.0), (3.0, 1.0, 0.0))


@dataclass(frozen=True)
class MulticlassHinge(ClassLoss, name="multiclass_hinge"):
    """max(f_c - f_y + Delta(y, c)) over c: the multiclass support vector machine's loss.

    Piecewise linear; 0 where the true class leads every other one by its cost. With Delta = 1 for every wrong class it
    is Crammer and Singer's loss, which LIBLINEAR has. Solved fastest by `dual_coordinate`, which `auto` takes with l2.

    Parameters
    ----------
    delta : matrix (k, k), optional
        ``delta[y][c]``, the cost of class c where y is true: at least 0, 0 on the diagonal. 1 by default.
    n_classes : int, optional
        k, if targets need not contain every class; the size of delta, or one more than the largest target, by default.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.MulticlassHinge(n_classes=3)
    >>> value, slopes = loss.evaluate(np.array([[1.0, 0.5, 0.0]]), loss.encode([0]), np.ones(1))
    >>> value, slopes
    (0.5, array([[-1.,  1.,  0.]]))

    References
    ----------
    T07 table 2, Y10 eq. 42.
    """

    delta: Costs | None = None
    n_classes: int | None = None

    traits = frozenset({Trait.PIECEWISE, Trait.DUAL_ROWS})
    floor = 0.0

    def __post_init__(self) -> None:
        checked_classes(self.n_classes, self.name)
        if self.delta is not None:
            object.__setattr__(self, "delta", checked_costs(self.delta, self.name))
            if self.n_classes not in (None, len(self.delta)):
                raise ValueError(f"delta is for {len(self.delta)} classes, but n_classes={self.n_classes}")

    def _n_classes(self) -> int | None:
        return self.n_classes if self.delta is None else len(self.delta)

    def costs(self, k: int) -> Array:
        """Return Delta as an array."""
        return 1.0 - np.eye(k) if self.delta is None else np.array(self.delta)

    def compiled(self, targets: Classes) -> CompiledRows:
        """Return the compiled rows."""
        delta = None if self.delta is None else np.array(self.delta)
        return cast(CompiledRows, _core.max_margin(targets.ids, targets.k, delta, None))

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return the plain one and one with costs."""
        return [cls(), cls(_EXAMPLE)]


@dataclass(frozen=True)
class ScaledMulticlassHinge(ClassLoss, name="scaled_multiclass_hinge"):
    """max(Delta(y, c)^beta (f_c - f_y + Delta(y, c))) over c: margins count by what they cost.

    Classes that cost nothing never count, however large their scores are. With ``rescaling="slack"`` it is
    Delta(y, c) (1 + f_c - f_y), which Tsochantaridis et al. call slack rescaling.

    Parameters
    ----------
    delta : matrix (k, k), optional
        As for `MulticlassHinge`.
    beta : float
        At least 0; with 0 it is `MulticlassHinge` (but for classes of cost 0).
    rescaling : {"margin", "slack"}
    n_classes : int, optional

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.ScaledMulticlassHinge(delta=[[0, 2], [1, 0]])
    >>> loss.evaluate(np.array([[1.0, 0.5]]), loss.encode([0]), np.ones(1))[0]
    3.0

    References
    ----------
    T07 table 2.
    """

    delta: Costs | None = None
    beta: float = 1.0
    rescaling: Literal["margin", "slack"] = "margin"
    n_classes: int | None = None

    traits = frozenset({Trait.PIECEWISE})
    floor = 0.0

    def __post_init__(self) -> None:
        positive(self.beta, "beta", self.name, allow_zero=True)
        if self.rescaling not in ("margin", "slack"):
            raise ValueError(
                f"parameter 'rescaling' of loss '{self.name}' must be 'margin' or 'slack', got {self.rescaling!r}"
            )
        object.__setattr__(self, "delta", MulticlassHinge(self.delta, self.n_classes).delta)

    def _n_classes(self) -> int | None:
        return self.n_classes if self.delta is None else len(self.delta)

    def parts(self, k: int) -> tuple[Array, Array]:
        """Return the factor and the constant of each alternative: factor (f_c - f_y) + constant."""
        delta = 1.0 - np.eye(k) if self.delta is None else np.array(self.delta)
        factor = delta if self.rescaling == "slack" else np.where(delta > 0.0, delta**self.beta, 0.0)
        return factor, (delta if self.rescaling == "slack" else factor * delta)

    def largest_slopes(self, targets: Classes, weight: Array) -> float:
        """Return the norm of the slopes where each row prefers the class that counts most."""
        return super().largest_slopes(targets, weight * self.parts(targets.k)[0].max(axis=1)[targets.ids])

    def compiled(self, targets: Classes) -> CompiledRows:
        """Return the compiled rows."""
        factor, constant = self.parts(targets.k)
        return cast(CompiledRows, _core.max_margin(targets.ids, targets.k, constant, factor))

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return both kinds."""
        return [cls(_EXAMPLE, beta=0.5), cls(_EXAMPLE, rescaling="slack")]


@dataclass(frozen=True)
class Softmax(ClassLoss, name="softmax"):
    """log sum_c exp(f_c) - f_y: multinomial logistic regression.

    Smooth, above 0. Scores are logarithms of probabilities up to a constant: this loss yields `predict_proba`.

    Parameters
    ----------
    n_classes : int, optional
        k; one more than the largest target by default.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> loss = bmrm.losses.Softmax()
    >>> round(loss.evaluate(np.zeros((1, 4)), loss.encode([3]), np.ones(1))[0], 6)
    1.386294

    References
    ----------
    T07 table 2.
    """

    n_classes: int | None = None

    traits = frozenset({Trait.SMOOTH_RISK, Trait.CURVED_ROWS})
    floor = 0.0

    def __post_init__(self) -> None:
        checked_classes(self.n_classes, self.name)

    def compiled(self, targets: Classes) -> CompiledRows:
        """Return the compiled rows."""
        return cast(CompiledRows, _core.softmax(targets.ids, targets.k))

    def free_constants(self, targets: Classes) -> npt.NDArray[np.int64]:
        """Return the classes that have rows, but the last of these."""
        return np.unique(targets.ids)[:-1].astype(np.int64)

    def bend(self, scores: Array, weight: Array, n_threads: int = 1) -> ShareBend:
        """Return p (diag(pi) - pi pi'), pi the probabilities."""
        return ShareBend(scores, weight, n_threads)

    def probabilities(self, scores: Array) -> Array:
        """Return exp(f_c) / sum exp(f_c), each row adding up to 1."""
        return probabilities(scores)


def of_all_classes(loss: Loss, multiclass: str, n_classes: int) -> Loss:
    """Return the loss to minimize for so many classes: of all scores together where that is asked for.

    Parameters
    ----------
    loss : Loss
    multiclass : {"auto", "joint", "one_vs_rest"}
        "joint" takes `multiclass_hinge` for hinge and `softmax` for logistic, with more than two classes.
    n_classes : int
    """
    if multiclass not in ("auto", "joint", "one_vs_rest"):
        raise ValueError(f"multiclass must be 'auto', 'joint' or 'one_vs_rest', got {multiclass!r}")
    if isinstance(loss, ClassLoss):
        if multiclass == "one_vs_rest":
            raise ValueError(f"loss '{loss.name}' is of all scores together: it cannot be fitted one against the rest")
        return loss
    if multiclass != "joint" or n_classes == 2:
        return loss
    if loss.name not in _JOINT:
        raise ValueError(
            f"multiclass='joint' knows no loss of all scores in the place of "
            f"'{loss.name or type(loss).__name__}'; it does for {' and '.join(_JOINT)}"
        )
    return LOSSES[_JOINT[loss.name]]()
