"""One engine with the model of its codes: asked in turn, and once more where the model changed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import methodcaller
from threading import RLock
from typing import Any, TypeVar

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.documents.document import BATCH, in_batches
from vdsh.errors import InputError
from vdsh.model import Model
from vdsh.store.engine import Engine, ModelChangedError
from vdsh.store.found import Found, Page, last_id
from vdsh.store.model import StoreModel, encode_given
from vdsh.store.rows import check_codes, read_codes, to_rows

AGAIN = 10  # times that a store may get another model while it is asked

T = TypeVar("T")


class Access:
    """What threads share of an open store; they take turns.

    `meta`: what the store says about itself. `model`: the model of its codes, as far as known:
    `follow` takes the one that the store has now. Another thread may do so at any time, so who
    encodes takes `model` once, and its fingerprint goes with the codes.
    """

    def __init__(self, engine: Engine, meta: Mapping[str, str], model: Model | None) -> None:
        self.meta = meta
        self.model = StoreModel(meta, self._load, model)
        self._engine = engine
        self._lock = RLock()
        self._closed = False

    def ask(self, work: Callable[[Engine], T]) -> T:
        """Ask the engine; once more, where the store got another model meanwhile."""
        return self.retry(partial(self.ask_once, work))

    def ask_once(self, work: Callable[[Engine], T]) -> T:
        """Ask the engine when it is this thread's turn."""
        with self._lock:
            if self._closed:
                raise InputError(f"The store '{self._engine.shown}' is closed. Open it again.")
            return work(self._engine)

    def retry(self, work: Callable[[], T], times: int = AGAIN) -> T:
        """Do what depends on the model; once more, where the store got another one meanwhile."""
        while True:
            try:
                return work()
            except ModelChangedError:
                self.follow()
                times -= 1
                if times < 0:
                    raise

    def follow(self, model: Model | None = None) -> None:
        """Take the model that the store has now; the given one, where it is that."""
        with self._lock:
            self.meta = self._engine.meta()
            if self.meta["fingerprint"] != self.model.fingerprint:
                self.model = StoreModel(self.meta, self._load, model)

    def _load(self, fingerprint: str) -> Model:
        return self.ask_once(lambda engine: engine.load_model(fingerprint))

    def look_up(self, ids: Sequence[str]) -> list[Found]:
        """Return the documents of some ids, in any order."""
        return self.ask(methodcaller("look_up", ids))

    def texts(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of some ids, of those that are there."""
        return {one.document.id: one.document.text for one in self.look_up(ids)}

    def pages(self, ask: Callable[..., Page], after: str) -> Iterator[tuple[Page, int]]:
        """Read page after page with codes of one model, and the bytes of each code.

        `ask` is called with the engine, the last id and the fingerprint of that model. Before the
        first page the store may get another one; later that is an error, since codes of two models
        are not given out together.
        """

        def first() -> tuple[StoreModel, Page]:
            model = self.model
            return model, self.ask_once(lambda engine: ask(engine, after, model.fingerprint))

        model, page = self.retry(first)
        while page:
            yield page, model.n_bits // 8
            ask_next = partial(ask, last=last_id(page), of=model.fingerprint)
            page = self.retry(partial(self.ask_once, ask_next), 0)

    def entries(self, after: str = "", size: int = 1000) -> Iterator[tuple[list[Document], Codes]]:
        """Iterate over documents with their codes, in the order of ids, those above `after`."""
        for page, n_bytes in self.pages(
            lambda engine, last, of: engine.page(last, size, of), after
        ):
            pairs = [(found.document.id, found.code) for found in page]
            yield [found.document for found in page], read_codes(pairs, n_bytes)[1]

    def write(
        self,
        documents: Iterable[Document],
        codes: Codes | None,
        vectors: Any,
        progress: Callable[[int], None] | None,
    ) -> int:
        """Write documents in batches, with the codes or vectors that were given; count them."""
        model = self.model
        if vectors is not None:
            documents = list(documents)
            codes = encode_given(model, vectors, documents, codes)
        if codes is not None:
            check_codes(codes, documents, model.n_bits)
        n_written = 0
        for batch in in_batches(documents, BATCH):
            some = None if codes is None else codes[n_written : n_written + len(batch)]
            write = partial(self._write, batch, some, None if codes is None else model)
            self.retry(write, AGAIN if codes is None else 0)
            n_written += len(batch)
            if progress is not None:
                progress(n_written)
        self.model.warn_of_empty(n_written)
        if codes is not None and len(codes) > n_written:
            raise InputError(f"There are {len(codes)} codes but only {n_written} documents.")
        return n_written

    def _write(
        self, documents: Sequence[Document], codes: Codes | None, made_by: StoreModel | None
    ) -> None:
        model = made_by or self.model
        rows = to_rows(documents, codes, model.encode, model.fingerprint)
        self.ask_once(methodcaller("write", rows))

    def interrupt(self) -> None:
        """Make a call of another thread give up soon, where the engine can."""
        if not self._closed:
            self._engine.interrupt()

    def close(self) -> None:
        """Give the engine's files back; a second call does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._engine.close()
