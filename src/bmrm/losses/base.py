"""What a loss is: value and slope of scores, with the meaning of its targets at both ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._registry import Registry
from bmrm._traits import Trait

Array: TypeAlias = npt.NDArray[np.float64]
Targets: TypeAlias = Any
Task: TypeAlias = Literal[
    "classification", "regression", "novelty", "ordinal", "ranking", "multilabel", "hierarchy", "multivariate"
]

# Names of scikit-learn's metrics and losses that mean the same.
_ALIASES = {
    "absolute_error": "least_absolute",
    "f1": "fbeta",
    "log_loss": "logistic",
    "pinball": "quantile",
    "roc_auc": "roc_area",
    "squared_error": "least_squares",
}

LOSSES: Registry[Loss] = Registry("loss", _ALIASES)

_FORMULA = {"evaluate", "kernel", "compiled"}  # methods that say what the loss is


class Loss(ABC):
    """A convex loss of scores: a frozen set of hyper-parameters, without state and without data.

    A user's own loss is a subclass with `evaluate`; the rest has defaults that suit real targets, one for each
    row. Class statements with ``name=`` register themselves in ``LOSSES``; without a name the class works all
    the same, it just cannot be asked for by a string.

    Attributes
    ----------
    couples : {"row", "group", "all"}
        What one term of the sum looks at. Terms of groups and of all rows are means: their weights may be scaled.
    weighted_by : {"row", "group", "none"}
        What a sample weight may belong to; `check_weight` refuses others.
    threaded : bool
        Whether `evaluate` takes ``n_threads`` as well.
    traits : frozenset of Trait
        SMOOTH_RISK, CURVATURE, PIECEWISE where they hold.
    floor : float
        A lower bound of the weighted sum for weights that add up to 1, 0 for a loss that is never negative; -inf, the
        default, where none is known. A class with an `evaluate` of its own does not inherit it. What needs a floor
        says so: `l1` and the solvers that refuse "a risk without a known lower bound".
    needs_targets : bool
        False for losses that look at scores only.
    task : str
        What kind of target it is for: "classification", "regression", "novelty", "ordinal", "ranking", "multilabel",
        "hierarchy" or "multivariate" (several numbers for each row).
    takes_offset : bool
        Whether a constant added to all scores is worth learning: not where only differences of scores count.
    learns_offset : bool
        Whether the loss brings an unpenalized offset of its own: `LinearRisk` then adds a constant column.
    tilt : float
        Coefficient of that offset in the risk, beside its part in the scores; see `NuNovelty`.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> class Square(bmrm.losses.Loss):
    ...     floor = 0.0
    ...
    ...     def evaluate(self, scores, targets, weight):
    ...         r = scores - targets
    ...         return 0.5 * float(weight @ r**2), weight * r
    >>> bmrm.testing.check_loss(Square())
    """

    name: ClassVar[str] = ""
    couples: ClassVar[Literal["row", "group", "all"]] = "row"
    weighted_by: ClassVar[Literal["row", "group", "none"]] = "row"
    threaded: ClassVar[bool] = False
    needs_targets: ClassVar[bool] = True
    task: ClassVar[Task] = "regression"
    takes_offset: ClassVar[bool] = True
    learns_offset: ClassVar[bool] = False
    traits: frozenset[Trait] = frozenset()
    floor: float = -np.inf
    tilt: float = 0.0

    def __init_subclass__(cls, name: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls).keys() | vars(cls).get("__annotations__", {}).keys()
        if own & _FORMULA and "floor" not in own:
            cls.floor = -np.inf  # that of another formula says nothing of this one
        if name:
            cls.name = name
            LOSSES[name] = cls

    @abstractmethod
    def evaluate(self, scores: Array, targets: Targets, weight: Array) -> tuple[float, Array]:
        """Return the weighted sum of the loss and its slope with respect to each score (weights included)."""

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Check raw targets and turn them into what `evaluate` takes."""
        self.refuse_groups(groups)
        return finite_targets(y)

    def check_weight(self, targets: Targets, weight: Array) -> None:
        """Raise ValueError where weights of rows mean nothing to the loss."""
        return None

    def mass(self, targets: Targets, weight: Array | None, m: int) -> float:
        """Return what the mean over these rows counts beside the means over others: the sum of their weights.

        With it, the mean over all rows is the mean of the means over shards. Losses of all rows have no such form.
        """
        return float(m) if weight is None else float(np.sum(weight))

    def shift_size(self, targets: Targets) -> float:
        """Return the norm of what the loss adds to scores before terms cancel: it is rounded as the scores are."""
        return 0.0

    def shift_slope(self, targets: Targets) -> float | None:
        """Return the sum of the slopes where it is the same at all scores, so that rounding has no part in it."""
        return None

    def largest_slopes(self, targets: Targets, weight: Array) -> float:
        """Return a bound of the norm of the slopes that holds at all scores; inf if there is none."""
        return np.inf

    def growth(self, scores: Array, targets: Targets, weight: Array, e: float) -> float:
        """Return what the loss grows by at most where scores move by at most e, as a vector: what rounding may hide.

        Exact for losses of rows. A loss of one's own that looks at several rows is tried where the scores move along
        its slopes, and toward each other; a bound that is proved needs a method of its own.
        """
        if self.couples == "row":
            moved = [scores - e, scores + e]
        else:
            slopes = self.evaluate(scores, targets, weight)[1]
            apart = scores - scores.mean()
            steps = (slopes, -apart, 0.5 * slopes - apart)
            moved = [scores + e * step / max(float(np.linalg.norm(step)), 1e-300) for step in steps]
        sides = [np.abs(self.evaluate(f, targets, weight)[1]) for f in moved]
        return e * float(np.linalg.norm(np.maximum.reduce(sides)))

    def refuse_groups(self, groups: npt.ArrayLike | None) -> None:
        """Raise if groups are given to a loss that looks at single rows, or at all of them together."""
        if groups is not None:
            rows = "all rows together" if self.couples == "all" else "single rows"
            raise ValueError(f"loss '{self.name or type(self).__name__}' looks at {rows} and takes no groups")

    def decide(self, scores: Array) -> Array:
        """Turn scores into predictions in the encoding of the targets."""
        return scores

    def kernel(self) -> Any:
        """Return the compiled counterpart, or None if the loss is evaluated in Python."""
        return None

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return instances worth testing and showing."""
        return [cls()]

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Array, npt.NDArray[np.int64] | None]:
        """Draw random targets of the right kind (and groups, where the loss needs them)."""
        return rng.normal(size=m), None


def real_targets(y: npt.ArrayLike) -> Array:
    """Return y as a float64 vector; text and other shapes raise one clear error."""
    raw = np.asarray(y)
    if raw.dtype.kind not in "biufO":
        raise ValueError(f"targets must be real numbers, got an array of {raw.dtype}")
    try:
        values = np.ascontiguousarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"targets must be numbers: {error}") from None
    if values.ndim == 2 and values.shape[1] == 1:
        values = np.ascontiguousarray(values[:, 0])
    if values.ndim != 1:
        raise ValueError(f"targets must be one number for each row, got an array of shape {values.shape}")
    return values


def finite_targets(y: npt.ArrayLike) -> Array:
    """Return y as a float64 vector; NaN, infinity, text and other shapes raise one clear error."""
    values = real_targets(y)
    if not _core.all_finite(values):
        bad = np.flatnonzero(~np.isfinite(values))
        raise ValueError(f"target of row {bad[0]} is {values[bad[0]]}; targets must be finite ({bad.size} are not)")
    return values


def in_domain(y: Array, accepted: npt.NDArray[np.bool_], domain: str, loss: object) -> Array:
    """Return y if every target is accepted, else raise an error that names the row, the value and the domain."""
    bad = np.flatnonzero(~accepted)
    if bad.size:
        raise ValueError(
            f"target of row {bad[0]} is {y[bad[0]]:g}, but loss '{loss}' takes {domain} "
            f"({bad.size} of {y.size} targets are outside)"
        )
    return y


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def positive(value: float, parameter: str, loss: str, *, allow_zero: bool = False) -> None:
    """Raise unless the parameter is a finite number above zero (or at least zero)."""
    if not (_is_number(value) and np.isfinite(value) and (value > 0 or (allow_zero and value == 0))):
        least = "at least 0" if allow_zero else "above 0"
        raise ValueError(f"parameter '{parameter}' of loss '{loss}' must be {least}, got {value!r}")


def between(value: float, parameter: str, loss: str) -> None:
    """Raise unless the parameter lies strictly between 0 and 1."""
    if not (_is_number(value) and 0.0 < value < 1.0):
        raise ValueError(f"parameter '{parameter}' of loss '{loss}' must lie between 0 and 1, got {value!r}")
