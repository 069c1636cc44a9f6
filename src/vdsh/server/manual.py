"""The OpenAPI pages: Swagger UI from an installed package; no request leaves the machine."""

from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, HTTPException, Response
from fastapi.openapi.utils import get_openapi

from vdsh import __version__
from vdsh.errors import missing_package
from vdsh.server.bodies import name_limits
from vdsh.server.limits import Limits
from vdsh.server.tokens import is_open

DESCRIPTION = (
    "Search documents by their words and learned codes. Errors are sentences. Where there are "
    "several stores, `/v1/` asks the first; `/v1/stores/NAME/search`, and all other calls under "
    "`/v1/stores/NAME/`, ask the one of that name."
)
FILES = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>vdsh API</title>
<link rel="icon" href="/page/icon.svg">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="manual"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
START = """\
SwaggerUIBundle({ url: "/openapi.json", dom_id: "#manual", deepLinking: true, validatorUrl: null });
"""

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def page() -> Response:
    """Show the calls and let them be tried."""
    return Response(PAGE, media_type="text/html")


@router.get("/docs/start.js")
async def start() -> Response:
    """Start Swagger UI; a file of its own, since the policy forbids scripts in the page."""
    return Response(START, media_type="text/javascript")


@router.get("/docs/{name}")
async def file(name: str) -> Response:
    """Give one of Swagger UI's files."""
    if name not in FILES:
        raise HTTPException(404)
    return Response(_read(name), media_type=FILES[name])


def describe(app: FastAPI, limits: Limits, *, token: bool) -> dict[str, Any]:
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


def _read(name: str) -> bytes:
    try:
        folder = Path(str(files("fastapi_offline"))) / "static"
    except ImportError:
        raise missing_package("The page /docs", "fastapi-offline", "server") from None
    return (folder / name).read_bytes()
