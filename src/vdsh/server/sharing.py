"""Workers that share a port: each has a socket of its own, over which the system spreads clients.

All sockets stay open in the first process, so clients of a worker that died wait in its queue. The
other workers look into the queues that are not theirs now and then and take who was left standing.
"""

import asyncio
import os
import socket
import sys
from contextlib import suppress
from threading import Timer
from types import FrameType
from typing import Any

from uvicorn import Server
from uvicorn.config import STARTUP_FAILURE

from vdsh.errors import InputError
from vdsh.server.connections import PatientConfig

BACKLOG = 2048
PATIENCE = 0.05  # seconds that a client stands at the socket of another worker
FIRST = 3  # the number of the first socket that is inherited, as systemd has it
LAST = 5.0  # seconds to give the store back after the last request


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
    sockets: list[socket.socket] = []
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        for number in range(n_sockets):
            one = socket.socket(family)
            sockets.append(one)
            if os.name == "posix":  # on Windows it would take the port of another service
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if number == 0:  # alone: the port must not be shared with another service
                one.bind((host, port))
            if n_sockets > 1:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if number > 0:
                one.bind((host, sockets[0].getsockname()[1]))
        for one in sockets:
            one.listen(BACKLOG)
            one.set_inheritable(True)
    except OSError as error:  # getaddrinfo has numbers of its own
        for one in sockets:
            one.close()
        own = isinstance(error, socket.gaierror) or error.errno is None
        reason = error.strerror if own else os.strerror(error.errno or 0)
        raise InputError(
            f"Cannot listen at {host}, port {port}: {reason}. Choose another with --port or --host."
        ) from error
    return sockets


class SharingServer(Server):
    """A server at one of several sockets; it helps out at the others, and ends in time."""

    config: PatientConfig

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take clients at the first socket, and those left standing at the others.

        uvicorn's own start would give a TLS handshake 60 s, whatever clients are given.
        """
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(STARTUP_FAILURE)
        own, *self._others = sockets or []
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            self._protocol, sock=own, backlog=BACKLOG, **self._tls_options()
        )
        self.servers, self.started = [server], True
        for other in self._others:
            other.setblocking(False)
            loop.add_reader(other, self._wait_for_owner, loop, other)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more clients, and finish with those there are."""
        loop = asyncio.get_running_loop()
        for other in self._others:
            loop.remove_reader(other)
        self._others = []
        self.config.stopping = True
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; and if a thread hangs, without it."""
        super().handle_exit(sig, frame)
        end = Timer((self.config.timeout_graceful_shutdown or 0) + LAST, os._exit, (1,))
        end.daemon = True
        end.start()

    def _wait_for_owner(self, loop: asyncio.AbstractEventLoop, other: socket.socket) -> None:
        loop.remove_reader(other)
        loop.call_later(PATIENCE, self._help_out, loop, other)

    def _help_out(self, loop: asyncio.AbstractEventLoop, other: socket.socket) -> None:
        if other not in self._others:
            return
        try:
            while True:
                client, _ = other.accept()
                client.setblocking(False)
                task = loop.create_task(self._take(loop, client))
                self.server_state.tasks.add(task)
                task.add_done_callback(self.server_state.tasks.discard)
        except OSError:  # nobody is left
            loop.add_reader(other, self._wait_for_owner, loop, other)

    async def _take(self, loop: asyncio.AbstractEventLoop, client: socket.socket) -> None:
        with suppress(OSError):  # the client speaks no TLS, or went away
            await loop.connect_accepted_socket(self._protocol, client, **self._tls_options())

    def _protocol(self) -> Any:
        make: Any = self.config.http_protocol_class
        return make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    def _tls_options(self) -> dict[str, Any]:
        context = self.config.ssl
        return {
            "ssl": context,
            "ssl_handshake_timeout": self.config.client_seconds if context else None,
        }
