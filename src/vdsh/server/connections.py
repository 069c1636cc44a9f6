"""Connections: shared by workers, slow clients given up, large heads refused.

Bodies that do not arrive, or are too large, are the matter of `guard`, which can still answer. A
request's head is gathered before that, so its limits are here.

Each worker has a socket of its own at the port, over which the system spreads clients. All sockets
stay open in the first process, so clients of a worker that died wait in its queue. The other
workers look into the queues that are not theirs now and then and take who was left standing.
"""

import asyncio
import os
import socket
import sys
from contextlib import suppress
from functools import partial
from threading import Timer
from types import FrameType
from typing import Any

import orjson
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from vdsh.errors import InputError

HEAD, READING, LEAVING = "head", "reading", "leaving"
GRACE = 1.0  # seconds in which a request that is on its way is taken when the service stops
LINGER = 2.0  # seconds to read on after a head that is too large, so that the client sees why
MOST_HEADERS = 100
MOST_BYTES = 2**16  # of a head, and of what comes along with a body
SLICE = 2**12  # bytes of a head that are parsed at a time
CHUNK_COST = 8  # bytes that may come along with each byte of a body
MOST_QUEUED = 50  # requests that a client sends ahead, before the answers to those before
MOST_REQUESTS = 2000  # on one connection; then its client comes back, perhaps to a newer worker
BACKLOG = 2048
PATIENCE = 0.05  # seconds that a client stands at the socket of another worker
FIRST = 3  # the number of the first socket that is inherited, as systemd has it
LAST = 5.0  # seconds to give the store back after the last request
TOO_LARGE = (
    f"The head of a request must be at most {MOST_BYTES:,} bytes with {MOST_HEADERS} headers."
)


class PatientConfig(uvicorn.Config):
    """Settings of uvicorn, how long a client may take, and whether the service stops."""

    client_seconds: float = 20.0
    stopping: bool = False


