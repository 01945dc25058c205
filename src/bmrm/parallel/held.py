"""Held: the objects of one worker process, and what comes of calling them: an answer, or an error that can travel."""

from __future__ import annotations

import pickle
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from bmrm.parallel.base import Answer, EngineError, Maker


class Failure(NamedTuple):
    """An error in place of an answer."""

    error: BaseException


Outcome: TypeAlias = Answer | Failure


class Make(NamedTuple):
    """The request to make objects of a set."""

    of: int
    makers: Sequence[tuple[int, Maker]]


class Call(NamedTuple):
    """The request to call a method of objects of a set: of all that are here, or of some, with their own arguments."""

    of: int
    method: str
    arguments: tuple[Any, ...]
    each: Sequence[tuple[int, tuple[Any, ...]]] | None = None


class Drop(NamedTuple):
    """The request to forget sets of objects."""

    of: tuple[int, ...]


class Held:
    """Objects in this process, by their set and the number of their shard.

    Examples
    --------
    >>> from bmrm.parallel.held import Call, Held, Make
    >>> held = Held()
    >>> _ = held.outcomes(Make(1, [(0, lambda: "one"), (2, lambda: "two")]))
    >>> {shard: answer.value for shard, answer in held.outcomes(Call(1, "upper", ())).items()}
    {0: 'ONE', 2: 'TWO'}
    """

    def __init__(self) -> None:
        self._sets: dict[int, dict[int, Any]] = {}

    def outcomes(self, request: Make | Call | Drop) -> dict[int, Outcome]:
        """Do what is asked for and return what came of it, by shard."""
        if isinstance(request, Drop):
            for number in request.of:
                self._sets.pop(number, None)
            return {}
        here = self._sets.setdefault(request.of, {})
        if isinstance(request, Make):
            return {shard: _tried(_make, here, shard, maker) for shard, maker in request.makers}
        each = [(shard, ()) for shard in sorted(here)] if request.each is None else request.each
        return {shard: _tried(_call, here, shard, request, own) for shard, own in each}


def _make(here: dict[int, Any], shard: int, maker: Maker) -> None:
    here[shard] = maker()


def _call(here: dict[int, Any], shard: int, request: Call, own: tuple[Any, ...]) -> Any:
    return getattr(here[shard], request.method)(*request.arguments, *own)


def _tried(work: Callable[..., Any], *arguments: Any) -> Outcome:
    began = time.perf_counter()
    try:
        return Answer(work(*arguments), time.perf_counter() - began)
    except SystemExit as error:
        return Failure(EngineError(f"a shard asked its process to end: {error!r}"))
    except Exception as error:
        return Failure(error)


class Told(NamedTuple):
    """What a worker sends back: outcomes, and the warnings that came with them."""

    outcomes: dict[int, Outcome]
    warnings: list[tuple[type[Warning], str]]


def told(held: Held, request: Make | Call | Drop) -> Told:
    """Return the outcomes of a request as they can travel; nothing that a shard does ends this process.

    Errors of a kind that the other side could not make again become an `EngineError` with the same words.
    """
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        outcomes = held.outcomes(request)
    said = dict.fromkeys((each.category, str(each.message)) for each in found)
    return Told({shard: _able_to_travel(outcome) for shard, outcome in outcomes.items()}, list(said))


def _able_to_travel(outcome: Outcome) -> Outcome:
    if isinstance(outcome, Answer):
        return outcome
    error = outcome.error
    trace = "".join(traceback.format_exception(error)).rstrip()
    try:
        error = pickle.loads(pickle.dumps(error))
    except Exception:
        error = EngineError(f"{type(error).__name__}: {error}")
    error.add_note(f"on the worker:\n{trace}")
    return Failure(error)
