"""Watching a run: records come in, a live line or a CSV file goes out; nothing here changes the run."""

from __future__ import annotations

import csv
import io
import os
import sys
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TextIO

import numpy as np

from bmrm.data.atomic import atomic

if TYPE_CHECKING:
    from rich.live import Live

_ON_TERMINAL = 0.1  # seconds between two updates
_ELSEWHERE = 1.0


class Progress(Protocol):
    """What is shown of an iteration; `bmrm.Record` has it."""

    @property
    def iteration(self) -> int:
        """Number of the iteration, from 1."""

    @property
    def seconds(self) -> float:
        """Time since the start."""

    @property
    def passes(self) -> float:
        """Passes over the data so far."""

    @property
    def upper(self) -> float:
        """Smallest objective so far."""

    @property
    def lower(self) -> float:
        """Largest proven bound so far."""


def format_progress(record: Progress) -> str:
    """Return one line for a record, the most important first: narrow terminals cut the rest off.

    Examples
    --------
    >>> import bmrm
    >>> from bmrm.monitor import format_progress
    >>> format_progress(bmrm.Record(iteration=7, seconds=0.5, passes=8.0, upper=0.25, lower=0.2))
    'gap 20% | objective 0.25 | bound 0.2 | iteration 7 | 0.5 s | 8 passes'
    """
    bound, gap = "none yet", "unknown"
    if np.isfinite(record.lower):
        relative = max(record.upper - record.lower, 0.0) / max(abs(record.upper), np.finfo(float).tiny)
        bound, gap = f"{record.lower:.6g}", _percent(relative)
    return (
        f"gap {gap} | objective {record.upper:.6g} | bound {bound} | iteration {record.iteration} | "
        f"{record.seconds:.1f} s | {record.passes:g} passes"
    )


def _percent(share: float) -> str:
    if share > 10.0:
        return "over 1000%"
    return f"{100.0 * share:.0f}%" if share >= 0.1 else f"{100.0 * share:.2g}%"


class ProgressMonitor(AbstractContextManager["ProgressMonitor"]):
    """A callable for ``bmrm.solve(monitor=...)`` that shows gap, objective, bound, iteration, time and passes.

    On a terminal one line is updated in place, at most ten times a second; elsewhere a plain line is written at
    most once a second, and once at the end. Use it in a ``with`` statement: leaving it shows the last record.

    Parameters
    ----------
    stream : text stream, optional
        Where to write; standard error by default.
    quiet : bool
        Whether to write nothing at all.
    label : str
        Put in front of each line.

    Examples
    --------
    >>> import io
    >>> import bmrm
    >>> from bmrm.monitor import ProgressMonitor
    >>> stream = io.StringIO()
    >>> with ProgressMonitor(stream, label="fold 1: ") as monitor:
    ...     monitor(bmrm.Record(iteration=1, seconds=0.5, passes=1.0, upper=1.0, lower=0.5))
    >>> stream.getvalue()
    'fold 1: gap 50% | objective 1 | bound 0.5 | iteration 1 | 0.5 s | 1 passes\\n'
    """

    def __init__(self, stream: TextIO | None = None, quiet: bool = False, label: str = "") -> None:
        self.stream = sys.stderr if stream is None else stream
        self.quiet = quiet
        self.label = label
        self._last: Progress | None = None
        self._shown: Progress | None = None
        self._next = time.monotonic()
        self._live: Live | None = None
        if not self._on_terminal():
            self._next += _ELSEWHERE

    def __call__(self, record: Progress) -> None:
        """Show the record, unless the last one was shown only a moment ago."""
        self._last = record
        if not self.quiet and time.monotonic() >= self._next:
            self._show(record)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.quiet and self._last is not None and self._last is not self._shown:
            self._show(self._last)
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _show(self, record: Progress) -> None:
        line = self.label + format_progress(record)
        if self._on_terminal():
            self._update(line)
            self._next = time.monotonic() + _ON_TERMINAL
        else:
            self.stream.write(line + "\n")
            self.stream.flush()
            self._next = time.monotonic() + _ELSEWHERE
        self._shown = record

    def _update(self, line: str) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        if self._live is None:
            self._live = Live(console=Console(file=self.stream), auto_refresh=False)
            self._live.start()
        self._live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)

    def _on_terminal(self) -> bool:
        return self.stream.isatty()


def progress_monitor(stream: TextIO | None = None, quiet: bool = False, label: str = "") -> ProgressMonitor:
    """Return a `ProgressMonitor`; see there.

    Examples
    --------
    >>> from bmrm.monitor import progress_monitor
    >>> progress_monitor(quiet=True).quiet
    True
    """
    return ProgressMonitor(stream, quiet, label)


def write_history(path: str | os.PathLike[str], history: Iterable[Progress]) -> None:
    """Write a CSV file with one line for each record; it appears complete or not at all.

    Of a run on shards, further columns say how many seconds each of them has computed so far.

    Parameters
    ----------
    path : str or path-like
    history : iterable of Record
        For example ``result.history``.

    Examples
    --------
    >>> import pathlib, tempfile, bmrm
    >>> from bmrm.monitor import write_history
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "history.csv"
    >>> write_history(path, [bmrm.Record(iteration=1, seconds=0.5, passes=1.0, upper=1.0, lower=0.25)])
    >>> path.read_text().splitlines()
    ['iteration,seconds,passes,upper,lower', '1,0.5,1.0,1.0,0.25']
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    records = list(history)
    shards = max((len(getattr(record, "busy", ())) for record in records), default=0)
    writer.writerow(["iteration", "seconds", "passes", "upper", "lower", *(f"busy_{s}" for s in range(shards))])
    for record in records:
        busy = getattr(record, "busy", ())
        writer.writerow([record.iteration, record.seconds, record.passes, record.upper, record.lower, *busy])
    with atomic(path) as file:
        file.write(text.getvalue().encode())
