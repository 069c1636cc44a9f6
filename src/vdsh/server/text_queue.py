"""Codes of single texts: those that wait at the same time are encoded together.

Sixteen texts cost hardly more than one, and a text gets the same code alone and among others. So
nothing waits for company: whatever has come while the last texts were encoded goes next.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from vdsh.codes import Codes
from vdsh.model import Model

MOST = 64  # texts at a time
LONGEST = 100_000  # characters; a longer text goes alone

Waiting = list[tuple[str, "asyncio.Future[EncodedText]"]]


class EncodedText(NamedTuple):
    """The code of a text, whether the text has no known word, and its unknown ones."""

    code: Codes
    empty: bool
    unknown: list[str]


class TextQueue:
    """Encodes texts in a thread of its own, so that slow searches do not keep them waiting.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vdsh-encoder")
        self._waiting: Waiting = []
        self._task: asyncio.Task[None] | None = None

    async def encode(self, text: str) -> EncodedText:
        """Return the code of a text."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[EncodedText] = loop.create_future()
        self._waiting.append((text, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work(loop))
        return await future

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown()

    async def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            some = self._take()
            texts = [text for text, _ in some]
            try:
                found = await loop.run_in_executor(self._thread, self._encode, texts)
            except Exception as error:
                for _, future in some:
                    if not future.done():
                        future.set_exception(error)
                continue
            for encoded, (_, future) in zip(found, some, strict=True):
                if not future.done():  # given up after the time for an answer
                    future.set_result(encoded)

    def _take(self) -> Waiting:
        """Take the texts that have waited longest, as many as go together well."""
        n_taken = length = 0
        for text, _ in self._waiting[:MOST]:
            length += len(text)
            if n_taken and length > LONGEST:
                break
            n_taken += 1
        some, self._waiting = self._waiting[:n_taken], self._waiting[n_taken:]
        return [(text, future) for text, future in some if not future.done()]

    def _encode(self, texts: list[str]) -> list[EncodedText]:
        if not texts:
            return []
        counts = self._model.counts(texts)
        codes = self._model.encode_counts(counts)
        empty = (np.diff(counts.indptr) == 0).tolist()
        unknown = map(self._model.unknown_words, texts)
        return [EncodedText(*one) for one in zip(codes, empty, unknown, strict=True)]