class PatientProtocol(HttpToolsProtocol):
    """HTTP that does not wait for ever, and does not gather more than it should."""

    config: PatientConfig

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._n_requests = 0
        self._deaf = False  # nothing more is read
        self._in_body = False  # of a request, or in the trailers behind it
        self._n_bytes = 0  # of this request, less what its body accounts for
        self._n_head = 0  # bytes of the parts of this request's head

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a request soon."""
        super().connection_made(transport)
        self._expect(HEAD, self.config.client_seconds)
        if self.config.stopping:  # it stood at the socket until now
            self.shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        for what in list(self._timers):
            self._came(what)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Expect the rest of a request's head soon after its beginning.

        A head is parsed slice by slice: its end begins a new count, so a large one that came all
        at once would not be noticed. A body is taken whole.
        """
        if self._deaf:
            return
        if self.cycle is None or self.cycle.response_complete:
            self._expect(HEAD, self.config.client_seconds)
        while data and not self._deaf and not self.transport.is_closing():
            size = len(data) if self._in_body else SLICE
            self._n_bytes += min(size, len(data))
            super().data_received(data[:size])
            if self._n_bytes > MOST_BYTES:
                self._refuse()
            data = data[size:]

    def on_message_begin(self) -> None:
        """Count the requests of a connection; it ends after those that are queued, if too many."""
        if len(self.pipeline) >= MOST_QUEUED:
            self._deaf, self.cycle.keep_alive = True, False
            raise ValueError("too many requests sent ahead")  # ends the parsing of what has come
        super().on_message_begin()
        self._n_requests += 1
        self._n_head = len("  HTTP/1.1\r\n\r\n")

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer after a body, while there are few."""
        if len(self.headers) >= MOST_HEADERS:
            self._refuse()
            raise ValueError(TOO_LARGE)  # ends the parsing of what has come
        self._count_head(len(name) + len(value) + len(": \r\n"))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start with the request."""
        self._count_head(len(self.parser.get_method()))
        self._came(HEAD)
        super().on_headers_complete()
        self._in_body = True
        if self._n_requests >= MOST_REQUESTS or self.config.stopping:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._n_bytes = max(0, self._n_bytes - CHUNK_COST * len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Begin to count anew."""
        self._n_bytes, self._in_body = 0, False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, unless the request was refused before."""
        if not self._deaf:
            super().send_400_response(msg)

    def shutdown(self) -> None:
        """Answer what was asked and what is on its way, then hang up.

        A connection that is closed at once may have a request in it already, which would be lost.
        """
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(GRACE, self._leave)
        else:
            self.cycle.keep_alive = False

    def _leave(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def pause_writing(self) -> None:
        """Expect the client to read soon: it has not taken what was sent."""
        super().pause_writing()
        self._expect(READING, self.config.client_seconds)

    def resume_writing(self) -> None:
        """Go on, since the client reads."""
        self._came(READING)
        super().resume_writing()

    def _count_head(self, n_bytes: int) -> None:
        self._n_head += n_bytes
        if self._n_head > MOST_BYTES:
            self._refuse()
            raise ValueError(TOO_LARGE)  # ends the parsing of what has come

    def _refuse(self) -> None:
        """Answer 431 and hang up; what still comes is thrown away.

        Requests sent before this one are answered first, and then there is nothing but the end.
        """
        if self.transport.is_closing() or self._deaf:
            return
        self._deaf = True
        is_asked = self.cycle is not None and not self.cycle.response_complete
        if is_asked and not self._in_body:
            self.cycle.keep_alive = False
            return
        self._expect(LEAVING, LINGER)
        if self._in_body and self.cycle.response_started:
            self.transport.close()
            return
        if self._in_body:  # what runs has nobody to answer any more
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        content = orjson.dumps({"error": TOO_LARGE, "code": "head_too_large"})
        head = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        self.transport.write(head.encode() + content)
        if self.transport.can_write_eof():  # not with TLS
            self.transport.write_eof()

    def _expect(self, what: str, seconds: float) -> None:
        if what not in self._timers:
            self._timers[what] = self.loop.call_later(seconds, self.transport.abort)

    def _came(self, what: str) -> None:
        if what in self._timers:
            self._timers.pop(what).cancel()


def inherited() -> list[socket.socket]:
    """Return the sockets that systemd, or whoever else started this process, opened for it.

    They outlive the process: who comes between two of them waits, and is not refused.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return []
    try:
        n_sockets = int(os.environ.get("LISTEN_FDS", "0"))
        sockets = [socket.socket(fileno=FIRST + i) for i in range(n_sockets)]
    except (OSError, ValueError) as error:
        raise InputError(f"LISTEN_FDS does not name sockets that are open: {error}.") from error
    if any(one.family not in (socket.AF_INET, socket.AF_INET6) for one in sockets):
        raise InputError("A socket that the service is given must be one of TCP.")
    return sockets


def listen(host: str, port: int, n_sockets: int) -> list[socket.socket]:
    """Open sockets at one port, or say why that fails."""
    if n_sockets > 1 and sys.platform != "linux":  # others do not share a port evenly
        raise InputError(f"Several workers need Linux. Got {n_sockets}: use --workers 1.")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        how: Any = {"family": family, "backlog": BACKLOG}
        # Alone: the port must not be shared with another service.
        sockets = [socket.create_server((host, port), **how)]
        if n_sockets > 1:
            sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            at = (host, sockets[0].getsockname()[1])
            for _ in range(1, n_sockets):
                sockets.append(socket.create_server(at, reuse_port=True, **how))
    except OSError as error:
        why = (error.strerror or "").partition(" (while")[0]  # it names the address again
        raise InputError(
            f"Cannot listen at {host}, port {port}: {why}. Choose another with --port or --host."
        ) from error
    for one in sockets:
        one.set_inheritable(True)
    return sockets


class SharingServer(uvicorn.Server):
    """A server at one of several sockets; it helps out at the others, and ends in time."""

    config: PatientConfig

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take clients at the first socket, and those left standing at the others.

        uvicorn's own start would give a TLS handshake 60 s, whatever clients are given.
        """
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(STARTUP_FAILURE)
        config, self._loop = self.config, asyncio.get_running_loop()
        make: Any = config.http_protocol_class
        parts = {"server_state": self.server_state, "app_state": self.lifespan.state}
        self._protocol = partial(make, config=config, **parts)
        patience = config.client_seconds if config.ssl else None
        self._tls: Any = {"ssl": config.ssl, "ssl_handshake_timeout": patience}
        own, *self._others = sockets or []
        listening = {"sock": own, "backlog": BACKLOG, **self._tls}
        self.servers = [await self._loop.create_server(self._protocol, **listening)]
        self.started = True
        for other in self._others:
            other.setblocking(False)
            self._loop.add_reader(other, self._wait_for_owner, other)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more clients, and finish with those there are."""
        for other in self._others:
            self._loop.remove_reader(other)
        self._others = []
        self.config.stopping = True
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; and if a thread hangs, without it."""
        super().handle_exit(sig, frame)
        end = Timer((self.config.timeout_graceful_shutdown or 0) + LAST, os._exit, (1,))
        end.daemon = True
        end.start()

    def _wait_for_owner(self, other: socket.socket) -> None:
        self._loop.remove_reader(other)
        self._loop.call_later(PATIENCE, self._help_out, other)

    def _help_out(self, other: socket.socket) -> None:
        if other not in self._others:
            return
        try:
            while True:
                client, _ = other.accept()
                client.setblocking(False)
                task = self._loop.create_task(self._take(client))
                self.server_state.tasks.add(task)
                task.add_done_callback(self.server_state.tasks.discard)
        except OSError:  # nobody is left
            self._loop.add_reader(other, self._wait_for_owner, other)

    async def _take(self, client: socket.socket) -> None:
        with suppress(OSError):  # the client speaks no TLS, or went away
            await self._loop.connect_accepted_socket(self._protocol, client, **self._tls)
