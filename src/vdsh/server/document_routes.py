"""The calls under /v1/documents: read, write and delete documents."""

from itertools import chain
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from starlette.convertors import StringConvertor, register_url_convertor

from vdsh.codes import to_hex
from vdsh.errors import InputError
from vdsh.server.answers import ASKED, INVALID, NOT_THERE, READ_ONLY, StoredDocument, answer
from vdsh.server.asked import find_document, no_document
from vdsh.server.bodies import DocumentsBody
from vdsh.server.json_routes import Json, JsonRoute
from vdsh.server.service import ServiceDep
from vdsh.store import Store

FIELDS = ("id", "text", "labels", "metadata")
PAGE = 4 * 2**20  # characters of texts after which an answer ends
READ = 100  # documents at a time


class _AnyConvertor(StringConvertor):
    regex = r"[\s\S]+"  # slashes and line breaks too


register_url_convertor("any", _AnyConvertor())
Id = Annotated[str, Path(description="May hold any character; percent-encode it.")]
router = APIRouter(prefix="/v1/documents", route_class=JsonRoute, tags=["documents"])
PageAnswer = answer(
    "PageAnswer",
    "Documents in the order of their ids, and the fingerprint of the model that made their codes. "
    "`next` is what to give as `after` for those that follow; it is null where there are no more.",
    documents=list[StoredDocument],
    next=str | None,
    model=str,
)
WrittenAnswer = answer("WrittenAnswer", "How many documents were written.", written=int)
DeletedAnswer = answer(
    "DeletedAnswer", "The document was there and is gone.", deleted=Literal[True]
)


@router.get("", response_model=PageAnswer, responses=ASKED)
async def page(
    service: ServiceDep,
    after: Annotated[str, Query(description="The `next` of the answer before.")] = "",
    limit: Annotated[int, Query(ge=1, description="Fewer come where texts are long.")] = READ,
) -> Json:
    """Return documents with their codes in the order of their ids, those above `after`."""
    if limit > service.limits.batch:
        raise InputError(f"limit must be at most {service.limits.batch:,}. Got {limit:,}.")
    return Json(await service.pool.call(lambda store: _page(store, after, limit)))


@router.get("/{id:any}", response_model=StoredDocument, responses=INVALID | NOT_THERE)
async def get(id: Id, service: ServiceDep) -> Json:
    """Return a document with its code."""
    hit = await service.pool.call(lambda store: find_document(store, id))
    return Json({name: getattr(hit, name) for name in (*FIELDS, "code")})


@router.post("", response_model=WrittenAnswer, responses=ASKED | READ_ONLY)
async def upsert(body: DocumentsBody, service: ServiceDep) -> Json:
    """Write documents; one whose id is there already replaces the old one.

    Where the store has a model of vectors, each has its `vector`.
    """
    service.check_writable()
    return Json({"written": await service.pool.call(body.write_to)})


@router.delete("/{id:any}", response_model=DeletedAnswer, responses=INVALID | NOT_THERE | READ_ONLY)
async def delete(id: Id, service: ServiceDep) -> Json:
    """Delete a document."""
    service.check_writable()
    if not await service.pool.call(lambda store: store.delete([id])):
        raise no_document(id)
    return Json({"deleted": True})


def _page(store: Store, after: str, limit: int) -> dict[str, Any]:
    found, size, last = list[dict[str, Any]](), 0, None
    entries = store.entries(after, min(READ, limit))
    pairs = (zip(some, to_hex(codes), strict=True) for some, codes in entries)
    for document, code in chain.from_iterable(pairs):
        if len(found) == limit or size > PAGE:
            last = found[-1]["id"]
            break
        found.append({name: getattr(document, name) for name in FIELDS} | {"code": code})
        size += len(document.text)
    return {"documents": found, "next": last, "model": store.model.fingerprint}
