"""ShardServer: an owner on a port."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from types import TracebackType

from bmrm._errors import DataError
from bmrm.owners.guard import Refused
from bmrm.owners.owner import Owner
from bmrm.owners.tls import TLS, is_here
from bmrm.owners.wire import MOST_BYTES, Closed, Message, WireError, packed, receive

_HANDSHAKE, _IDLE = 10.0, 3600.0  # seconds
_MOST_CONNECTIONS = 8


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
    most_bytes : int
        The largest message accepted.

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
        most_bytes: int = MOST_BYTES,
    ) -> None:
        if not (is_here(host) or tls is not None or insecure):
            raise DataError(
                f"host {host} can be reached from other machines: give a certificate and its key, or say insecure"
            )
        self.owner, self.most_bytes = owner, most_bytes
        self._context = None if tls is None else tls.of_owner()
        try:
            self._listening = socket.create_server((host, port), family=_family(host))
        except (OSError, OverflowError) as error:
            raise DataError(f"{host}:{port}: cannot be listened at ({error})") from error
        self._listening.settimeout(0.2)  # so often it is looked whether to close
        self._connections: set[socket.socket] = set()
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
            with self._lock:
                if len(self._connections) >= _MOST_CONNECTIONS:
                    connection.close()
                    continue
                self._connections.add(connection)
            thread = threading.Thread(target=self._attend, args=(connection, f"{peer[0]}:{peer[1]}"), daemon=True)
            with self._lock:
                self._threads.add(thread)
            thread.start()

    def close(self) -> None:
        """Listen no more, end all connections and wait for their threads."""
        self._closing.set()
        self._listening.close()
        with self._lock:
            connections, threads = list(self._connections), list(self._threads)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(timeout=_HANDSHAKE)

    def __enter__(self) -> ShardServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _attend(self, connection: socket.socket, peer: str) -> None:
        """Answer one connection to its end; what goes wrong is in the log."""
        secured = connection
        try:
            connection.settimeout(_HANDSHAKE)
            if self._context is not None:
                secured = self._context.wrap_socket(connection, server_side=True)
            secured.settimeout(_IDLE)
            self._converse(secured, peer)
        except Closed:
            pass
        except (WireError, OSError, ssl.SSLError) as error:
            self.owner.log.noted(peer, "disconnected", str(error))
        finally:
            secured.close()
            with self._lock:
                self._connections.discard(connection)
                self._threads.discard(threading.current_thread())

    def _converse(self, connection: socket.socket, peer: str) -> None:
        try:
            with self.owner.session(peer) as session:
                while not self._closing.is_set():
                    connection.sendall(session.reply(receive(connection, self.most_bytes)))
        except Refused as error:
            receive(connection, self.most_bytes)
            connection.sendall(packed(Message({"refused": str(error), "kind": "request", "seconds": 0.0})))


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
