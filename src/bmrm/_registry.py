"""Names: every plug-in registers itself under one, and a wrong name is answered with the nearest right ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class UnknownName(ValueError):
    """A name that is not registered. The message holds the nearest names and all that are."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownName:
    """Make the error for a name that was not found among the known ones."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    return UnknownName(f"unknown {kind} {name!r}.{hint} Available: {', '.join(names)}")


class Registry(dict[str, type[T]]):
    """A dictionary from names to classes that helps when a name is misspelt.

    Parameters
    ----------
    kind : str
        What the names stand for, used in messages.
    aliases : mapping, optional
        Other names that are understood, with those they stand for. They are not listed.

    Examples
    --------
    >>> from bmrm._registry import Registry
    >>> shapes = Registry("shape", {"ball": "sphere"})
    >>> shapes["sphere"] = object
    >>> shapes["ball"] is object, "ball" in shapes, list(shapes)
    (True, True, ['sphere'])
    """

    def __init__(self, kind: str, aliases: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.kind, self.aliases = kind, dict(aliases or {})

    def __missing__(self, name: Any) -> type[T]:
        if isinstance(name, str) and name in self.aliases:
            return self[self.aliases[name]]
        raise unknown_name(self.kind, name, [*self, *self.aliases])

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and name in self.aliases)

    def get(self, name: Any, default: Any = None) -> Any:
        """Return what the name or alias stands for, or the default."""
        return super().get(self.aliases.get(name, name), default)

    def make(self, name: str, parameters: dict[str, object]) -> T:
        """Make the object of that name; wrong parameters raise one clear error.

        Raises
        ------
        UnknownName
            If nothing is registered under the name.
        ValueError
            If a parameter is not one of the object's.
        """
        cls = self[name]
        fields = getattr(cls, "__dataclass_fields__", {})
        accepted = [field for field, about in fields.items() if about.init]
        for parameter in parameters:
            if parameter not in accepted:
                raise ValueError(
                    f"{self.kind} '{name}' has no parameter {parameter!r}; "
                    f"accepted: {', '.join(accepted) if accepted else 'none'}"
                )
        return cls(**parameters)


def first_line(cls: type) -> str:
    """Return the first line of a class's docstring: its description in tables."""
    return (cls.__doc__ or "").strip().split("\n")[0]
