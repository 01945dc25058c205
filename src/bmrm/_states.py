"""Classes whose objects a checkpoint may hold, by name: a file names what to make, and nothing else can be made."""

from __future__ import annotations

from typing import Any, TypeVar

from bmrm import _core

C = TypeVar("C", bound=type)

STATES: dict[str, type[Any]] = {"ActiveSetQp": _core.ActiveSetQp}


def kept(cls: C) -> C:
    """Register a class whose objects are part of what a solver needs to go on.

    An object is written as its ``__getstate__()``, by default its attributes, and read by ``__setstate__``, by
    default the same attributes again; no code but that of the class runs.

    Examples
    --------
    >>> from bmrm._states import STATES
    >>> from bmrm.bundle import Bundle
    >>> STATES["bundle.planes.Bundle"] is Bundle
    True
    """
    STATES[name_of(cls)] = cls
    return cls


def name_of(cls: type[Any]) -> str:
    """Return the name under which objects of the class are written."""
    if cls is _core.ActiveSetQp:
        return "ActiveSetQp"
    return f"{cls.__module__.removeprefix('bmrm.')}.{cls.__qualname__}"
