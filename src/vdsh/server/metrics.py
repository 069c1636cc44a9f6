"""Numbers for Prometheus; those of several workers are added up."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from starlette.types import Scope

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where workers leave their numbers; set before we are imported
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """What one application counts."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "vdsh_requests",
            "Requests by path and status.",
            ["method", "path", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "vdsh_request_seconds",
            "Time to answer, by path.",
            ["path"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self.running = Gauge(
            "vdsh_running_requests",
            "Requests that are being answered.",
            multiprocess_mode="livesum",
            registry=self._registry,
        )

    def note(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request; paths are those of the routes, so ids make no new series."""
        path = getattr(scope.get("route"), "path", "other")
        self._requests.labels(scope["method"], path, status).inc()
        self._seconds.labels(path).observe(seconds)

    def text(self, n_documents: int) -> bytes:
        """Write all numbers in Prometheus' format."""
        registry = self._registry
        folder = os.environ.get(FOLDER)
        if folder:
            _forget_dead(Path(folder))
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry) + generate_latest(_documents(n_documents))


class _Documents(Collector):
    def __init__(self, n_documents: int) -> None:
        self.n_documents = n_documents

    def collect(self) -> Iterator[Any]:
        yield GaugeMetricFamily("vdsh_documents", "Documents in the store.", self.n_documents)


def _documents(n_documents: int) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Documents(n_documents))
    return registry


def _forget_dead(folder: Path) -> None:
    """Take the running requests of killed workers out of the sum."""
    for file in folder.glob("gauge_live*_*.db"):
        process = int(file.stem.rpartition("_")[2])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            mark_process_dead(process)  # type: ignore[no-untyped-call]
