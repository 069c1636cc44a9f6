"""Texts as queries: those that wait at the same time are encoded together.

Sixteen texts cost hardly more than one, and a text gets the same code alone and among others. So
nothing waits for company: whatever has come while the last texts were encoded goes next.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from vdsh.model import Model
from vdsh.store.hits import ParsedQuery
from vdsh.store.queries import encode_words, read_words

MOST = 64  # texts at a time
LONGEST = 100_000  # characters; a longer text goes alone


class Waiting(NamedTuple):
    """A text that waits for its turn, how it will be ranked, and who waits for it."""

    text: str
    rank: str
    future: "asyncio.Future[ParsedQuery]"


class TextQueue:
    """Reads and encodes texts in a thread of its own: slow searches do not keep them waiting.

    `model`: may be replaced by another one.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vdsh-encoder")
        self._waiting: list[Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def read(self, text: str, rank: str) -> ParsedQuery:
        """Return the words and the code of a text."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ParsedQuery] = loop.create_future()
        self._waiting.append(Waiting(text, rank, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work(loop))
        return await future

    async def read_many(self, texts: Sequence[str], rank: str) -> list[ParsedQuery]:
        """Read texts, as many at a time as go together well: others come in between."""
        found: list[ParsedQuery] = []
        while len(found) < len(texts):
            some = texts[len(found) :][: _how_many(texts[len(found) :])]
            found += await asyncio.gather(*(self.read(text, rank) for text in some))
        return found

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown()

    async def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            some = self._take()
            try:
                found = await loop.run_in_executor(self._thread, self._read, some)
            except Exception as error:
                for one in some:
                    if not one.future.done():
                        one.future.set_exception(error)
                continue
            for query, one in zip(found, some, strict=True):
                if not one.future.done():  # given up after the time for an answer
                    one.future.set_result(query)

    def _take(self) -> list[Waiting]:
        """Take the texts that have waited longest, as many as go together well."""
        n_taken = _how_many([one.text for one in self._waiting[:MOST]])
        some, self._waiting = self._waiting[:n_taken], self._waiting[n_taken:]
        return [one for one in some if not one.future.done()]

    def _read(self, some: list[Waiting]) -> list[ParsedQuery]:
        return encode_words(self.model, [read_words(one.text, one.rank) for one in some])


def _how_many(texts: Sequence[str]) -> int:
    """Say how many of the first texts go together well."""
    n_taken = length = 0
    for text in texts[:MOST]:
        length += len(text)
        if n_taken and length > LONGEST:
            break
        n_taken += 1
    return n_taken
