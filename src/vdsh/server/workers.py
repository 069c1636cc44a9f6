"""Several worker processes: started, watched, replaced when they die, stopped together."""

import logging
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from socket import socket
from threading import Event, Thread
from typing import Any

from uvicorn.config import STARTUP_FAILURE

TICK = 0.2  # seconds until a signal is seen
LEAST_LIFE = 1.0  # seconds; a worker that dies sooner is replaced after a pause
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where workers leave their numbers; empty: nowhere
NUMBERS = ("counter", "histogram", "gauge_livesum")  # the files of a worker, as Prometheus names it
ROOM = 2**18  # bytes of such a file; one that grew on a full disk would kill its worker

log = logging.getLogger("vdsh.server")


def supervise(
    work: Callable[..., None],
    arguments: tuple[Any, ...],
    n_workers: int,
    sockets: list[socket],
    tick: Callable[[], None] | None = None,
) -> bool:
    """Run `work(place, *arguments)` in processes until SIGTERM or SIGINT; False if none can start.

    Each has a place, a number from 0 on, which its replacement takes over. The sockets are closed
    when it stops, before the workers have finished. `tick` is called now and then, so that what a
    replacement is given is of now. uvicorn's own supervisor (0.54) replaces workers as well, but
    they outlive a parent that is killed and keep its port, 64 connections were spread 6 to 58, and
    a client that comes while it stops waits 1.5 s to be reset instead of being refused at once.
    """
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    could_start, replaced = True, set()
    workers = [_start(work, place, arguments) for place in range(n_workers)]
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
            workers[place], born = _start(work, place, arguments), time.monotonic()
            replaced.add(place)
    for one in sockets:
        one.close()
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()
    return could_start


@contextmanager
def room_for_numbers(n_workers: int) -> Iterator[None]:
    """Make the files in which workers count, whole from the beginning; where they fit."""
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory
        try:
            folder = stack.enter_context(made(prefix="vdsh-metrics-", ignore_cleanup_errors=True))
            for name in NUMBERS:
                for place in range(n_workers):
                    Path(folder, f"{name}_{place}.db").write_bytes(bytes(ROOM))
        except OSError as error:
            log.warning("There is no space for metrics, so /metrics answers 503: %s.", error)
            stack.close()
            folder = ""
        os.environ[FOLDER] = folder
        yield


def stop_without_parent() -> None:
    """Stop this worker when the process that watches over it is gone."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=watch, daemon=True).start()


def _start(work: Callable[..., None], place: int, arguments: tuple[Any, ...]) -> BaseProcess:
    # Spawned, not forked: threads and compiled kernels do not survive a fork.
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(place, *arguments))
    worker.start()
    return worker
