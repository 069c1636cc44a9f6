"""`create_app`: the service as an ASGI application, without a socket."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Response
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from vdsh import __version__
from vdsh.errors import InputError
from vdsh.server import document_routes, explain_routes, routes, state_routes
from vdsh.server.answers import ALWAYS
from vdsh.server.bodies import Limits, name_limits
from vdsh.server.errors import add_error_handlers
from vdsh.server.guard import Guard
from vdsh.server.mcp import McpEndpoint
from vdsh.server.metrics import Metrics
from vdsh.server.service import NAME, ByName, make_services, name_stores
from vdsh.server.tokens import Tokens, is_open, one_token
from vdsh.store import Store

PAGE = Path(__file__).parent / "page"
DESCRIPTION = (
    "Search documents by their words and learned codes. Errors are sentences. Where there are "
    "several stores, `/v1/` asks the first; `/v1/stores/NAME/search`, and all other calls under "
    "`/v1/stores/NAME/`, ask the one of that name."
)
Source = str | os.PathLike[str] | Store


def create_app(
    store: Source | Mapping[str, Source],
    *,
    writable: bool = False,
    token: str | Tokens | None = None,
    limits: Limits | None = None,
    logged: bool = False,
    device: str = "cpu",
) -> FastAPI:
    """Make the service of a store, or of several.

    Parameters
    ----------
    store : path or Store, or dict of them by name
        A path is opened when the application starts; an open store stays open. Each is asked under
        `/v1/stores/NAME/`, the first one under `/v1/` too.
    writable : bool, default=False
        Whether documents may be written and deleted.
    token : str or Tokens, optional
        What clients send as `Authorization: Bearer TOKEN`; `read_tokens` reads several from a file.
        Without one, only requests to a name of this machine are answered.
    limits : Limits, optional
    logged : bool, default=False
        Whether each request is logged.
    device : str, default="cpu"
        Where codes of stores that are opened are searched; "cuda" is a GPU.

    Returns
    -------
    FastAPI
        `app.state.service` is the `Service` of the first store.
    """
    limits, metrics = limits or Limits(), Metrics()
    tokens = one_token(token) if isinstance(token, str) else token
    services = make_services(_named(store), limits, writable=writable, device=device)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with ExitStack() as stack:
            for service in services.values():
                stack.callback(service.pool.close)
                service.pool.open()
            yield

    app = FastAPI(title="vdsh", docs_url=None, redoc_url=None, lifespan=lifespan, responses=ALWAYS)
    app.state.services, app.state.service = services, next(iter(services.values()))
    app.state.metrics = metrics
    for part in (routes, document_routes, explain_routes, state_routes):
        app.include_router(part.router)
    app.include_router(explain_routes.map_router)
    _add_page(app)
    if find_spec("mcp") is not None:
        app.router.routes.append(Route("/mcp", McpEndpoint(services), methods=["POST"]))
    add_error_handlers(app)
    app.add_middleware(ByName, names=services)
    app.add_middleware(Guard, limits=limits, tokens=tokens, metrics=metrics, logged=logged)
    app.openapi = lambda: _describe(app, limits, token=tokens is not None)  # type: ignore[method-assign]
    return app


def _named(store: Source | Mapping[str, Source]) -> dict[str, Source]:
    if not isinstance(store, Mapping):
        path = "store" if isinstance(store, Store) else os.fspath(store)
        return {next(iter(name_stores([path]))): store}
    for name in store:
        if not NAME.fullmatch(name):
            raise InputError(f"A store's name must be letters, digits, dots, dashes. Got '{name}'.")
    if not store:
        raise InputError("There is no store to serve.")
    return dict(store)


class _PageFiles(StaticFiles):
    """Files that are asked for each time, so that modules of two versions never meet."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers["Cache-Control"] = "no-cache"  # an ETag makes asking cheap
        return response


def _add_page(app: FastAPI) -> None:
    """Serve the page, and Swagger UI from an installed package: no request leaves the machine."""

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(PAGE / "docs.html")

    app.mount("/page", GZipMiddleware(_PageFiles(directory=PAGE, check_dir=False)))
    app.mount("/docs", StaticFiles(packages=[("fastapi_offline", "static")]))


def _describe(app: FastAPI, limits: Limits, *, token: bool) -> dict[str, Any]:
    """Make the OpenAPI description, with the limits of this service."""
    if app.openapi_schema is None:
        made = get_openapi(
            title="vdsh", version=__version__, description=DESCRIPTION, routes=app.routes
        )
        schema = name_limits(made, limits)
        if token:
            scheme = {"bearer": {"type": "http", "scheme": "bearer"}}
            schema["components"]["securitySchemes"] = scheme
            for path, calls in schema["paths"].items():
                for call in calls.values():
                    call["security"] = [] if is_open(path) else [{"bearer": []}]
        app.openapi_schema = schema
    return app.openapi_schema
