"""What losses, regularizers and risks say of themselves, and what solvers ask for."""

from __future__ import annotations

from enum import Enum


class Trait(Enum):
    """A property that decides which parts of the library fit together.

    The value of each member is the phrase used in error messages and in the documentation.
    """

    SMOOTH_RISK = "a differentiable risk"
    CURVATURE = "a risk with second derivatives"
    PIECEWISE = "a piecewise linear-quadratic loss"
    ROWS = "rows that can be taken one at a time"
    DUAL_ROWS = "rows whose slopes can be chosen one row at a time"
    CURVED_ROWS = "rows with second derivatives"
    COMPILED = "rows with a compiled loss, up to a linear term"
    CACHED_LINE = "a risk that moves along a line without touching the data"
    NOISE = "answers with noise"
    UNBOUNDED_RISK = "a risk without a known lower bound"
    SMOOTH_REGULARIZER = "a differentiable regularizer"
    QUADRATIC = "a quadratic regularizer"
    ELASTIC = "a regularizer of absolute values and squares of single coordinates"
    PURE = "a regularizer of absolute values alone or of squares alone"
    STRONGLY_CONVEX = "a strongly convex regularizer"
    FREE_COORDINATES = "coordinates that are not penalized"
    BOUNDS = "bounds on w"
