"""The coordinator's side of private owners: planes with noise, and how much there is in their sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bmrm._traits import Trait
from bmrm.owners.guard import OwnerError
from bmrm.owners.parts import OwnersPoint
from bmrm.regularizers import Regularizer, Zero
from bmrm.risks.base import Array, Line
from bmrm.risks.noise import Noise

_NUMBERS = ("normal", "offset", "normal_off", "offset_off", "bend", "size")


class NoisyPoint(OwnersPoint):
    """A point where all that is known is a plane with noise: its value is read off the plane."""

    def _plane(self) -> tuple[Array, float]:
        fresh = not self._known
        normals, offsets = self.find("subgradient", "offset")
        noise = self.risk.planes_noise
        if fresh and noise is not None:
            self.risk.planes_noise = replace(noise, answers=max(0, noise.answers - 1))
        a = np.zeros(self.w.size)
        for c, own in normals:
            a += c * own
        return a, float(sum(c * b for c, b in offsets))

    @property
    def plane(self) -> tuple[Array, float]:
        """The sum of the owners' planes."""
        return self._plane()

    @property
    def value(self) -> float:
        """R(w), with noise."""
        a, b = self._plane()
        return float(a @ self.w) + b

    @property
    def subgradient(self) -> Array:
        """A subgradient of R at w, with noise."""
        return self._plane()[0]

    @property
    def rounding(self) -> float:
        """How much larger R(w) may be, unless the certificate fails."""
        noise = self.risk.planes_noise
        assert noise is not None
        return noise.quantile(noise.failure) * math.sqrt(noise.variance(self.w))

    def toward(self, w: Array) -> Line:  # type: ignore[override]
        """Return the line to w, a trial on which is an answer of the owners."""
        return Line(self, w)


def announced(answers: Sequence[dict[str, Any]], names: Sequence[str], c: Sequence[float]) -> Noise | None:
    """Return the noise of the sum of what the owners have announced, None if none of them has.

    Parameters
    ----------
    answers : sequence of dict
        To "begin".
    names : sequence of str
    c : sequence of float
        The shares of the owners.
    """
    private = ["noise" in answer for answer in answers]
    if not any(private):
        return None
    if not all(private):
        raise OwnerError(
            f"{names[private.index(True)]} answers with noise, {names[private.index(False)]} without; expected all "
            f"owners of a run to have a budget of privacy, or none"
        )
    found = [_checked(answer["noise"], name) for answer, name in zip(answers, names)]

    def total(kind: str) -> float:
        spread = math.sqrt(sum((share * each[kind]) ** 2 for share, each in zip(c, found)))
        return spread + sum(share * each[f"{kind}_off"] for share, each in zip(c, found))

    return Noise(
        total("normal"), total("offset"), min(int(each["answers"]) for each in found),
        sum(share * each["bend"] for share, each in zip(c, found)), min(each["size"] for each in found),
    )  # fmt: skip


def _checked(noise: Any, name: str) -> dict[str, float]:
    numbers = [noise.get(kind) for kind in (*_NUMBERS, "answers")] if isinstance(noise, dict) else []
    whole = all(isinstance(x, (int, float)) and math.isfinite(x) and x >= 0.0 for x in numbers)
    if not (numbers and whole and min(noise["offset"], noise["size"], noise["bend"]) > 0.0):
        raise OwnerError(f"{name}: announces noise that is none: {noise!r:.200}")
    return dict(noise)


def check_penalty(regularizer: Regularizer) -> None:
    """Raise ValueError for a regularizer that leaves coordinates free: nothing bounds the noise at a minimizer then."""
    if isinstance(regularizer, Zero) or Trait.FREE_COORDINATES in regularizer.traits:
        raise ValueError("owners with a budget of privacy need a regularizer that penalizes every coordinate")
