"""Checkpoints: what a run knows is written to a file now and then, from which another process goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from bmrm._errors import DataError
from bmrm.certificate import Status
from bmrm.checkpoint_file import Section, UnknownStateError
from bmrm.data.archive import Arrays, parse_archive, write_archive
from bmrm.data.atomic import check_replaceable, remove_leftovers
from bmrm.problem import Problem
from bmrm.result import Record, Result
from bmrm.risks.fingerprint import described, fingerprint
from bmrm.solvers import Solver

_FORMAT, _FORMAT_VERSION = "bmrm checkpoint", 1
_STATE = ("start", "bundle", "memory", "ended", "of_risk")
_DIGESTS = {
    "X": "the entries of X", "y": "the targets", "weights": "the sample weights", "offsets": "the offsets",
    "data of the owners": "the owners' data", "slopes at 0": "the slopes of the mean loss at w = 0",
}  # fmt: skip


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run is saved, so that it can go on after it was killed, bit for bit.

    Parameters
    ----------
    path : path
        The file. It is written by `solve` when a step ends, every so many seconds and when the run ends, and
        appears complete or not at all. It holds numbers and text only.
    seconds : float
        Time between two of them, at least.
    resume : bool
        Whether to go on from the file, if it is there; w and the bounds of all later steps are those of the run that
        was never stopped. A file of other data, loss, regularizer, lam, solver or seed is refused. Without it, a file
        that is there already is an error, so that none is lost by mistake.
    part : int
        Which of several problems this is that share the file.

    Examples
    --------
    >>> import bmrm, os, tempfile
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], bmrm.losses.Hinge())
    >>> problem = bmrm.Problem(risk, "l2", lam=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "run.checkpoint")
    ...     part = bmrm.solve(problem, "bmrm", max_iter=1, tol=1e-9, checkpoint=file)
    ...     rest = bmrm.solve(problem, "bmrm", tol=1e-9, checkpoint=bmrm.Checkpoint(file, resume=True))
    >>> part.iterations, rest.converged, rest.history[0].upper == part.history[0].upper
    (1, True, True)
    """

    path: str | os.PathLike[str]
    seconds: float = 60.0
    resume: bool = False
    part: int = 0

    def __post_init__(self) -> None:
        if not self.seconds >= 0.0:
            raise ValueError(f"the seconds between two checkpoints must be at least 0, got {self.seconds!r}")


@dataclass
class Snapshot:
    """All that a run needs to go on after a step, beside the problem and the solver.

    Attributes
    ----------
    w, start : array
        The best point, and where the run began.
    bundle, memory, ended
        Of the last step.
    of_risk : object
        `Risk.memory`.
    numbers : dict
        Bounds and counters of the driver.
    history : tuple of Record
    status : str, optional
        Why the run ended, if it has.
    bounds : (float, float)
        The certificate of a run that has ended.
    """

    w: Any
    start: Any
    bundle: Any
    memory: Any
    ended: bool
    of_risk: Any
    numbers: dict[str, Any]
    history: tuple[Record, ...]
    status: str | None = None
    bounds: tuple[float, float] = (np.inf, -np.inf)

    @property
    def is_final(self) -> bool:
        """Whether going on would change nothing."""
        return self.ended or self.status in (Status.STALLED.name, Status.UNBOUNDED.name, Status.NON_FINITE.name)


