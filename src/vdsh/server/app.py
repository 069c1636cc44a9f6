"""`create_app`: the service as an ASGI application, without a socket."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Response
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import FileResponse
from starlette.staticfiles import StaticFiles

from vdsh.server import (
    document_routes,
    explain_routes,
    manual,
    map_routes,
    routes,
    state_routes,
)
from vdsh.server.answers import ALWAYS
from vdsh.server.errors import add_error_handlers
from vdsh.server.guard import Guard
from vdsh.server.limits import Limits
from vdsh.server.metrics import Metrics
from vdsh.server.pool import StorePool
from vdsh.server.service import Service
from vdsh.store import Store

PAGE = Path(__file__).parent / "page"


def create_app(
    store: str | os.PathLike[str] | Store,
    *,
    writable: bool = False,
    token: str | None = None,
    limits: Limits | None = None,
    logged: bool = False,
) -> FastAPI:
    """Make the service of a store.

    Parameters
    ----------
    store : path or Store
        A path is opened when the application starts; an open store stays open.
    writable : bool, default=False
        Whether documents may be written and deleted.
    token : str, optional
        What clients send as `Authorization: Bearer TOKEN`. Without one, only requests to a name
        of this machine are answered.
    limits : Limits, optional
    logged : bool, default=False
        Whether each request is logged.

    Returns
    -------
    FastAPI
        `app.state.service` is a `Service`.
    """
    limits = limits or Limits()
    pool, metrics = StorePool(store), Metrics()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        pool.open()
        yield
        pool.close()

    app = FastAPI(title="vdsh", docs_url=None, redoc_url=None, lifespan=lifespan, responses=ALWAYS)
    app.state.service = Service(pool, limits, writable)
    app.state.metrics = metrics
    for part in (routes, document_routes, explain_routes, map_routes, state_routes, manual):
        app.include_router(part.router)
    _add_page(app)
    add_error_handlers(app)
    app.add_middleware(Guard, limits=limits, token=token, metrics=metrics, logged=logged)
    app.openapi = lambda: manual.describe(app, limits, token=token is not None)  # type: ignore[method-assign]
    return app


class _PageFiles(StaticFiles):
    """The page's files: asked for each time, so that modules of two versions never meet."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers["Cache-Control"] = "no-cache"  # an ETag makes asking cheap
        return response


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    app.mount("/page", GZipMiddleware(_PageFiles(directory=PAGE, check_dir=False)))
