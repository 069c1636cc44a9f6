"""The calls under /v1/explain: words behind bits, bits behind texts."""

from typing import Annotated, Any

from fastapi import APIRouter, Path

from vdsh.server import answers
from vdsh.server.answers import ASKED, NOT_THERE
from vdsh.server.asked import text_of
from vdsh.server.bodies import ExplainBody
from vdsh.server.errors import NotFound
from vdsh.server.json_routes import Json, JsonRoute
from vdsh.server.pool import StorePool
from vdsh.server.service import ServiceDep
from vdsh.store import Store

router = APIRouter(prefix="/v1/explain", route_class=JsonRoute, tags=["explain"])


@router.post("", response_model=answers.ExplainAnswer, responses=ASKED | NOT_THERE)
async def explain(body: ExplainBody, service: ServiceDep) -> Json:
    """Say which words of a text set which bits; with another text, where the two agree."""
    from vdsh.explain import as_fields, explain_pair, explain_text

    def work(store: Store) -> Any:
        hasher = service.pool.model
        text = text_of(store, body.text, body.id)
        if body.other is None and body.other_id is None:
            return as_fields(explain_text(hasher, text))
        return as_fields(explain_pair(hasher, text, text_of(store, body.other, body.other_id)))

    return Json(await service.pool.call(work))


@router.get("/bits", response_model=answers.BitsAnswer)
async def bits(service: ServiceDep) -> Json:
    """Say for every bit which words push it to 1 and to 0."""
    return Json({"bits": await service.pool.call(lambda _: _bits(service.pool))})


@router.get("/bits/{bit}", response_model=answers.BitAnswer, responses=ASKED | NOT_THERE)
async def bit(bit: Annotated[int, Path(ge=0)], service: ServiceDep) -> Json:
    """Say which words push a bit to 1 and to 0, and how healthy it is."""
    all_bits = await service.pool.call(lambda _: _bits(service.pool))
    if bit >= len(all_bits):
        raise NotFound(f"There is no bit {bit}. They are counted from 0 to {len(all_bits) - 1}.")
    return Json(all_bits[bit])


def _bits(pool: StorePool) -> list[Any]:
    from vdsh.explain import as_fields, explain_bits

    model = pool.model
    return pool.memo.get("bits", model, lambda: [as_fields(bit) for bit in explain_bits(model)])
