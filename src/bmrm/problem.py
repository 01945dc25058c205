"""Problem: a risk, a regularizer and lam; and which solvers fit it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bmrm._traits import Trait
from bmrm.regularizers import Regularizer, Zero
from bmrm.regularizers import get as get_regularizer
from bmrm.regularizers.base import Separable
from bmrm.risks.base import Array, Risk, as_risk
from bmrm.risks.floor import described, missing_floor
from bmrm.risks.scaled import ScaledRisk

_EPS = float(np.finfo(np.float64).eps)


class Problem:
    """min over w of J(w) = lam Omega(w) + R(w).

    Parameters
    ----------
    risk : Risk, or any object with ``dim`` and ``evaluate(w)``
    regularizer : Regularizer or str
        Without weights of its own it leaves the risk's constant column unpenalized.
    lam : float
        Above 0.

    Attributes
    ----------
    risk, regularizer, lam
        As given; the regularizer is bound to the length of w.
    traits : frozenset of Trait
        Those of the risk and of the regularizer together.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> problem = bmrm.Problem(risk, bmrm.regularizers.L2(), lam=0.5)
    >>> problem.objective(np.array([1.0]))
    0.25
    """

    def __init__(self, risk: Any, regularizer: Regularizer | str, lam: float) -> None:
        try:
            self.lam = float(lam)
        except (TypeError, ValueError):
            raise ValueError(f"lam must be a number above 0, got {lam!r}") from None
        if not (self.lam > 0.0 and np.isfinite(self.lam)):
            raise ValueError(f"lam must be a finite number above 0, got {lam!r}")
        self.risk: Risk = as_risk(risk)
        self.regularizer = _without_unseen(get_regularizer(regularizer), self.risk)
        self.traits: frozenset[Trait] = self.risk.traits | self.regularizer.traits
        if not self.risk.floor < np.inf:
            raise ValueError(
                f"{described(self.risk)} declares the floor {self.risk.floor}; expected a number, or -inf for none"
            )
        if self.risk.floor == -np.inf:
            self.traits |= {Trait.UNBOUNDED_RISK}
        weak = Trait.STRONGLY_CONVEX not in self.traits and not isinstance(self.regularizer, Zero)
        if Trait.UNBOUNDED_RISK in self.traits and weak:
            cure = missing_floor(self.risk)
            if cure:
                raise ValueError(
                    f"regularizer '{self.regularizer.name}' needs a lower bound of the risk: {cure}. Strongly convex "
                    f"regularizers (l2) need none"
                )
            raise ValueError(
                f"the risk has no lower bound, so the regularizer must be strongly convex (l2); "
                f"'{self.regularizer.name}' is not, and the minimum would be 0 or minus infinity"
            )

    def objective(self, w: Array) -> float:
        """Return J(w); one evaluation of the risk."""
        w = np.asarray(w, dtype=np.float64)
        return self.lam * self.regularizer.value(w) + self.risk.at(w).value

    def at_most(self, w: Array, remembered: Any = None) -> float:
        """Return J(w) with what rounding may have taken off it: an upper bound of the true J(w), and so of min J.

        With what a point at w has remembered, it costs no product with the data.
        """
        point = self.risk.at(np.asarray(w, dtype=np.float64), remembered)
        penalty = self.lam * self.regularizer.value(point.w)
        upper = penalty + point.value
        return upper + point.rounding + 4.0 * _EPS * penalty if np.isfinite(upper) else upper

    def with_lam(self, lam: float) -> Problem:
        """Return the same problem with another lam; risk and planes are shared."""
        return Problem(self.risk, self.regularizer, lam)

    def is_same(self, other: Problem | None) -> bool:
        """Return whether the other problem has the same risk object, an equal regularizer and the same lam."""
        if other is None or other.risk is not self.risk or other.lam != self.lam:
            return False
        one, two = self.regularizer, other.regularizer
        if one is two or type(one) is not type(two):
            return one is two
        names = getattr(one, "__dataclass_fields__", None)
        return names is not None and all(np.array_equal(getattr(one, name), getattr(two, name)) for name in names)

    def rescaled(self, c: Array) -> Problem | None:
        """Return the problem in v, w = c v, which has the same minimum; None if the regularizer has no such form."""
        regularizer = self.regularizer.rescaled(c)
        return None if regularizer is None else Problem(ScaledRisk(self.risk, c), regularizer, self.lam)

    def __repr__(self) -> str:
        return f"Problem({type(self.risk).__name__}, {self.regularizer.name}, lam={self.lam:g})"


def _without_unseen(regularizer: Regularizer, risk: Risk) -> Regularizer:
    """Return the regularizer bound to the risk, with the coordinates held at 0 that neither of them sees."""
    bound = regularizer.bind(risk.dim, risk.unpenalized)
    if not isinstance(bound, Separable) or not bound.free.size:
        return bound
    ends = (np.broadcast_to(end, (risk.dim,)) for end in (bound.lower, bound.upper))
    open_ends = np.logical_and.reduce([np.isinf(end) for end in ends])
    held = risk.unseen(bound.free[open_ends[bound.free]])
    return bound.holding(held) if held.size else bound


def missing(solver: Any, problem: Problem) -> list[str]:
    """Return what keeps the solver from this problem, as phrases; empty if nothing does.

    A solver declares ``needs`` (traits the problem must have) and ``refuses`` (traits it must not have).
    """
    noisy = Trait.NOISE in problem.traits and not getattr(solver, "takes_noise", False)
    if solver.needs <= problem.traits and not solver.refuses & problem.traits and not noisy:
        return []
    needs = [f"needs {trait.value}" for trait in solver.needs if trait not in problem.traits]
    refuses = [f"cannot handle {trait.value}" for trait in solver.refuses if trait in problem.traits]
    refuses += [f"cannot handle {Trait.NOISE.value}"] if noisy else []
    return sorted(needs) + sorted(refuses)


def refusal(solver: Any, problem: Problem, solvers: Mapping[str, Any]) -> str:
    """Return why the solver does not fit the problem, and which ones do; empty if it fits."""
    absent = missing(solver, problem)
    if not absent:
        return ""
    fitting = ", ".join(name for name, other in solvers.items() if not missing(other, problem))
    cure = missing_floor(problem.risk) if Trait.UNBOUNDED_RISK in solver.refuses else ""
    return (
        f"solver '{solver.name}' does not fit this problem: it {' and '.join(absent)}. Solvers that fit: {fitting}"
        + (f". {cure[0].upper()}{cure[1:]}" if cure else "")
    )
