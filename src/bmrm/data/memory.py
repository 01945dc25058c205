"""Amounts of memory: written by people, and taken by this process."""

from __future__ import annotations

import ctypes
import math
import re
import sys
from pathlib import Path

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]i?|)b?\s*", re.IGNORECASE)
_STATUS = Path("/proc/self/status")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of settings in malloc.h
_LARGE = 1 << 20


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


def return_freed() -> None:
    """Have freed memory returned to the system at once, from 1 MiB on, where the C library can be told so.

    It keeps up to 32 MiB of each size otherwise, and programs that HiGHS builds again and again leave holes: 740 MB
    resident where 280 were in use (l1, 20000 columns, 40 planes).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _LARGE)
        mallopt(_MMAP_THRESHOLD, _LARGE)
