"""Amounts of memory: written by people, and taken by this process."""

from __future__ import annotations

import ctypes
import math
import re
import sys
from pathlib import Path
from typing import Any

from bmrm._errors import DataError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]i?|)b?\s*", re.IGNORECASE)
_STATUS = Path("/proc/self/status")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of settings in malloc.h
_LARGE = 1 << 20
# What a run needs beside planes, in vectors: scores and slopes of a few points and lines; w, gradients, the pairs of
# L-BFGS and the rows of a master. Estimates: only sums were measured (lbfgs, a million columns, 1.3 GB allowed: a
# peak of 0.79 GB, about 80 vectors of columns, planes included).
_ROW_VECTORS = 12
_COLUMN_VECTORS = 60
_FEWEST_PLANES = 2 * 20  # and their copies
_SMALL = 30_000_000  # what imports and the allocator still take when a run begins


def parse_bytes(amount: str | int) -> int:
    """Return a number of bytes from a number or from text such as "2GB" (2e9), "512 MiB" or "1.5G".

    Examples
    --------
    >>> from bmrm.data.memory import parse_bytes
    >>> parse_bytes("2GB"), parse_bytes("1 KiB")
    (2000000000, 1024)
    """
    if isinstance(amount, int) and not isinstance(amount, bool) and amount > 0:
        return amount
    found = _AMOUNT.fullmatch(amount) if isinstance(amount, str) else None
    size = int(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if size < 1:
        raise ValueError(f"amount of memory {amount!r}; expected for example '2GB', '512MiB' or a number of bytes")
    return size


def show_bytes(size: float) -> str:
    """Return an amount in the largest unit that leaves at least 1, rounded up: what is asked for must be enough.

    Examples
    --------
    >>> from bmrm.data.memory import show_bytes
    >>> show_bytes(1_234_000_000), show_bytes(12)
    ('1.3 GB', '12 bytes')
    """
    for unit in ("T", "G", "M", "k"):
        if size >= _UNITS[unit.lower()]:
            return f"{math.ceil(size / _UNITS[unit.lower()] * 10) / 10:.1f} {unit}B"
    return f"{math.ceil(size)} bytes"


def resident() -> int:
    """Return the resident bytes of this process; where the system does not tell, the most there have been so far."""
    if _STATUS.exists():
        kinds = {"RssAnon:", "RssFile:", "RssShmem:"}
        lines = [line.split() for line in _STATUS.read_text().splitlines()]
        return sum(int(words[1]) * 1024 for words in lines if words and words[0] in kinds)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)


def room_for_planes(limit: int, waiting: int, n_scores: int, dim: int, source: str) -> int:
    """Return how many bytes a limit leaves for planes, beside all else that a run needs; raise if that is too little.

    Parameters
    ----------
    limit : int
        On the resident memory of this process.
    waiting : int
        What will be allocated besides.
    n_scores, dim : int
        Lengths of X w and of w.
    source : str
        Where the rows are, for the message.
    """
    needed = resident() + waiting + 8 * (_ROW_VECTORS * n_scores + _COLUMN_VECTORS * dim) + _SMALL
    planes, least = limit - needed, 8 * _FEWEST_PLANES * dim
    if planes < least:
        raise DataError(
            f"{source}: a memory limit of {show_bytes(limit)} is too small for {n_scores} rows, {dim} weights and "
            f"blocks of this size; expected at least {show_bytes(needed + least)}"
        )
    return planes


def return_freed() -> None:
    """Have freed memory returned to the system at once, from 1 MiB on, where the C library can be told so.

    It keeps up to 32 MiB of each size otherwise, and programs that HiGHS builds again and again leave holes: 740 MB
    resident where 280 were in use (l1, 20000 columns, 40 planes).
    """
    library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(library, "mallopt") and hasattr(library, "malloc_trim"):
        library.mallopt(_TRIM_THRESHOLD, _LARGE)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.malloc_trim(0)
