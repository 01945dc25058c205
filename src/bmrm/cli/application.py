"""The command group: turns exit codes and errors of commands into those of the process."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import click

WRONG_INPUT = 2
NOT_CERTIFIED = 3
INTERRUPTED = 130


class Application(click.Group):
    """A group whose commands return exit codes, and whose errors are one line on standard error."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run a command and end the process with its exit code."""
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            code = WRONG_INPUT
        except (click.Abort, KeyboardInterrupt):
            code = _failed("interrupted before there was a result; nothing was written", INTERRUPTED)
        except click.ClickException as error:
            code = _failed(error.format_message(), WRONG_INPUT)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 1
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            code = _failed(f"{where}{error.strerror or error}", WRONG_INPUT)
        except (ValueError, MemoryError) as error:
            code = _failed(str(error) or "out of memory", WRONG_INPUT)
        sys.exit(code or 0)


class Ending:
    """Which signal has ended a block of `one_interrupt`, by its name; empty as long as none has."""

    signal: str = ""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = tuple(numbers)

    def hold(self) -> None:
        """Ignore signals from now on to the end of the block: results are written, which nothing may interrupt."""
        for number in self._numbers:
            signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def one_interrupt() -> Iterator[Ending]:
    """Let the first Ctrl-C or SIGTERM in the block interrupt the work; later ones are ignored from then on."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    mine = {number: handler for number, handler in usual.items() if signal.getsignal(number) == handler}
    if threading.current_thread() is not threading.main_thread():
        mine = {}
    ending = Ending(mine)

    def first(number: int, frame: Any) -> NoReturn:
        for each in mine:
            signal.signal(each, signal.SIG_IGN)
        ending.signal = signal.Signals(number).name
        raise KeyboardInterrupt

    for number in mine:
        signal.signal(number, first)
    try:
        yield ending
    finally:
        for number, handler in mine.items():
            if signal.getsignal(number) is first or not ending.signal:
                signal.signal(number, handler)


@contextlib.contextmanager
def plain_warnings(quiet: bool = False) -> Iterator[None]:
    """Write warnings that are meant for users as one line each on standard error."""

    def show(message: Warning | str, *rest: Any, **more: Any) -> None:
        if not quiet:
            click.echo(f"warning: {' '.join(str(message).split())}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def _failed(message: str, code: int) -> int:
    click.echo(f"error: {' '.join(message.split())}", err=True)
    return code
