"""The deadline of a run, which reaches into its steps: compiled kernels, programs and Python's own loops look at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from bmrm import _core

T = TypeVar("T")

# Seconds that a step may take beyond the limit before it is cut. Shorter steps end by themselves, so that nothing of
# them is lost; the rest of the half second promised is for code that looks at the deadline seldom.
GRACE = 0.25

Overdue: type[BaseException] = _core.Overdue
look = _core.look


def seconds_left() -> float:
    """Return the seconds until this thread's deadline, inf if it has none."""
    return _core.deadline() - _core.clock()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Let `Overdue` end the block after so many seconds, or at the deadline of a block around it, if that is sooner.

    The deadline belongs to the thread. Products, losses, line searches and programs look at it by themselves; a loop
    without any of these calls `look`.

    Examples
    --------
    >>> from bmrm._deadline import Overdue, look, within
    >>> try:
    ...     with within(0.0):
    ...         look()
    ... except Overdue:
    ...     print("late")
    late
    """
    with _deadline(min(_core.deadline(), _core.clock() + seconds)):
        yield


@contextmanager
def without_deadline() -> Iterator[float]:
    """Let the block take its time; the deadline around it is handed in."""
    before = _core.deadline()
    with _deadline(np.inf):
        yield before


def until(at: float, items: Iterator[T]) -> Iterator[T]:
    """Yield the items; `Overdue` ends the making of one at that time of `_core.clock`, not the use of it."""
    end = object()
    while True:  # as often as there are items
        with _deadline(at):
            item = next(items, end)
        if item is end:
            return
        yield item  # type: ignore[misc]


@contextmanager
def _deadline(at: float) -> Iterator[None]:
    before = _core.deadline()
    _core.set_deadline(at)
    try:
        yield
    finally:
        _core.set_deadline(before)
