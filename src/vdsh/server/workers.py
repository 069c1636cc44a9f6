"""Several worker processes: started, watched, replaced when they die, stopped together."""

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from threading import Event, Thread
from typing import Any

from uvicorn.config import STARTUP_FAILURE

TICK = 0.2  # seconds until a signal is seen
LEAST_LIFE = 1.0  # seconds; a worker that dies sooner is replaced after a pause

log = logging.getLogger("vdsh.server")


def supervise(work: Callable[..., None], arguments: tuple[Any, ...], n_workers: int) -> bool:
    """Run `work(*arguments)` in processes until SIGTERM or SIGINT; return False if none can start.

    uvicorn has such a supervisor; it talks to its workers through pipes, and where one is killed
    in the middle of a word it waits in vain, and neither replaces it nor stops.
    """
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    started = True
    workers = [_start(work, arguments) for _ in range(n_workers)]
    born = time.monotonic()
    while started and not stop.is_set():
        wait([worker.sentinel for worker in workers], timeout=TICK)
        for i, worker in enumerate(workers):
            if worker.is_alive() or stop.is_set():
                continue
            if worker.exitcode == STARTUP_FAILURE:
                started = False
                break
            log.warning("Worker %s ended (%s). It is replaced.", worker.pid, worker.exitcode)
            stop.wait(max(0.0, LEAST_LIFE - (time.monotonic() - born)))
            workers[i], born = _start(work, arguments), time.monotonic()
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()
    return started


def stop_without_parent() -> None:
    """Stop this worker when the process that watches over it is gone."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=watch, daemon=True).start()


def _start(work: Callable[..., None], arguments: tuple[Any, ...]) -> BaseProcess:
    # Spawned, not forked: threads and compiled kernels do not survive a fork.
    worker = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    worker.start()
    return worker
