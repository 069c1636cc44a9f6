"""Whether the store has moved away from its model, for the numbers of the service."""

import time
from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily

from vdsh.errors import VdshError
from vdsh.model.drift import Drift
from vdsh.store import Store

EVERY = 600.0  # seconds between two looks at the newest documents: a tenth of a second each


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
