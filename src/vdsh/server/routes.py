"""The calls under /v1 that ask the store."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from fastapi import APIRouter

from vdsh import __version__
from vdsh.codes import Codes, from_hex, to_hex
from vdsh.server import answers
from vdsh.server.answers import ASKED, NOT_THERE
from vdsh.server.bodies import EncodeBody, Query, SearchBody, WithinBody
from vdsh.server.errors import NotFound
from vdsh.server.highlights import highlighted
from vdsh.server.json_routes import Json, JsonRoute
from vdsh.server.pool import StorePool
from vdsh.server.service import Ask
from vdsh.server.text_queue import EncodedText
from vdsh.store import Hit, Hits, Store

router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["search"])


class Asked(NamedTuple):
    """A query's code, the query as the store takes it, and what to say about it."""

    code: Codes
    query: str | Codes
    about: Mapping[str, Any] = MappingProxyType({})

    def fields(self) -> dict[str, Any]:
        """Give the fields of an answer that are about the query."""
        return {"code": to_hex(self.code[None])[0], **self.about}


@router.get("/info", response_model=answers.InfoAnswer)
async def info(ask: Ask) -> Json:
    """Describe the store and the limits of the service."""

    def work(store: Store) -> dict[str, Any]:
        facts, model = store.info(), ask.pool.model
        return {
            "version": __version__,
            "documents": facts["documents"],
            "bits": facts["bits"],
            "model": {
                "name": model.name,
                "bits": model.n_bits,
                "fingerprint": facts["model"]["fingerprint"],
                "documents": model.training.get("documents"),
                "terms": len(model.words),
            },
            "fields": facts["fields"],
            "labels": store.labels(),
            "writable": ask.writable,
            "map": ask.pool.has_map(),
            "limits": {name: getattr(ask.limits, name) for name in ("k", "batch", "text", "body")},
        }

    return Json(await ask.pool.call(work))


@router.post("/search", response_model=answers.SearchAnswer, responses=ASKED | NOT_THERE)
async def search(body: SearchBody, ask: Ask) -> Json:
    """Find the documents nearest to a text, a code or a stored document."""
    encoded = None if body.text is None else await ask.pool.encode(body.text)

    def work(store: Store) -> dict[str, Any]:
        asked = find_query(body, encoded, store)
        query = asked.query
        if body.rank == "expected" and body.text is not None:
            query = body.text
        hits = store.search(query, k=body.k, where=body.where, rank=body.rank)
        return asked.fields() | tell(body, asked, hits, store, ask.pool)

    return Json(await ask.pool.call(work))


@router.post("/within", response_model=answers.WithinAnswer, responses=ASKED | NOT_THERE)
async def within(body: WithinBody, ask: Ask) -> Json:
    """Find the documents within a radius, nearest first."""
    encoded = None if body.text is None else await ask.pool.encode(body.text)

    def work(store: Store) -> dict[str, Any]:
        asked = find_query(body, encoded, store)
        hits, total = store.within_at_most(asked.query, body.radius, body.limit, where=body.where)
        return asked.fields() | tell(body, asked, hits, store, ask.pool) | {"total": total}

    return Json(await ask.pool.call(work))


@router.post("/encode", response_model=answers.EncodeAnswer, responses=ASKED)
async def encode(body: EncodeBody, ask: Ask) -> Json:
    """Hash texts with the store's model."""
    codes = await ask.pool.call(lambda store: store.model.encode(body.texts))
    return Json({"codes": to_hex(codes), "bits": 8 * codes.shape[1]})


def find_query(query: Query, encoded: EncodedText | None, store: Store) -> Asked:
    """Return the code of a text, a code in hex, or a stored document."""
    if encoded is not None:
        about = Hits(unknown=encoded.unknown, empty=encoded.empty).about_query()
        # A text without a known word has a code, of the empty document, but must find nothing.
        given = query.text or "" if encoded.empty else encoded.code
        return Asked(encoded.code, given, about)
    if query.code is not None:
        code = from_hex([query.code])[0]
        return Asked(code, code)
    hit = store.find(query.id or "")
    if hit is None:
        raise NotFound(f"There is no document '{query.id}'.")
    code = from_hex([hit.code])[0]
    return Asked(code, code)


def tell(
    body: SearchBody | WithinBody, asked: Asked, hits: Sequence[Hit], store: Store, pool: StorePool
) -> dict[str, Any]:
    """Give the fields of an answer that are about the hits."""
    if body.highlight:
        return highlighted(body, asked.code, hits, store, pool)
    return {"hits": [hit.as_fields() for hit in hits]}
