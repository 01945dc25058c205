"""Answers of shards checked against each other: what is not convex was not computed from the data."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bmrm.parallel.base import EngineError
from bmrm.risks.base import Array

_ROUNDING = 1e-9  # of the numbers compared: far above rounding, far below a lie that matters
_SAME = 1e-6  # of a subgradient: the same numbers, computed elsewhere
_FEWEST, _KEPT, _ROOM = 4, 64, 1 << 28  # evaluations that are kept, and bytes for them


class LiarError(EngineError):
    """A shard has given answers that no convex risk can give."""


class _Witness:
    """What one shard has said: values and planes at the points of the last evaluations."""

    def __init__(self) -> None:
        self.steepest = self.largest = 0.0
        self.said: list[tuple[int, Array, float, Array | None, float]] = []  # evaluation, w, most, a, offset


class ConvexityCheck:
    """Compares each answer (value v_t, subgradient a_t) at w_t with all earlier ones of the same shard.

    A convex risk with values v_i and subgradients a_i at the points w_i satisfies, for all i and t ::

        v_i >= v_t + <a_t, w_i - w_t>      and      v_t >= v_i + <a_i, w_t - w_i>,

    up to rounding, taken as 1e-9 (|v| + |a| (|w_i| + |w_t|)) with the largest |v| and |a| said so far. Nor is a value
    below the floor of the loss, a NaN, or an offset that is not v_t - <a_t, w_t>. What satisfies all of this is what
    some convex risk would say: lies that fit together, such as the answers of other data, cannot be found this way.

    Parameters
    ----------
    names : sequence of str
        What the shards are called in errors.
    floor : float
        Of the risk of each shard.
    coarse : callable, optional
        How much a plane may be off at w, where shards round their numbers. Their values may then be too small by the
        rounding error that they tell; a value without one is not compared.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.risks.liars import ConvexityCheck
    >>> check = ConvexityCheck(["a"], 0.0)
    >>> check(np.zeros(1), {"value": [(1.0, 1.0)], "subgradient": [(1.0, -np.ones(1))]}, [0])
    >>> check(np.ones(1), {"value": [(1.0, 2.0)], "subgradient": [(1.0, -np.ones(1))]}, [0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bmrm.risks.liars.LiarError: a: its answers 1 and 2 exclude each other: by answer 2 its risk is at least 3 where ...
    """

    def __init__(self, names: Sequence[str], floor: float, coarse: Callable[[Array], float] | None = None) -> None:
        self.names, self.floor, self.coarse = list(names), floor, coarse
        self.evaluations = 0
        self._witnesses = [_Witness() for _ in names]

    def __call__(self, w: Array, found: Mapping[str, Sequence[tuple[float, Any]]], shards: Sequence[int]) -> None:
        """Raise LiarError if an answer contradicts an earlier one, else remember it.

        Parameters
        ----------
        w : array
        found : mapping from "value", "subgradient", "offset" to pairs
            Of the weight of a shard and what it has answered.
        shards : sequence of int
            Which they are.
        """
        self.evaluations += 1
        if "value" not in found or (self.coarse is not None and "rounding" not in found):
            return
        w = w.copy()  # kept, for all shards
        self._kept = int(np.clip(_ROOM // (8 * max(w.size, 1) * (len(self.names) + 1)), _FEWEST, _KEPT))
        for place, shard in enumerate(shards):
            value = float(found["value"][place][1])
            a = found["subgradient"][place][1] if "subgradient" in found else None
            offset = float(found["offset"][place][1]) if "offset" in found else None
            short = 0.0 if self.coarse is None else float(found["rounding"][place][1])
            self._look_at(shard, w, value, a, offset, short)

    def _look_at(self, shard: int, w: Array, value: float, a: Array | None, offset: float | None, short: float) -> None:
        witness = self._witnesses[shard]
        if np.isposinf(value):
            return  # too far out for floating point, which is no lie
        self._alone(shard, w, value, a)
        if a is not None:
            witness.steepest = max(witness.steepest, float(np.linalg.norm(a)))
        witness.largest = max(witness.largest, abs(value))
        rough = 0.0 if self.coarse is None else self.coarse(w)
        room = rough + _ROUNDING * (witness.largest + witness.steepest * float(np.linalg.norm(w)))
        touching = 0.0 if a is None else value - float(a @ w)
        if offset is not None and not abs(offset - touching) <= room:
            raise LiarError(
                f"{self.names[shard]}: its answer {self.evaluations} contradicts itself: the offset of its plane is "
                f"{offset:.6g}, but the value less <a, w> is {touching:.6g}"
            )
        most = value + short
        for earlier, w_i, v_i, a_i, b_i in witness.said:
            far = room + _ROUNDING * witness.steepest * float(np.linalg.norm(w_i))
            far += 0.0 if self.coarse is None else self.coarse(w_i)
            if a_i is not None:
                self._compare(shard, earlier, self.evaluations, float(a_i @ w) + b_i, most, far)
            if a is not None:
                self._compare(shard, self.evaluations, earlier, float(a @ w_i) + touching, v_i, far)
        witness.said.append((self.evaluations, w, most, None if a is None else a.copy(), touching))
        if len(witness.said) > self._kept:
            del witness.said[1 + self.evaluations % (self._kept - 1)]  # neither the first one nor always the oldest

    def _alone(self, shard: int, w: Array, value: float, a: Array | None) -> None:
        if not np.isfinite(value) or (a is not None and not np.isfinite(a).all()):
            raise LiarError(f"{self.names[shard]}: its answer {self.evaluations} has numbers that are not finite")
        if value < self.floor - _ROUNDING * max(1.0, abs(self.floor)):
            raise LiarError(
                f"{self.names[shard]}: its answer {self.evaluations} has the value {value:.6g}, but the loss is never "
                f"below {self.floor:g}"
            )

    def _compare(self, shard: int, by: int, at: int, least: float, value: float, room: float) -> None:
        if least > value + room:
            first, second = sorted((by, at))
            raise LiarError(
                f"{self.names[shard]}: its answers {first} and {second} exclude each other: by answer {by} its risk is "
                f"at least {least:.6g} where answer {at} says {value:.6g}"
            )


class Audit:
    """Asks the same w twice at moments that nobody knows before: answers that differ were not computed from the data.

    Both are asked for anew, so that an honest shard computes the same numbers from the same w. The first w is kept
    after the second evaluation; every comparison keeps the next one. Between them lie 2 to 4 evaluations at first,
    later up to 64, so that few requests come on top.

    Parameters
    ----------
    ask : callable
        w to a mapping from "value" and "subgradient" to what the shards answer.
    names : sequence of str
        Of the shards.
    """

    def __init__(self, ask: Callable[[Array], Mapping[str, Sequence[tuple[float, Any]]]], names: Sequence[str]) -> None:
        self._ask, self.names = ask, list(names)
        self._draw = random.SystemRandom()
        self._gap, self._left, self._asking = 2, 2, False
        self._kept: tuple[Array, Mapping[str, Sequence[tuple[float, Any]]]] | None = None

    def __call__(self, w: Array, found: Mapping[str, Sequence[tuple[float, Any]]], shards: Sequence[int]) -> None:
        """Count an evaluation; when it is time, compare the w that is kept, and keep this one."""
        if self._asking or "subgradient" not in found:
            return
        self._left -= 1
        if self._left > 0:
            return
        self._asking = True
        try:
            if self._kept is not None:
                self._compare(*self._kept, shards)
            self._kept = w.copy(), self._ask(w)
        finally:
            self._asking = False
        self._left = self._draw.randint(self._gap, 2 * self._gap)
        self._gap = min(2 * self._gap, 32)

    def _compare(self, w: Array, before: Mapping[str, Sequence[tuple[float, Any]]], shards: Sequence[int]) -> None:
        again = self._ask(w)
        for place, shard in enumerate(shards):
            values, slopes = ([found[what][place][1] for found in (before, again)] for what in ("value", "subgradient"))
            if not np.isfinite(values).all():
                continue
            apart = float(np.linalg.norm(slopes[0] - slopes[1]))
            same = abs(values[0] - values[1]) <= _ROUNDING * max(map(abs, values))
            if not (same and apart <= _SAME * float(np.linalg.norm(slopes[0]))):
                raise LiarError(
                    f"{self.names[shard]}: has answered the same w differently: values {values[0]:.10g} and "
                    f"{values[1]:.10g}, subgradients {apart:.3g} apart"
                )
