"""The sum of the owners' risks: in the clear, or under masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmrm.owners.client import OwnersPlaced, split_numbers
from bmrm.owners.guard import OwnerError
from bmrm.owners.masks import decoded
from bmrm.owners.terms import Terms
from bmrm.regularizers import Regularizer
from bmrm.risks.base import Array, Risk
from bmrm.risks.remote import Parts, RemotePoint
from bmrm.risks.shard import Missing

_FARTHEST = 12  # tries to find where the risk rises, each 8 times as far out as the last


class OwnerParts(Parts):
    """R(w) = sum_s c_s R_s(w), in the order of the owners; each request announces the best objective so far.

    Parameters
    ----------
    placed : OwnersPlaced
    terms : Terms
    dim : int
        Length of w.

    Attributes
    ----------
    best, zero : float or None
        The best objective so far and that at w = 0, which the owners' guards compare.
    """

    placed: OwnersPlaced

    def __init__(self, placed: OwnersPlaced, terms: Terms, dim: int) -> None:
        self.best: float | None = None
        self.zero: float | None = None
        self.dim, self._round = dim, 0
        super().__init__(placed, "begin", (terms,), [()] * placed.n_shards)
        self._join()

    def _masses(self, answers: list[Any]) -> list[float]:
        self.begun = answers
        self._total = float(sum(answer["mass"] for answer in answers))
        return [float(answer["mass"]) for answer in answers]

    def _join(self, keys: list[str] | None = None, step: float | None = None) -> None:
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
            for part in answer:
                if isinstance(part, np.ndarray) and part.shape != (self.dim,):
                    raise OwnerError(f"{name}: a subgradient of {part.size} numbers; expected {self.dim}")
        return list(zip(self.c, answers))


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
        self.scale, self.lowered = scale, 0.0
        super().__init__(placed, terms, dim)

    def _join(self, keys: list[str] | None = None, step: float | None = None) -> None:
        self.q = max(float(answer["size"]) for answer in self.begun) * self.scale
        self.error = 0.5 * self.q * len(self.begun)
        super()._join([answer["key"] for answer in self.begun], self.q)

    def ask(self, method: str, of: Callable[[bool], tuple[Any, ...]], each: Any = None) -> list[Any]:
        """Call a method at all owners; return (1, sum), with the rounding of the sum charged."""
        answers = self._answers(method, of)
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
        assert self.zero is not None
        level = (self.zero + self.error - risk.floor) / lam * (1.0 + 1e-12)
        rho = regularizer.reach(np.ones(self.dim), level)
        if len(risk.unpenalized) > 1:
            raise ValueError(
                f"masked sums with {len(risk.unpenalized)} unpenalized constants: nothing bounds them all; train "
                f"without an intercept"
            )
        sides = (1.0, -1.0) if risk.unpenalized else ()
        beta = max((self._side(risk, regularizer, level, rho, side) for side in sides), default=0.0)
        self.lowered = self.error * (1.0 + rho + beta)

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
