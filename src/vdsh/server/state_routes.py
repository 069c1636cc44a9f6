"""How the service is: alive, ready, and its numbers."""

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from vdsh.server import answers
from vdsh.server.json_routes import Json, failure
from vdsh.server.service import Ask

router = APIRouter(tags=["state"])


@router.get("/health", response_model=answers.StatusAnswer)
async def health() -> Json:
    """Say that the process is alive."""
    return Json({"status": "ok"})


@router.get("/ready", response_model=answers.StatusAnswer)
async def ready(ask: Ask) -> Json:
    """Say that the store is open, where it was, and answers soon."""
    trouble = ask.pool.trouble()
    if trouble is not None:
        return failure(503, trouble)
    return Json({"status": "ok"})


@router.get("/metrics", response_class=Response)
async def metrics(request: Request, ask: Ask) -> Response:
    """Give the numbers of all workers in Prometheus' text format."""
    numbers = request.app.state.metrics
    text = numbers.text(
        *await ask.pool.call(lambda store: (store.count(), numbers.drift.look(store)))
    )
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)
