"""Documents as a stream: lines of JSON, written batch by batch while they arrive.

Each batch that is on disk is answered with a line, `{"written": 2000}`, which counts from the
beginning of the stream. The last line has `"done": true`, or the `error` that ended it: then all
that was counted is in the store and nothing after it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any
from warnings import catch_warnings, simplefilter

import orjson
from fastapi import Response
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from vdsh.documents import Document, DocumentReader
from vdsh.errors import InputError, VdshError, WriteError
from vdsh.model.model import EmptyDocumentWarning
from vdsh.server.bodies import Limits, NewDocument
from vdsh.server.json_routes import FAILURES, complaint, find_status, without_paths
from vdsh.server.service import Service
from vdsh.store import Store

KIND = "application/x-ndjson"
BATCH = 2000  # documents that are written and answered together
BYTES = 8 * 2**20  # that end a batch sooner
LINGER = 2.0  # seconds to read on after an error, so that the client sees it
AGAIN = "Send what was not written again."
_READER = DocumentReader("the stream", "jsonl", "id", ("text",), "labels")  # as `vdsh index` reads

log = logging.getLogger("vdsh.server")


def is_stream(scope: Scope) -> bool:
    """Say whether a request brings documents line by line."""
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    is_ours = any(kind.partition(b";")[0].strip().lower() == KIND.encode() for kind in kinds)
    return is_ours and scope["method"] == "POST" and scope["path"].endswith("/documents")


class BulkAnswer(Response):
    """Reads the body of its request while it answers."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service = service
        self.n_lines = self.n_written = 0
        self.started, self.more = False, True  # the answer; and whether more of the body comes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write what comes, and say so."""
        try:
            async for lines in _batches(self._chunks(scope, receive), self.service.limits.body):
                self.n_written += await self._write(lines)
                await self._say(send)
        except VdshError as error:
            log.warning("A stream ended early: %d documents were written.", self.n_written)
            if not self.started:
                raise  # there is still a status to give
            sentence = without_paths(str(error), [self.service.pool.path])
            await self._say(send, error=sentence, code=FAILURES[find_status(error)][0])
            if self.more:
                await linger(receive)
        else:
            await self._say(send, done=True)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(self, scope: Scope, receive: Receive) -> AsyncIterator[bytes]:
        """Give the body as it comes; raise where it will never be whole."""
        seconds = self.service.limits.client_seconds
        while self.more:
            try:
                async with asyncio.timeout(seconds):
                    message = await receive()
            except TimeoutError:
                self.more = False
                raise InputError(f"Nothing came for {seconds:g} s. {AGAIN}") from None
            self.more = message.get("more_body", False)
            if message["type"] == "http.disconnect" or scope.get("cut"):
                raise InputError(f"The stream was cut before its end. {AGAIN}")
            yield message.get("body", b"")
            if self.more and scope.get("stopping"):
                raise WriteError(f"The service stops. {AGAIN}")

    async def _say(self, send: Send, **fields: Any) -> None:
        """Send a line of the answer, the first behind its head."""
        if not self.started:
            self.started = True
            headers = [(b"content-type", KIND.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        line = orjson.dumps({"written": self.n_written, **fields}) + b"\n"
        await send({"type": "http.response.body", "body": line, "more_body": True})

    async def _write(self, lines: Sequence[bytes]) -> int:
        first, limits = self.n_lines + 1, self.service.limits
        self.n_lines += len(lines)

        def work(store: Store) -> int:
            # The field `vector` stays in the metadata where the model takes none.
            vectors: list[Any] | None = [] if store.model.needs_vectors else None
            numbered = [(number, line) for number, line in enumerate(lines, first) if line.strip()]
            documents = [_document(line, number, limits, vectors) for number, line in numbered]
            return write(store, documents, vectors)

        try:
            async with self.service.pool.bulk, asyncio.timeout(limits.seconds):
                return await self.service.pool.call(work)
        except TimeoutError:
            raise WriteError(f"Writing took more than {limits.seconds:g} s.") from None


def write(store: Store, documents: list[Document], vectors: list[Any] | None) -> int:
    """Write documents, and the vectors of those that have one; return how many."""
    some = vectors if any(vector is not None for vector in vectors or ()) else None
    with catch_warnings():  # a document without a known word is no mistake of the service
        simplefilter("ignore", EmptyDocumentWarning)
        return store.upsert(documents, vectors=some)


def _document(line: bytes, number: int, limits: Limits, vectors: list[Any] | None) -> Document:
    """Read a document as `vdsh index` does."""
    place = f"line {number:,}"
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        _READER.fail(place, f"broken JSON, {error.msg}.")
    if not isinstance(fields, dict) or fields.get("id") in (None, "") or "text" not in fields:
        _READER.fail(place, 'must have an id and a text, such as {"id": "a", "text": "b"}.')
    if vectors is not None:
        vectors.append(fields.pop("vector", None))
    inner = fields.pop("metadata") if isinstance(fields.get("metadata"), dict) else {}
    read = _READER.document(number, place, fields)
    read = replace(read, metadata=read.metadata | inner)
    labels = None if read.labels is None else list(read.labels)
    given = {"id": read.id, "text": read.text, "labels": labels, "metadata": read.metadata}
    try:
        NewDocument.model_validate(given, context=limits)  # within the limits of one that is alone
    except ValidationError as error:
        _READER.fail(place, complaint(error))
    return read


async def linger(receive: Receive, most: float = inf) -> None:
    """Read on for a while: a client that still sends would not see the answer."""
    n_bytes, more = 0, True
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            while more and n_bytes < most:
                message = await receive()
                n_bytes += len(message.get("body", b""))
                more = message.get("more_body", False)


async def _batches(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[list[bytes]]:
    """Cut what arrives into lines of at most so many bytes, and give some at a time."""
    lines, rest, size = list[bytes](), bytearray(), 0
    async for chunk in chunks:
        rest += chunk
        size += len(chunk)
        if b"\n" in chunk:
            *new, last = bytes(rest).split(b"\n")
            lines, rest = lines + new, bytearray(last)
        if len(rest) > most:
            raise InputError(f"A line must be at most {most:,} bytes.")
        while len(lines) >= BATCH or (lines and size > BYTES):
            some, lines = lines[:BATCH], lines[BATCH:]
            size = len(rest) + sum(map(len, lines))
            yield some
    if rest:  # the last line need not end
        lines.append(bytes(rest))
    if lines:
        yield lines
