"""Numbers for Prometheus, those of several workers added up, and whether stores have drifted."""

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    values,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.values import MultiProcessValue, MutexValue
from starlette.types import Scope

from vdsh.errors import VdshError, WriteError
from vdsh.model.drift import Drift
from vdsh.server.workers import FOLDER
from vdsh.store import Store

EVERY = 600.0  # seconds between two looks at the newest documents: a tenth of a second each

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
METHODS = ("GET", "HEAD", "POST", "DELETE")


class DriftWatch:
    """Remembers what `Store.drift` said a short time ago."""

    def __init__(self) -> None:
        self._found: Drift | None = None
        self._next = 0.0

    def look(self, store: Store) -> Drift | None:
        """Return whether the newest documents have moved; None where the store cannot tell."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY
            try:
                self._found = store.drift()
            except VdshError:  # such as an engine that does not know which documents are new
                self._found = None
        return self._found


def gauges(drifts: Mapping[str, Drift | None]) -> Iterator[GaugeMetricFamily]:
    """Write each measure for the documents of then and now, and whether they differ."""
    told = {name: drift for name, drift in drifts.items() if drift and drift.drifted is not None}
    if not told:
        return
    store = ["store"] if len(drifts) > 1 else []
    moved = GaugeMetricFamily(
        "vdsh_drifted", "Whether the newest documents moved away from the model.", labels=store
    )
    values = GaugeMetricFamily(
        "vdsh_drift_value", "See vdsh drift.", labels=[*store, "measure", "documents"]
    )
    effects = GaugeMetricFamily(
        "vdsh_drift_effect", "How far those are apart: 0 to 1.", labels=[*store, "measure"]
    )
    for name, drift in told.items():
        where = [name] if store else []
        moved.add_metric(where, float(bool(drift.drifted)))
        for kind, measure in drift.measures.items():
            values.add_metric([*where, kind, "learned"], measure.learned)
            values.add_metric([*where, kind, "recent"], measure.recent)
            effects.add_metric([*where, kind], measure.effect)
    yield from (moved, values, effects)


def share_numbers(slot: int) -> None:
    """Count in the files of this worker's place, which `workers` made; those of a dead one too."""
    shared = bool(os.environ.get(FOLDER))
    values.ValueClass = MultiProcessValue(lambda: slot) if shared else MutexValue  # type: ignore


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

        self.drift = defaultdict[str, DriftWatch](DriftWatch)  # of each store
        self.running.set(0)  # a worker goes on with the numbers of the one it replaces

    def note(self, scope: Scope, method: str, status: int, seconds: float) -> None:
        """Count a request; paths are those of the routes, so ids make no new series."""
        path = getattr(scope.get("route"), "path", "other")
        if "store" in scope and path != "other":
            path = f"/v1/stores/{scope['store']}{path.removeprefix('/v1')}"
        self._requests.labels(method if method in METHODS else "other", path, status).inc()
        self._seconds.labels(path).observe(seconds)

    def text(self, stores: Mapping[str, tuple[int, Drift | None]]) -> bytes:
        """Write all numbers in Prometheus' format, with documents and drift of each store."""
        registry = self._registry
        folder = os.environ.get(FOLDER)
        if folder is not None:
            if not os.path.isdir(folder):
                raise WriteError("There is no room for numbers in the temporary folder.")
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry) + generate_latest(_documents(stores))


class _Documents(Collector):
    def __init__(self, stores: Mapping[str, tuple[int, Drift | None]]) -> None:
        self.stores = stores

    def collect(self) -> Iterator[Any]:
        several = len(self.stores) > 1
        labels = ["store"] if several else []
        gauge = GaugeMetricFamily("vdsh_documents", "Documents in the store.", labels=labels)
        for name, (number, _) in self.stores.items():
            gauge.add_metric([name] if several else [], number)
        yield gauge
        yield from gauges({name: drift for name, (_, drift) in self.stores.items()})


def _documents(stores: Mapping[str, tuple[int, Drift | None]]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Documents(stores))
    return registry
