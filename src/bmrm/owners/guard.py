"""The owner's guard: a training run is answered, a search for single rows is not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bmrm._errors import DataError
from bmrm.parallel.base import EngineError
from bmrm.regularizers import Regularizer, Separable
from bmrm.risks.base import Array


class OwnerError(EngineError):
    """An owner cannot be reached, does not fit the others, or has refused; the message names it."""


class Refused(OwnerError):
    """What an owner answers instead of numbers, with the reason."""


class GuardTripped(Refused):
    """What was asked for is not what a training run asks for: the owner answers nobody until it is told to."""


@dataclass(frozen=True)
class GuardSettings:
    """What an owner answers, and when it stops.

    Parameters
    ----------
    budget : int
        New answers in all, over all runs: points that get a plane of their own.
    repeats : int
        Other answers for each new one of the budget; they are made of earlier planes.
    losses : int
        Different losses, parameters included, that are answered for; one against the rest counts once.
    patience : int
        New answers of a run without progress on the owner's own portion of the objective.
    progress : float
        The least progress, as a share of the portion at w = 0.
    slack : float
        How far out w may be, in multiples of the ball that this owner's own risk implies.
    min_lam : float
        The least lam; without a regularizer, or below it, the ball is too large to be a guard. 0 accepts all.
    resolution : float
        Two w get one plane if the scores of the rows are closer, in units of the larger ones.
    per_line : int
        Points on one straight line that get planes of their own.
    changed : float
        In which share of the rows each plane must differ from all others; two rows at least, where it is not 0.
    coarse : float
        What rounding may cost the certificate, as a share of the owner's risk at w = 0; 0 for exact numbers.

    Examples
    --------
    >>> from bmrm.owners import GuardSettings
    >>> GuardSettings(budget=500).changed
    0.004
    """

    budget: int = 1000
    repeats: int = 50
    losses: int = 1
    patience: int = 600
    progress: float = 1e-4
    slack: float = 10.0
    min_lam: float = 1e-6
    resolution: float = 1e-4
    per_line: int = 40
    changed: float = 0.004
    coarse: float = 1e-6

    def __post_init__(self) -> None:
        least = {
            "budget": 1, "repeats": 0, "losses": 1, "patience": 1, "progress": 0.0, "slack": 1.0, "min_lam": 0.0,
            "resolution": 0.0, "per_line": 2, "changed": 0.0, "coarse": 0.0,
        }  # fmt: skip
        for name, limit in least.items():
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and value >= limit):
                raise DataError(f"{name} of the guard must be at least {limit}, got {value!r}")


class Guard:
    """Watches one run on behalf of an owner whose risk is R_s, with the share c_s of R, by what the owner sees itself.

    Every minimizer has lam Omega(w) <= J(0) - floor, because J(w) <= J(0) there and R >= floor. J(0) of all owners is
    not known here, and an announced one would not be believed: the ball follows from its own R_s(0). So is it w / slack
    that must satisfy the inequality; with l2, ten times as far out is J(0) a hundred times as large. Only penalized
    coordinates count in Omega.

    The own portion P(w) = c_s R_s(w) + lam Omega(w) of an honest run falls at first. Later, and where owners differ,
    one owner's risk is traded for another's: that is what the patience is for. Progress is a P that is lower than all
    before by a share of P(0).

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
    """

    def __init__(
        self, settings: GuardSettings, regularizer: Regularizer, lam: float, floor: float, own: float, share: float
    ) -> None:
        self.settings, self.lam, self.share = settings, lam, share
        # bounds are no part of the ball: w / slack may violate them
        self.regularizer = replace(regularizer, bounds=None) if isinstance(regularizer, Separable) else regularizer
        self.level = own - floor
        self.least = np.inf
        self.enough = settings.progress * share * self.level
        self.waited = 0

    def before(self, w: Array) -> None:
        """Raise GuardTripped if w must not be asked about, or there has been no progress for too long."""
        size = self.lam * self.regularizer.value(w / self.settings.slack)
        if not size <= self.level * (1.0 + 1e-12):
            raise GuardTripped(
                f"w lies outside {self.settings.slack:g} times the ball that lam and this owner's risk at 0 imply: "
                f"lam Omega(w / {self.settings.slack:g}) = {size:.4g}"
            )
        if self.waited >= self.settings.patience:
            raise GuardTripped(
                f"this owner's portion of the objective has made no progress over {self.waited} new answers"
            )

    def after(self, w: Array, value: float) -> None:
        """Note a new answer with the value R_s(w)."""
        portion = self.lam * self.regularizer.value(w) + self.share * value
        if portion < self.least - self.enough:
            self.least, self.waited = portion, 0
        else:
            self.waited += 1
