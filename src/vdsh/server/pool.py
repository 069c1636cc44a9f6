"""The store behind the service: a few open handles, and the threads that use them."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from vdsh import corpus_map
from vdsh.server.encoder import EncodedText, Encoder
from vdsh.store import Store, open_store

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher

HANDLES = 2  # a slow filter must not keep quick searches waiting
WAIT = 10.0  # seconds for another writer

T = TypeVar("T")


class StorePool:
    """Handles of one store, each used by one thread at a time.

    The threads of one handle take turns, so several handles let a quick call pass a slow one.

    Parameters
    ----------
    source : path or Store
        A store that is open already is used as it is, and left open.

    Attributes
    ----------
    hasher : TextHasher
        The store's model, one for all handles.
    encoder : Encoder
        Encodes single texts with it.
    path : str
        The store's folder.
    """

    hasher: "TextHasher"
    encoder: Encoder
    path: str

    def __init__(self, source: str | os.PathLike[str] | Store, *, handles: int = HANDLES) -> None:
        self._source = source
        self._n_handles = handles
        self._handles: list[Store] = []
        self._free: SimpleQueue[Store] = SimpleQueue()
        self._threads = ThreadPoolExecutor(handles, thread_name_prefix="vdsh-server")
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether the store was opened and searched once."""
        return bool(self._handles)

    def has_map(self) -> bool:
        """Say whether `vdsh map` was run on the store."""
        return Path(self.path, corpus_map.FILE).exists()

    def open(self) -> None:
        """Open the store, load its model and search once; a second call does nothing."""
        with self._lock:
            if not self._handles:
                self._handles = self._open()
                for handle in self._handles:
                    self._free.put(handle)

    def close(self) -> None:
        """Wait for running calls and give the store back."""
        self._threads.shutdown()
        if self._handles:
            self.encoder.close()
        if not isinstance(self._source, Store):
            for handle in self._handles:
                handle.close()
        self._handles = []

    async def encode(self, text: str) -> EncodedText:
        """Return the code of one text; texts that wait at the same time are encoded together."""
        if not self._handles:
            await self.call(lambda _: None)
        return await self.encoder.encode(text)

    async def call(self, work: Callable[[Store], T]) -> T:
        """Run `work(store)` in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, work)

    def _run(self, work: Callable[[Store], T]) -> T:
        if not self._handles:
            self.open()
        handle = self._free.get()
        try:
            return work(handle)
        finally:
            self._free.put(handle)

    def _open(self) -> list[Store]:
        source = self._source
        if isinstance(source, Store):
            handles = [source] * self._n_handles
        else:
            first = open_store(source, wait=WAIT)
            more = range(self._n_handles - 1)
            handles = [first, *(open_store(source, first.hasher, wait=WAIT) for _ in more)]
        self.hasher, self.path = handles[0].hasher, handles[0].info()["path"]
        self.encoder = Encoder(self.hasher)
        empty = self.hasher.encode_and_count([""])[0][0]
        for handle in handles:
            handle.search(empty, k=1)
        return handles
