"""The calls under /v1/explain and /v1/map: what bits say, and the documents on a plane."""

import gzip
import logging
from collections.abc import Callable
from pathlib import Path as File
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import APIRouter, Path, Request, Response

from vdsh import corpus_map
from vdsh.corpus_map import CorpusMap
from vdsh.errors import FolderError, MissingFileError
from vdsh.explain import as_fields, explain_bits, explain_pair, explain_text
from vdsh.model import Model
from vdsh.server import answers
from vdsh.server.answers import ASKED, NOT_THERE, answer
from vdsh.server.asked import text_of
from vdsh.server.bodies import ExplainBody
from vdsh.server.json_routes import Json, JsonRoute, Refused
from vdsh.server.pool import StorePool
from vdsh.server.service import ServiceDep
from vdsh.store import Store

T = TypeVar("T")
log = logging.getLogger("vdsh.server")

router = APIRouter(prefix="/v1/explain", route_class=JsonRoute, tags=["explain"])
map_router = APIRouter(prefix="/v1/map", route_class=JsonRoute, tags=["map"])
BitsAnswer = answer("BitsAnswer", "All bits.", bits=list[answers.BitAnswer])
MapAnswer = answer(
    "MapAnswer",
    "The documents on the map; `label` holds places in `labels`, -1 where there is none. So does "
    "`place` of each of `fields` in its `values`.",
    ids=list[str],
    x=list[float],
    y=list[float],
    label=list[int],
    labels=list[str],
    titles=list[str],
    fields=dict[str, dict[str, list[Any]]],
    documents=int,
)


@router.post("", response_model=answers.ExplainAnswer, responses=ASKED | NOT_THERE)
async def explain(body: ExplainBody, service: ServiceDep) -> Json:
    """Say which words of a text set which bits; with another text, where the two agree."""

    def work(store: Store) -> Any:
        model, text = service.pool.model, text_of(store, body.text, body.id)
        if body.other is None and body.other_id is None:
            return as_fields(explain_text(model, text))
        return as_fields(explain_pair(model, text, text_of(store, body.other, body.other_id)))

    return Json(await service.pool.call(work))


@router.get("/bits", response_model=BitsAnswer)
async def bits(service: ServiceDep) -> Json:
    """Say for every bit which words push it to 1 and to 0."""
    return Json({"bits": await service.pool.call(lambda _: _bits(service.pool))})


@router.get("/bits/{bit}", response_model=answers.BitAnswer, responses=ASKED | NOT_THERE)
async def bit(bit: Annotated[int, Path(ge=0)], service: ServiceDep) -> Json:
    """Say which words push a bit to 1 and to 0, and how healthy it is."""
    all_bits = await service.pool.call(lambda _: _bits(service.pool))
    if bit >= len(all_bits):
        raise Refused(
            404, f"There is no bit {bit}. They are counted from 0 to {len(all_bits) - 1}."
        )
    return Json(all_bits[bit])


def _bits(pool: StorePool) -> list[Any]:
    model = pool.model
    return pool.memo("bits", model, lambda: [as_fields(bit) for bit in explain_bits(model)])


@map_router.get("", response_model=MapAnswer, responses=NOT_THERE)
async def whole_map(request: Request, service: ServiceDep) -> Response:
    """Give the map of `vdsh research map`: where documents lie, their labels and titles."""
    packed = "gzip" in request.headers.get("accept-encoding", "")

    def work(_: Store) -> bytes:
        content = _read_map(service.pool, service.pool.model, "packed map", _packed)
        return content if packed else gzip.decompress(content)

    content = await service.pool.call(work)
    headers = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if packed else {})
    return Response(content, media_type="application/json", headers=headers)


def find_place(pool: StorePool, model: Model, text: str, id: str | None) -> tuple[float, float]:
    """Return where a text belongs on the map, or where the document of that id is."""
    found = _read_map(pool, model, "map", lambda whole: whole)
    point = None if id is None else found.point(id)
    return point or found.place(model.topic.scores([text])[0])


def _read_map(pool: StorePool, model: Model, what: str, make: Callable[[CorpusMap], T]) -> T:
    """Make something of the map as it is on disk now: a new one is read without starting again."""
    path = File(pool.path, corpus_map.FILE)
    try:
        version = (path.stat().st_mtime_ns, model.fingerprint)
    except OSError:
        raise Refused(404, "This store has no map. Make one: vdsh research map STORE") from None
    return pool.memo(what, version, lambda: make(_load(path, model)))


def _load(path: File, model: Model) -> CorpusMap:
    try:
        found = corpus_map.load(path)
    except (FolderError, MissingFileError) as error:
        log.error("A map cannot be used: %s", error)
        raise Refused(404, "The map is damaged. Make it again: vdsh research map STORE") from error
    n_bits = model.topic.n_bits
    if found.facts["fingerprint"] != model.fingerprint or found.scores.shape[1] != n_bits:
        raise Refused(404, "The map is of another model. Make it again: vdsh research map STORE")
    return found


def _packed(found: CorpusMap) -> bytes:
    x, y = found.points.round(4).T.tolist()
    fields = {"ids": found.ids, "x": x, "y": y, "label": found.label.tolist()}
    fields |= {"labels": found.labels, "titles": found.titles, "fields": found.fields}
    written = orjson.dumps(fields | {"documents": found.facts["documents"]})
    return gzip.compress(written, 6, mtime=0)
