"""The owner's guard: what a training run asks for, and nothing else, is answered."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bmrm._errors import DataError
from bmrm.parallel.base import EngineError
from bmrm.regularizers import Regularizer, Separable
from bmrm.risks.base import Array

_LESS = 1e-13  # of the objective: an improvement
_ROUNDING = 1e-6  # of the objective: what two ways to compute it may differ by


class OwnerError(EngineError):
    """An owner cannot be reached, does not fit the others, or has refused; the message names it."""


class Refused(OwnerError):
    """What an owner answers instead of numbers, with the reason."""


class GuardTripped(Refused):
    """What was asked for is not what a training run asks for: the owner answers nobody until it is told to."""


@dataclass(frozen=True)
class GuardSettings:
    """When an owner stops answering.

    Parameters
    ----------
    patience : int
        So many answers without an improvement of the best objective announced.
    budget : int
        So many answers in all, over all runs.
    slack : float
        How far out w may be, in multiples of the ball that holds all minimizers.
    trust : float
        How much larger the objective at 0 of all owners may be than that of this one.
    min_lam : float
        The least lam; without a regularizer, or below it, the ball is too large to be a guard. 0 accepts all.

    Examples
    --------
    >>> from bmrm.owners import GuardSettings
    >>> GuardSettings(patience=500).budget
    100000
    """

    patience: int = 3000
    budget: int = 100_000
    slack: float = 10.0
    trust: float = 100.0
    min_lam: float = 1e-9

    def __post_init__(self) -> None:
        for name, least in (("patience", 1), ("budget", 1), ("slack", 1.0), ("trust", 1.0), ("min_lam", 0.0)):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and value >= least):
                raise DataError(f"{name} of the guard must be at least {least}, got {value!r}")


class Guard:
    """Watches one run on behalf of an owner whose risk is R_s, with the share c_s of R.

    Every minimizer has lam Omega(w) <= J(0) - floor, because J(w) <= J(0) there and R >= floor. So does every minimizer
    of planes below R that a bundle method asks for, and every trial of a line search, as long as they start at a w that
    is no worse than 0 (``benchmarks/guard.py``). Those that start elsewhere may be farther out: so it is w / slack that
    must satisfy the inequality. Only penalized coordinates count in Omega.

    J(0) is announced; it is believed up to ``trust`` times this owner's own. The best objective announced is compared
    with what this owner's own risk makes of the points it was asked about: no w has an objective below
    lam Omega(w) + c_s R_s(w) + (1 - c_s) floor. Reasons are sent, so none has a number of the owner's own in it.

    Parameters
    ----------
    settings : GuardSettings
    regularizer : Regularizer
        Bound to the length of w.
    lam, floor : float
    own : float
        R_s(0).
    share : float
        c_s.
    room : float
        How much masks may change a sum by.
    """

    def __init__(
        self,
        settings: GuardSettings,
        regularizer: Regularizer,
        lam: float,
        floor: float,
        own: float,
        share: float,
        room: float = 0.0,
    ) -> None:
        self.settings, self.lam, self.floor, self.own, self.share = settings, lam, floor, own, share
        self.room = room
        # bounds are no part of the ball: w / slack may violate them
        self.regularizer = replace(regularizer, bounds=None) if isinstance(regularizer, Separable) else regularizer
        self.least = np.inf  # of the objectives that this owner's own answers allow
        self.best = np.inf  # announced
        self.waited = 0

    def before(self, w: Array, best: float | None, zero: float | None) -> None:
        """Raise GuardTripped if w must not be asked about, or the announcements have not improved for too long.

        Parameters
        ----------
        w : array
        best : float or None
            The best objective so far, as announced.
        zero : float or None
            That at w = 0.
        """
        if zero is None or best is None:
            if w.any():
                raise GuardTripped("the first w of a run must be 0, whose objective says how large w may become")
            return
        self._compare(best)
        level = max(self.own - self.floor, min(zero - self.floor, self.settings.trust * (self.own - self.floor)))
        size = self.lam * self.regularizer.value(w / self.settings.slack)
        if not size <= level + 1e-12 * abs(level) + self.room:
            raise GuardTripped(
                f"w lies outside {self.settings.slack:g} times the ball that lam and the objective at 0 imply: "
                f"lam Omega(w / {self.settings.slack:g}) = {size:.4g} is more than J(0) - floor"
            )

    def _compare(self, best: float) -> None:
        if best < self.least - _ROUNDING * max(abs(self.least), 1e-3) - self.room:
            raise GuardTripped(
                f"the objective announced, {best:.6g}, is lower than this owner's own share of it allows"
            )
        if best < self.best - _LESS * abs(best):
            self.best, self.waited = best, 0
        elif self.waited >= self.settings.patience:
            raise GuardTripped(
                f"the best objective announced, {self.best:.6g}, has not improved over {self.waited} answers"
            )

    def after(self, w: Array, value: float) -> None:
        """Note an answer with the value R_s(w)."""
        self.waited += 1
        if np.isfinite(value):
            own = self.share * value + (1.0 - self.share) * self.floor
            self.least = min(self.least, self.lam * self.regularizer.value(w) + own)
