"""Any convex piecewise linear-quadratic loss, given by numbers and run compiled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._fields import ByFields
from bmrm._traits import Trait
from bmrm.losses.base import Array, Loss, Targets, in_domain
from bmrm.losses.scalar import PIECEWISE, SMOOTH_PIECEWISE, ScalarLoss


@dataclass(frozen=True)
class PiecewiseQuadratic(ByFields, ScalarLoss, name="piecewise_quadratic"):
    """a_k z^2 + b_k z + c_k between knots, z the residual, the margin or the score: a loss of your own, compiled.

    The pieces must join continuously with slopes that never decrease: that makes the loss convex, and it is
    checked. Smoothness and the smallest value are found from the numbers.

    Parameters
    ----------
    knots : sequence of p increasing numbers
        Where one piece ends and the next begins.
    coefficients : sequence of p + 1 triples (a, b, c)
        The pieces, from left to right.
    of : {"residual", "margin", "score"}
        What z is: f - y, y f (targets -1 and 1), or f.

    Examples
    --------
    The hinge, max(0, 1 - y f):

    >>> import numpy as np, bmrm
    >>> hinge = bmrm.losses.PiecewiseQuadratic([1.0], [(0, -1, 1), (0, 0, 0)], of="margin")
    >>> hinge.evaluate(np.array([0.25]), np.array([1.0]), np.ones(1))[0]
    0.75
    """

    knots: tuple[float, ...] = (0.0,)
    coefficients: tuple[tuple[float, float, float], ...] = ((0.0, -1.0, 0.0), (0.0, 1.0, 0.0))
    of: Literal["residual", "margin", "score"] = "residual"
    traits: frozenset[Trait] = field(init=False, repr=False, compare=False, default=PIECEWISE)
    floor: float = field(init=False, repr=False, compare=False, default=0.0)
    task: Literal["regression", "classification", "novelty"] = field(  # type: ignore[misc]
        init=False, repr=False, compare=False, default="regression"
    )
    needs_targets: bool = field(init=False, repr=False, compare=False, default=True)  # type: ignore[misc]

    def __post_init__(self) -> None:
        if self.of not in ("residual", "margin", "score"):
            raise ValueError(f"parameter 'of' must be 'residual', 'margin' or 'score', got {self.of!r}")
        knots, pieces = _checked(self.knots, self.coefficients)
        floor = _smallest_value(knots, pieces)
        traits = SMOOTH_PIECEWISE if _is_smooth(knots, pieces) else PIECEWISE
        tasks = {"residual": "regression", "margin": "classification", "score": "novelty"}
        derived = {
            "knots": tuple(knots.tolist()),
            "coefficients": tuple((a, b, c) for a, b, c in pieces.tolist()),
            "traits": traits if np.isfinite(floor) else traits | {Trait.UNBOUNDED_RISK},
            "floor": floor,
            "task": tasks[self.of],
            "needs_targets": self.of != "score",
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def kernel(self) -> _core.ScalarLoss:
        """Return the compiled loss."""
        flat = [float(x) for piece in self.coefficients for x in piece]
        return _core.piecewise_quadratic(list(self.knots), flat, self.of)

    def shift_size(self, targets: Targets) -> float:
        """Return the norm of the targets and of the coefficients: a piece adds up terms that may cancel."""
        farthest = 1.0 + float(np.abs(self.knots).max(initial=0.0))
        constants = float(np.abs(self.coefficients).max()) * farthest
        return constants * float(np.sqrt(len(targets))) + float(np.linalg.norm(targets)) * (self.of == "residual")

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Targets:
        """Return the targets; -1 and 1 where z is the margin."""
        values = super().encode(y, groups)
        if self.of == "margin":
            return in_domain(values, np.abs(values) == 1.0, "-1 and 1", "piecewise_quadratic")
        return values

    def decide(self, scores: Array) -> Array:
        """Return the sign of the score for margins, else the score."""
        return np.where(scores >= 0.0, 1.0, -1.0) if self.of == "margin" else scores

    @classmethod
    def examples(cls) -> list[Loss]:
        """Return an asymmetric smooth loss, a hinge with a bend, and one of the score alone."""
        return [
            cls((-1.0, 2.0), ((0.0, -1.0, -0.5), (0.5, 0.0, 0.0), (0.0, 2.0, -2.0))),
            cls((0.0, 1.0), ((0.0, -3.0, 1.0), (0.0, -1.0, 1.0), (0.0, 0.0, 0.0)), of="margin"),
            cls((0.5,), ((0.0, -1.0, 0.5), (0.0, 0.25, -0.125)), of="score"),
        ]

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Array, None]:
        """Draw signs for margins, else normal numbers."""
        if self.of == "margin":
            return np.where(rng.random(m) < 0.5, -1.0, 1.0), None
        return rng.normal(size=m), None


def _checked(knots: npt.ArrayLike, coefficients: npt.ArrayLike) -> tuple[Array, Array]:
    k = np.asarray(knots, dtype=np.float64).reshape(-1)
    pieces = np.asarray(coefficients, dtype=np.float64)
    if pieces.shape != (k.size + 1, 3):
        raise ValueError(
            f"{k.size} knots need {k.size + 1} triples (a, b, c), got coefficients of shape {pieces.shape}"
        )
    if not (np.isfinite(k).all() and np.isfinite(pieces).all()):
        raise ValueError("knots and coefficients must be finite")
    if np.any(np.diff(k) <= 0):
        raise ValueError(f"knots must increase, got {k.tolist()}")
    if np.any(pieces[:, 0] < 0):
        raise ValueError(f"piece {int(np.argmin(pieces[:, 0]))} has a negative a: it is not convex")
    for i, z in enumerate(k):
        _check_joint(z, pieces[i], pieces[i + 1])
    return k, pieces


def _check_joint(z: float, before: Array, after: Array) -> None:
    value = [np.polyval(piece, z) for piece in (before, after)]
    slope = [2 * piece[0] * z + piece[1] for piece in (before, after)]
    scale = 1.0 + np.abs(np.concatenate([before, after])).max() * (1.0 + z * z)
    if abs(value[0] - value[1]) > 1e-12 * scale:
        raise ValueError(f"the pieces do not join at knot {z:g}: {value[0]:g} from the left, {value[1]:g}")
    if slope[0] > slope[1] + 1e-12 * scale:
        raise ValueError(f"the slope falls at knot {z:g} from {slope[0]:g} to {slope[1]:g}: it is not convex")


def _is_smooth(knots: Array, pieces: Array) -> bool:
    jumps = [2 * (after[0] - before[0]) * z + after[1] - before[1]
             for z, before, after in zip(knots, pieces[:-1], pieces[1:])]  # fmt: skip
    return all(abs(jump) <= 1e-12 * (1.0 + np.abs(pieces).max()) for jump in jumps)


def _smallest_value(knots: Array, pieces: Array) -> float:
    ends = np.concatenate([[-np.inf], knots, [np.inf]])
    lowest = np.inf
    for (a, b, c), lo, hi in zip(pieces, ends[:-1], ends[1:]):
        if a > 0:
            z = np.clip(-b / (2 * a), lo, hi)
        elif b == 0:
            z = 0.0
        else:
            z = lo if b > 0 else hi
        if not np.isfinite(z):
            return -np.inf
        lowest = min(lowest, float((a * z + b) * z + c))
    return lowest
