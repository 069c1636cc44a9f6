"""JSON in and out: orjson both ways, and errors as sentences with a status."""

import asyncio
import gc
import json
import logging
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from reprlib import repr as short
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from vdsh.errors import EngineError, FolderError, InputError, VdshError, WriteError
from vdsh.server.bodies import Limits

# What programs compare, and what the description says; the sentence of an answer may change.
FAILURES = {
    400: ("bad_request", "The Host header is not this machine's"),
    401: ("unauthorized", "The token is missing or wrong"),
    403: ("forbidden", "The service, or the token, is for reading only"),
    404: ("not_found", "No such document"),
    405: ("method_not_allowed", "The method is not for this path"),
    408: ("request_timeout", "The body did not arrive in time"),
    413: ("body_too_large", "The body is too large"),
    415: ("not_json", "The body is not application/json"),
    422: ("invalid", "A field is not as it should be"),
    431: ("head_too_large", "The headers are too large"),
    500: ("internal", "The service failed"),
    503: ("unavailable", "Too busy, or the store cannot be used now"),
    504: ("timeout", "It took too long"),
}
LARGE = 2**16  # bytes of a body that is read in a thread

log = logging.getLogger("vdsh.server")
_reader = ThreadPoolExecutor(1, thread_name_prefix="vdsh-reader")


class Json(Response):
    """An answer in JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Write the content."""
        try:
            return orjson.dumps(content)
        except TypeError:  # an integer of more than 64 bits
            return json.dumps(content, ensure_ascii=False).encode()


class JsonRoute(APIRoute):
    """A route whose bodies are read by orjson and checked up to the first error.

    FastAPI describes the call and finds the route. It does not make the call: its way takes half
    as long as a search. Large bodies are read in a thread, one at a time: others are answered
    meanwhile, and the memory that one of them takes is given back before the next.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call a function that takes a body; others are left to FastAPI."""
        if self.body_field is None or scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        request = Request(scope, receive, send)
        model: Any = self.body_field.field_info.annotation
        given = (await request.body(), model, request.app.state.service.limits)
        if len(given[0]) < LARGE:
            body = read_body(*given)
        else:
            body = await asyncio.get_running_loop().run_in_executor(_reader, _read_large, *given)
        needed: Any = self.dependant.dependencies  # ours are coroutines that take the request
        others = {one.name: await one.call(request) for one in needed}
        response = await self.endpoint(body=body, **others)
        await response(scope, receive, send)


def read_body(content: bytes, model: type[BaseModel], limits: Limits) -> BaseModel:
    """Read a body, or say what is wrong with it first."""
    try:
        return model.model_validate(orjson.loads(content), context=limits)
    except orjson.JSONDecodeError as error:
        raise InputError(f"The body is broken JSON: {error.msg}.") from None
    except ValidationError as error:
        raise InputError(complaint(error)) from None


def _read_large(content: bytes, model: type[BaseModel], limits: Limits) -> BaseModel:
    gc.disable()  # it would go through millions of new objects again and again
    try:
        return read_body(content, model, limits)
    finally:
        gc.enable()


def failure(
    status: int, sentence: str, headers: Mapping[str, str] | None = None, *, code: str | None = None
) -> Json:
    """Answer with an error: a sentence, and a code for programs, the usual one of its status."""
    return Json({"error": sentence, "code": code or FAILURES[status][0]}, status, headers)


class Refused(VdshError):
    """A request that gets no further; takes what `failure` takes."""

    def __init__(self, status: int, sentence: str, *more: Any, **options: Any) -> None:
        super().__init__(sentence)
        self.answer = failure(status, sentence, *more, **options)


def complaint(error: ValidationError | RequestValidationError) -> str:
    """Say in a sentence what pydantic found wrong first."""
    first: Any = error.errors()[0]
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    # FastAPI says which part of a request it was; pydantic, which kind of a field that has several.
    parts = first["loc"][1:] if isinstance(error, RequestValidationError) else first["loc"]
    names = [str(part) for part in parts if isinstance(part, int) or part.isidentifier()]
    place = ".".join(name for name in names if name not in ("str", "none"))
    if first["type"] == "missing":
        return f"The field '{place}' is missing."
    said = f"{first['msg']}. Got {short(first['input'])}."
    return f"{place}: {said}" if place else said


BROKEN = (FolderError, EngineError)  # a database that is damaged or away
_STATUS = ((InputError, 422), (WriteError, 503), (BROKEN, 503))


def without_paths(sentence: str, paths: Iterable[str]) -> str:
    """Call a store "the store": where it lies is not the business of a client."""
    some = "|".join(re.escape(path) for path in paths if path)
    return re.sub(f"'(?:{some})[^']*'", "the store", sentence) if some else sentence


def find_status(error: VdshError) -> int:
    """Return the status that an error is answered with."""
    if isinstance(error, Refused):
        return error.answer.status_code
    return next((status for kinds, status in _STATUS if isinstance(error, kinds)), 500)


async def _ours(request: Request, error: Any) -> Response:
    status = find_status(error)
    if isinstance(error, Refused):
        return error.answer
    if status == 500:
        raise error  # as any bug: `guard` answers
    if isinstance(error, BROKEN):
        log.error("A store could not be asked.", exc_info=error)
    paths = [service.pool.path for service in request.app.state.services.values()]
    return failure(status, without_paths(str(error), paths))


async def _invalid(_: Request, error: Any) -> Response:
    return failure(422, complaint(error))


async def _http(request: Request, error: Any) -> Response:
    path = request.scope.get("asked", request.url.path)
    sentences = {
        404: f"There is nothing at {path}. See /docs.",
        405: f"{request.method} is not for {path}. See /docs.",
    }
    sentence = sentences.get(error.status_code, str(error.detail))
    return failure(error.status_code, sentence, error.headers)


HANDLERS: Any = {VdshError: _ours, RequestValidationError: _invalid, HTTPException: _http}
