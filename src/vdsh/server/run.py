"""Start the service: the socket, workers, signals, and what a worker sets up for itself."""

import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from uvicorn import Server
from uvicorn.config import STARTUP_FAILURE

from vdsh.errors import FolderError, InputError
from vdsh.server.auth import check_exposure
from vdsh.server.connections import PatientConfig, PatientProtocol
from vdsh.server.limits import Limits
from vdsh.server.log import set_up_log
from vdsh.server.workers import room_for_numbers, stop_without_parent, supervise
from vdsh.store import open_store

if TYPE_CHECKING:
    from fastapi import FastAPI

BACKLOG = 2048
LAST = 5.0  # seconds to give the store back after the last request


class Settings(NamedTuple):
    """What a worker needs to know."""

    store: str
    writable: bool = False
    token: str | None = None
    limits: Limits = Limits()
    logged: bool = True


def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    started: Callable[[str, int], None] | None = None,
) -> None:
    """Serve a store until the process is told to stop; running requests are finished.

    Parameters
    ----------
    settings : Settings
    host, port
        Where to listen; without a token only names of this machine, port 0 is any free one.
    workers : int, default=1
        Processes; each opens the store.
    started : callable, optional
        Called with the address and the number of documents when requests are taken.
    """
    check_exposure(host, settings.token)
    with open_store(settings.store) as store:
        n_documents = store.count()
    set_up_log(requests=settings.logged)
    with bind(host, port) as taken:
        address, port = _address(taken), taken.getsockname()[1]
        announce = partial(started or _nothing, address, n_documents)
        if workers == 1:
            taken.listen(BACKLOG)
            announce()
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            could_start = run_worker(settings, taken)
        else:
            # The port is ours now; from here on our own workers may share it.
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            is_started = partial(_is_started, taken, announce)
            with room_for_numbers(workers):
                could_start = supervise(_work, (settings, host, port), workers, is_started)
    if not could_start:
        raise FolderError("The service could not start. The lines above say why.")


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Take a port, alone or together with other sockets of ours, or say why that fails."""
    taken = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        taken = socket.socket(family)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        taken.bind((host, port))
        return taken
    except OSError as error:  # getaddrinfo has numbers of its own
        if taken is not None:
            taken.close()
        own = isinstance(error, socket.gaierror) or error.errno is None
        reason = error.strerror if own else os.strerror(error.errno or 0)
        raise InputError(
            f"Cannot listen at {host}, port {port}: {reason}. Choose another with --port or --host."
        ) from error


def _nothing(address: str, n_documents: int) -> None:
    pass


def _is_started(taken: socket.socket, announce: Callable[[], None]) -> bool:
    """Announce the service when a worker takes connections."""
    with socket.socket(taken.family) as probe:
        probe.settimeout(1)
        if probe.connect_ex(taken.getsockname()):
            return False
    announce()
    return True


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _work(place: int, settings: Settings, host: str, port: int) -> None:
    """Serve at a socket of this worker's own: the system spreads connections over them all."""
    from vdsh.server.metrics import share_numbers

    stop_without_parent()
    share_numbers(place)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if not run_worker(settings, bind(host, port, shared=True)):
        sys.exit(STARTUP_FAILURE)


class _BoundedServer(Server):
    """A server that ends in time, whatever its threads are at."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; and if that takes too long, at once."""
        super().handle_exit(sig, frame)
        end = Timer((self.config.timeout_graceful_shutdown or 0) + LAST, os._exit, (1,))
        end.daemon = True
        end.start()


def run_worker(settings: Settings, listener: socket.socket) -> bool:
    """Serve in this process until it is told to stop; return False where it cannot start."""
    set_up_log(requests=settings.logged)
    limits = settings.limits
    config = PatientConfig(
        partial(_make_app, settings),
        factory=True,
        http=PatientProtocol,
        ws="none",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(limits.seconds + limits.client_seconds) + 1,
    )
    config.client_seconds = limits.client_seconds
    # uvicorn raises the signal that stopped it again when all is done; that is no error.
    try:
        _BoundedServer(config).run([listener])
    except KeyboardInterrupt:
        return True
    except SystemExit as exit:
        return exit.code != STARTUP_FAILURE
    return True


def _make_app(settings: Settings) -> "FastAPI":
    from threadpoolctl import threadpool_limits

    from vdsh.pipeline import TextHasher  # noqa: F401  (loads the libraries that are limited)
    from vdsh.server.app import create_app

    # A single text is a small product: a second BLAS thread that is busy elsewhere delays it.
    threadpool_limits(1)
    options = settings._asdict()
    return create_app(options.pop("store"), **options)
