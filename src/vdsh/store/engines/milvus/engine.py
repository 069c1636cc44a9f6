"""Milvus as an engine: binary vectors compared by Hamming distance.

What Milvus cannot filter is looked at here, so answers are those of every other engine. What each
method does is said in `Engine`.
"""
# ruff: noqa: D102

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock
from typing import Any

from vdsh.errors import FolderError
from vdsh.files import locked
from vdsh.model import Model
from vdsh.search.id_kinds import show
from vdsh.store.addresses import Address
from vdsh.store.engine import NEAREST, Engine, ModelChangedError, Progress, check_model, no_store
from vdsh.store.engines.milvus.collection import MOST, DocumentCollection, KeyValues, Pairs
from vdsh.store.engines.milvus.models import COLLECTION, LANGUAGE, Models, State, read_state
from vdsh.store.engines.milvus.session import MissingCollectionError, Session
from vdsh.store.engines.milvus.tables import check_name, chunks, piece_keys, to_document, to_entries
from vdsh.store.engines.milvus.where import Expression, from_key, in_parts, to_expression, to_key
from vdsh.store.hits import Found, ParsedQuery
from vdsh.store.queries import signs_of
from vdsh.store.ranking import ByRelevance, keep_fitting, reorder, words_text
from vdsh.store.rows import Rows
from vdsh.store.where import Tree, matches

MANY_DOCUMENTS = 1000  # fetched at a time
TRIES = 5  # to read a document that others replace
MOST_TERMS = 1000  # of a query
BY_WORDS = f"all words (Milvus BM25): the {NEAREST:,} best and the {NEAREST:,} nearest, re-ordered"
FIELDS = ["id", "code", "document", "pieces", "check_sum"]

_making = Lock()


