"""Errors that have a status of their own, and how all errors become answers."""

import logging
import re
from collections.abc import Iterable
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from vdsh.errors import EngineError, FolderError, InputError, VdshError, WriteError
from vdsh.server.json_routes import FAILURES, complaint, failure

log = logging.getLogger("vdsh.server")


class NotFound(VdshError, LookupError):
    """There is no such document, bit or map."""

    code = "not_found"


class NoDocument(NotFound):
    """There is no document of that id."""

    code = "no_document"

    def __init__(self, id: str | None) -> None:
        super().__init__(f"There is no document '{id}'.")


class Forbidden(VdshError, PermissionError):
    """The service does not change documents."""


BROKEN = (FolderError, EngineError)  # a database that is damaged or away
_STATUS = ((NotFound, 404), (Forbidden, 403), (InputError, 422), (WriteError, 503), (BROKEN, 503))


def without_paths(sentence: str, paths: Iterable[str]) -> str:
    """Call a store "the store": where it lies is not the business of a client."""
    some = "|".join(re.escape(path) for path in paths if path)
    return re.sub(f"'(?:{some})[^']*'", "the store", sentence) if some else sentence


def find_status(error: VdshError) -> tuple[int, str]:
    """Return the status and the code of an error."""
    status = next((status for kinds, status in _STATUS if isinstance(error, kinds)), 500)
    return status, getattr(error, "code", FAILURES[status][0])


async def _ours(request: Request, error: Any) -> Response:
    status, code = find_status(error)
    if status == 500:
        raise error  # as any bug: `guard` answers
    if isinstance(error, BROKEN):
        log.error("A store could not be asked.", exc_info=error)
    paths = [service.pool.path for service in request.app.state.services.values()]
    return failure(status, without_paths(str(error), paths), code=code)


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
