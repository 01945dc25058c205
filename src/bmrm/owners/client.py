"""The coordinator's side: owners as objects that are placed and called, by messages."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy.typing as npt

from bmrm.owners.answers import answer_of
from bmrm.owners.guard import OwnerError
from bmrm.owners.limits import send_all
from bmrm.owners.names import line_header, point_header
from bmrm.owners.owner import Owner
from bmrm.owners.score_messages import METHODS as SCORE_METHODS
from bmrm.owners.score_messages import score_request
from bmrm.owners.tls import TLS, is_here
from bmrm.owners.wire import MOST_BYTES, Message, WireError, packed, receive, unpacked
from bmrm.parallel.base import Answer, Placed

_CONNECT = 10.0  # seconds
_PARTING = 1.0  # seconds that the reason for the end of a connection may take


class OwnerLost(OwnerError):
    """Owners whose connections have ended; a run may go on without them (`bmrm.solve_owners`).

    Attributes
    ----------
    names : list of str
        Theirs.
    """

    def __init__(self, message: str, names: list[str]) -> None:
        super().__init__(message)
        self.names = names


class Channel(Protocol):
    """A way to one owner: requests go out, answers come back in the same order."""

    name: str

    def send(self, request: bytes) -> None:
        """Send a request."""

    def receive(self) -> Message:
        """Return the answer to the oldest request that has none yet."""

    def close(self) -> None:
        """End it."""


class DirectChannel:
    """To an owner in this process: the same bytes, without a network."""

    def __init__(self, owner: Owner) -> None:
        self.name = owner.name
        self._open = contextlib.ExitStack()
        self._session = self._open.enter_context(owner.session("this process"))
        self._answers: list[bytes] = []

    def send(self, request: bytes) -> None:
        """Let the owner answer."""
        self._answers.append(self._session.reply(unpacked(request)))

    def receive(self) -> Message:
        """Return the answer."""
        return unpacked(self._answers.pop(0))

    def close(self) -> None:
        """End the owner's session."""
        self._open.close()


class SocketChannel:
    """To an owner's server.

    Parameters
    ----------
    address : str
        host:port.
    tls : TLS, optional
    insecure : bool
        Whether another machine may be asked without TLS.
    timeout : float
        Seconds to wait for an answer.
    """

    def __init__(self, address: str, tls: TLS | None = None, insecure: bool = False, timeout: float = 600.0) -> None:
        self.name = address
        host, port = split_address(address)
        if not (is_here(host) or tls is not None or insecure):
            raise OwnerError(f"{address}: is another machine; give a certificate authority (ca), or say insecure")
        try:
            connection = socket.create_connection((host, port), timeout=_CONNECT)
        except OSError as error:
            raise OwnerError(f"{address}: cannot be reached ({error})") from error
        self._connection = connection
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                self._connection = tls.of_coordinator().wrap_socket(connection, server_hostname=host)
            self._timeout = timeout
        except (OSError, ssl.SSLError) as error:
            connection.close()
            raise OwnerError(f"{address}: no TLS connection ({error})") from error
        except BaseException:
            connection.close()
            raise

    def send(self, request: bytes) -> None:
        """Send the request."""
        try:
            send_all(self._connection, request, self._timeout)
        except OSError as error:
            self._refusal()
            raise OwnerLost(f"{self.name}: the connection is lost ({error})", [self.name]) from error

    def _refusal(self) -> None:
        """Raise Refused with the reason, if the owner has sent one before it ended the connection."""
        with contextlib.suppress(WireError, OSError):
            answer_of("hello", (), receive(self._connection, 0, _PARTING, _PARTING), self.name)

    def receive(self) -> Message:
        """Wait for the answer, which as a whole must come in time."""
        try:
            return receive(self._connection, MOST_BYTES, self._timeout, self._timeout)
        except TimeoutError as error:
            raise OwnerLost(f"{self.name}: has not answered in time", [self.name]) from error
        except (WireError, OSError) as error:
            raise OwnerLost(f"{self.name}: the connection is lost ({error})", [self.name]) from error

    def close(self) -> None:
        """End the connection, also where an answer is waited for."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of host:port.

    Examples
    --------
    >>> from bmrm.owners.client import split_address
    >>> split_address("127.0.0.1:5000"), split_address("[::1]:5000")
    (('127.0.0.1', 5000), ('::1', 5000))
    """
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit() and 0 < int(port) < 65536):
        raise OwnerError(f"owner {address!r}; expected host:port, for example 127.0.0.1:5000")
    return host.strip("[]"), int(port)


