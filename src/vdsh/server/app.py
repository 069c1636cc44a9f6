"""`create_app`: the service as an ASGI application, without a socket."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import FileResponse
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from vdsh import __version__
from vdsh.errors import InputError
from vdsh.server import document_routes, explain_routes, routes, state_routes
from vdsh.server.answers import ALWAYS
from vdsh.server.bodies import Limits, name_limits
from vdsh.server.guard import Guard
from vdsh.server.json_routes import HANDLERS
from vdsh.server.mcp import McpEndpoint
from vdsh.server.metrics import Metrics
from vdsh.server.service import NAME, make_services, name_stores, opened
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
        with opened(services):
            yield

    shown: Any = {"title": "vdsh", "version": __version__, "description": DESCRIPTION}
    shown |= {"docs_url": None, "redoc_url": None, "responses": ALWAYS}
    app = FastAPI(lifespan=lifespan, exception_handlers=HANDLERS, **shown)
    app.state.services, app.state.service = services, next(iter(services.values()))
    app.state.metrics = metrics
    for part in (routes, document_routes, explain_routes, state_routes):
        app.include_router(part.router)
    app.include_router(explain_routes.map_router)
    _add_page(app)
    if find_spec("mcp") is not None:
        app.router.routes.append(Route("/mcp", McpEndpoint(services), methods=["POST"]))
    checks: Any = {"limits": limits, "tokens": tokens, "metrics": metrics, "logged": logged}
    app.add_middleware(Guard, names=services, **checks)
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


def _add_page(app: FastAPI) -> None:
    """Serve the page, and Swagger UI from an installed package: no request leaves the machine."""

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(PAGE / "docs.html")

    app.mount("/page", GZipMiddleware(StaticFiles(directory=PAGE, check_dir=False)))
    app.mount("/docs", StaticFiles(packages=[("fastapi_offline", "static")]))


def _describe(app: FastAPI, limits: Limits, *, token: bool) -> dict[str, Any]:
    """Make the OpenAPI description, with the limits of this service."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    schema: dict[str, Any] = name_limits(FastAPI.openapi(app), limits)
    if token:
        schema["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        for path, calls in schema["paths"].items():
            for call in calls.values():
                call["security"] = [] if is_open(path) else [{"bearer": []}]
    app.openapi_schema = schema
    return schema
