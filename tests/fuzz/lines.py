"""Which lines of the library have run: an input that reaches a new one is worth keeping."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

from fuzz.target import SOURCES

_WITHIN = str(SOURCES)


class Lines:
    """Notes lines while it is on. From Python 3.12 a line that was met costs nothing afterwards."""

    def __init__(self) -> None:
        self._met: set[tuple[CodeType, int]] = set()
        self._size = 0
        if sys.version_info >= (3, 12):
            monitoring = sys.monitoring
            monitoring.use_tool_id(monitoring.COVERAGE_ID, "fuzz")
            monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, self._monitored)

    def __enter__(self) -> Lines:
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, sys.monitoring.events.LINE)
        else:
            sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, 0)
        else:
            sys.settrace(None)

    def grew(self) -> bool:
        """Return whether there is a new line since the last question."""
        before, self._size = self._size, len(self._met)
        return self._size > before

    def _monitored(self, code: CodeType, line: int) -> Any:
        if code.co_filename.startswith(_WITHIN):
            self._met.add((code, line))
        return sys.monitoring.DISABLE

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._traced if frame.f_code.co_filename.startswith(_WITHIN) else None

    def _traced(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._met.add((frame.f_code, frame.f_lineno))
        return self._traced
