"""The file of a checkpoint: named sections of plain values and arrays. Nothing in it is ever executed.

A section is a value made of numbers, text, containers, arrays and objects of registered classes. It is written as a
tree of JSON, with the entries of all arrays in one array for each type of number. What occurs twice is written once, so
that what was shared is shared again.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import deque
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from bmrm._errors import DataError
from bmrm._states import STATES, name_of
from bmrm.regularizers import REGULARIZERS, Regularizer

_NUMBERS = ("<f8", "<f4", "<i8", "<i4", "|i1", "|u1", "<u8", "<u4", "|b1")
_REGULARIZER = "regularizer "

Arrays = dict[str, npt.NDArray[Any]]


class UnknownStateError(TypeError):
    """A value of a type that checkpoints do not hold."""


class Encoder:
    """Turns one value into a tree of JSON and flat arrays.

    Parameters
    ----------
    known : mapping of str to object
        Objects that are there again when the value is read; they are written as their names.

    Examples
    --------
    >>> import numpy as np
    >>> from bmrm.checkpoint_file import Decoder, Encoder
    >>> encoder = Encoder()
    >>> tree = encoder.tree({"w": np.array([1.0, 2.0]), "steps": (3, np.inf)})
    >>> Decoder(encoder.arrays()).value(tree)
    {'w': array([1., 2.]), 'steps': (3, inf)}
    """

    def __init__(self, known: Mapping[str, Any] | None = None) -> None:
        self._known = {id(thing): name for name, thing in (known or {}).items()}
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []  # an id is that of one object only as long as the object lives
        self._parts: dict[str, list[npt.NDArray[Any]]] = {}
        self._sizes: dict[str, int] = {}

    def tree(self, value: Any) -> Any:
        """Return the value as JSON; its arrays are collected."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, np.generic):
            return {"number": self._array(np.asarray(value))}
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is tuple:
            return {"tuple": [self.tree(item) for item in value]}
        if id(value) in self._known:
            return {"known": self._known[id(value)]}
        if id(value) in self._seen:
            return {"again": self._seen[id(value)]}
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)
        return {"id": self._seen[id(value)], **self._fresh(value)}

    def arrays(self) -> Arrays:
        """Return the entries of all arrays seen, by their types."""
        return {kind: np.concatenate(parts) for kind, parts in self._parts.items()}

    def _fresh(self, value: Any) -> dict[str, Any]:
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)}
        if type(value) is list:
            return {"list": [self.tree(item) for item in value]}
        if type(value) is dict:
            return {"dict": [[self.tree(key), self.tree(item)] for key, item in value.items()]}
        if type(value) is set:
            return {"set": [self.tree(item) for item in sorted(value)]}
        if type(value) is deque:
            return {"deque": [self.tree(item) for item in value], "most": value.maxlen}
        if isinstance(value, Regularizer) and REGULARIZERS.get(value.name) is type(value):
            fields = {
                field.name: getattr(value, field.name) for field in dataclasses.fields(cast(Any, value)) if field.init
            }
            return {"object": _REGULARIZER + value.name, "state": self.tree(fields)}
        name = name_of(type(value))
        if STATES.get(name) is not type(value):
            raise UnknownStateError(f"{type(value).__module__}.{type(value).__qualname__}")
        return {"object": name, "state": self.tree(value.__getstate__())}

    def _array(self, array: npt.NDArray[Any]) -> list[Any]:
        kind = array.dtype.newbyteorder("<").str
        if kind not in _NUMBERS:
            raise UnknownStateError(f"numpy.ndarray of {array.dtype}")
        by_columns = bool(array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous)
        flat = np.ravel(array, order="F" if by_columns else "C").astype(kind, copy=True)
        first = self._sizes.get(kind, 0)
        self._sizes[kind] = first + flat.size
        self._parts.setdefault(kind, []).append(flat)
        return [kind, first, list(array.shape), by_columns]


class Decoder:
    """Makes values of what an `Encoder` wrote.

    Parameters
    ----------
    arrays : dict
    known : mapping of str to object
        The same names as for writing.
    """

    def __init__(self, arrays: Arrays, known: Mapping[str, Any] | None = None) -> None:
        self._arrays, self._known, self._made = arrays, known or {}, dict[int, Any]()

    def value(self, tree: Any) -> Any:
        """Return the value of a tree; DataError if it is not one."""
        try:
            return self._value(tree)
        except DataError:
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise DataError(f"it does not hold what it says ({type(error).__name__}: {error})") from error

    def _value(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            if tree is None or isinstance(tree, bool | int | float | str):
                return tree
            raise DataError("it holds a list where a value is expected")
        if "number" in tree:
            return self._array(*tree["number"])[()]
        if "float" in tree:
            return float(tree["float"])
        if "tuple" in tree:
            return tuple(self._value(item) for item in tree["tuple"])
        if "known" in tree:
            return self._known[tree["known"]]
        return self._made[tree["again"]] if "again" in tree else self._fresh(tree, tree["id"])

    def _fresh(self, tree: dict[str, Any], place: int) -> Any:
        made: Any
        if "array" in tree:
            made = self._made[place] = self._array(*tree["array"])
        elif "list" in tree:
            made = self._made[place] = []
            made.extend(self._value(item) for item in tree["list"])
        elif "dict" in tree:
            made = self._made[place] = {}
            made.update((self._value(key), self._value(item)) for key, item in tree["dict"])
        elif "set" in tree:
            made = self._made[place] = {self._value(item) for item in tree["set"]}
        elif "deque" in tree:
            made = self._made[place] = deque(maxlen=tree["most"])
            made.extend(self._value(item) for item in tree["deque"])
        else:
            made = self._object(tree, place)
        return made

    def _object(self, tree: dict[str, Any], place: int) -> Any:
        name = tree["object"]
        if name.startswith(_REGULARIZER):
            cls: Any = REGULARIZERS[name.removeprefix(_REGULARIZER)]
        elif name in STATES:
            cls = STATES[name]
        else:
            raise DataError(f"it holds an object of an unknown class, '{name}'")
        made = self._made[place] = cls.__new__(cls)
        state = self._value(tree["state"])
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        elif state is not None:
            vars(made).update(state)
        return made

    def _array(self, kind: str, first: int, shape: list[int], by_columns: bool) -> npt.NDArray[Any]:
        if kind not in _NUMBERS or first < 0 or min(shape, default=0) < 0:
            raise DataError("it holds an array of an unknown kind")
        last = first + math.prod(shape)
        entries = self._arrays[kind][first:last]
        if entries.size != last - first:
            raise DataError("it holds an array that is cut off")
        array = np.array(entries, dtype=np.dtype(kind)).reshape(shape[::-1] if by_columns else shape)
        return array.T if by_columns else array


@dataclasses.dataclass(frozen=True)
class Section:
    """One value as it is in the file."""

    tree: str
    arrays: Arrays

    @classmethod
    def of(cls, value: Any, known: Mapping[str, Any] | None = None) -> Section:
        """Write a value; TypeError if it holds something of an unknown type."""
        encoder = Encoder(known)
        tree = json.dumps(encoder.tree(value), allow_nan=False)
        return cls(tree, encoder.arrays())

    def value(self, known: Mapping[str, Any] | None = None) -> Any:
        """Make the value anew; DataError if that is not possible."""
        return Decoder(self.arrays, known).value(json.loads(self.tree))
