"""How many threads to use."""

from __future__ import annotations

import os

import numpy as np


def default_threads() -> int:
    """Return the number of cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def checked_threads(n_threads: int | None) -> int:
    """Return the number of threads asked for: all cores for None and -1, all but one for -2, and so on.

    Examples
    --------
    >>> from bmrm.data.threads import checked_threads, default_threads
    >>> checked_threads(3), checked_threads(-1) == default_threads(), checked_threads(-1000)
    (3, True, 1)
    """
    if n_threads is None:
        return default_threads()
    if not isinstance(n_threads, (int, np.integer)) or isinstance(n_threads, bool) or n_threads == 0:
        raise ValueError(
            f"n_threads must be a whole number of at least 1, or -1 for all cores (-2: all but one), got {n_threads!r}"
        )
    return int(n_threads) if n_threads > 0 else max(1, default_threads() + 1 + int(n_threads))
