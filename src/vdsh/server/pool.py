"""The store behind the service: a few open handles, and the threads that use them."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from vdsh import corpus_map
from vdsh.errors import DamageError, VdshError
from vdsh.jit import load_kernels
from vdsh.model import Model
from vdsh.server.json_routes import without_paths
from vdsh.store import Store, open_store
from vdsh.store.engine import ModelChangedError
from vdsh.store.hits import ParsedQuery
from vdsh.store.queries import encode_words, read_words

T = TypeVar("T")

HANDLES = 2  # a slow filter must not keep quick searches waiting
WAIT = 10.0  # seconds for another writer
TOGETHER = 16  # texts that are encoded at a time; then others come in between
SLOW = 5.0  # seconds that a question may wait before the service is not ready
AGAIN = 0.05  # seconds after which a question that goes on is interrupted once more
LAST = 2.0  # seconds for questions to end when the service does


class StorePool:
    """Handles of one store, each used by one thread at a time.

    The threads of one handle take turns, so several handles let a quick call pass a slow one. A
    store that is open already is used as it is, and left open.
    """

    # The handles share it, as they share the index. Where the store was encoded anew with another
    # one, it is that one from the next search on.
    model: Model
    path: str = ""  # the store's folder

    def __init__(
        self, source: str | os.PathLike[str] | Store, *, handles: int = HANDLES, device: str = "cpu"
    ) -> None:
        self._kept: dict[str, tuple[Any, Any]] = {}
        self.bulk = asyncio.Lock()  # streams write in turn: searches find a free handle
        self._source, self._device = source, device
        # The threads of an open store take turns: a second handle would wait for the first.
        self._n_handles = 1 if isinstance(source, Store) else handles
        self._handles: list[Store] = []
        self._models: dict[Store, Model] = {}
        self._free: SimpleQueue[Store] = SimpleQueue()
        self._threads = ThreadPoolExecutor(self._n_handles, thread_name_prefix="vdsh-server")
        # Of its own: a text would wait twice in the queue behind slow searches.
        self._encoder = ThreadPoolExecutor(1, thread_name_prefix="vdsh-encoder")
        self._lock = Lock()
        self._questions: set[_Question] = set()
        self._damaged = False

    async def find_trouble(self) -> str | None:
        """Say why the store should not be asked now, or cannot count its documents."""
        try:
            if not self._handles:
                return "The store is not open yet."
            if not self._handles[0].is_in_place():
                return (
                    "The store was removed or replaced, or its database cut short, while it was "
                    "served. Start the service again."
                )
            if self._damaged:
                return "The database of the store is damaged. Restore a copy and start the service."
            if (waited := self._waited()) > SLOW:
                return f"The store is busy: a question has waited for {waited:.0f} s."
            async with asyncio.timeout(SLOW):
                await self.call(len)
        except TimeoutError:
            return f"The store is busy: it did not answer within {SLOW:g} s."
        except ModelChangedError:  # it answers, with a new model
            return None
        except VdshError as error:
            return without_paths(str(error), [self.path])
        return None

    def has_map(self) -> bool:
        """Say whether `vdsh research map` was run on the store."""
        return Path(self.path, corpus_map.FILE).exists()

    def memo(self, what: str, version: Any, make: Callable[[], T]) -> T:
        """Return the thing of that version; what is kept of another one is forgotten."""
        kept = self._kept.get(what)
        if kept is None or kept[0] != version:
            kept = self._kept[what] = (version, make())
        found: T = kept[1]
        return found

    def open(self) -> None:
        """Open the store, load its model and search once; a second call does nothing."""
        with self._lock:
            if not self._handles:
                self._handles = self._open()

    def close(self) -> None:
        """Interrupt what still runs and give the store back, unless a thread hangs in it."""
        for threads in (self._threads, self._encoder):
            threads.shutdown(wait=False, cancel_futures=True)
        self._give_up(self._questions, time.monotonic() + LAST)
        if not isinstance(self._source, Store) and not self._questions:
            for handle in self._handles:
                handle.close()
        self._handles = []

    async def read(self, *texts: str, rank: str) -> list[ParsedQuery]:
        """Return the words and the codes of texts."""
        if not self._handles:
            await self.call(lambda _: None)
        found: list[ParsedQuery] = []
        while some := texts[len(found) : len(found) + TOGETHER]:
            loop = asyncio.get_running_loop()
            found += await loop.run_in_executor(self._encoder, _encode, self.model, some, rank)
        return found

    async def call(self, work: Callable[[Store], T]) -> T:
        """Run `work(store)` in a thread; where nobody waits any more, it is interrupted."""
        question = _Question()
        self._questions.add(question)
        running = self._threads.submit(self._run, work, question)
        running.add_done_callback(lambda _: self._questions.discard(question))
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            # In a thread: a database elsewhere is asked over the network to give up.
            Thread(target=self._give_up, args=({question},), daemon=True).start()
            raise

    async def compute(self, work: Callable[[], T]) -> T:
        """Run `work()`, which needs no handle, in a thread; it should be short."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _give_up(self, questions: "set[_Question]", deadline: float = inf) -> None:
        """Interrupt questions until they end: one may just be between two statements."""
        while (left := questions & self._questions) and time.monotonic() < deadline:
            for question in left:
                question.interrupt()
            time.sleep(AGAIN)

    def _run(self, work: Callable[[Store], T], question: "_Question") -> T:
        if not self._handles:
            self.open()
        handle = self._free.get()
        with question.lock:
            question.handle, question.began = handle, time.monotonic()
        try:
            found = work(handle)
            if self._follow(handle):
                raise ModelChangedError(
                    "The model of the store changed during the request. Send it again."
                )
            return found
        except ModelChangedError:
            self._follow(handle)
            raise
        except DamageError:
            self._damaged = True
            raise
        finally:
            with question.lock:
                question.handle = None
            self._free.put(handle)

    def _follow(self, handle: Store) -> bool:
        """Take the model of a handle that met another one, as `vdsh reindex` gives it; say so.

        A handle that lags behind does not bring the old one back.
        """
        with self._lock:
            if handle.model is self._models[handle]:
                return False
            self._models[handle] = handle.model
            if handle.model.fingerprint == self.model.fingerprint:
                return False
            self.model = handle.model
            return True

    def _waited(self) -> float:
        """Say how long a question has waited for a handle, or for all handles to move on."""
        now, questions = time.monotonic(), list(self._questions)
        waiting = [now - question.asked for question in questions if not question.began]
        running = [now - question.began for question in questions if question.began]
        all_busy = min(running) if len(running) >= self._n_handles else 0.0
        return max([all_busy, *waiting])

    def _open(self) -> list[Store]:
        load_kernels()
        source: Any = self._source
        how: Any = {"create": False, "wait": WAIT, "device": self._device}
        handles: list[Store] = [source] if isinstance(source, Store) else []
        with ExitStack() as opened:  # closed again where one of them, or the model, is missing
            for _ in range(self._n_handles - len(handles)):
                model = handles[0].model if handles else None
                handles.append(opened.enter_context(open_store(source, model, **how)))
            self.model, self.path = handles[0].model, handles[0].info()["path"]
            self._models = {handle: handle.model for handle in handles}
            for handle in handles:
                handle.search("anything", k=1)  # nobody who asks waits for codes to be read
            opened.pop_all()
        for handle in handles:
            self._free.put(handle)
        return handles


def _encode(model: Model, texts: Sequence[str], rank: str) -> list[ParsedQuery]:
    return encode_words(model, [read_words(text, rank) for text in texts])


@dataclass(eq=False)
class _Question:
    """Something asked of the store, from when it waits for a handle until its thread is done."""

    asked: float = field(default_factory=time.monotonic)
    began: float = 0.0
    handle: Store | None = None  # that one, and no other question's, is interrupted
    lock: Lock = field(default_factory=Lock)

    def interrupt(self) -> None:
        """Make the store give it up, if it is being answered."""
        with self.lock:
            if self.handle is not None:
                self.handle.interrupt()
