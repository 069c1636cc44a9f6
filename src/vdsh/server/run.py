"""Start the service: certificate, workers that are watched, signals, and their log.

The log is JSON lines on standard error, one a request; never a token, a text or a query string.
"""

import logging
import multiprocessing
import os
import signal
import socket
import ssl
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from threading import Event, Thread
from typing import Any, NamedTuple

import orjson
from uvicorn.config import STARTUP_FAILURE

from vdsh.errors import FolderError, InputError, MissingFileError
from vdsh.search.index import check_device
from vdsh.server import connections
from vdsh.server.bodies import Limits
from vdsh.server.metrics import room_for_numbers, share_numbers
from vdsh.server.tokens import Tokens, check_exposure
from vdsh.store import open_store

NOT_YET_VALID, EXPIRED = 9, 10  # OpenSSL's numbers of what is wrong with a certificate
TICK = 0.2  # seconds until a signal is seen
LEAST_LIFE = 1.0  # seconds; a worker that dies sooner is replaced after a pause

log = logging.getLogger("vdsh.server")
Started = Callable[[str, dict[str, int]], None]  # is told the address, and documents of each store


def check_tls(cert: str | None, key: str | None) -> tuple[str, str] | None:
    """Return the two files where both are given and fit together; None where neither is."""
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise InputError("TLS needs a certificate and its key: give --tls-cert and --tls-key.")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # A key with a password would ask for it at the terminal of each worker.
        server.load_cert_chain(cert, key, password=lambda: "")
    except FileNotFoundError as error:
        raise MissingFileError(f"No file '{cert}' or no file '{key}'.") from error
    except ssl.SSLError as error:
        raise InputError(
            f"'{cert}' and '{key}' are not a certificate and its key in PEM format, without a "
            f"password: {error.reason or error}."
        ) from error
    except OSError as error:
        raise InputError(f"Cannot read '{cert}' or '{key}': {error.strerror}.") from error
    _check_dates(server, cert)
    return cert, key


def _check_dates(server: ssl.SSLContext, cert: str) -> None:
    """Raise where clients would refuse a certificate today: let one shake hands with itself."""
    client = ssl.create_default_context()
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # whoever vouches for it does not matter
    client.load_verify_locations(cert)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asks = client.wrap_bio(to_client, to_server)
    answers = server.wrap_bio(to_server, to_client, server_side=True)
    try:
        for end in (asks, answers, asks, answers):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in (NOT_YET_VALID, EXPIRED):
            raise InputError(
                f"Clients will refuse '{cert}': {error.verify_message}. Renew it first."
            ) from None


class Settings(NamedTuple):
    """What a worker needs to know: what `create_app` takes, and the files of TLS."""

    store: dict[str, str]  # by name
    writable: bool = False
    token: Tokens | None = None
    limits: Limits = Limits()
    logged: bool = True
    tls: tuple[str, str] | None = None  # a certificate and its key
    device: str = "cpu"  # where codes are searched


def serve(settings: Settings, host: str, port: int, workers: int, started: Started) -> None:
    """Serve stores until the process is told to stop; running requests are finished.

    Each worker is a process that opens the stores. Where this one was given sockets, as systemd
    does, they are used instead of `host` and `port`.
    """
    given = connections.inherited()
    check_exposure(given[0].getsockname()[0] if given else host, settings.token)
    check_device(settings.device)
    n_documents = {}
    for name, path in settings.store.items():  # here, not first in the workers
        with open_store(path, create=False) as store:
            n_documents[name] = store.count()
    sockets = given or connections.listen(host, port, workers)
    set_up_log(requests=settings.logged)
    host, port = sockets[0].getsockname()[:2]
    at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    started(f"{'https' if settings.tls else 'http'}://{at}", n_documents)
    if workers == 1:
        could_start = run_worker(settings, sockets)
    else:
        with room_for_numbers(workers):
            tick = settings.token.look_again if settings.token else None
            work = partial(_work, settings=settings, sockets=sockets)
            could_start = supervise(work, workers, sockets, tick)
    for one in sockets:
        one.close()
    if not could_start:
        raise FolderError("The service could not start. The lines above say why.")


