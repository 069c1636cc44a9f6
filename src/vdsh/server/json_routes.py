"""JSON in and out: orjson both ways, and pydantic's complaints as sentences."""

import json
from collections.abc import Callable, Coroutine
from reprlib import repr as short
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

# pydantic names the kinds of a field that has several
KINDS = ("str", "constrained-str", "none", "dict[str,any]", "list[str]")


class Json(Response):
    """An answer in JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Write the content."""
        try:
            return orjson.dumps(content)
        except TypeError:  # an integer of more than 64 bits
            return json.dumps(content, ensure_ascii=False).encode()


class _JsonRequest(Request):
    async def json(self) -> Any:
        """Read the body, once; what is not strictly JSON, such as NaN, is refused."""
        if not hasattr(self, "_json"):
            self._json = orjson.loads(await self.body())
        return self._json


class JsonRoute(APIRoute):
    """A route whose bodies are read by orjson."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap FastAPI's handler."""
        handle = super().get_route_handler()

        async def read_with_orjson(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return read_with_orjson


def failure(status: int, sentence: str, headers: dict[str, str] | None = None) -> Json:
    """Answer with an error."""
    return Json({"error": sentence}, status, headers)


def complaint(error: RequestValidationError) -> str:
    """Say in a sentence what is wrong with a request; the first thing will do."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:] if part not in KINDS)
    if first["type"] == "json_invalid":
        return f"The body is broken JSON: {first['ctx']['error']}."
    if first["type"] == "value_error":
        return f"{first['ctx']['error']}."
    if first["type"] == "extra_forbidden":
        return f"There is no field '{place}'. See /docs for the fields there are."
    if first["type"] == "missing":
        return f"The field '{place}' is missing." if place else "The body must be a JSON object."
    said = f"{first['msg']}. Got {short(first['input'])}."
    return f"{place}: {said}" if place else said
