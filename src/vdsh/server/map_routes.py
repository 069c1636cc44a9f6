"""The calls under /v1/map: the documents on a plane, and where a text belongs among them."""

import gzip
import logging
from pathlib import Path

import orjson
from fastapi import APIRouter, Request, Response

from vdsh import corpus_map
from vdsh.corpus_map import CorpusMap
from vdsh.errors import FolderError, MissingFileError
from vdsh.model import Model
from vdsh.server.answers import ASKED, NOT_THERE, Answer, PlaceAnswer
from vdsh.server.asked import text_of
from vdsh.server.bodies import PlaceBody
from vdsh.server.errors import NotFound
from vdsh.server.json_routes import Json, JsonRoute
from vdsh.server.pool import StorePool
from vdsh.server.service import ServiceDep
from vdsh.store import Store

log = logging.getLogger("vdsh.server")

router = APIRouter(prefix="/v1/map", route_class=JsonRoute, tags=["map"])


class MapAnswer(Answer):
    """The documents on the map; `label` holds places in `labels`, -1 where there is none."""

    ids: list[str]
    x: list[float]
    y: list[float]
    label: list[int]
    labels: list[str]
    titles: list[str]
    documents: int


@router.get("", response_model=MapAnswer, responses=NOT_THERE)
async def whole_map(request: Request, service: ServiceDep) -> Response:
    """Give the map of `vdsh research map`: where documents lie, their labels and titles."""
    packed = "gzip" in request.headers.get("accept-encoding", "")
    content = await service.pool.call(lambda _: _answer(service.pool, packed=packed))
    headers = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if packed else {})
    return Response(content, media_type="application/json", headers=headers)


@router.post("/place", response_model=PlaceAnswer, responses=ASKED | NOT_THERE)
async def place(body: PlaceBody, service: ServiceDep) -> Json:
    """Say where a text or a stored document belongs on the map."""
    pool = service.pool

    def work(store: Store) -> tuple[float, float]:
        return find_place(pool, text_of(store, body.text, body.id), body.id)

    x, y = await pool.call(work)
    return Json({"x": x, "y": y})


def find_place(pool: StorePool, text: str, id: str | None = None) -> tuple[float, float]:
    """Return where a text belongs on the map, or where the document of that id is."""
    found = _read(pool)
    point = None if id is None else found.point(id)
    return point or found.place(pool.model.topic.scores([text])[0])


def _version(pool: StorePool) -> tuple[Path, int, Model]:
    """Name the map as it is on disk now: a new one is read without starting again."""
    path = Path(pool.path, corpus_map.FILE)
    try:
        return path, path.stat().st_mtime_ns, pool.model
    except OSError:
        raise NotFound("This store has no map. Make one: vdsh research map STORE") from None


def _read(pool: StorePool) -> CorpusMap:
    version = _version(pool)
    return pool.memo.get("map", version, lambda: _load(version[0], version[2]))


def _load(path: Path, model: Model) -> CorpusMap:
    try:
        found = corpus_map.load(path)
    except (FolderError, MissingFileError) as error:
        log.error("A map cannot be used: %s", error)
        raise NotFound("The map is damaged. Make it again: vdsh research map STORE") from error
    n_bits = model.topic.n_bits
    if found.facts["fingerprint"] != model.fingerprint or found.scores.shape[1] != n_bits:
        raise NotFound("The map is of another model. Make it again: vdsh research map STORE")
    return found


def _answer(pool: StorePool, *, packed: bool) -> bytes:
    version = _version(pool)
    if packed:
        return pool.memo.get(
            "packed map",
            version,
            lambda: gzip.compress(_answer(pool, packed=False), 6, mtime=0),
        )
    return pool.memo.get("map as JSON", version, lambda: _written(_read(pool)))


def _written(found: CorpusMap) -> bytes:
    x, y = found.points.round(4).T.tolist()
    fields = {"ids": found.ids, "x": x, "y": y, "label": found.label.tolist()}
    fields |= {"labels": found.labels, "titles": found.titles}
    return orjson.dumps(fields | {"documents": found.facts["documents"]})
