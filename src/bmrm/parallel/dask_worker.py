"""What a Dask worker of this machine is told: that Ctrl-C is not meant for it."""

from __future__ import annotations

import signal
from typing import Any

from distributed import WorkerPlugin


class Uninterrupted(WorkerPlugin):  # type: ignore[misc]
    """Leaves Ctrl-C to the process that started the workers: it ends its run in good order, and needs them for that."""

    name = "bmrm-uninterrupted"

    def setup(self, worker: Any) -> None:
        """Ignore the signal; this runs in the main thread of the worker's process."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