class Keeper:
    """Reads and writes the part of one run in a checkpoint's file.

    Parameters
    ----------
    checkpoint : Checkpoint or path
    problem : Problem
    solver : Solver
    seed : int
    """

    def __init__(
        self, checkpoint: Checkpoint | str | os.PathLike[str], problem: Problem, solver: Solver, seed: int
    ) -> None:
        checkpoint = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        self.path, self.seconds, self.part = Path(checkpoint.path), checkpoint.seconds, checkpoint.part
        self._known = {"risk": problem.risk, "regularizer": problem.regularizer}
        self._solver, self._written = solver, time.monotonic()
        self._check_place(checkpoint.resume)
        self._sections = self._read() if self.path.exists() else {}
        self._identity = _identity(problem, solver, seed)

    def load(self) -> Snapshot | None:
        """Return where the run of this part was; None if it has not begun."""
        sections, name = self._sections, f"{self.part}"
        if f"{name}.about" not in sections:
            return None
        try:
            there = sections[f"{name}.about"].value()
            _compare(there, self._identity)
            kept = sections[f"{name}.result"].value()
            state = sections.get(f"{name}.state")
            kept |= dict.fromkeys(_STATE) if state is None else state.value(self._known)
            rows = kept.pop("history").T.tolist()
            history = tuple(Record(int(n), a, b, c, d, tuple(busy)) for n, a, b, c, d, *busy in rows)
            return Snapshot(**kept, history=history)
        except Exception as error:  # what is written there may be anything
            raise DataError(f"{self.path}: {_reason(error)}") from error

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._written >= self.seconds

    def write(self, snapshot: Snapshot | None, result: Result | None = None) -> None:
        """Replace the file, at the end of a run with its result; where that fails, the run goes on, with a warning."""
        if snapshot is None:
            return
        if result is not None:
            certificate = result.certificate
            snapshot.status, snapshot.bounds = result.status.name, (certificate.upper, certificate.lower)
        table = np.array([[r.iteration, r.seconds, r.passes, r.upper, r.lower, *r.busy] for r in snapshot.history]).T
        answer = {name: getattr(snapshot, name) for name in ("w", "numbers", "status", "bounds")} | {"history": table}
        state = {name: getattr(snapshot, name) for name in _STATE}
        try:
            parts = {
                "about": Section.of(self._identity),
                "result": Section.of(answer),
                "state": Section.of(state, self._known),
            }
        except UnknownStateError as error:
            raise TypeError(
                f"solver '{self._solver.name}' cannot be saved: its state holds a {error}, which is not among the "
                f"classes that checkpoints know"
            ) from error
        self._sections |= {f"{self.part}.{name}": section for name, section in parts.items()}
        try:
            _write(self.path, self._sections)
        except (DataError, OSError) as error:
            warnings.warn(f"{self.path}: the checkpoint was not written ({error}); the run goes on", stacklevel=2)
        self._written = time.monotonic()

    def _check_place(self, resume: bool) -> None:
        check_replaceable(self.path)
        folder = Path(os.path.realpath(self.path)).parent
        if not os.access(folder, os.W_OK):
            raise DataError(f"{self.path}: cannot be written (no such folder, or no permission)")
        if self.part == 0 and not resume and self.path.exists():
            raise DataError(f"{self.path}: there is a checkpoint already; resume from it, or remove it to start afresh")
        if self.part == 0:
            remove_leftovers(self.path)

    def _without_what_is_done(self, sections: dict[str, Section]) -> dict[str, Section]:
        """Keep only the answers of other parts that have converged: their planes may be many."""
        for name in [name for name in sections if name.endswith(".result")]:
            part = name.removesuffix(".result")
            if part != f"{self.part}" and sections[name].value()["status"] == Status.CONVERGED.name:
                sections.pop(f"{part}.state", None)
        return sections

    def _read(self) -> dict[str, Section]:
        try:
            header, arrays = parse_archive(self.path.read_bytes(), _FORMAT, _FORMAT_VERSION, _kinds)
            return self._without_what_is_done(_sections(header["sections"], arrays))
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read ({error.strerror})") from error
        except Exception as error:  # zipfile and NumPy have many ways to say that a file is broken
            raise DataError(f"{self.path}: not a checkpoint, or a damaged one ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"


def _kinds(name: str) -> str | None:
    return "biuf" if name.startswith("section") else None


def _write(path: Path, sections: dict[str, Section]) -> None:
    arrays: Arrays = {}
    for number, section in enumerate(sections.values()):
        arrays[f"section {number} tree"] = np.frombuffer(section.tree.encode(), dtype=np.uint8)
        arrays |= {f"section {number} {values.dtype.name}": values for values in section.arrays.values()}
    header = {"format": _FORMAT, "format_version": _FORMAT_VERSION, "sections": list(sections)}
    write_archive(path, header, arrays)


def _sections(names: list[str], arrays: Arrays) -> dict[str, Section]:
    sections = {}
    if not all(isinstance(name, str) for name in names):
        raise DataError("the names of its sections are no text")
    for number, name in enumerate(names):
        tree = arrays.pop(f"section {number} tree").tobytes().decode()
        mine = [array for key, array in arrays.items() if key.startswith(f"section {number} ")]
        sections[name] = Section(tree, {array.dtype.newbyteorder("<").str: array for array in mine})
    return sections


def _identity(problem: Problem, solver: Solver, seed: int) -> dict[str, Any]:
    """Return what must be the same in a run that goes on, the most telling first."""
    from bmrm import __version__

    return {
        "version of bmrm": __version__,
        **fingerprint(problem.risk),
        "regularizer": described(problem.regularizer),
        "lam": problem.lam,
        "solver": described(solver),
        "seed": seed,
    }


def _compare(there: dict[str, Any], here: dict[str, Any]) -> None:
    for name in [*here, *there]:
        old, new = there.get(name), here.get(name)
        if old != new:
            differs = f"{_DIGESTS[name]} differ" if name in _DIGESTS else f"{name} is {old!r} there and {new!r} here"
            raise DataError(f"the checkpoint belongs to another run: {differs}")


Handler = Callable[[int, FrameType | None], Any]


@dataclass
class Interrupts:
    """Ctrl-C, and SIGTERM where the program handles it, held back until a step ends; one more after a second is not.

    What comes sooner is taken for the same one: shells and wrappers may send a signal twice.
    """

    _before: dict[int, Handler] = field(default_factory=dict)
    _held: int | None = None
    _since: float = 0.0

    @contextlib.contextmanager
    def held(self) -> Iterator[Interrupts]:
        """Hold them back in the block; only the main thread can."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                if callable(before) and not isinstance(before, signal.Handlers):
                    self._before[number] = before
                    signal.signal(number, self._hold)
        try:
            yield self
        finally:
            self._give_back()

    def let_through(self) -> None:
        """Raise what the program's own handler raises, if a signal has come."""
        if self._held is not None:
            number, self._held = self._held, None
            before = self._before[number]
            self._give_back()
            before(number, None)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        if self._held is None:
            self._held, self._since = number, time.monotonic()
        elif time.monotonic() - self._since > 1.0:
            self._before[number](number, frame)

    def _give_back(self) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._hold:
                signal.signal(number, before)
