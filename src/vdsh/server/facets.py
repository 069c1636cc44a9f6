"""Labels and small fields of a store, with how many documents have each value."""

import time
from collections import Counter
from typing import Any

from vdsh.store import Store
from vdsh.store.where import RESERVED

SAMPLE = 300  # documents whose values are looked at
MOST_FIELDS, MOST_VALUES, LONGEST = 5, 20, 60  # characters of a value
SECONDS = 1.0  # after which no more values are counted


def find_values(store: Store) -> dict[str, list[Any]]:
    """Find labels and fields whose values repeat, the commonest values first."""
    seen: dict[str, Counter[Any]] = {"label": Counter()}
    for document in store.sample(SAMPLE):
        seen["label"].update(document.labels or ())
        for field, value in document.metadata.items():
            if isinstance(value, str | int) and len(str(value)) <= LONGEST:
                seen.setdefault(field, Counter())[value] += 1
    fields = ["label", *(f for f in seen if f not in (*RESERVED, "and", "or", "not"))]
    small = [f for f in fields if f == "label" or 2 * len(seen[f]) <= min(40, seen[f].total())]
    return {f: [v for v, _ in seen[f].most_common(MOST_VALUES)] for f in small[:MOST_FIELDS]}


def count_values(store: Store, found: dict[str, list[Any]], where: Any) -> list[dict[str, Any]]:
    """Count each value among the documents that match, until the time is over."""
    until, facets = time.monotonic() + SECONDS, list[dict[str, Any]]()
    for field, values in found.items():
        parts = [[{field: value}, *([where] if where else [])] for value in values]
        counts: list[dict[str, Any]] = [
            {"value": value, "count": n}
            for value, both in zip(values, parts, strict=True)
            if time.monotonic() < until and (n := store.count({"and": both}))
        ]
        facets.append({"field": field, "values": sorted(counts, key=lambda one: -one["count"])})
    return [facet for facet in facets if facet["values"]]