class OwnersPlaced(Placed):
    """Owners, asked by messages. All are asked before the first answer is waited for.

    A thread of its own does that: an interrupt ends the waiting, not an exchange, so that no answer is ever taken for
    that of a later request.

    Parameters
    ----------
    channels : sequence of Channel
    """

    def __init__(self, channels: Sequence[Channel]) -> None:
        super().__init__(len(channels))
        self.channels = list(channels)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bmrm owners")

    def workers(self) -> list[str]:
        """Return the names of the owners."""
        return [channel.name for channel in self.channels]

    def leave(self, names: Collection[str]) -> None:
        """End the connections to some owners, and go on with the others."""
        left = [place for place, channel in enumerate(self.channels) if channel.name not in names]
        for channel in self.channels:
            if channel.name in names:
                channel.close()
        self.channels = [self.channels[place] for place in left]
        self.seconds, self.n_shards = [self.seconds[place] for place in left], len(left)

    def release(self) -> None:
        """End all connections."""
        channels, self.channels = self.channels, []
        for channel in channels:
            channel.close()
        self._thread.shutdown()
        self._waiting.clear()

    def _ask(
        self, shards: list[int], method: str, arguments: tuple[Any, ...], each: Sequence[tuple[Any, ...]]
    ) -> list[Answer]:
        if not self.channels:
            raise OwnerError("the connections to the owners are closed")
        return self._thread.submit(self._exchanged, self.channels, shards, method, arguments, each).result()

    @staticmethod
    def _exchanged(
        channels: list[Channel],
        shards: list[int],
        method: str,
        arguments: tuple[Any, ...],
        each: Sequence[tuple[Any, ...]],
    ) -> list[Answer]:
        asked: list[tuple[int, OwnerError | None]] = []
        for shard, own in zip(shards, each):
            try:
                channels[shard].send(packed(request(method, (*arguments, *own))))
                asked.append((shard, None))
            except OwnerError as error:
                asked.append((shard, error))
        answers, errors = [], []
        for shard, failed in asked:  # all of them: an answer left unread would be taken for the next one
            try:
                if failed is not None:
                    raise failed
                answers.append(answer_of(method, arguments, channels[shard].receive(), channels[shard].name))
            except OwnerError as error:
                errors.append(error)
        if errors:
            raise _worst(errors)
        return answers


def _worst(errors: list[OwnerError]) -> OwnerError:
    """Return the error to raise: of owners that are lost, one that names them all; else the first."""
    lost = [error for error in errors if isinstance(error, OwnerLost)]
    if len(lost) < len(errors):
        return next(error for error in errors if not isinstance(error, OwnerLost))
    return OwnerLost("; ".join(map(str, lost)), [name for error in lost for name in error.names])


def request(method: str, arguments: tuple[Any, ...]) -> Message:
    """Return a call as a message; only these methods exist."""
    arrays: list[npt.NDArray[Any]] = []
    if method in ("hello", "classes"):
        return Message({"method": method})
    if method == "begin":
        risk, terms = arguments
        return Message({"method": method, "risk": risk, "terms": terms.header()})
    if method == "join":
        risk, total, keys, step, place = arguments
        header = {"method": method, "risk": risk, "total": total, "step": step, "place": place}
        return Message(header | ({"keys": None} if keys is None else keys))
    if method == "drop":
        return Message({"method": method, "risks": list(arguments[0])})
    if method in SCORE_METHODS:
        return score_request(method, arguments)
    if method not in ("ask", "slide"):
        raise OwnerError(f"owners do not answer '{method}'")
    risk, name, what, gone, best, zero, round = arguments
    header = {"method": method, "risk": risk, "gone": [list(part) for part in gone]}
    header |= {"best": best, "zero": zero, "round": round}
    if method == "ask":
        return Message(header | {"point": point_header(name, arrays), "wants": list(what)}, tuple(arrays))
    return Message(header | {"line": line_header(name, arrays), "ts": [float(t) for t in what]}, tuple(arrays))


def connected(owners: Sequence[str | Owner], tls: TLS | None, insecure: bool, timeout: float) -> list[Channel]:
    """Return a channel to each owner; none stays open if one cannot be had."""
    channels: list[Channel] = []
    try:
        for owner in owners:
            if isinstance(owner, Owner):
                channels.append(DirectChannel(owner))
            else:
                channels.append(SocketChannel(owner, tls, insecure, timeout))
    except BaseException:
        for channel in channels:
            channel.close()
        raise
    return channels
