"""Every function and method of the compiled core, with hostile sizes, indices and numbers."""

from __future__ import annotations

import json
import random
import re
from functools import lru_cache
from typing import Any

import numpy as np

from bmrm import _core
from fuzz.target import Target
from fuzz.targets.core_objects import OBJECTS, use

_MOST_REPAIRS = 40  # a call has at most 25 arrays, some of two dimensions
_SECONDS = 5.0  # until a kernel has to notice its deadline
_PARAMETER = re.compile(r"(\w+): ((?:[^,\[\]()]|\[(?:[^\[\]]|\[[^\]]*\])*\])+)")
_SIZE = re.compile(r"(?:a row of )?(\w+) has length (\d+), expected (?:1 or )?(\d+)")
_STARTS = re.compile(r"(\w+) must rise from 0 to (\d+)")
_ENTRIES = re.compile(r"(indptr) ends with -?\d+, but there are (\d+) entries")
_LENGTHS = (0, 1, 1, 2, 3, 3, 4, 4, 6, 8, 12, 16)
_FLOATS = (0.0, 1.0, -1.0, 0.5, 2.0, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf"), 1e16)
_WHOLE = (-1, 0, 0, 1, 1, 2, 2, 3, 4, 5, 2**31 - 1, 2**31, 2**32 + 1, -(2**31), 2**62, 2**63 - 1, -(2**63))
_COUNTS = (-1, 0, 1, 1, 2, 2, 3, 3, 4, 4, 8, 1000, 2**31 - 1, 2**31, 2**61, 2**63 - 1, 2**63, 2**64 - 1)
_TEXTS = ("margin", "residual", "score", "sgd", "folos", "pegasos", "adaptive", "proximal", "", "x", "hinge")
_ENDLESS = {"max_epochs", "max_steps"}  # what they bound may be as long as they say
_SIZES = {"n", "n_attributes"}  # what is made may be as large as they say
_SKIPPED = {"set_deadline"}  # the harness sets it


@lru_cache
def signatures() -> dict[str, tuple[tuple[tuple[str, str], ...], ...]]:
    """Return the parameters (name, kind) of each overload of all that the core lets one call."""
    owners = [("", _core)] + [(f"{name}.", cls) for name, cls in vars(_core).items() if isinstance(cls, type)]
    found = {}
    for prefix, owner in owners:
        for name in dir(owner):
            texts = getattr(getattr(owner, name, None), "__nb_signature__", None)
            if texts and name not in _SKIPPED:
                found[prefix + name] = tuple(_parameters(text[0]) for text in texts)
    return found


def _parameters(text: str) -> tuple[tuple[str, str], ...]:
    inside = text.split("(", 1)[1].split(") ->")[0]
    return tuple((name, kind.split(" = ")[0].strip()) for name, kind in _PARAMETER.findall(inside))


def drawn(rng: random.Random, kind: str, name: str = "") -> Any:
    """Return the description of an argument of that kind, as plain values."""
    if "None" in kind and rng.random() < 0.4:
        return None
    array = re.search(r"dtype=(\w+), shape=\(([^)]*)\)", kind)
    if array or "uint8" in kind:
        return _drawn_array(rng, *(array.groups() if array else ("uint8", "*")))
    for cls in OBJECTS:
        if re.search(rf"_core\.{cls}\b", kind):
            one = {"object": cls, "number": rng.randrange(100)}
            return {"list": [one] * rng.randrange(4)} if "Sequence" in kind else one
    if "Sequence[float]" in kind:
        return {"list": [{"float": repr(rng.choice(_FLOATS))} for _ in range(rng.choice(_LENGTHS))]}
    if kind.startswith("int"):
        return rng.choice((0, 1, 2, 10, 1000)) if name in _ENDLESS | _SIZES else rng.choice(_COUNTS)
    if kind.startswith("float"):
        return {"float": repr(rng.choice(_FLOATS))}
    if "bool" in kind:
        return name != "checked" and rng.choice((True, False))  # who says that indices are checked must be right
    return rng.choice(_TEXTS)


def _drawn_array(rng: random.Random, kind: str, shape: str) -> dict[str, Any]:
    sizes = [rng.choice(_LENGTHS) for _ in shape.split(",")]
    values: list[Any]
    if kind.startswith("float"):
        calm = rng.random() < 0.6
        values = [round(rng.gauss(0.0, 1.0), 3) if calm else {"float": repr(rng.choice(_FLOATS))} for _ in range(5)]
    else:
        most = rng.choice((1, 2, 3, 4))
        values = list(range(most)) if rng.random() < 0.6 else [rng.choice(_WHOLE) for _ in range(3)]
    return {"array": kind, "shape": sizes, "values": values}


def made(what: Any, earlier: dict[str, Any]) -> Any:
    """Return the argument that a description stands for."""
    if not isinstance(what, dict):
        return what
    if "float" in what:
        return float(what["float"])
    if "list" in what:
        return [made(item, earlier) for item in what["list"]]
    if "same" in what:
        return earlier.get(what["same"])
    if "object" in what:
        makers = OBJECTS[what["object"]]
        return makers[what["number"] % len(makers)]()
    values = np.array([made(value, earlier) for value in what["values"]], dtype=object)
    kind = np.dtype(what["array"])
    if kind.kind in "iu":
        values = np.array([int(value) & (1 << 8 * kind.itemsize) - 1 for value in values], f"u{kind.itemsize}")
    return np.resize(values.astype(kind.str.replace("i", "u") if kind.kind == "i" else kind).view(kind), what["shape"])


class Kernels(Target):
    """A call is JSON: what is called and, for each parameter, an array, a number or an object of the core.

    Where the core says how long an array must be, the call is repeated with one that is: so also the deeper checks,
    and the kernels themselves, see strange numbers.
    """

    name = "core"
    allowed = (ValueError, TypeError, OverflowError, RuntimeError, _core.Overdue)
    traced = False

    def seeds(self) -> list[bytes]:
        """Return a call of every function and method, and of each of its overloads."""
        rng = random.Random(0)
        return [self._call(rng, name, k) for name, known in signatures().items() for k in range(len(known))]

    def _call(self, rng: random.Random, name: str, overload: int) -> bytes:
        parameters = signatures()[name][overload]
        arguments = {parameter: drawn(rng, kind, parameter) for parameter, kind in parameters}
        return json.dumps({"call": name, "overload": overload, "arguments": arguments}).encode()

    def mutate(self, rng: random.Random, data: bytes, other: bytes) -> bytes:
        """Draw some arguments anew, or let two be the same array."""
        call = json.loads(data)
        if rng.random() < 0.2:
            return self._call(rng, call["call"], call["overload"])
        parameters = signatures()[call["call"]][call["overload"]]
        for _ in range(rng.randrange(1, 4)):
            if parameters:
                name, kind = rng.choice(parameters)
                call["arguments"][name] = drawn(rng, kind, name)
        if len(parameters) > 1 and rng.random() < 0.1:
            (one, _), (two, _) = rng.sample(parameters, 2)
            call["arguments"][two] = {"same": one}
        return json.dumps(call).encode()

    def run(self, data: bytes) -> None:
        """Call, and use what comes back."""
        call = json.loads(data)
        owner, _, name = call["call"].rpartition(".")
        arguments: dict[str, Any] = {}
        for key, what in call["arguments"].items():
            arguments[key] = made(what, arguments)
        held: Any = _core
        if owner:
            cls = getattr(_core, owner)
            static = name in ("of_labels", "of_tree") or name.startswith("__new")
            held = cls if static else OBJECTS[owner][len(data) % len(OBJECTS[owner])]()
        _core.set_deadline(_core.clock() + _SECONDS)
        try:
            use(_repaired(getattr(held, name), arguments))
        finally:
            _core.set_deadline(float("inf"))


def _repaired(function: Any, arguments: dict[str, Any]) -> Any:
    """Call with arrays of the lengths that the core asks for."""
    for _ in range(_MOST_REPAIRS):
        try:
            return function(**arguments)
        except ValueError as error:
            if not _repair(str(error), arguments):
                raise
    return None


def _repair(message: str, arguments: dict[str, Any]) -> bool:
    size, starts = _SIZE.search(message), _STARTS.search(message) or _ENTRIES.search(message)
    found = size or starts
    if found is None or not isinstance(arguments.get(found[1]), np.ndarray):
        return False
    array = arguments[found[1]]
    wanted = int(found[3]) if size else int(found[2])
    if wanted > 1 << 16:
        return False
    if starts:
        arguments[found[1]] = np.linspace(0, wanted, max(2, array.size)).astype(array.dtype)
        return True
    shape = list(array.shape)
    have = int(found[2])
    axis = 1 if message.startswith("a row of") else next((k for k, n in enumerate(shape) if n == have), 0)
    if shape[axis] == wanted:
        return False
    shape[axis] = wanted
    arguments[found[1]] = np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
    return True
