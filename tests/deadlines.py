"""A deadline that passes when a run has made so many calls, instead of after some time: the same on every machine."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

import bmrm
from bmrm import Problem, Result, _core, solve

_HOME = os.path.dirname(bmrm.__file__)
_FAR = 1e6  # seconds: a limit that never matters by itself


@dataclass
class Cut:
    """A run, the calls of the library's Python functions that it made, and what it did after its deadline."""

    result: Result
    calls: int
    calls_after: int
    products_after: int


def cut_after(calls: float, problem: Problem, solver: Any, **options: Any) -> Cut:
    """Solve with a deadline that passes at that call within a step, or at the first one in a step behind it."""
    made = since = 0
    products: int | None = None

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal made, since, products
        if event != "call" or not frame.f_code.co_filename.startswith(_HOME):
            return
        made += 1
        if made >= calls and _core.deadline() < float("inf"):  # within a step
            if products is None:
                since, products = made, problem.risk.products
            _core.set_deadline(_core.clock())

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        result = solve(problem, solver, max_seconds=_FAR, **options)
    finally:
        sys.setprofile(before)
    if products is None:
        return Cut(result, made, 0, 0)
    return Cut(result, made, made - since, problem.risk.products - products)
