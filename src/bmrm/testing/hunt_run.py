"""The hunt: problems at random, solvers in processes of their own, and a report of what must not happen."""

from __future__ import annotations

import faulthandler
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from tempfile import NamedTemporaryFile
from traceback import format_exc
from typing import Any

from bmrm.testing.hunt_judge import Finding, Judge

_HANG = 30.0  # seconds in one solve, of at most one second each: nothing that ends by itself takes as long
_STOPPED = 60.0  # seconds more, after which a process that does not end by itself is killed
_POLL = 0.5  # seconds


@dataclass
class Report:
    """What a hunt has done and found.

    Attributes
    ----------
    seed : int
    problems, solves, refused : int
        How many problems were drawn and solved, how many times a solver ran, and how many draws were no problems.
    seconds : float
    findings : list of Finding
    """

    seed: int
    problems: int = 0
    solves: int = 0
    refused: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        kinds = Counter(finding.kind for finding in self.findings)
        found = ", ".join(f"{number} x {kind}" for kind, number in kinds.most_common()) or "nothing"
        return (
            f"seed {self.seed}: {self.problems} problems, {self.solves} solves in {self.seconds / 60:.1f} minutes "
            f"({self.refused} draws refused); found: {found}"
        )


def hunt(
    minutes: float = 1.0,
    seed: int = 0,
    *,
    processes: int = 2,
    first: int = 0,
    problems: int | None = None,
    show: Callable[[str], Any] | None = print,
) -> Report:
    """Draw problems at random, solve them by all kinds of solvers, and report every claim that is not true.

    Drawn are the registered losses, regularizers, structured models and solvers, those of plug-ins as well, with data
    that are hard to compute with: columns from 1e-8 to 1e8, dependent and constant ones, separable targets, lam from
    1e-18 to 1e6. J is recomputed in exact arithmetic from the formulas of the losses. Reported are: a lower bound above
    J of any point that any solver found, an upper bound below J(w), CONVERGED with an open gap, bounds that exclude
    each other, a w that is not finite, an exception, a crash or a hang of the process, a run that ends later than half
    a second after `max_seconds`, warnings, and output. Exact numbers are compared with a slack of 4 eps J, because
    weights of rows and lam Omega are rounded before anything is summed. With free coordinates a lower bound may be
    above J by 1e-12 of J at the start: nothing says how far w may go there, and what rounding leaves of a plane's slope
    is charged up to twice the best point only. A loss without an exact formula here is recomputed by its own
    `evaluate`, with a slack of 1e-9 J.

    The solvers run in processes of their own, which import the main module as `multiprocessing` does: a script calls
    `hunt` under ``if __name__ == "__main__":``, and plug-ins that it defines are drawn too.

    Parameters
    ----------
    minutes : float
        How long to go on; problems that have begun are ended.
    seed : int
        The problems are the same for the same seed. What is found may differ where a run ends by its time.
    processes : int
        How many problems are solved at a time.
    first : int
        Number of the first problem.
    problems : int, optional
        How many problems at most; as many as there is time for, by default.
    show : callable, optional
        Called with each finding, as text. None is silent.

    Returns
    -------
    Report

    Examples
    --------
    >>> import bmrm
    >>> report = bmrm.testing.hunt(minutes=1, seed=0, problems=2, show=None)
    >>> report.problems + report.refused, report.findings
    (2, [])
    """
    report, began = Report(seed), time.perf_counter()
    numbers = iter(range(first, first + problems) if problems is not None else range(first, 2**62))
    ends = began + 60.0 * minutes
    workers = [_Worker(seed) for _ in range(processes)]
    try:
        for worker in workers:
            worker.give(next(numbers, None))
        while any(worker.number is not None for worker in workers):
            wait([worker.connection for worker in workers if worker.number is not None], timeout=_POLL)
            for worker in workers:
                for finding in worker.news(report):
                    report.findings.append(finding)
                    if show is not None:
                        show(f"{finding}\n")
                if worker.idle:
                    worker.give(next(numbers, None) if time.perf_counter() < ends else None)
    finally:
        for worker in workers:
            worker.stop()
    report.seconds = time.perf_counter() - began
    return report


class _Worker:
    """A process that is given numbers of problems, and is made anew when it dies or hangs."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.number: int | None = None
        self.idle = True
        self._begin()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.log = NamedTemporaryFile("r", suffix=".txt")  # noqa: SIM115 (where a process that hangs is)
        self.connection, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, self.seed, self.log.name), daemon=True)
        self.process.start()
        other.close()
        self.at, self.case, self.since = "drawing", "", time.perf_counter()

    def give(self, number: int | None) -> None:
        self.number, self.idle = number, False
        self.since = time.perf_counter()
        if number is not None:
            self.connection.send(number)

    def news(self, report: Report) -> list[Finding]:
        """Return what was found since the last time."""
        if self.number is None:
            return []
        try:
            while self.connection.poll():
                message = self.connection.recv()
                self.since = time.perf_counter()
                if isinstance(message, tuple):
                    self.at, self.case = message
                else:
                    return self._done(message, report)
        except (EOFError, OSError):
            return self._lost(report, "crash")
        if time.perf_counter() - self.since > _HANG + _STOPPED:
            return self._lost(report, "hang")
        return []

    def _done(self, judge: Any, report: Report) -> list[Finding]:
        report.solves += judge["solves"]
        report.refused += judge["refused"]
        report.problems += not judge["refused"]
        self.idle = True
        return list(judge["findings"])

    def _lost(self, report: Report, kind: str) -> list[Finding]:
        self.stop()
        trace = self.log.read().strip()
        assert self.number is not None
        details = f"the process ended with code {self.process.exitcode}\n{trace[-3000:]}"
        if "Timeout" in trace:
            kind = "hang"
        found = Finding(kind, self.seed, self.number, self.at, self.case, details)
        report.problems += 1
        self.idle = True
        self._begin()
        return [found]

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def work(connection: Connection, seed: int, log: str) -> None:
    """Judge the problems whose numbers come in; a solve that hangs ends the process with a trace of where it is."""
    with open(log, "w") as file:
        faulthandler.enable(file)

        def tell(solver: str, case: str) -> None:
            faulthandler.dump_traceback_later(_HANG, exit=True, file=file)
            connection.send((solver, case))

        while True:
            judge = Judge(seed, connection.recv())
            try:
                judge.run(tell)
            except Exception:
                judge.note("crash", "the hunt", format_exc())
            faulthandler.cancel_dump_traceback_later()
            connection.send({"solves": judge.solves, "refused": judge.refused, "findings": judge.findings})
