"""What every request passes on its way in and out: checks, limits, time, log and headers."""

import asyncio
import logging
import os
import time
import uuid
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vdsh.server.bodies import Limits
from vdsh.server.json_routes import Refused, failure
from vdsh.server.metrics import Metrics
from vdsh.server.service import take_name
from vdsh.server.tokens import Tokens, is_loopback, is_open, without_port

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
]
POLICY = (
    b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'"
)
# Swagger UI styles its elements itself and carries its icons as data.
DOCS_POLICY = POLICY + b"; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
CLOSE = {"Connection": "close"}
LINGER = 2.0  # seconds to read on after a body that is too large, so that the client sees why

log = logging.getLogger("vdsh.server")
requests = logging.getLogger("vdsh.access")


@dataclass(eq=False)
class Guard:
    """An ASGI application around the application.

    `tokens`: None lets only this machine ask: the Host header must be a loopback name, since
    otherwise a web page could reach the service under a name of its own (DNS rebinding). `names`:
    those of the stores. `logged`: whether requests are logged.
    """

    app: ASGIApp
    limits: Limits
    tokens: Tokens | None
    names: Collection[str]
    metrics: Metrics
    logged: bool
    n_running: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = _Sender(send, scope)
        if scope["method"] == "HEAD":  # answered as GET, without the body
            scope = {**scope, "method": "GET"}
        self.n_running += 1
        self.metrics.running.inc()
        try:
            await self._handle(scope, receive, answer)
        finally:
            self.n_running -= 1
            self.metrics.running.dec()
            self._note(scope, answer)

    async def _handle(self, scope: Scope, receive: Receive, answer: "_Sender") -> None:
        """Let the application answer in time, or say why not."""
        headers, seconds = dict(scope["headers"]), self.limits.seconds
        try:
            self._check(scope, headers)
            receive = _replay(await self._read(scope, headers, receive), receive)
            take_name(scope, self.names)
            async with asyncio.timeout(seconds):
                await self.app(scope, receive, answer)
            return
        except Refused as refused:
            said = refused.answer
        except TimeoutError:
            said = failure(504, f"It took more than {seconds:g} s. Ask for less, or later.")
        except Exception as error:
            if answer.status:
                raise
            log.error("A request failed.", exc_info=error)
            said = failure(500, "The service failed. Its log says why.")
        if not answer.status:
            await said(scope, receive, answer)

    def _check(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1")
        if self.tokens is None and not is_loopback(without_port(host)):
            raise Refused(
                400, "The Host header is not a name of this machine. Ask at http://127.0.0.1."
            )
        if self.tokens and not is_open(scope["path"]):
            token = scope["token"] = self.tokens.find(headers.get(b"authorization", b""))
            if token is None:
                sentence = "The token is missing or wrong. Send it as: Authorization: Bearer TOKEN"
                raise Refused(401, sentence, {"WWW-Authenticate": "Bearer"})
        if self.n_running > self.limits.waiting:
            sentence = "The service is too busy. Try again soon."
            raise Refused(503, sentence, {"Retry-After": "1"}, code="busy")

    async def _read(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Read the body; where nobody has shown a token it is thrown away, and costs no memory."""
        if scope["method"] not in ("POST", "PUT", "PATCH"):
            return b""
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise Refused(415, "Send JSON, with the header Content-Type: application/json.")
        if is_open(scope["path"]):
            return b""
        most, body = self.limits.body, bytearray()
        declared = headers.get(b"content-length", b"")
        too_large = declared.isdigit() and int(declared) > most
        more, cut = not too_large, False
        try:
            async with asyncio.timeout(self.limits.client_seconds):
                while more and not too_large:
                    message = await receive()
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    too_large = len(body) > most
                    cut = message["type"] == "http.disconnect"
        except TimeoutError:
            sentence = f"The body did not arrive within {self.limits.client_seconds:g} s."
            raise Refused(408, sentence, CLOSE) from None
        if too_large:
            await _linger(receive, 4 * most)
            sentence = f"The body must be at most {most:,} bytes. Send fewer or shorter texts."
            raise Refused(413, sentence, CLOSE)
        if cut:  # nobody reads this but the log
            raise Refused(400, "The request ended before its body did.", CLOSE)
        return bytes(body)

    def _note(self, scope: Scope, answer: "_Sender") -> None:
        seconds = time.perf_counter() - answer.start
        self.metrics.note(scope, answer.method, answer.status, seconds)
        if not self.logged:
            return
        fields = {
            "method": answer.method,
            "path": answer.path,
            "status": answer.status,
            "ms": round(1000 * seconds, 2),
            "bytes": answer.n_bytes,
            "id": answer.id,
            "pid": os.getpid(),
        }
        if (token := scope.get("token")) and token.name:
            fields["token"] = token.name
        requests.info("request", fields)


class _Sender:
    """Sends an answer with the headers that all answers have, and remembers what was sent."""

    def __init__(self, send: Send, scope: Scope) -> None:
        self.start = time.perf_counter()
        self.id = uuid.uuid4().hex[:16]
        self.status = 0
        self.n_bytes = 0
        self.method: str = scope["method"]
        self._send = send
        self.path: str = scope["path"]

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._headers()]
        elif self.method == "HEAD":
            message = {**message, "body": b""}
        else:
            self.n_bytes += len(message.get("body", b""))
        await self._send(message)

    def _headers(self) -> list[tuple[bytes, bytes]]:
        policy = DOCS_POLICY if self.path.startswith("/docs") else POLICY
        headers = [(b"content-security-policy", policy), (b"x-request-id", self.id.encode())]
        if self.path.startswith("/v1/"):
            headers.append((b"cache-control", b"no-store"))
        elif self.path == "/" or self.path.startswith("/page/"):
            # Modules of two versions must never meet; an ETag makes asking each time cheap.
            headers.append((b"cache-control", b"no-cache"))
        return headers + HEADERS


async def _linger(receive: Receive, most: int) -> None:
    """Read on for a while: a client that still sends would not see the answer."""
    n_bytes, more = 0, True
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            while more and n_bytes < most:
                message = await receive()
                n_bytes += len(message.get("body", b""))
                more = message.get("more_body", False)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read already once more, then what comes after it."""
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again
