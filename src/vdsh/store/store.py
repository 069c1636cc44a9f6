"""Store: documents with their codes, written in batches, searched by text or code."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Self, TypeVar

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.documents.document import BATCH, draw, in_batches, length
from vdsh.errors import GoneError, InputError, VdshError
from vdsh.model import Model, NotLearnedError
from vdsh.model.drift import Drift, measure_drift
from vdsh.search.checks import check_count, check_list
from vdsh.store.duplicates import find_duplicates
from vdsh.store.engine import Engine, ModelChangedError, Snapshot
from vdsh.store.hits import Duplicates, Hit, Hits, Page, Within, pages, stored_hit
from vdsh.store.learning import CHANGES_MODEL, embedder_to_learn_with, encode_with
from vdsh.store.maintenance import describe, find_problems, write_backup, written_last
from vdsh.store.model import StoreModel, encode_given, load_model
from vdsh.store.queries import AnyQuery, VectorQuery, encode_queries, rank_of
from vdsh.store.rows import check_given_codes, check_id, divide, read_codes, to_rows
from vdsh.store.searching import bar, check_filter, search, to_tree, within
from vdsh.store.where import Filter

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher

# Times that a batch is encoded again because the store got another model meanwhile.
MOST_MODELS = 10

T = TypeVar("T")


class Store:
    """Documents under string ids, with their codes; searched by text or code.

    Made by `open_store`. Use it as a context manager, or call `close`. Any number of processes
    read, and each call sees what was committed when it began. Several threads may use a store:
    their calls are serialized by a lock. `len(store)` counts its documents, `id in store` says
    whether there is one, and `for document in store` goes through all of them in the order of
    their ids.
    """

    def __init__(
        self,
        engine: Engine,
        facts: Mapping[str, str],
        model: Model | None,
        *,
        reopen: Callable[[], Engine],
    ) -> None:
        self._engine = engine
        # Gives another connection to the same store.
        self._reopen = reopen
        self._lock = RLock()
        self._closed = False
        self._facts = facts
        # Another thread may replace it at any time, so a method reads it once.
        self._model = StoreModel(facts, self._load_model, model)

    def __repr__(self) -> str:
        n_bits = self._model.n_bits
        try:
            return f"<Store '{self._engine.shown}', {self.count():,} documents, {n_bits} bits>"
        except VdshError as error:  # closed, or its server does not answer
            return f"<Store '{self._engine.shown}', {n_bits} bits: {error}>"

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
    def path(self) -> str:
        """Its folder, or its URL without a password."""
        return self._engine.shown

    @property
    def n_bits(self) -> int:
        """Length of the codes; 0 where the store has not learned any."""
        return self._model.n_bits

    @property
    def model(self) -> Model:
        """The model that makes the codes, loaded when first used."""
        return self._newest_model().model

    @property
    def language(self) -> str:
        """The language of its words, which the first documents settle; "none" has no stems."""
        return self._ask(lambda engine: engine.language().name)

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
            if codes is None:
                self._encode_and_write(batch)
            else:
                self._write(batch, codes[n_written : n_written + len(batch)], model)
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
        n_deleted = 0
        for batch in in_batches(ids, BATCH):
            checked = sorted({check_id(id) for id in batch})
            n_deleted += self._remove(checked)
        return n_deleted

    def get(self, id: str) -> Document | None:
        """Return a document, or None where there is none of that id."""
        hit = self.find(id)
        return None if hit is None else Document(hit.id, hit.text, hit.labels, hit.metadata)

    def find(self, id: str) -> Hit | None:
        """Return a document with its code, as a hit of distance 0, or None where there is none."""
        found = self._look_up([check_id(id)])
        return stored_hit(*found[0]) if found else None

    def texts(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of some ids, of those that are there."""
        return {document.id: document.text for document, _ in self._look_up(ids)}

    def get_many(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return the documents of some ids, of those that are there."""
        return {document.id: document for document, _ in self._look_up(ids)} if ids else {}

    def present(self, ids: Iterable[str]) -> set[str]:
        """Return which of some ids are there; their texts are not read."""
        found: set[str] = set()
        for batch in in_batches(ids, BATCH):
            found |= self._are_present(batch)
        return found

    def count(self, where: Filter | None = None) -> int:
        """Count all documents, or those that match a filter."""
        return self._ask(lambda engine: engine.count(to_tree(engine, where)))

    def labels(self) -> list[str]:
        """List the labels that documents have, in order."""
        return self._ask(lambda engine: engine.labels())

    def search(
        self,
        query: AnyQuery = "",
        k: int = 10,
        *,
        vector: Any = None,
        where: Filter | None = None,
        rank: str | None = None,
        strict: bool = False,
    ) -> Hits:
        """Find the k best documents for a text, or the k nearest to a code or a vector.

        Parameters
        ----------
        query : str, or ndarray of uint8 of shape (n_bytes,)
            In a text of one line and up to 32 words, quote a phrase to require it and prefix a
            word with `-` to exclude it: `"red planet" -rover`.
        k : int, default=10
        vector : array of shape (n_dimensions,), optional
            What to look for where the model hashes vectors, alone or with a text, whose words are
            looked for too. Without it, words alone find documents.
        where : dict, optional
            Which documents may be found, see `vdsh.store.where`.
        rank : {"relevance", "distance", "expected"}, optional
            "relevance", the default for a text, takes words and codes together: all words of the
            documents count, known to the model or not. "distance", the default for a code, is
            that of the codes. "expected", the default for a vector, re-orders the nearest
            documents (4k of them, 1000 at least) by the expected distance: the query keeps how
            sure each of its bits is. It needs a vector, or a text and a model with a posterior.
        strict : bool, default=False
            Leave out hits that are only `related`: documents without any word of the text, or with
            only parts of the name that it is.

        Returns
        -------
        Hits
            A list of `Hit`, best first, ties by id; fewer than k where there are no more. Its
            `unknown` has the words of a text that had no effect. A text without any word that is
            known finds nothing, and `warning` says so.
        """
        if vector is not None:
            query = VectorQuery(vector, query)
        return self.search_many([query], k, where=where, rank=rank, strict=strict)[0]

    def search_many(
        self,
        queries: Sequence[AnyQuery],
        k: int = 10,
        *,
        where: Filter | None = None,
        rank: str | None = None,
        strict: bool = False,
    ) -> list[Hits]:
        """Search for several texts or codes; texts are encoded together. See `search`."""
        check_list("queries", queries)
        k = check_count("k", k, 1)

        def find(snapshot: Snapshot) -> list[Hits]:
            model = self._model_of(snapshot)
            encoded = encode_queries(model, queries, rank)
            return [search(snapshot, query, k, rank, strict=strict) for query in encoded]

        by_words = any(rank_of(query, rank) == "relevance" for query in queries)
        found = self._read(find, where, by_words=by_words)
        if not any(found):
            self._ask(lambda engine: check_filter(engine, where=where))
        return found

    def within(self, query: AnyQuery, radius: int = 2, *, where: Filter | None = None) -> Hits:
        """Find every document within `radius` bits of a text or a code, nearest first."""
        return self._within(query, radius, None, where).hits

    def within_at_most(
        self, query: AnyQuery, radius: int, limit: int, *, where: Filter | None = None
    ) -> Within:
        """Find the `limit` nearest documents within a radius, and count all of them."""
        return self._within(query, radius, check_count("limit", limit, 1), where)

    def documents(self, batch_size: int = 1000) -> Iterator[list[Document]]:
        """Iterate over all documents in the order of their ids.

        The store may change meanwhile: each batch is read when it is asked for.
        """
        size = check_count("batch_size", batch_size, 1)
        for page in pages(lambda last: self._ask(lambda engine: engine.page(last, size)), ""):
            yield [document for document, _ in page]

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

    def learn(
        self,
        *,
        bits: int | None = None,
        labels: bool = False,
        model: "TextHasher | Model | str | os.PathLike[str] | None" = None,
        method: str | None = None,
        random_state: int = 0,
        embed: str | None = None,
        progress: bool = True,
    ) -> None:
        """Learn a model from the store's own documents, and answer by words and codes from then on.

        Searches and writers go on meanwhile, and one transaction switches; see `reindex`. Where it
        is interrupted, the store answers as before.

        Parameters
        ----------
        bits : int, optional
            Length of the codes. By default 128; 64 where fewer than 128 documents are different,
            32 where fewer than 64 are. At least 50 are needed.
        labels : bool, default=False
            Learn from the documents' labels too.
        model : TextHasher, Model or path of a model folder, optional
            Take this one, and learn nothing.
        method : str, optional
            A method of `TextHasher`; the best one by default.
        random_state : int, default=0
        embed : str, optional
            An embedding model, as "model2vec:FOLDER" or "sentence-transformers:NAME". The vectors
            that it makes of documents become 256 more bits of their codes, and it embeds queries
            too. By default the one that the store has; "none" learns without.
        progress : bool, default=True
            Draw bars.
        """
        from vdsh.progress import counting_bar

        with self.alone("model", CHANGES_MODEL):
            if model is None:
                # What learns uses stores, so it is asked for by name.
                fitting = import_module("vdsh.fitting")
                new = fitting.fit_store(
                    self,
                    bits,
                    labels=labels,
                    method=method,
                    random_state=random_state,
                    embed=embedder_to_learn_with(self.model, embed, self.path),
                    progress=progress,
                )
            elif embed is not None:
                raise InputError("Give a model, or embed to learn one with; not both.")
            else:
                new = load_model(model)
            with counting_bar("encoding", self.count(), enabled=progress) as bar:
                task = bar.task_ids[0]
                self._switch_to(new, restart=True, report=lambda n: bar.advance(task, n))

    def reindex(
        self,
        hasher: "TextHasher | Model | str | os.PathLike[str] | None" = None,
        *,
        restart: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Encode all documents with another model, which then is the store's own.

        Readers and writers go on with the old codes until one transaction switches, and have the
        new model from then on; documents that are written meanwhile are encoded too. Other threads
        use this handle as before. Killed in the middle, it goes on where it stopped when it is
        called again with the same model.

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
        with self.alone("model", CHANGES_MODEL):
            new = None if hasher is None else load_model(hasher)
            self._switch_to(new, restart=restart, report=progress or (lambda _: None))

    def info(self) -> dict[str, Any]:
        """Describe the store: how it searches, documents, bits, model, fields, labels, bytes."""
        return self._ask(lambda engine: describe(engine, self._facts, self._newest_model()))

    def check(self, sample: int = 200) -> list[str]:
        """Say what is wrong with the store and what to do: an empty list where all is well.

        The engine's own check, index and words against the documents, the model's fingerprint, and
        the codes of some documents, or of none, made again.
        """
        return self._ask(lambda engine: find_problems(engine, self._newest_model(), sample))

    def is_in_place(self) -> bool:
        """Say whether the store is still where it was opened, not removed or replaced."""
        return self._ask(
            lambda engine: engine.maintenance is None or engine.maintenance.is_in_place()
        )

    def sample(self, n: int) -> list[Document]:
        """Return n documents at random, always the same ones; or all, where there are fewer.

        Of long documents fewer are returned: together they have at most 200 million characters.
        """
        some = self._ask(lambda engine: engine.some_codes(check_count("n", n, 1)))
        batches = in_batches([id for id, _ in some], BATCH)
        found = (document for ids in batches for document, _ in self._look_up(ids))
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
        if not self._newest_model().n_bits:
            raise NotLearnedError
        if recent is not None:
            if documents is not None:
                raise InputError("Give documents, or recent for those of the store, and not both.")
            n = check_count("recent", recent, 1)
            found = self._ask(lambda engine: written_last(engine, n))
            documents = [document for document, _ in found]
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
        self._ask(lambda engine: write_backup(engine, Path(file), force=force, progress=progress))

    def compact(self) -> None:
        """Give back the space of documents that were deleted or replaced."""
        # A model that is being learned would be dropped.
        with self.alone("model", CHANGES_MODEL):
            self._ask(lambda engine: engine.compact())

    def remembered(self, prefix: str) -> dict[str, str]:
        """Read what `remember` wrote under a prefix that ends in a slash."""
        return self._ask(lambda engine: engine.values.remembered(prefix))

    def remember(self, prefix: str, values: Mapping[str, str]) -> None:
        """Keep short texts by key, beside the documents; those of the same keys are replaced."""
        self._ask(lambda engine: engine.values.remember(prefix, values))

    def forget(self, prefix: str, keys: Iterable[str]) -> None:
        """Remove what `remember` wrote."""
        for batch in in_batches([prefix + key for key in keys], BATCH):
            self._ask_to_forget(batch)

    @contextmanager
    def alone(self, name: str, other: str) -> Iterator[None]:
        """Hold a lock of a name; raise where another process has it.

        `other` says what that does, up to the store's name. A server of Milvus has no locks.
        """
        hold = self._engine.hold
        with nullcontext(True) if hold is None else hold(name) as is_mine:
            if not is_mine:
                raise InputError(f"{other} '{self._engine.shown}'. Try again when it has finished.")
            yield

    def interrupt(self) -> None:
        """Cancel a call that another thread is running, where the engine can. That call raises."""
        if not self._closed:
            self._engine.interrupt()

    def close(self) -> None:
        """Close the store. Closing it twice is safe."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._engine.close()

    def _ask(self, work: Callable[[Engine], T]) -> T:
        """Run some work on the engine when it is this thread's turn."""
        with self._lock:
            if self._closed:
                raise InputError(f"The store '{self._engine.shown}' is closed. Open it again.")
            try:
                return work(self._engine)
            except ModelChangedError:
                # A collection of Milvus goes when the store gets another model; this finds the new
                # one. Codes of the older model are refused again, so that a writer encodes anew.
                self._follow(self._engine.meta())
                return work(self._engine)

    def _read(
        self, work: Callable[[Snapshot], T], where: Filter | None, *, by_words: bool = False
    ) -> T:
        """Run some work on one state of the store."""

        def ask(engine: Engine) -> T:
            tree = to_tree(engine, where)
            with bar("indexing words") as progress:
                return engine.read(work, where=tree, by_words=by_words, progress=progress)

        return self._ask(ask)

    def _within(
        self, query: AnyQuery, radius: int, limit: int | None, where: Filter | None
    ) -> Within:
        radius = check_count("radius", radius, 0)

        def find(snapshot: Snapshot) -> Within:
            (encoded,) = encode_queries(self._model_of(snapshot), [query], None, by_words=False)
            return within(snapshot, encoded, radius, limit)

        found = self._read(find, where)
        if not found.total:
            self._ask(lambda engine: check_filter(engine, where=where))
        return found

    def _switch_to(
        self, model: Model | None, *, restart: bool, report: Callable[[int], None]
    ) -> None:
        """Encode all documents with another model, for a caller that holds the lock."""
        if not self.is_in_place():
            raise GoneError(f"'{self._engine.shown}' was removed or replaced. Open it again.")
        # On a connection of its own, so that nobody waits for it.
        with closing(self._reopen()) as engine:
            model = encode_with(engine, model, restart=restart, report=report)
        self._newest_model(model)

    def _look_up(self, ids: Sequence[str]) -> list[tuple[Document, bytes]]:
        return self._ask(lambda engine: engine.look_up(ids))

    def _are_present(self, ids: Sequence[str]) -> set[str]:
        return self._ask(lambda engine: engine.present(ids))

    def _remove(self, ids: Sequence[str]) -> int:
        return self._ask(lambda engine: engine.remove(ids))

    def _ask_to_forget(self, keys: Sequence[str]) -> None:
        self._ask(lambda engine: engine.values.forget(keys))

    def _pages(
        self, read: Callable[[Engine, str, str], Page], after: str
    ) -> Iterator[tuple[Page, int]]:
        """Read page after page with codes of one model, and the bytes of each code.

        `read` is called with the engine, the last id and the fingerprint of that model. It is an
        error where the store gets another one meanwhile: codes of two models are not given out
        together.
        """
        model = self._newest_model()

        def read_after(last: str) -> Page:
            return self._ask(lambda engine: read(engine, last, model.fingerprint))

        for page in pages(read_after, after):
            yield page, model.n_bits // 8

    def _encode_and_write(self, documents: Sequence[Document]) -> None:
        """Write documents; encode them again where the store got another model meanwhile."""
        for _ in range(MOST_MODELS):
            try:
                return self._write(documents, None, self._model)
            except ModelChangedError:
                self._newest_model()
        self._write(documents, None, self._model)

    def _write(self, documents: Sequence[Document], codes: Codes | None, model: StoreModel) -> None:
        rows = to_rows(documents, codes, model.encode, model.fingerprint)
        self._ask(lambda engine: engine.write(rows))

    def _load_model(self, fingerprint: str) -> Model:
        return self._ask(lambda engine: engine.models.load(fingerprint))

    def _model_of(self, snapshot: Snapshot) -> StoreModel:
        """Return the model of the codes that a snapshot sees."""
        return self._follow(snapshot.facts)

    def _newest_model(self, known: Model | None = None) -> StoreModel:
        """Return the model that the store has now; `known` need not be loaded, where it is that."""
        return self._ask(lambda engine: self._follow(engine.meta(), known))

    def _follow(self, facts: Mapping[str, str], known: Model | None = None) -> StoreModel:
        self._facts = facts
        if facts["fingerprint"] != self._model.fingerprint:
            self._model = StoreModel(facts, self._load_model, known)
        return self._model
