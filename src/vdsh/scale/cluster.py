"""Reaching a Ray cluster, or starting one on this machine for as long as it is needed."""

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, NamedTuple

from vdsh.errors import EngineError, InputError, needing

_PATIENCE = 5  # seconds that a cluster has to answer


class Machines(NamedTuple):
    """The machines to work on: a Ray cluster."""

    # `host:port` of the head node of a Ray cluster, "auto" for the cluster of this machine, or
    # None for a new one on all CPUs of this machine.
    address: str | None = None
    # How many processes; None is one for each CPU.
    workers: int | None = None


@contextmanager
def cluster(address: str | None = None) -> Iterator[Any]:
    """Connect to a Ray cluster; gives the module `ray`. A connection that is there is used."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # What matters is raised; the rest is Ray finding fault with its own workers.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    with needing("The engine ray", "ray", "ray"):
        import ray
    connected = ray.is_initialized()
    if not connected:
        _connect(ray, address)
    try:
        # Ray prints what it has to say of dead workers; standard output is for codes.
        with redirect_stdout(sys.stderr):
            yield ray
    finally:
        if not connected:
            ray.shutdown()


def count_workers(ray: Any, workers: int | None) -> int:
    """Say how many workers the cluster has room for, or that it has not room for so many."""
    room = int(ray.cluster_resources().get("CPU", 0))
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1. Got {workers}.")
    if room < (workers or 1):
        raise InputError(
            f"The Ray cluster has {room} CPUs, one a worker. Got workers={workers or 1}."
        )
    return workers or room


def _connect(ray: Any, address: str | None) -> None:
    own = {"address": "local", "include_dashboard": False}
    try:
        if address and ":" in address and "://" not in address:
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), _PATIENCE).close()
        where = own if address is None else {"address": address}
        with _silent():
            ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        if address is None:
            raise
        raise EngineError(
            f"No Ray cluster answers at '{address}'. Start one with `ray start --head`, or leave "
            "out --address to use this machine alone."
        ) from error


@contextmanager
def _silent() -> Iterator[None]:
    """Drop what is written to standard error: Ray tells there which log level it was given."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
