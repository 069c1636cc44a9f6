"""The calls under /v1 that ask the store."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter

from vdsh import __version__
from vdsh.codes import Codes, from_hex, to_hex
from vdsh.server import answers
from vdsh.server.bodies import EncodeBody, Query, SearchBody, WithinBody, check_limits
from vdsh.server.described import ASKED, NOT_THERE
from vdsh.server.encoder import EncodedText
from vdsh.server.errors import NotFound
from vdsh.server.highlights import highlighted
from vdsh.server.json_routes import Json, JsonRoute
from vdsh.server.pool import StorePool
from vdsh.server.service import Ask
from vdsh.store import Hit, Store
from vdsh.store.where_text import parse_where

EMPTY = "No word of the text is known to the model: these are the neighbours of an empty text."

router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["search"])


class Asked(NamedTuple):
    """A query as the store takes it: its code, and what to say about it."""

    code: Codes
    warning: str | None = None

    def fields(self) -> dict[str, Any]:
        """Give the fields of an answer that are about the query."""
        fields = {"code": to_hex(self.code[None])[0]}
        return fields if self.warning is None else fields | {"warning": self.warning}


@router.get("/info", response_model=answers.InfoAnswer)
async def info(ask: Ask) -> Json:
    """Describe the store and the limits of the service."""

    def work(store: Store) -> dict[str, Any]:
        facts, hasher = store.info(), ask.pool.hasher
        return {
            "version": __version__,
            "documents": facts["documents"],
            "bits": facts["bits"],
            "model": {
                "name": hasher.model,
                "bits": int(hasher.n_bits),
                "fingerprint": facts["model"]["fingerprint"],
                "documents": hasher.training_.get("documents"),
                "terms": len(hasher.vectorizer_.vocabulary_),
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
    check_limits(body, ask.limits)
    encoded = None if body.text is None else await ask.pool.encode(body.text)

    def work(store: Store) -> dict[str, Any]:
        asked = find_query(body, encoded, store)
        query: str | Codes = asked.code
        rank = "distance" if asked.warning else body.rank
        if rank == "expected" and body.text is not None:
            query = body.text
        hits = store.search(query, k=body.k, where=read_where(body.where), rank=rank)
        return asked.fields() | tell(body, asked, hits, store, ask.pool)

    return Json(await ask.pool.call(work))


@router.post("/within", response_model=answers.WithinAnswer, responses=ASKED | NOT_THERE)
async def within(body: WithinBody, ask: Ask) -> Json:
    """Find the documents within a radius, nearest first."""
    check_limits(body, ask.limits)
    encoded = None if body.text is None else await ask.pool.encode(body.text)

    def work(store: Store) -> dict[str, Any]:
        asked = find_query(body, encoded, store)
        where = read_where(body.where)
        hits, total = store.within_at_most(asked.code, body.radius, body.limit, where=where)
        return asked.fields() | tell(body, asked, hits, store, ask.pool) | {"total": total}

    return Json(await ask.pool.call(work))


@router.post("/encode", response_model=answers.EncodeAnswer, responses=ASKED)
async def encode(body: EncodeBody, ask: Ask) -> Json:
    """Hash texts with the store's model."""
    check_limits(body, ask.limits)
    codes, _ = await ask.pool.call(lambda store: store.hasher.encode_and_count(body.texts))
    return Json({"codes": to_hex(codes), "bits": 8 * codes.shape[1]})


def find_query(query: Query, encoded: EncodedText | None, store: Store) -> Asked:
    """Return the code of a text, a code in hex, or a stored document."""
    if encoded is not None:
        return Asked(encoded.code, EMPTY if encoded.empty else None)
    if query.code is not None:
        return Asked(from_hex([query.code])[0])
    hit = store.find(query.id or "")
    if hit is None:
        raise NotFound(f"There is no document '{query.id}'.")
    return Asked(from_hex([hit.code])[0])


def read_where(where: Any) -> dict[str, Any] | None:
    """Return a filter, also of texts as the command line takes them."""
    return parse_where(where) if isinstance(where, list) else where


def tell(
    body: SearchBody | WithinBody, asked: Asked, hits: Sequence[Hit], store: Store, pool: StorePool
) -> dict[str, Any]:
    """Give the fields of an answer that are about the hits."""
    if body.highlight:
        return highlighted(body, asked.code, hits, store, pool)
    return {"hits": [hit.as_fields() for hit in hits]}
