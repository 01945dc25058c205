"""Every public callable of the library, with arguments that fit its parameters' names and arguments that do not."""

from __future__ import annotations

import importlib
import inspect
import json
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import bmrm
from bmrm import _core
from fuzz.target import GRAVE, Target
from fuzz.targets.call_values import HOSTILE, PLAUSIBLE, VALUES

_PACKAGES = ("data", "estimators", "losses", "owners", "regularizers", "risks", "solvers", "structured")
_NAMES_LEFT_OUT = {
    "ShardServer",  # listens
    "PystructModel",  # calls code of its user
    "Along",  # a record of three numbers
}
_METHODS_LEFT_OUT = {
    "outputs",  # all of them: exponentially many
    "examples",
    "draw",  # as many as it is told
}
_SECONDS = 5.0  # for a run


@lru_cache
def callables() -> dict[str, Any]:
    """Return the functions and classes that the package and its parts list in `__all__`, each once.

    Not those of the command line, of checks that run for minutes, and of engines, which start processes.
    """
    found: dict[str, Any] = {}
    for module in (bmrm, *(importlib.import_module(f"bmrm.{name}") for name in _PACKAGES)):
        for name in sorted(set(module.__all__) - _NAMES_LEFT_OUT):
            thing = getattr(module, name)
            if callable(thing) and not inspect.isabstract(thing) and thing not in found.values():
                found[f"{module.__name__}.{name}"] = thing
    return found


def parameters_of(thing: Any) -> list[str]:
    """Return the names of the parameters that a value can be given for."""
    try:
        signature = inspect.signature(thing)
    except (ValueError, TypeError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, each in signature.parameters.items() if each.kind in kinds and name != "self"]


def required(thing: Any) -> set[str]:
    """Return the names of the parameters without a default."""
    signature = inspect.signature(thing)
    return {name for name, each in signature.parameters.items() if each.default is inspect.Parameter.empty}


def methods_of(cls: type) -> list[str]:
    """Return the public methods of a class."""
    names = [name for name in dir(cls) if not name.startswith("_") and name not in _METHODS_LEFT_OUT]
    return [name for name in names if inspect.isfunction(getattr(cls, name))]


class Public(Target):
    """A call is JSON: what is called, the names of values for its parameters, and a method for what comes back.

    Errors of all kinds may end it, but for those that tell of a fault inside or of a size that nothing justifies.
    """

    name = "calls"
    allowed = (Exception, _core.Overdue)
    grave = GRAVE
    traced = False

    def seeds(self) -> list[bytes]:
        """Return a call of each callable, with values that fit."""
        rng = random.Random(0)
        return [self._call(rng, name, 0.0) for name in callables()]

    def _call(self, rng: random.Random, name: str, hostile: float) -> bytes:
        thing = callables()[name]
        call = {"call": name, "arguments": self._arguments(rng, thing, hostile)}
        methods = methods_of(thing) if isinstance(thing, type) else []
        if methods:
            method = rng.choice(methods)
            call |= {"method": method, "more": self._arguments(rng, getattr(thing, method), hostile)}
        return json.dumps(call).encode()

    def _arguments(self, rng: random.Random, thing: Any, hostile: float) -> dict[str, str]:
        names = parameters_of(thing)
        needed = required(thing) if names else set()
        chosen = [name for name in names if name in needed or rng.random() < 0.3]
        return {name: _value(rng, name, hostile) for name in chosen}

    def mutate(self, rng: random.Random, data: bytes, other: bytes) -> bytes:
        """Draw the call anew, with another share of hostile values, or change one argument."""
        call = json.loads(data)
        if rng.random() < 0.5:
            return self._call(rng, call["call"], rng.choice((0.0, 0.2, 0.5)))
        for part in ("arguments", "more"):
            if call.get(part):
                name = rng.choice(list(call[part]))
                call[part][name] = _value(rng, name, 0.7)
        return json.dumps(call).encode()

    def run(self, data: bytes) -> None:
        """Call, and call a method of what comes back; some seconds at most."""
        call = json.loads(data)
        thing = callables().get(call["call"])
        _core.set_deadline(_core.clock() + _SECONDS)
        try:
            found = thing(**{name: VALUES[value]() for name, value in call["arguments"].items()})
            method: Callable[..., Any] | None = getattr(found, call.get("method", ""), None)
            if method is not None:
                found = method(**{name: VALUES[value]() for name, value in call["more"].items()})
            if inspect.isgenerator(found):
                for _, _item in zip(range(5), found):
                    pass
        finally:
            _core.set_deadline(float("inf"))


def _value(rng: random.Random, name: str, hostile: float) -> str:
    fitting = PLAUSIBLE.get(name)
    return rng.choice(fitting if fitting and rng.random() >= hostile else HOSTILE)
