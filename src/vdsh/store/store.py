"""Store: documents with their codes, written in batches, searched by text or code."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from operator import methodcaller
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Self, TypeVar

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.documents.document import BATCH, draw, in_batches
from vdsh.errors import InputError, VdshError
from vdsh.model import Model
from vdsh.model.drift import Drift
from vdsh.search.checks import check_count
from vdsh.store.backup import write_backup
from vdsh.store.care import describe, find_problems
from vdsh.store.drift import MOST_DRAWN, RECENT, measure_drift
from vdsh.store.duplicates import check_similarity, find_duplicates
from vdsh.store.engine import Engine, ModelChangedError
from vdsh.store.found import Found, Page, pages
from vdsh.store.hits import Duplicates, Hit, Hits, Within
from vdsh.store.model import encode_given, load_model, store_model
from vdsh.store.queries import Query, VectorQuery, read_queries
from vdsh.store.reindexing import check_model
from vdsh.store.rows import check_codes, check_id, read_codes, to_rows
from vdsh.store.searching import index_fields, search, to_hit, to_tree, within
from vdsh.store.table import describe_store
from vdsh.store.where import Filter

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher

AGAIN = 3  # times that a store may get another model while it is asked

T = TypeVar("T")


class Store:
    """Documents under string ids, with their codes; searched by text or code.

    Made by `open_store`. Use it as a context manager, or call `close`. Any number of processes
    read, and each call sees what was committed when it began. A store may be used from several
    threads, which take turns. `len(store)` counts its documents, `id in store` says whether there
    is one, and `for document in store` goes through all of them in the order of their ids.

    Parameters
    ----------
    engine : Engine
        Where the documents lie.
    meta : mapping of str
        What the store says about itself.
    model : Model, optional
        The model that made its codes, where it is in memory already.
    """

    def __init__(self, engine: Engine, meta: Mapping[str, str], model: Model | None = None) -> None:
        self._engine = engine
        self._meta = meta
        self._model = store_model(engine, meta, model)
        self._lock = RLock()
        self._closed = False

    def __repr__(self) -> str:
        n_bits = self._model.n_bits
        try:
            return f"<Store '{self._engine.shown}', {self.count():,} documents, {n_bits} bits>"
        except VdshError as error:  # closed, or its server does not answer
            return f"<Store '{self._engine.shown}', {n_bits} bits: {error}>"

    def _repr_html_(self) -> str:
        try:
            return describe_store(self.info())
        except VdshError:
            return f"<pre>{escape(repr(self))}</pre>"

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # also when it is empty

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and id != "" and self.get(id) is not None

    def __iter__(self) -> Iterator[Document]:
        for documents in self.documents():
            yield from documents

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def model(self) -> Model:
        """The model that makes the codes, loaded when first used."""
        return self._model.model

    def upsert(
        self,
        documents: Iterable[Document],
        codes: Codes | None = None,
        *,
        vectors: Any = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Add documents; one whose id is there already replaces the old one.

        Parameters
        ----------
        documents : iterable of Document
            Read as a stream, in batches of up to 2,000, each committed before the next is read.
        codes : ndarray of uint8 of shape (n_docs, n_bytes), optional
            Their codes, where they are known; texts are then not encoded.
        vectors : array of shape (n_docs, n_dimensions), optional
            Their vectors, which a model of vectors needs; texts are kept, and their words found.
        progress : callable, optional
            Called with the number of documents committed so far. Those are safe from then on.

        Returns
        -------
        int
            How many documents were written; one given twice counts twice.
        """
        if vectors is not None:
            codes = encode_given(self._model, vectors, documents, codes)
        if codes is not None:
            check_codes(codes, documents, self._model.n_bits)
        n_written = 0
        for batch in in_batches(documents, BATCH):
            some = None if codes is None else codes[n_written : n_written + len(batch)]
            write = partial(self._write, batch, some)
            self._retry(write, AGAIN if codes is None else 0)
            n_written += len(batch)
            if progress is not None:
                progress(n_written)
        self._model.warn_of_empty(n_written)
        if codes is not None and len(codes) > n_written:
            raise InputError(f"There are {len(codes)} codes but only {n_written} documents.")
        return n_written

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents; return how many were there."""
        if isinstance(ids, str):
            raise InputError(f"ids must be a list of ids. Got one string: [{ids!r}] is a list.")
        batches = (sorted({check_id(id) for id in some}) for some in in_batches(ids, BATCH))
        return sum(self._retry(partial(self._ask, methodcaller("remove", b))) for b in batches)

    def get(self, id: str) -> Document | None:
        """Return a document, or None where there is none of that id."""
        found = self._look_up([check_id(id)])
        return found[0].document if found else None

    def find(self, id: str) -> Hit | None:
        """Return a document with its code, as a hit of distance 0, or None where there is none."""
        found = self._look_up([check_id(id)])
        return to_hit(found[0]) if found else None

    def count(self, where: Filter | None = None) -> int:
        """Count all documents, or those that match a filter."""
        count = partial(self._ask, lambda engine: engine.count(to_tree(engine, where)))
        return self._retry(count)

    def labels(self) -> list[str]:
        """List the labels that documents have, in order."""
        return self._ask(lambda engine: engine.labels())

    def search(
        self,
        query: Query = "",
        k: int = 10,
        *,
        vector: Any = None,
        where: Filter | None = None,
        rank: str | None = None,
    ) -> Hits:
        """Find the k best documents for a text, or the k nearest to a code or a vector.

        Parameters
        ----------
        query : str, or ndarray of uint8 of shape (n_bytes,)
            In a text of one line and up to 32 words, a phrase in quotes must be in a document as
            it is, and a word behind a dash must not: `"red planet" -rover`.
        k : int, default=10
        vector : array of shape (n_dimensions,), optional
            What to look for where the model is one of vectors; with a text, whose words are
            looked for too, or alone. Without it, words alone find documents.
        where : dict, optional
            Which documents may be found, see `vdsh.store.where`.
        rank : {"relevance", "distance", "expected"}, optional
            "relevance", the default for a text, takes words and codes together: all words of the
            documents count, known to the model or not. "distance", the default for a code, is
            that of the codes. "expected", the default for a vector, re-orders the nearest
            documents (4k of them, 1000 at least) by the expected distance: the query keeps how
            sure each of its bits is. It needs a vector, or a text and a model with a posterior.

        Returns
        -------
        Hits
            A list of `Hit`, best first, ties by id; fewer than k where there are no more. Its
            `unknown` has the words of a text that had no effect. A text without any word that is
            known finds nothing, and `warning` says so.
        """
        asked = query if vector is None else VectorQuery(vector, query)
        return self.search_many([asked], k, where=where, rank=rank)[0]

    def search_many(
        self,
        queries: Sequence[Query],
        k: int = 10,
        *,
        where: Filter | None = None,
        rank: str | None = None,
    ) -> list[Hits]:
        """Search for several texts or codes; texts are encoded together. See `search`."""
        if isinstance(queries, str):
            raise InputError(f"queries must be a list. Got one string: [{queries!r}] is a list.")
        k = check_count("k", k, 1)

        def work() -> list[Hits]:
            ask = partial(search, k=k, where=where, rank=rank)
            read = read_queries(self._model, queries, rank)
            return [self._ask(partial(ask, query=query)) for query in read]

        return self._retry(work)

    def within(self, query: Query, radius: int = 2, *, where: Filter | None = None) -> Hits:
        """Find every document within `radius` bits of a text or a code, nearest first.

        A text may have phrases in quotes and words behind a dash, as in `search`.
        """
        return self._within(query, radius, None, where).hits

    def within_at_most(
        self, query: Query, radius: int, limit: int, *, where: Filter | None = None
    ) -> Within:
        """Find the `limit` nearest documents within a radius, and count all of them."""
        return self._within(query, radius, check_count("limit", limit, 1), where)

    def documents(self, batch_size: int = 1000) -> Iterator[list[Document]]:
        """Iterate over all documents in the order of their ids.

        The store may change meanwhile: each batch is read when it is asked for.
        """
        size = check_count("batch_size", batch_size, 1)
        for page in self._pages(lambda engine, last: engine.page(last, size), "", AGAIN):
            yield [found.document for found in page]

    def codes(self, batch_size: int = 10_000) -> Iterator[tuple[list[str], Codes]]:
        """Iterate over ids and codes, in the order of the ids."""
        size = check_count("batch_size", batch_size, 1)
        for page in self._pages(lambda engine, last: engine.code_page(last, size), ""):
            yield read_codes(page, self._model.n_bits // 8)

    def entries(
        self, after: str = "", batch_size: int = 1000
    ) -> Iterator[tuple[list[Document], Codes]]:
        """Iterate over documents with their codes, in the order of ids, those above `after`."""
        size = check_count("batch_size", batch_size, 1)
        for page in self._pages(lambda engine, last: engine.page(last, size), after):
            pairs = [(found.document.id, found.code) for found in page]
            yield [found.document for found in page], read_codes(pairs, self._model.n_bits // 8)[1]

    def duplicates(
        self, radius: int | None = None, *, similarity: float = 0.8
    ) -> Iterator[Duplicates]:
        """Find groups of documents whose texts are nearly that of the one that is kept.

        In the order of ids, each document that is in no group yet leads a new one and takes all
        later documents similar to it that are in none. Groups of one are left out. All texts are
        read once, page by page; those that may be similar are read again.

        Parameters
        ----------
        radius : int, optional
            Take only those whose codes differ in at most so many bits; any by default.
        similarity : float, default=0.8
            Pairs of successive words that two texts share, out of all that either has; from 0.1
            to 1. About one in 500 pairs that are just so similar is missed, and fewer of those
            that are more so; what is found is always so similar.
        """
        if radius is not None:
            radius = check_count("radius", radius, 0)
        check_similarity(similarity)

        def texts(ids: list[str]) -> dict[str, str]:
            return {one.document.id: one.document.text for one in self._look_up(ids)}

        return find_duplicates(self.entries(), texts, similarity, radius)

    def prepare_words(self, progress: Callable[[int, int], None] | None = None) -> bool:
        """Index the words of documents that an older version wrote, as the first search would.

        `progress` is called with the documents done and all that there are to do. Returns whether
        the store has an index of words; one without puts the nearest by code in order.
        """
        return self._ask(lambda engine: engine.prepare_words(progress))

    def index_fields(
        self, fields: Iterable[str], progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Index metadata fields, or "label", so that a filter need not read all documents.

        From 20,000 documents on it happens by itself when a filter first names a field.
        """
        self._ask(lambda engine: index_fields(engine, fields, progress))

    def info(self) -> dict[str, Any]:
        """Describe the store: how it searches, documents, bits, model, fields, labels, bytes."""
        tell = partial(self._ask, lambda engine: describe(engine, self._meta, self._model))
        return self._retry(tell)

    def check(self, sample: int = 200) -> list[str]:
        """Say what is wrong with the store and what to do: an empty list where all is well.

        The engine's own check, index and words against the documents, the model's checksum, and
        the codes of some documents made again.
        """
        find = partial(self._ask, lambda engine: find_problems(engine, self._model, sample))
        return self._retry(find)

    def sample(self, n: int) -> list[Document]:
        """Return n documents at random, always the same ones; or all, where there are fewer."""
        some = self._ask(lambda engine: engine.some_codes(check_count("n", n, 1)))
        batches = in_batches([id for id, _ in some], BATCH)
        return [found.document for ids in batches for found in self._look_up(ids)]

    def drift(self, documents: Iterable[Document] | None = None, *, recent: int = RECENT) -> Drift:
        """Say whether recent documents have moved away from the model; see `vdsh.model.drift`.

        Parameters
        ----------
        documents : iterable of Document, optional
            Recent documents, in the store or not; by default those that were written last. Of
            more than 10,000 as many are drawn at random.
        recent : int, default=1000
            How many of those, and half of the store at most.
        """
        n = check_count("recent", recent, 1)
        given = None if documents is None else draw(documents, MOST_DRAWN)

        def work(engine: Engine) -> Drift:
            return measure_drift(engine, model=self._model, documents=given, n=n)

        return self._retry(partial(self._ask, work))

    def back_up(
        self,
        file: str | os.PathLike[str],
        *,
        force: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Write the store to one file, as it is now, whatever others write meanwhile.

        `restore_store` makes a store of it again. `progress` is called with the pages written
        and all there are.
        """
        self._ask(lambda engine: write_backup(engine, Path(file), force=force, progress=progress))

    def compact(self) -> None:
        """Give back the space of documents that were deleted or replaced."""
        self._ask(lambda engine: engine.compact())

    def reindex(
        self,
        hasher: "TextHasher | Model | str | os.PathLike[str] | None" = None,
        *,
        restart: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Encode all documents with another model, which then is the store's own.

        Readers and writers go on with the old codes until one transaction switches, and have the
        new model from then on; documents that are written meanwhile are encoded too. Killed in
        the middle, it goes on where it stopped when it is called again with the same model.

        Parameters
        ----------
        hasher : TextHasher, Model or path of a model folder, optional
            The new model; None takes the one that the store had before, which is kept until
            `compact`.
        restart : bool, default=False
            Drop what was begun with another model and never finished.
        progress : callable, optional
            Called with the number of documents of each batch.
        """
        model = self._engine.previous_model() if hasher is None else load_model(hasher)
        check_model(self._engine.shown, model)
        self._ask(lambda engine: engine.reencode(model, restart=restart, progress=progress))
        self._follow(model)

    def interrupt(self) -> None:
        """Make a call of another thread give up soon, where the engine can; it raises then."""
        if not self._closed:
            self._engine.interrupt()

    def is_in_place(self) -> bool:
        """Say whether the store is still where it was opened, not removed or replaced."""
        return self._engine.is_in_place()

    def close(self) -> None:
        """Give the store's files back; a second call does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._engine.close()

    def _ask(self, work: Callable[[Engine], T]) -> T:
        with self._lock:
            if self._closed:
                raise InputError(f"The store '{self._engine.shown}' is closed. Open it again.")
            return work(self._engine)

    def _write(self, documents: Sequence[Document], codes: Codes | None) -> None:
        rows = to_rows(documents, codes, self._model.encode)
        self._ask(lambda engine: engine.write(rows))

    def _retry(self, work: Callable[[], T], times: int = AGAIN) -> T:
        """Do what depends on the model; once more, where the store got another one meanwhile."""
        while True:
            try:
                return work()
            except ModelChangedError:
                self._follow()
                times -= 1
                if times < 0:
                    raise

    def _pages(
        self, ask: Callable[[Engine, str], Page], first: str, times: int = 0
    ) -> Iterator[Page]:
        """Read page after page; codes of two models are not given out together."""

        def read(last: str) -> Page:
            work = partial(self._ask, lambda engine: ask(engine, last))
            return self._retry(work, AGAIN if last == first else times)

        return pages(read, first)

    def _follow(self, model: Model | None = None) -> None:
        """Take the model that the store has now."""
        with self._lock:
            self._meta = self._engine.meta()
            self._model = store_model(self._engine, self._meta, model)

    def _look_up(self, ids: Sequence[str]) -> list[Found]:
        return self._retry(partial(self._ask, methodcaller("look_up", ids)))

    def _within(self, query: Query, radius: int, limit: int | None, where: Filter | None) -> Within:
        def work() -> Within:
            (asked,) = read_queries(self._model, [query], None, by_words=False)
            ask = partial(within, query=asked, radius=radius, where=where, limit=limit)
            return self._ask(ask)

        return self._retry(work)
