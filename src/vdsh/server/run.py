"""Start the service: the socket, workers, signals, and what a worker sets up for itself."""

import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from uvicorn import Server
from uvicorn.config import STARTUP_FAILURE

from vdsh.errors import FolderError, InputError
from vdsh.server.auth import check_exposure
from vdsh.server.connections import PatientConfig, PatientProtocol
from vdsh.server.limits import Limits
from vdsh.server.log import set_up_log
from vdsh.server.workers import stop_without_parent, supervise
from vdsh.store import open_store

if TYPE_CHECKING:
    from fastapi import FastAPI

BACKLOG = 2048
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


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
    listener = listen(host, port)
    set_up_log(requests=settings.logged)
    if started is not None:
        started(_address(listener), n_documents)
    with listener:
        if workers == 1:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            could_start = run_worker(settings, listener)
        else:
            could_start = _run_workers(settings, listener, workers)
    if not could_start:
        raise FolderError("The service could not start. The lines above say why.")


def listen(host: str, port: int) -> socket.socket:
    """Open the socket, or say why that fails."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:  # getaddrinfo has numbers of its own
        own = isinstance(error, socket.gaierror) or error.errno is None
        reason = error.strerror if own else os.strerror(error.errno or 0)
        raise InputError(
            f"Cannot listen at {host}, port {port}: {reason}. Choose another with --port or --host."
        ) from error
    listener.set_inheritable(True)
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _run_workers(settings: Settings, listener: socket.socket, n_workers: int) -> bool:
    with tempfile.TemporaryDirectory(prefix="vdsh-metrics-") as folder:
        os.environ[METRICS_FOLDER] = folder
        return supervise(_work, (settings, listener), n_workers)


def _work(settings: Settings, listener: socket.socket) -> None:
    stop_without_parent()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if not run_worker(settings, listener):
        sys.exit(STARTUP_FAILURE)


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
        Server(config).run([listener])
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