def supervise(
    work: Callable[[int], None],
    n_workers: int,
    sockets: list[socket.socket],
    tick: Callable[[], None] | None = None,
) -> bool:
    """Run `work(place)` in processes until SIGTERM or SIGINT; False if none can start.

    Each has a place, a number from 0 on, which its replacement takes over. The sockets are closed
    when it stops, before the workers have finished. `tick` is called now and then, so that what a
    replacement is given is of now. docs/decisions.md says why it is not uvicorn's supervisor.
    """
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    could_start, replaced = True, set()
    workers = [_start(work, place) for place in range(n_workers)]
    born = time.monotonic()
    while could_start and not stop.is_set():
        wait([worker.sentinel for worker in workers], timeout=TICK)
        if tick is not None:
            tick()
        for place, worker in enumerate(workers):
            if worker.is_alive() or stop.is_set():
                continue
            if worker.exitcode == STARTUP_FAILURE and place not in replaced:
                could_start = False  # later the others go on, and it is tried again
                break
            log.warning("Worker %s ended (%s). It is replaced.", worker.pid, worker.exitcode)
            stop.wait(max(0.0, LEAST_LIFE - (time.monotonic() - born)))
            workers[place], born = _start(work, place), time.monotonic()
            replaced.add(place)
    for one in sockets:
        one.close()
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()
    return could_start


def _start(work: Callable[[int], None], place: int) -> BaseProcess:
    # Spawned, not forked: threads and compiled kernels do not survive a fork.
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(place,))
    worker.start()
    return worker


def _stop_without(parent: Any) -> None:
    """Stop this worker when the process that watches over it is gone."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _work(place: int, settings: Settings, sockets: list[socket.socket]) -> None:
    parent = multiprocessing.parent_process()
    Thread(target=_stop_without, args=(parent,), daemon=True).start()
    share_numbers(place)
    if not run_worker(settings, [*sockets[place:], *sockets[:place]]):
        sys.exit(STARTUP_FAILURE)


def run_worker(settings: Settings, sockets: list[socket.socket]) -> bool:
    """Serve at the first socket until told to stop; return False where it cannot start."""
    set_up_log(requests=settings.logged)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    limits, (cert, key) = settings.limits, settings.tls or (None, None)
    config = connections.PatientConfig(
        partial(_make_app, settings),
        factory=True,
        http=connections.PatientProtocol,
        ws="none",
        backlog=connections.BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(limits.seconds + limits.client_seconds) + 1,
        ssl_certfile=cert,
        ssl_keyfile=key,
    )
    config.client_seconds = limits.client_seconds
    # uvicorn raises the signal that stopped it again when all is done; that is no error.
    try:
        connections.SharingServer(config).run(sockets)
    except KeyboardInterrupt:
        return True
    except SystemExit as exit:
        return exit.code != STARTUP_FAILURE
    return True


def _make_app(settings: Settings) -> Any:
    from threadpoolctl import threadpool_limits

    from vdsh.server.app import create_app  # loads numpy, whose library is limited

    # A single text is a small product: a second BLAS thread that is busy elsewhere delays it.
    threadpool_limits(1)
    return create_app(**{name: one for name, one in settings._asdict().items() if name != "tls"})


class JsonLines(logging.Formatter):
    """Write a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Give the line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, Any] = {"time": time, "level": record.levelname.lower()}
        if isinstance(record.args, dict):
            fields |= record.args
        else:
            fields["message"] = record.getMessage()
        if record.exc_info:
            fields["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return orjson.dumps(fields, default=str).decode()


def set_up_log(*, requests: bool) -> None:
    """Send what the service and uvicorn have to say to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    # What uvicorn warns of is what clients send: a flood must not fill the log.
    for name, level in (("vdsh", logging.INFO), ("uvicorn", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    logging.getLogger("vdsh.access").disabled = not requests
