"""Store: documents with their codes, written in batches, searched by text or code."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.documents.document import BATCH, draw, in_batches, length
from vdsh.errors import InputError, VdshError
from vdsh.model import Model, NotLearnedError
from vdsh.model.drift import Drift, measure_drift
from vdsh.search.checks import check_count, check_list
from vdsh.store.duplicates import find_duplicates
from vdsh.store.hits import Duplicates, Found, Hit, Hits, Within, pages, to_hit
from vdsh.store.learning import CHANGES_MODEL, Learning
from vdsh.store.maintenance import describe, find_problems, write_backup, written_last
from vdsh.store.model import StoreModel, encode_given
from vdsh.store.queries import Query, read_queries
from vdsh.store.rows import check_given_codes, check_id, read_codes, to_rows
from vdsh.store.searching import AGAIN, check_filter, divide, search, to_tree, within
from vdsh.store.verbs import Verbs
from vdsh.store.where import Filter


class Store(Learning, Verbs):
    """Documents under string ids, with their codes; searched by text or code.

    Made by `open_store`. Use it as a context manager, or call `close`. Any number of processes
    read, and each call sees what was committed when it began. A store may be used from several
    threads, which take turns. `len(store)` counts its documents, `id in store` says whether there
    is one, and `for document in store` goes through all of them in the order of their ids.
    """

    def __repr__(self) -> str:
        n_bits = self._model.n_bits
        try:
            return f"<Store '{self._engine.shown}', {self.count():,} documents, {n_bits} bits>"
        except VdshError as error:  # closed, or its server does not answer
            return f"<Store '{self._engine.shown}', {n_bits} bits: {error}>"

    @property
    def path(self) -> str:
        """Its folder, or its URL without a password."""
        return self._engine.shown

    @property
    def n_bits(self) -> int:
        """Length of the codes; 0 where the store has not learned any."""
        return self._model.n_bits

    def remembered(self, prefix: str) -> dict[str, str]:
        """Read what `remember` wrote under a prefix that ends in a slash."""
        return self._ask(lambda engine: engine.values.remembered(prefix))

    def remember(self, prefix: str, values: Mapping[str, str]) -> None:
        """Keep short texts by key, beside the documents; those of the same keys are replaced."""
        self._ask(lambda engine: engine.values.remember(prefix, values))

    def forget(self, prefix: str, keys: Iterable[str]) -> None:
        """Remove what `remember` wrote."""
        for batch in in_batches([prefix + key for key in keys], BATCH):
            self._ask(lambda engine, some=batch: engine.values.forget(some))  # type: ignore[misc]

    @property
    def model(self) -> Model:
        """The model that makes the codes, loaded when first used."""
        return self._retry(lambda: self._model.model)

    @property
    def language(self) -> str:
        """The language of its words, which the first documents settle; "none" has no stems."""
        return self._ask_once(lambda engine: engine.language().name)

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
            Read as a stream, in batches of up to 8,000, each committed before the next is read.
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
        model = self._model
        if vectors is not None:
            documents = list(documents)
            codes = encode_given(model, vectors, documents, codes)
        if codes is not None:
            check_given_codes(codes, documents, model.n_bits)
        n_written = 0
        for batch in in_batches(documents, BATCH):
            some = None if codes is None else codes[n_written : n_written + len(batch)]
            write = partial(self._write, batch, some, None if codes is None else model)
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
        check_list("ids", ids, "a list of ids")
        batches = (sorted({check_id(id) for id in some}) for some in in_batches(ids, BATCH))
        return sum(self._ask(methodcaller("remove", batch)) for batch in batches)

    def find(self, id: str) -> Hit | None:
        """Return a document with its code, as a hit of distance 0, or None where there is none."""
        found = self._look_up([check_id(id)])
        return to_hit(found[0]) if found else None

    def count(self, where: Filter | None = None) -> int:
        """Count all documents, or those that match a filter."""
        return self._ask(lambda engine: engine.count(to_tree(engine, where)))

    def texts(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of some ids, of those that are there."""
        return {one.document.id: one.document.text for one in self._look_up(ids)}

    def get_many(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return the documents of some ids, of those that are there."""
        return {one.document.id: one.document for one in self._look_up(ids)} if ids else {}

    def present(self, ids: Iterable[str]) -> set[str]:
        """Return which of some ids are there; their texts are not read."""
        found = set[str]()
        for batch in in_batches(ids, BATCH):
            found |= self._ask(methodcaller("present", batch))
        return found

    def labels(self) -> list[str]:
        """List the labels that documents have, in order."""
        return self._ask_once(lambda engine: engine.labels())

    def search_many(
        self,
        queries: Sequence[Query],
        k: int = 10,
        *,
        where: Filter | None = None,
        rank: str | None = None,
        strict: bool = False,
    ) -> list[Hits]:
        """Search for several texts or codes; texts are encoded together. See `search`."""
        check_list("queries", queries)
        ask = partial(search, k=check_count("k", k, 1), where=where, rank=rank, strict=strict)

        def work() -> list[Hits]:
            read = read_queries(self._model, queries, rank)
            return [self._ask_once(partial(ask, query=query)) for query in read]

        found = self._retry(work)
        if not any(found):
            self._ask(partial(check_filter, where=where))
        return found

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
        for page in pages(lambda last: self._ask(methodcaller("page", last, size)), ""):
            yield [found.document for found in page]

    def codes(self, batch_size: int = 10_000) -> Iterator[tuple[list[str], Codes]]:
        """Iterate over ids and codes, in the order of the ids."""
        size = check_count("batch_size", batch_size, 1)
        found = self._pages(lambda engine, last, of: engine.code_page(last, size, of), "")
        return (read_codes(page, n_bytes) for page, n_bytes in found)

    def entries(
        self, after: str = "", batch_size: int = 1000
    ) -> Iterator[tuple[list[Document], Codes]]:
        """Iterate over documents with their codes, in the order of ids, those above `after`."""
        size = check_count("batch_size", batch_size, 1)
        found = self._pages(lambda engine, last, of: engine.page(last, size, of), after)
        return (divide(page, n_bytes) for page, n_bytes in found)

    def duplicates(self, *, similarity: float = 0.8) -> Iterator[Duplicates]:
        """Find groups of documents whose texts are nearly that of the one that is kept.

        In the order of ids, each document that is in no group yet leads a new one and takes all
        later documents similar to it that are in none. Groups of one are left out. All texts are
        read once, page by page; those that may be similar are read again.

        Parameters
        ----------
        similarity : float, default=0.8
            Pairs of successive words that two texts share, out of all that either has; from 0.1
            to 1. About one in 500 pairs that are just so similar is missed, and fewer of those
            that are more so; what is found is always so similar.
        """
        return find_duplicates(self.entries(), self.texts, similarity)

    def info(self) -> dict[str, Any]:
        """Describe the store: how it searches, documents, bits, model, fields, labels, bytes."""
        return self._ask(lambda engine: describe(engine, self._meta, self._model))

    def check(self, sample: int = 200) -> list[str]:
        """Say what is wrong with the store and what to do: an empty list where all is well.

        The engine's own check, index and words against the documents, the model's fingerprint, and
        the codes of some documents, or of none, made again.
        """
        return self._ask(lambda engine: find_problems(engine, self._model, sample))

    def sample(self, n: int) -> list[Document]:
        """Return n documents at random, always the same ones; or all, where there are fewer.

        Of long documents fewer are returned: together they have at most 200 million characters.
        """
        some = self._ask(lambda engine: engine.some_codes(check_count("n", n, 1)))
        batches = in_batches([id for id, _ in some], BATCH)
        found = (each.document for ids in batches for each in self._look_up(ids))
        return draw(found, n, size=length)

    def drift(
        self, documents: Iterable[Document] | None = None, *, recent: int | None = None
    ) -> Drift:
        """Say whether documents that are newer than the model differ from those it learned from.

        Documents that the model learned from, or that were held out then, are left out; of the
        others 2,000 are drawn at random. See `vdsh.model.drift`.

        Parameters
        ----------
        documents : iterable of Document, optional
            In the store or not; by default all of the store.
        recent : int, optional
            Of the store's documents only so many, those that were written last.
        """
        if not self._model.n_bits:
            raise NotLearnedError
        if recent is not None:
            if documents is not None:
                raise InputError("Give documents, or recent for those of the store, and not both.")
            n = check_count("recent", recent, 1)
            found = self._ask(lambda engine: written_last(engine, n))
            documents = [one.document for one in found]
        texts = (document.text for document in (self if documents is None else documents))
        return measure_drift(self.model, texts)

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
        self._ask_once(
            lambda engine: write_backup(engine, Path(file), force=force, progress=progress)
        )

    def compact(self) -> None:
        """Give back the space of documents that were deleted or replaced."""
        with self.alone("model", CHANGES_MODEL):  # a model that is being learned would be dropped
            self._ask_once(lambda engine: engine.compact())

    def interrupt(self) -> None:
        """Make a call of another thread give up soon, where the engine can; it raises then."""
        if not self._closed:
            self._engine.interrupt()

    def close(self) -> None:
        """Give the store's files back; a second call does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._engine.close()

    def _look_up(self, ids: Sequence[str]) -> list[Found]:
        return self._ask(methodcaller("look_up", ids))

    def _within(self, query: Query, radius: int, limit: int | None, where: Filter | None) -> Within:
        def work() -> Within:
            (asked,) = read_queries(self._model, [query], None, by_words=False)
            ask = partial(within, query=asked, radius=radius, where=where, limit=limit)
            return self._ask_once(ask)

        found = self._retry(work)
        if not found.total:
            self._ask(partial(check_filter, where=where))
        return found

    def _write(
        self, documents: Sequence[Document], codes: Codes | None, made_by: StoreModel | None
    ) -> None:
        model = made_by or self._model
        rows = to_rows(documents, codes, model.encode, model.fingerprint)
        self._ask_once(methodcaller("write", rows))
