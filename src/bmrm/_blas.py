"""BLAS on one thread while a solver runs: its threads and ours would wait for each other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread, as far as threadpoolctl can say so.

    A product of matrices that wakes another thread waits for it until the system finds it a core, up to 8 ms where
    ours hold them, and leaves it spinning for a tenth of a second. Where several Python threads run solvers, the last
    that ends may have had more than one thread of BLAS for a while; afterwards there are as many as before.

    Examples
    --------
    >>> from bmrm._blas import one_blas_thread
    >>> with one_blas_thread():
    ...     pass
    """
    limits: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limits


@cache
def _libraries() -> Any:
    """Find the libraries once: that takes milliseconds, setting their threads microseconds."""
    import scipy.linalg  # noqa: F401  brings a BLAS of its own, which must be there to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
