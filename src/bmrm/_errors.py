"""Exceptions that more than one part of the library raises."""

from __future__ import annotations


class DataError(ValueError):
    """Data that cannot be read, written or used; the message says where and what would be accepted."""
