"""Exceptions that more than one part of the library raises."""

from __future__ import annotations


class DataError(ValueError):
    """Data that cannot be read, written or used; the message says where and what would be accepted."""


class FloorError(ValueError):
    """A loss or a risk has a value below the floor it declares; the message names both."""
