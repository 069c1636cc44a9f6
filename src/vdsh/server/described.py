"""The failures that the OpenAPI description names for each call."""

from typing import Any

from vdsh.server.answers import Failure


def _failures(sentences: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    return {
        status: {"model": Failure, "description": sentence}
        for status, sentence in sentences.items()
    }


ALWAYS = _failures(
    {
        400: "The Host header is not this machine's",
        401: "The token is missing or wrong",
        431: "The headers are too large",
        500: "The service failed",
        503: "Too busy, or the store cannot be used now",
        504: "It took too long",
    }
)
ASKED = _failures(
    {
        408: "The body did not arrive in time",
        413: "The body is too large",
        415: "The body is not application/json",
        422: "A field is not as it should be",
    }
)
NOT_THERE = _failures({404: "No such document"})
READ_ONLY = _failures({403: "The service was not started with --writable"})
