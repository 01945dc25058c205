"""bmrm."""

from __future__ import annotations

from bmrm.data.files import read, write

__all__ = ["read", "write"]
