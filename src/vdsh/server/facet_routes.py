"""The call /v1/facets: labels and small fields, with how many documents have each value."""

import time
from collections import Counter
from typing import Any

from fastapi import APIRouter

from vdsh.server.answers import ASKED, Answer
from vdsh.server.bodies import CountBody
from vdsh.server.json_routes import Json, JsonRoute
from vdsh.server.service import ServiceDep
from vdsh.store import Store
from vdsh.store.where import RESERVED

SAMPLE = 300  # documents whose values are looked at
MOST_FIELDS, MOST_VALUES, LONGEST = 5, 20, 60  # characters of a value
WORDS = (*RESERVED, "and", "or", "not")  # which mean something else in a filter
SECONDS = 1.0  # after which no more values are counted

router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["search"])


class FacetsAnswer(Answer):
    """Fields, each with its commonest values: `{"value": "space", "count": 987}`."""

    facets: list[dict[str, Any]]


@router.post("/facets", response_model=FacetsAnswer, responses=ASKED)
async def facets(body: CountBody, service: ServiceDep) -> Json:
    """Count the documents that match a filter for each value of labels and small fields.

    Which fields and values there are is read off some hundred documents; counts are exact. After a
    second no more are counted.
    """

    def work(store: Store) -> list[dict[str, Any]]:
        memo, version = service.pool.memo, (store.count(), store.model.fingerprint)
        found = memo.get("values", version, lambda: find_values(store))
        asked = (*version, repr(body.where))
        return memo.get("facets", asked, lambda: count_values(store, found, body.where))

    return Json({"facets": await service.pool.call(work)})


def find_values(store: Store) -> dict[str, list[Any]]:
    """Find labels and fields whose values repeat, the commonest values first."""
    seen: dict[str, Counter[Any]] = {"label": Counter()}
    for document in store.sample(SAMPLE):
        seen["label"].update(document.labels or ())
        for field, value in document.metadata.items():
            if field not in WORDS and isinstance(value, str | int) and len(str(value)) <= LONGEST:
                seen.setdefault(field, Counter())[value] += 1
    small = {
        field: [value for value, _ in counts.most_common(MOST_VALUES)]
        for field, counts in seen.items()
        if field == "label" or len(counts) <= min(MOST_VALUES, counts.total() // 2)
    }
    return {field: small[field] for field in list(small)[:MOST_FIELDS] if small[field]}


def count_values(store: Store, found: dict[str, list[Any]], where: Any) -> list[dict[str, Any]]:
    """Count each value among the documents that match, until the time is over."""
    until, facets = time.monotonic() + SECONDS, []
    for field, values in found.items():
        counts = [
            {"value": value, "count": n}
            for value in values
            if time.monotonic() < until
            and (n := store.count({"and": [{field: value}, *([where] if where else [])]}))
        ]
        facets.append({"field": field, "values": sorted(counts, key=lambda one: -one["count"])})
    return [facet for facet in facets if facet["values"]]
