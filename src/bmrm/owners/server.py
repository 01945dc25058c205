"""ShardServer: an owner on a port."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from types import TracebackType

from bmrm._errors import DataError
from bmrm.owners.connections import Connection, Connections
from bmrm.owners.guard import Refused
from bmrm.owners.limits import Deadline, Limits, send_all
from bmrm.owners.owner import Owner
from bmrm.owners.session import Session
from bmrm.owners.tls import TLS, is_here
from bmrm.owners.wire import Closed, Message, WireError, packed, receive

_FIRST = 4096  # bytes: a first message only says hello
_JSON, _COPIES = 16, 3  # times the bytes of a header and of numbers: their memory while a request is answered
_PARTING = 1.0  # seconds to send the reason for which a connection ends
_JOIN = 10.0  # seconds for threads to end


class ShardServer:
    """Answers coordinators on a port, one at a time, until it is closed.

    Malformed messages end the connection they came by, not the server.

    Parameters
    ----------
    owner : Owner
    host : str
        127.0.0.1 by default: nobody but this machine. Another one needs TLS.
    port : int
        0 for any free one.
    tls : TLS, optional
        The owner's certificate; with a ``ca``, coordinators must have one that is signed by it.
    insecure : bool
        Accept another host without TLS: everybody on the network may ask, and read what is answered.
    limits : Limits, optional
        Deadlines, and how many connections there may be; the memory is the owner's (``max_memory``).

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X = np.linspace(-1.0, 1.0, 400).reshape(200, 2)
    >>> owner = bmrm.Owner((X, np.where(X[:, 0] > 0, 1, -1)))
    >>> with bmrm.ShardServer(owner) as server:
    ...     with bmrm.OwnersRisk([server.address], "hinge", lam=0.01) as risk:
    ...         risk.dim
    2
    """

    def __init__(
        self,
        owner: Owner,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: TLS | None = None,
        insecure: bool = False,
        limits: Limits | None = None,
    ) -> None:
        if not (is_here(host) or tls is not None or insecure):
            raise DataError(
                f"host {host} can be reached from other machines: give a certificate and its key, or say insecure"
            )
        self.owner, self.limits = owner, Limits() if limits is None else limits
        self._context = None if tls is None else tls.of_owner()
        try:
            self._listening = socket.create_server((host, port), family=_family(host))
        except (OSError, OverflowError) as error:
            raise DataError(f"{host}:{port}: cannot be listened at ({error})") from error
        self._listening.settimeout(0.2)  # so often it is looked whether to close
        self._connections = Connections(self.limits.connections)
        self._threads: set[threading.Thread] = set()
        self._lock, self._closing = threading.Lock(), threading.Event()
        self.host, self.port = host, int(self._listening.getsockname()[1])

    @property
    def address(self) -> str:
        """Where coordinators find it, as host:port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def start(self) -> ShardServer:
        """Answer in threads of this process, until `close`."""
        accepting = threading.Thread(target=self.serve, name=f"bmrm {self.address}", daemon=True)
        self._threads.add(accepting)
        accepting.start()
        return self

    def serve(self) -> None:
        """Accept coordinators until the server is closed."""
        while not self._closing.is_set():
            try:
                connection, peer = self._listening.accept()
            except TimeoutError:
                continue
            except OSError:
                break
            made = Connection(connection, str(peer[0]), int(peer[1]))
            self._connections.add(made)
            thread = threading.Thread(target=self._attend, args=(made,), daemon=True)
            with self._lock:  # `close` joins threads that have started only
                self._threads.add(thread)
                thread.start()

    def close(self) -> None:
        """Listen no more, end all connections and wait for their threads."""
        self._closing.set()
        self._listening.close()
        self._connections.end_all()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(timeout=_JOIN)

    def __enter__(self) -> ShardServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _attend(self, connection: Connection) -> None:
        """Answer one connection to its end; what goes wrong is in the log."""
        try:
            deadline = Deadline(self.limits.handshake)
            self._secure(connection, deadline)
            with self.owner.session(connection.peer) as connection.session:
                self._converse(connection, connection.session, deadline)
        except Closed:
            pass
        except TimeoutError:
            self.owner.log.noted(connection.peer, "disconnected", "no message, or none that was whole, in time")
        except (WireError, OSError, ssl.SSLError) as error:
            self.owner.log.noted(connection.peer, "disconnected", str(error))
        finally:
            connection.socket.close()
            self.owner.room.release(connection)
            self._connections.discard(connection)
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _secure(self, connection: Connection, deadline: Deadline) -> None:
        if self._context is None:
            return
        with_tls = self._context.wrap_socket(connection.socket, server_side=True, do_handshake_on_connect=False)
        self._connections.secured(connection, with_tls)
        with_tls.settimeout(deadline.left)  # for all messages of the handshake together
        with_tls.do_handshake()

    def _converse(self, connection: Connection, session: Session, first: Deadline) -> None:
        """Answer requests; a message that is too large is refused by its announced size, and not read."""
        limits, wait, whole = self.limits, first.left, first.left

        def admit(header: int, body: int) -> None:
            self._admit(connection, session, header, body)

        while not self._closing.is_set():
            try:
                request = receive(connection.socket, self.owner.room.most, wait, whole, admit)
            except Refused as error:
                self.owner.log.noted(connection.peer, "refused", str(error))
                send_all(connection.socket, packed(Message({"refused": str(error), "kind": "limit"})), _PARTING)
                return
            connection.spoke = time.monotonic()
            send_all(connection.socket, session.reply(request), limits.message)
            self.owner.room.release(connection)
            connection.spoke, wait, whole = time.monotonic(), limits.idle, limits.message

    def _admit(self, connection: Connection, session: Session, header: int, body: int) -> None:
        """Raise Refused if a message is too large for what has been agreed on, else take the memory that it needs."""
        if not session.said and header > _FIRST:
            raise Refused(f"a first message has at most {_FIRST} bytes, got {header}")
        if body > session.most_bytes:
            raise Refused(f"a message with {body} bytes of numbers; at most {session.most_bytes} are accepted here")
        self.owner.room.hold(connection, _JSON * header + _COPIES * body)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
