"""Numbers for Prometheus, those of several workers added up."""

import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.values import MultiProcessValue, MutexValue
from starlette.types import Scope

from vdsh.errors import WriteError

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
METHODS = ("GET", "HEAD", "POST", "DELETE")
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where workers leave their numbers; empty: nowhere
NUMBERS = ("counter", "histogram", "gauge_livesum")  # the files of a worker, as Prometheus names it
ROOM = 2**18  # bytes of such a file; one that grew on a full disk would kill its worker

log = logging.getLogger("vdsh.server")


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


def share_numbers(slot: int) -> None:
    """Count in the files of this worker's place, made before; those of a dead one too."""
    shared = bool(os.environ.get(FOLDER))
    values.ValueClass = MultiProcessValue(lambda: slot) if shared else MutexValue  # type: ignore


class Metrics:
    """What one application counts."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        own: Any = {"registry": self._registry}
        labels = ["method", "path", "status"]
        self._requests = Counter("vdsh_requests", "Requests by path and status.", labels, **own)
        about, timed = "Time to answer, by path.", own | {"buckets": BUCKETS}
        self._seconds = Histogram("vdsh_request_seconds", about, ["path"], **timed)
        about, added = "Requests that are being answered.", own | {"multiprocess_mode": "livesum"}
        self.running = Gauge("vdsh_running_requests", about, **added)
        self.running.set(0)  # a worker goes on with the numbers of the one it replaces

    def note(self, scope: Scope, method: str, status: int, seconds: float) -> None:
        """Count a request; paths are those of the routes, so ids make no new series."""
        path = getattr(scope.get("route"), "path", "other")
        if "store" in scope and path != "other":
            path = f"/v1/stores/{scope['store']}{path.removeprefix('/v1')}"
        self._requests.labels(method if method in METHODS else "other", path, status).inc()
        self._seconds.labels(path).observe(seconds)

    def text(self, stores: Mapping[str, int]) -> bytes:
        """Write all numbers in Prometheus' format, with the documents of each store."""
        registry = self._registry
        folder = os.environ.get(FOLDER)
        if folder is not None:
            if not os.path.isdir(folder):
                raise WriteError("There is no space for metrics in the temporary folder.")
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry) + _documents(stores).encode()


def _documents(stores: Mapping[str, int]) -> str:
    """Write a gauge: one of `prometheus_client` would count in the files of this worker."""
    lines = ["# HELP vdsh_documents Documents in the store.", "# TYPE vdsh_documents gauge"]
    for name, number in stores.items():
        labels = f'{{store="{name}"}}' if len(stores) > 1 else ""
        lines.append(f"vdsh_documents{labels} {float(number)}")
    return "\n".join([*lines, ""])
