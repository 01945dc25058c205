"""Certificate and Status: what was proved, and why the work stopped."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from bmrm._errors import ContradictionError

ATOL = 1e-12
_ROUNDING = 1e-9  # of the larger end: what the charges for rounding leave out
_TINY = 1e-20  # an objective below it is 0


@dataclass(frozen=True)
class Certificate:
    """Two numbers that enclose min J: lower <= min J <= upper = J(w).

    Attributes
    ----------
    upper : float
        J(w), evaluated.
    lower : float
        A proven lower bound of min J over all w; -inf if none was found.
    gap : float
        How far from optimal w can be at most.
    source : str
        What the bound comes from.
    failure : float
        The probability that the two numbers do not enclose it. 0: certain, as everywhere but with owners whose answers
        carry noise (`bmrm.Privacy`).

    Examples
    --------
    >>> import bmrm
    >>> certificate = bmrm.Certificate(upper=1.0, lower=0.99, gap=0.01, source="bundle")
    >>> certificate.relative_gap
    0.01
    >>> print(certificate)
    objective 1, at most 1% above the optimum
    """

    upper: float
    lower: float
    gap: float
    source: str
    failure: float = 0.0

    @classmethod
    def of(cls, upper: float, lower: float, source: str, failure: float = 0.0) -> Certificate:
        """Make a certificate from its two ends.

        A lower end above the upper one by less than 1e-9 of them is rounding; otherwise it is a `ContradictionError`.
        """
        gap = upper - lower
        if -gap > _ROUNDING * max(abs(upper), abs(lower), _TINY):
            raise ContradictionError(upper, lower, source)
        return cls(upper, min(lower, upper), max(gap, 0.0) if np.isfinite(gap) else np.inf, source, failure)

    @property
    def relative_gap(self) -> float:
        """gap / max(abs(upper), abs(lower)), what `tol` is compared with.

        0 where the gap is 0, whatever the ends are; inf where an end is not finite. Never more than 2 otherwise.

        Examples
        --------
        >>> import bmrm
        >>> bmrm.Certificate(upper=0.0, lower=-3.0, gap=3.0, source="").relative_gap
        1.0
        """
        if not np.isfinite(self.gap):
            return np.inf
        return 0.0 if self.gap == 0.0 else self.gap / max(abs(self.upper), abs(self.lower))

    def closes(self, tol: float, scale: float = 1.0) -> bool:
        """Return whether the gap is at most tol, relative to the larger of both ends (plus 1e-12 scale)."""
        if not np.isfinite(self.gap):
            return False
        return self.gap <= tol * max(abs(self.upper), abs(self.lower)) + ATOL * scale

    def __str__(self) -> str:
        return self._ends() + (f", with probability {1.0 - self.failure:.6g}" if self.failure > 0.0 else "")

    def _ends(self) -> str:
        if not np.isfinite(self.upper):
            return f"objective {self.upper}, which proves nothing"
        if not np.isfinite(self.lower):
            return f"objective {self.upper:.6g}, no bound of the optimum known yet"
        if self.gap <= ATOL * max(abs(self.upper), abs(self.lower)):
            return f"objective {self.upper:.6g}, the optimum to rounding"
        if self.lower <= 0.0 <= self.upper:
            return f"objective {self.upper:.6g}, the optimum is at least {self.lower:.3g}"
        percent = 100.0 * self.gap / abs(self.lower)
        shown = f"{percent:.2g}" if percent < 100.0 else f"{percent:.0f}"
        return f"objective {self.upper:.6g}, at most {shown}% above the optimum"


class Status(Enum):
    """Why a run ended. Only CONVERGED says that the gap is closed; ``advice`` says what to try otherwise."""

    CONVERGED = "the gap is closed: the objective is within the tolerance of the optimum, which is proved"
    ITERATION_LIMIT = "stopped at max_iter: raise it, or continue with start=result"
    TIME_LIMIT = "stopped at max_seconds: raise it, or continue with start=result"
    STOPPED = "stopped by the callback: continue with start=result"
    INTERRUPTED = "interrupted by Ctrl-C or another signal: continue with start=result"
    STALLED = "no further progress in floating point: the tolerance asks for more digits than the data carry, or another solver is needed (solver='ls_bmrm')"  # noqa: E501
    SPENT = "the owners' budgets of privacy are spent: more accuracy needs more rows, a larger epsilon or a larger lam"
    NON_FINITE = "the objective is not finite at the start: begin elsewhere or rescale the data"
    UNBOUNDED = "the objective has no lower bound: add a regularizer or raise lam"

    @property
    def advice(self) -> str:
        """The sentence that goes with the status."""
        return self.value
