"""The contract of a target: seeds, a mutation of its own, and a run that succeeds or raises what it may raise."""

from __future__ import annotations

import random
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzz.mutate import havoc

SOURCES = Path(__file__).resolve().parents[2] / "src" / "bmrm"


# Of a fault inside, or of a size that 64 kB of input cannot justify.
GRAVE = (MemoryError, SystemError, RecursionError)


class Target:
    """One way into the library. `run` raises one of `allowed`, or nothing; everything else is a finding."""

    name: str
    allowed: tuple[type[BaseException], ...] = (ValueError,)
    grave: tuple[type[BaseException], ...] = ()  # findings in spite of `allowed`
    traced = True  # whether lines of Python that are new make an input worth keeping
    words: tuple[bytes, ...] = ()

    def seeds(self) -> list[bytes]:
        """Return inputs to start from."""
        raise NotImplementedError

    def mutate(self, rng: random.Random, data: bytes, other: bytes) -> bytes:
        """Return an input near `data`; `other` may lend a part."""
        return havoc(rng, data, other, self.words)

    def run(self, data: bytes) -> None:
        """Use the library with the input, in an empty working directory."""
        raise NotImplementedError


@dataclass(frozen=True)
class Finding:
    """What one input has led to that it must not.

    Parameters
    ----------
    kind : str
        "error", "memory", "crash" or "hang".
    place : str
        Findings at the same place are one.
    report : str
        For people.
    """

    kind: str
    place: str
    report: str


def judged(target: Target, data: bytes) -> Finding | None:
    """Run the target; None if it has succeeded or refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.run(data)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        starved = any(isinstance(cause, MemoryError) for cause in _causes(error))
        if isinstance(error, target.allowed) and not isinstance(error, target.grave) and not starved:
            return None
        kind = "memory" if starved else "error"
        return Finding(kind, f"{type(error).__name__} {_place(error)}", traceback.format_exc())
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, what it was raised from, and so on: a typed error may stand for one of memory."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def _place(error: BaseException) -> str:
    """Return the last line of the library on the way of the error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(SOURCES)] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}"
