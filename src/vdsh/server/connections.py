"""Connections of slow clients: given up where a request's head or the reading takes too long.

Bodies that do not arrive are the matter of `guard`, which can still answer.
"""

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD, READING = "head", "reading"


class PatientConfig(uvicorn.Config):
    """Settings of uvicorn, and how long a client may take."""

    client_seconds: float = 20.0


class PatientProtocol(HttpToolsProtocol):
    """HTTP that does not wait for ever."""

    config: PatientConfig

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a request soon."""
        super().connection_made(transport)
        self._expect(HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._came(HEAD)
        self._came(READING)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Expect the rest of a request's head soon after its beginning."""
        if self.cycle is None or self.cycle.response_complete:
            self._expect(HEAD)
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Start with the request."""
        self._came(HEAD)
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Expect the client to read soon: it has not taken what was sent."""
        super().pause_writing()
        self._expect(READING)

    def resume_writing(self) -> None:
        """Go on, since the client reads."""
        self._came(READING)
        super().resume_writing()

    def _expect(self, what: str) -> None:
        if what not in self._timers:
            seconds = self.config.client_seconds
            self._timers[what] = self.loop.call_later(seconds, self.transport.abort)

    def _came(self, what: str) -> None:
        if what in self._timers:
            self._timers.pop(what).cancel()
