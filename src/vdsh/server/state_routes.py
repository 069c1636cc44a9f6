"""How the service is: alive, ready, its stores and its numbers."""

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from vdsh.server.answers import answer, may_have
from vdsh.server.json_routes import Json, Refused
from vdsh.server.service import Service

router = APIRouter(tags=["state"])
StatusAnswer = answer("StatusAnswer", "All is well.", status=Literal["ok"])
StoreAnswer: Any = answer(
    "StoreAnswer",
    "A store of the service, or what is wrong with it.",
    name=str,
    documents=may_have(int),
    bits=may_have(int),
    model=may_have(str),
    trouble=may_have(str),
)
StoresAnswer = answer(
    "StoresAnswer", "All stores; the first is asked under /v1/ too.", stores=list[StoreAnswer]
)


@router.get("/health", response_model=StatusAnswer)
async def health() -> Json:
    """Say that the process is alive."""
    return Json({"status": "ok"})


@router.get("/ready", response_model=StatusAnswer)
async def ready(request: Request) -> Json:
    """Say that each store is open, where it was, and answers soon."""
    for service in request.app.state.services.values():
        if (trouble := await service.pool.find_trouble()) is not None:
            raise Refused(503, trouble)
    return Json({"status": "ok"})


@router.get("/v1/stores", response_model=StoresAnswer)
async def stores(request: Request) -> Json:
    """List the stores: all calls under /v1/ are there for each of them, under /v1/stores/NAME/.

    The first is the one that /v1/ asks.
    """
    services = request.app.state.services
    return Json({"stores": [await _describe(service) for service in services.values()]})


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Give the numbers of all workers in Prometheus' text format."""
    state = request.app.state
    sizes = {name: await service.pool.call(len) for name, service in state.services.items()}
    return Response(state.metrics.text(sizes), media_type=CONTENT_TYPE_PLAIN_0_0_4)


async def _describe(service: Service) -> dict[str, Any]:
    """Describe a store, or say what is wrong with it: the others are listed all the same."""
    if (trouble := await service.pool.find_trouble()) is not None:
        return {"name": service.name, "trouble": trouble}
    n_documents, model = await service.pool.call(len), service.pool.model
    about = {"bits": model.n_bits, "model": model.name}
    return {"name": service.name, "documents": n_documents, **about}