class Milvus(Engine):
    """A connection to Milvus, or to a Milvus Lite that is started; see `Engine`.

    `may_create`: whether `create` may follow, since looking for a store makes no file.
    """

    own_tool = "Use milvus-backup."
    models: Models

    def __init__(self, address: Address, *, wait: float, may_create: bool) -> None:
        address.check_options(("collection",))
        is_lite = address.scheme == "milvus-lite"
        if is_lite and not may_create and not Path(address.place).exists():
            raise no_store(address.shown)
        self.shown = address.shown
        self._file = Path(address.place) if is_lite else None
        if is_lite:
            self.hold = self._hold
        self._collection = check_name(address.name or address.options.get("collection", "vdsh"))
        self._session = Session(address, wait=wait)
        self._values = self.values = KeyValues(self._session, f"{self._collection}_vdsh")
        self.models = Models(self._session, self._values, self._stored, self.shown)
        self._facts: Mapping[str, str] = {}  # of the collection that is asked
        self._documents = DocumentCollection(self._session, self._collection, self._check)

    def meta(self) -> dict[str, str]:
        there = set(self._session.call("list_collections"))
        if self._values.name not in there:
            if self._collection in there:
                raise FolderError(
                    f"'{self.shown}' is not a store: the collection {self._collection} belongs to "
                    "something else. Choose another name."
                )
            return {}
        self._session.load(self._values.name)
        facts = read_state(self._values).facts
        if facts.get(COLLECTION) not in there:
            return {}  # making it was interrupted
        self._facts = facts
        self._documents = DocumentCollection(self._session, facts[COLLECTION], self._check)
        try:
            self._session.load(self._values.name, self._documents.name)
        except MissingCollectionError:  # in this moment the store has got another
            return self.meta()
        return {name: value for name, value in facts.items() if name != COLLECTION}

    def create(self, meta: Mapping[str, str], model: Model) -> dict[str, str]:
        """Make both collections; what the store says about itself comes last."""
        with _making:
            if not self.meta():
                self._values.make()
                self.models.create(meta, model, self._collection)
            return self.meta()

    def fields(self) -> set[str]:
        return self._values.names("field/")

    def labels(self) -> list[str]:
        """Return all labels that documents have or had, in order."""
        return sorted(self._values.names("label/"))

    def write(self, rows: Rows) -> None:
        """Write rows: names and pieces first, then the documents in one message where they fit."""
        texts = [words_text(document) for document in rows.documents]
        spoken = self._settled_language(
            texts, lambda name: self._values.write("meta/", {LANGUAGE: name})
        )
        entries, pieces, marks = to_entries(rows, texts, spoken)
        self._values.add_names("field/", rows.fields)
        labels = {label for row in rows.rows if row[2] for label in json.loads(row[2])}
        self._values.add_names("label/", labels)
        self._values.add_names("is/", marks)
        replaced = self._pieces_of([entry["id"] for entry in entries])

        def upsert(state: State) -> None:
            collection = self._opened(state)
            self._values.write("", pieces)
            for part in chunks(entries):
                collection.call("upsert", part)

        self.models.write(rows.fingerprint, rows.n_bytes, upsert)
        self._values.remove(replaced)

    def remove(self, ids: Sequence[str]) -> int:
        keys = [to_key(id) for id in ids]
        pieces = self._pieces_of(keys)
        these = f"id in {in_parts(keys, len(keys))[0]}"
        n_there = self._documents.count(these)

        def delete(state: State) -> None:
            if n_there:
                self._opened(state).call("delete", filter=these)

        self.models.write(None, None, delete)
        self._values.remove(pieces)
        return n_there

    def look_up(self, ids: Sequence[str]) -> list[Found]:
        return list(self._fetch([to_key(id) for id in ids]).values())

    def present(self, ids: Sequence[str]) -> set[str]:
        found = set[str]()
        for some in in_parts([to_key(id) for id in ids], MANY_DOCUMENTS):
            rows = self._documents.query(f"id in {some}", ["id"])
            found.update(from_key(row["id"]) for row in rows)
        return found

    def count(self, where: Tree | None) -> int:
        """Count documents; those that Milvus cannot count are looked at one by one."""
        expression = self._expression(where)
        if where is None or expression.exact:
            return self._documents.count(expression.text)
        pages = self._documents.pages(expression.text, MANY_DOCUMENTS, FIELDS)
        return sum(
            matches(where, stored.document)
            for page in pages
            for stored in self._stored(page).values()
        )

    def nearest(self, query: ParsedQuery, n: int, where: Tree | None) -> list[Found]:
        check_model(self._facts, query.fingerprint)
        expression = self._expression(where)
        n_tried = n if expression.exact else 4 * n + 64
        while True:
            pairs = self._documents.nearest(query.code, n_tried, expression.text)
            found = self._found(pairs, where)
            if len(found) >= n or len(pairs) < n_tried:
                return found[:n]
            n_tried *= 8

    def relevant(
        self, ranking: ByRelevance, where: Tree | None, progress: Progress | None = None
    ) -> list[Found]:
        """Put the best by words, as Milvus finds them, and the nearest by code in order.

        A rare word brings the documents that have it, so one that none of them has is mistyped;
        what it was meant to be is looked for among their words, and then asked for.
        """
        near = self.nearest(ranking.query, NEAREST, where) if len(ranking.query.code) else []
        found, spoken = {one.document.id: one for one in near}, self.language()
        self._add_by_words(found, ranking, where)
        best = reorder(list(found.values()), ranking, spoken, correct=where is None)
        if not ranking.meant:
            return best
        self._add_by_words(found, ranking, where)
        return reorder(list(found.values()), ranking, spoken)

    def _add_by_words(
        self, found: dict[str, Found], ranking: ByRelevance, where: Tree | None
    ) -> None:
        terms = dict.fromkeys(term.term for term in ranking.words.terms(self.language()))
        words = " ".join([term for term in terms if term[0] != "="][:MOST_TERMS])
        if words and (found or self.count(None)):  # none have no mean length
            keys = self._documents.by_words(words, NEAREST, self._expression(where).text)
            new = [(0, key) for key in keys if from_key(key) not in found]
            found |= {one.document.id: one for one in self._found(new, where)}

    def within(
        self, query: ParsedQuery, radius: int, where: Tree | None, limit: int | None = None
    ) -> tuple[list[Found], int]:
        """Find the documents within a radius; where Milvus can filter, others are but counted."""
        check_model(self._facts, query.fingerprint)
        expression = self._expression(where)
        pairs = self._documents.within(query.code, radius, expression.text)
        words = signs_of(query)
        if expression.exact and words is None:
            return self._found(pairs[:limit], where), len(pairs)
        found = self._found(pairs, where)
        if words is None:
            return found[:limit], len(found)
        return keep_fitting(found, words, limit, self.language())

    def page(self, after: str, size: int, of: str | None = None) -> list[Found]:
        check_model(self._facts, of or self._facts["fingerprint"])
        last, found = after and to_key(after), dict[str, Found]()
        while not found and (
            rows := self._documents.page(last, "", min(size, MANY_DOCUMENTS), FIELDS)
        ):
            last, found = rows[-1]["id"], self._stored(rows)
        return [found[key] for key in sorted(found)]

    def code_page(self, after: str, size: int, of: str | None = None) -> list[tuple[str, bytes]]:
        check_model(self._facts, of or self._facts["fingerprint"])
        rows = self._documents.page(after and to_key(after), "", min(size, MOST), ["id", "code"])
        return [(from_key(row["id"]), self._code(row)) for row in rows]

    def facts(self) -> dict[str, Any]:
        """Say which engine this is, how it searches, and its bytes on disk where they are known."""
        name = "Milvus" if self._file is None else "Milvus Lite"
        size = None if self._file is None else self._file.stat().st_size
        search = "exact, BIN_FLAT"
        return {"engine": name, "search": search, "words": BY_WORDS, "bytes": size}

    def compact(self) -> None:
        """Forget models that are not used; Milvus gives back the space of documents by itself."""
        self.models.forget()

    def interrupt(self) -> None:
        """Make what another thread asks give up before its next call."""
        self._session.interrupt()

    def close(self) -> None:
        """Close the connection; Milvus Lite stops when nobody uses it any more."""
        self._session.close()

    def _hold(self, name: str) -> AbstractContextManager[bool]:
        """Hold a lock, which is a file beside that of Milvus Lite; a server has none."""
        assert self._file is not None
        lock = f".{self._file.name}.{self._collection}.{name}.lock"
        return locked(self._file.with_name(lock))

    def _check(self) -> None:
        """Raise where the store has got another collection, since this one is gone."""
        state = read_state(self._values)
        if state.facts.get(COLLECTION) != self._facts.get(COLLECTION):
            raise ModelChangedError

    def _opened(self, state: State) -> DocumentCollection:
        return DocumentCollection(self._session, state.facts[COLLECTION], self._check)

    def _expression(self, where: Tree | None) -> Expression:
        is_partial = where is not None and "partial" in self._values.names("is/")
        return to_expression(where, partial=is_partial)

    def _found(self, pairs: Pairs, where: Tree | None) -> list[Found]:
        """Fetch documents; what has just been deleted or does not match is left out."""
        stored = self._fetch([key for _, key in pairs])
        found = [stored[key]._replace(distance=d) for d, key in pairs if key in stored]
        return [one for one in found if where is None or matches(where, one.document)]

    def _fetch(self, keys: Sequence[str], tries: int = TRIES) -> dict[str, Found]:
        found: dict[str, Found] = {}
        for some in in_parts(keys, MANY_DOCUMENTS):
            found |= self._stored(self._documents.query(f"id in {some}", FIELDS), tries)
        return found

    def _stored(self, rows: Sequence[Mapping[str, Any]], tries: int = TRIES) -> dict[str, Found]:
        """Make documents of rows; one that was replaced a moment ago is fetched anew."""
        pieces = self._values.look_up([key for row in rows for key in piece_keys(row["pieces"])])
        found, replaced = {}, []
        for row in rows:
            keys = piece_keys(row["pieces"])
            if not pieces.keys() >= {*keys}:
                replaced.append(row["id"])
                continue
            body = "".join([pieces[key] for key in keys]) if keys else row["document"]
            document = to_document(row["id"], body, row["check_sum"])
            found[row["id"]] = Found(document, self._code(row))
        if replaced and not tries:
            raise FolderError(
                f"'{self.shown}' is damaged: a part of the document {show(from_key(replaced[0]))} "
                "is missing. Write that document again, or delete it."
            )
        return found | (self._fetch(replaced, tries - 1) if replaced else {})

    def _code(self, row: Mapping[str, Any]) -> bytes:
        return row["code"][0] if self._facts["n_bits"] != "0" else b""

    def _pieces_of(self, keys: Sequence[str]) -> list[str]:
        if "cut" not in self._values.names("is/"):
            return []
        parts = in_parts(keys, MANY_DOCUMENTS)
        having = [f'id in {some} and pieces != ""' for some in parts]
        rows = [row for text in having for row in self._documents.query(text, ["pieces"])]
        return [key for row in rows for key in piece_keys(row["pieces"])]
