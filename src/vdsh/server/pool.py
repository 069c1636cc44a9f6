"""The store behind the service: a few open handles, and the threads that use them."""

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, TypeVar

from vdsh import corpus_map
from vdsh.cancel import check_wanted, given_up_by
from vdsh.errors import DamageError, VdshError
from vdsh.jit import load_kernels
from vdsh.model import Model
from vdsh.server.json_routes import without_paths
from vdsh.store import Store, open_store
from vdsh.store.engine import ModelChangedError

T = TypeVar("T")

HANDLES = 2  # a slow filter must not keep quick searches waiting
WAIT = 10.0  # seconds for another writer
SLOW = 5.0  # seconds to wait for a handle before the service is not ready
AGAIN = 0.05  # seconds after which a question that goes on is interrupted once more
LAST = 2.0  # seconds for questions to end when the service does
TRIES = 16  # where the store gets another model meanwhile


class StorePool:
    """Handles of one store, each used by one thread at a time.

    The threads of one handle take turns, so several handles let a quick call pass a slow one. A
    store that is open already is used as it is, and left open.
    """

    model: Model  # the newest that a handle has met
    path: str = ""  # the store's folder

    def __init__(
        self, source: str | os.PathLike[str] | Store, *, handles: int = HANDLES, device: str = "cpu"
    ) -> None:
        self._kept: dict[str, tuple[Any, Any]] = {}
        self._source, self._device = source, device
        # The threads of an open store take turns: a second handle would wait for the first.
        self._n_handles = 1 if isinstance(source, Store) else handles
        self._handles: list[Store] = []
        self._free: SimpleQueue[Store] = SimpleQueue()
        self._threads = ThreadPoolExecutor(self._n_handles, thread_name_prefix="vdsh-server")
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
            async with asyncio.timeout(SLOW):
                await self.call(len)
        except TimeoutError:
            return f"The store is busy: it did not answer within {SLOW:g} s."
        except VdshError as error:
            return without_paths(str(error), [self.path])
        return None

    def has_map(self) -> bool:
        """Say whether there is a map of the store, and of the model that it has now."""
        path = Path(self.path, corpus_map.FILE)
        try:
            changed = path.stat().st_mtime_ns
        except OSError:
            return False
        made_by = self.memo("model of the map", changed, lambda: corpus_map.model_of(path))
        return made_by == self.model.fingerprint

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
            if self._handles:
                return
            load_kernels()
            source: Any = self._source
            how: Any = {"create": False, "wait": WAIT, "device": self._device}
            handles: list[Store] = [source] if isinstance(source, Store) else []
            with ExitStack() as opened:  # closed again where one of them, or the model, is missing
                for _ in range(self._n_handles - len(handles)):
                    model = handles[0].model if handles else None
                    handles.append(opened.enter_context(open_store(source, model, **how)))
                for handle in handles:
                    handle.search("anything", k=1)  # nobody who asks waits for codes to be read
                opened.pop_all()
            for handle in handles:
                self._free.put(handle)
            self._handles, self.model, self.path = handles, handles[0].model, handles[0].path

    def close(self) -> None:
        """Interrupt what still runs and give the store back, unless a thread hangs in it."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._give_up(self._questions, time.monotonic() + LAST)
        if not isinstance(self._source, Store) and not self._questions:
            for handle in self._handles:
                handle.close()
        self._handles = []

    async def call(self, work: Callable[[Store], T]) -> T:
        """Run `work(store)` in a thread; where nobody waits any more, it is interrupted.

        It is run again where the store got another model meanwhile.
        """
        return await self._answer(partial(self._run, work))

    async def compute(self, work: Callable[[], T]) -> T:
        """Run `work()`, which needs no handle, in a thread; it is given up as in `call`."""

        def run(question: _Question) -> T:
            with given_up_by(question.given_up):
                check_wanted()
                return work()

        return await self._answer(run)

    async def _answer(self, run: "Callable[[_Question], T]") -> T:
        question = _Question()
        self._questions.add(question)
        running = self._threads.submit(run, question)
        running.add_done_callback(lambda _: self._questions.discard(question))
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            question.given_up.set()
            # In a thread: a database elsewhere is asked over the network to give up.
            Thread(target=self._give_up, args=({question},), daemon=True).start()
            raise

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
            question.handle = handle
        try:
            with given_up_by(question.given_up):
                check_wanted()
                return self._with_one_model(work, handle)
        except DamageError:
            self._damaged = True
            raise
        finally:
            with question.lock:
                question.handle = None
            self._free.put(handle)

    def _with_one_model(self, work: Callable[[Store], T], handle: Store) -> T:
        """Do it again where the store got another model meanwhile, as `vdsh reindex` gives it."""
        for _ in range(TRIES):
            before = self.model = handle.model
            with suppress(ModelChangedError):
                found = work(handle)
                if handle.model is before:
                    return found
        raise ModelChangedError("The model of the store changed during the request. Send it again.")


@dataclass(eq=False)
class _Question:
    """Something asked of the store, from when it waits for a handle until its thread is done."""

    handle: Store | None = None  # that one, and no other question's, is interrupted
    given_up: Event = field(default_factory=Event)  # what works in Python looks here
    lock: Lock = field(default_factory=Lock)

    def interrupt(self) -> None:
        """Make the store give it up, if it is being answered."""
        self.given_up.set()
        with self.lock:
            if self.handle is not None:
                self.handle.interrupt()
