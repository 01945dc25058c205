"""The sum of the owners' risks: in the clear, or under masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmrm.owners.answers import split_numbers
from bmrm.owners.client import OwnerLost, OwnersPlaced
from bmrm.owners.guard import OwnerError
from bmrm.owners.masks import decoded
from bmrm.owners.terms import Terms
from bmrm.regularizers import Regularizer
from bmrm.risks.base import Array, Risk
from bmrm.risks.remote import Parts, RemotePoint
from bmrm.risks.shard import Missing

_FARTHEST = 12  # tries to find where the risk rises, each 8 times as far out as the last


class OwnerParts(Parts):
    """R(w) = sum_s c_s R_s(w), in the order of the owners.

    Owner s rounds what it tells to multiples of its own step q_s; free coordinates of subgradients stay exact. With
    e = sum_s c_s q_s / 2, the normal of the sum is off by at most e in each penalized coordinate. Offsets are rounded
    down. So planes are lowered by e rho, with rho as in `MaskedParts`. Owners charge the rounding of values themselves.

    Parameters
    ----------
    placed : OwnersPlaced
    terms : Terms
    dim : int
        Length of w.

    Attributes
    ----------
    best, zero : float or None
        The best objective so far and that at w = 0, as requests say; the owners' guards do not believe them.
    masses : list of float
        What the rows of each owner count.
    """

    placed: OwnersPlaced

    def __init__(self, placed: OwnersPlaced, terms: Terms, dim: int) -> None:
        self.best: float | None = None
        self.zero: float | None = None
        self.error = self.lowered = 0.0
        self.dim, self._round = dim, 0
        super().__init__(placed, "begin", (terms,), [()] * placed.n_shards)
        self._join()

    def _masses(self, answers: list[Any]) -> list[float]:
        self.begun = answers
        self.masses = [float(answer["mass"]) for answer in answers]
        self._total = float(sum(self.masses))
        self.steps = [float(answer.get("grid", 0.0)) for answer in answers]
        return self.masses

    def _join(self, keys: dict[str, list[str]] | None = None, step: float | None = None) -> None:
        each = [(place,) for place in range(self.placed.n_shards)]
        self.placed.call("join", self.number, self._total, keys, step, each=each)

    def _answers(self, method: str, of: Callable[[bool], tuple[Any, ...]]) -> list[Any]:
        for whole in (False, True):
            self._round += 1
            name, what, gone = of(whole)
            answers = self.placed.call(method, self.number, name, what, gone, self.best, self.zero, self._round)
            if not any(isinstance(answer, Missing) for answer in answers):
                return answers
        names = [n for n, answer in zip(self.placed.workers(), answers) if isinstance(answer, Missing)]
        raise OwnerError(f"{names[0]}: does not know what it is asked about")

    def ask(self, method: str, of: Callable[[bool], tuple[Any, ...]], each: Any = None) -> list[Any]:
        """Call a method of the risk at all owners; return (c_s, answer) for each."""
        answers = self._answers(method, of)
        for name, answer in zip(self.placed.workers(), answers):
            if not isinstance(answer, list):
                raise OwnerError(f"{name}: masks its numbers, though this run is in the clear")
            for part in answer:
                if isinstance(part, np.ndarray) and part.shape != (self.dim,):
                    raise OwnerError(f"{name}: a subgradient of {part.size} numbers; expected {self.dim}")
        if method == "ask" and "offset" in (what := of(False)[1]) and self.lowered:
            at = what.index("offset")
            answers = [[*parts[:at], parts[at] - self.lowered, *parts[at + 1 :]] for parts in answers]
        return list(zip(self.c, answers))

    def charge(self, risk: Risk, regularizer: Regularizer, lam: float) -> None:
        """Find out how much planes must be lowered by; the objective at 0 is known."""
        self.error = 0.5 * sum(c * step for c, step in zip(self.c, self.steps))
        self.lowered = self.error * self._reach(risk, regularizer, lam)[1]

    def _reach(self, risk: Risk, regularizer: Regularizer, lam: float) -> tuple[float, float]:
        """Return the level of Omega that no minimizer exceeds, and rho = max |w|_1 there."""
        assert self.zero is not None
        level = (self.zero + self.error - risk.floor) / lam * (1.0 + 1e-12)
        return level, regularizer.reach(np.ones(self.dim), level)

    def coarse(self, w: Array) -> float:
        """Return how much a plane that was told may be off at w, of any owner."""
        return self.lowered + max(self.steps) * (2.0 + float(np.sum(np.abs(w))))


class MaskedParts(OwnerParts):
    """The same sum under masks: what comes is the sum alone, rounded to multiples of a step q.

    Each of P owners rounds c_s x_s to a multiple of q, so every number of a sum is off by at most e = P q / 2. Let the
    plane of a point be R(w) >= <a, w> + b, and let a', b' be what comes. Then |a' - a| <= e in each coordinate and
    |b' - b| <= e, so ::

        R(w) >= <a', w> + b' - e (|w|_1 + 1)        for all w.

    A lower bound of min J needs this at one minimizer w* only: J(w*) >= lam Omega(w*) + sum_i alpha_i (<a_i, w*> + b_i)
    is at least the dual of the combined plane. All minimizers have lam Omega(w) <= J(0) - floor, which bounds |w|_1
    over the penalized coordinates by rho (``Regularizer.reach``: sqrt(2 d (J(0) - floor) / lam) for l2,
    (J(0) - floor) / lam for l1), and two planes that rise to both sides of the intercept bound |w_0| by beta. So each
    plane is lowered by the constant e (1 + rho + beta). An upper bound is J(w) by the sum that comes, plus e for the
    value and e for the owners' own rounding errors, which are summed under masks as well.

    The planes hold for minimizers of J for this lam and regularizer, not for all w.

    Parameters
    ----------
    placed : OwnersPlaced
    terms : Terms
    dim : int
    scale : float
        The step q in units of the largest number at w = 0 (rounded up to a power of two).
    """

    def __init__(self, placed: OwnersPlaced, terms: Terms, dim: int, scale: float) -> None:
        self.scale = scale
        super().__init__(placed, terms, dim)

    def _join(self, keys: dict[str, list[str]] | None = None, step: float | None = None) -> None:
        sizes, names = [float(answer["size"]) for answer in self.begun], self.placed.workers()
        self.q = max(sizes) * self.scale
        if self.q > min(sizes):
            raise OwnerError(
                f"{names[sizes.index(max(sizes))]}: has numbers of the size {max(sizes):g} at w = 0, "
                f"{names[sizes.index(min(sizes))]} of {min(sizes):g}: too far apart for masks with the scale "
                f"{self.scale:g}"
            )
        self.error = 0.5 * self.q * len(self.begun)
        entries = {"keys": "key", "identities": "identity", "signatures": "signature"}
        keys = {many: [answer.get(one, "") for answer in self.begun] for many, one in entries.items()}
        super()._join(keys, self.q)

    def ask(self, method: str, of: Callable[[bool], tuple[Any, ...]], each: Any = None) -> list[Any]:
        """Call a method at all owners; return (1, sum), with the rounding of the sum charged."""
        try:
            answers = self._answers(method, of)
        except OwnerLost as lost:
            raise OwnerLost(
                f"{lost}; the sum is lost with it, because its masks do not cancel: start again without it, or with "
                f"solve_owners (--survive), which goes on if at least three others remain",
                lost.names,
            ) from lost
        _, what, _ = of(False)
        expected = 3 * len(what) if method == "slide" else sum(self.dim if w == "subgradient" else 1 for w in what)
        for name, words in zip(self.placed.workers(), answers):
            if not (isinstance(words, np.ndarray) and words.dtype == np.uint64 and words.size == expected):
                raise OwnerError(f"{name}: an answer that is not {expected} masked numbers")
        parts = split_numbers(method, what, decoded(answers, self.q), "the sum")
        if method == "ask":
            charges = {"offset": -self.lowered, "rounding": 2.0 * self.error}
            parts = [part + charges[want] if want in charges else part for want, part in zip(what, parts)]
        return [(1.0, parts)]

    def charge(self, risk: Risk, regularizer: Regularizer, lam: float) -> None:
        """Find out how much planes must be lowered by; the objective at 0 is known."""
        level, rho = self._reach(risk, regularizer, lam)
        if len(risk.unpenalized) > 1:
            raise ValueError(
                f"masked sums with {len(risk.unpenalized)} unpenalized constants: nothing bounds them all; train "
                f"without an intercept"
            )
        sides = (1.0, -1.0) if risk.unpenalized else ()
        beta = max((self._side(risk, regularizer, level, rho, side) for side in sides), default=0.0)
        self.lowered = self.error * (1.0 + rho + beta)

    def coarse(self, w: Array) -> float:
        """Return how much a plane of the sum may be off at w."""
        return self.lowered + self.error * (2.0 + float(np.sum(np.abs(w))))

    def _side(self, risk: Risk, regularizer: Regularizer, level: float, rho: float, side: float) -> float:
        """Return how far the intercept of a minimizer may be on one side.

        A plane that rises there, a_0 >= a'_0 - e > 0, and R(w) <= J(0) give
        a_0 w_0 <= J(0) - b - <a, w> over the penalized coordinates <= J(0) - b' + reach(a') + e (2 + rho).
        """
        (free,), e, least = risk.unpenalized, self.error, np.inf
        assert self.zero is not None
        for far in range(_FARTHEST):
            w: Array = np.zeros(self.dim)
            w[free] = side * 8.0**far
            a, b = risk.at(w).plane
            slope = side * float(a[free]) - e
            if slope > e:
                rest = self.zero - b + regularizer.reach(a, level) + e * (2.0 + rho)
                bound = max(rest, 0.0) / slope
                if bound >= least:
                    break
                least = bound
        if not np.isfinite(least):
            raise ValueError(
                "masked sums need an intercept that the data bound: on one side the risk never rises (is there one "
                "class only?); train without an intercept"
            )
        return least


class OwnersPoint(RemotePoint):
    """A point whose scores stay with the owners."""

    @property
    def remembered(self) -> tuple[Any, ...]:
        """Nothing: scores of single rows are told to nobody."""
        return ()
