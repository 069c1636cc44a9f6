"""Milvus as an engine: binary vectors compared by Hamming distance.

What Milvus cannot filter is looked at here, so answers are those of every other engine. What each
method does is said in `Engine`.
"""
# ruff: noqa: D102

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from vdsh.errors import FolderError
from vdsh.files import locked
from vdsh.model import Model
from vdsh.search.id_kinds import show
from vdsh.store.addresses import Address
from vdsh.store.engine import (
    Engine,
    ModelChangedError,
    Progress,
    Snapshot,
    Stored,
    check_model,
    no_store,
)
from vdsh.store.engines.milvus.collection import MOST, DocumentCollection, KeyValues
from vdsh.store.engines.milvus.models import COLLECTION, LANGUAGE, Models, State, read_state
from vdsh.store.engines.milvus.search import NEAREST, MilvusSearch
from vdsh.store.engines.milvus.session import MissingCollectionError, Session
from vdsh.store.engines.milvus.tables import check_name, chunks, piece_keys, to_document, to_entries
from vdsh.store.engines.milvus.where import Expression, from_key, in_parts, to_expression, to_key
from vdsh.store.rows import Rows, words_text
from vdsh.store.where import Tree, matches

MANY_DOCUMENTS = 1000  # fetched at a time
TRIES = 5  # to read a document that others replace
BY_WORDS = f"all words (Milvus BM25): the {NEAREST:,} best and the {NEAREST:,} nearest, re-ordered"
FIELDS = ["id", "code", "document", "pieces", "check_sum"]

_making = Lock()
T = TypeVar("T")


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

    def look_up(self, ids: Sequence[str]) -> list[Stored]:
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
            matches(where, document)
            for page in pages
            for document, _ in self._stored(page).values()
        )

    def read(
        self,
        work: Callable[[Snapshot], T],
        *,
        where: Tree | None = None,
        by_words: bool = False,
        progress: Progress | None = None,
    ) -> T:
        for _ in range(TRIES):
            search = MilvusSearch(
                self._documents, self._stored, self.language(), where, self._expression(where)
            )
            try:
                return work(Snapshot(self._facts, self.language(), search, search.fetch))
            except ModelChangedError:
                # The store has got another collection, with codes of another model.
                self.meta()
        raise ModelChangedError

    def page(self, after: str, size: int, of: str | None = None) -> list[Stored]:
        check_model(self._facts, of or self._facts["fingerprint"])
        last, found = after and to_key(after), dict[str, Stored]()
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

    def _fetch(self, keys: Sequence[str], tries: int = TRIES) -> dict[str, Stored]:
        found: dict[str, Stored] = {}
        for some in in_parts(keys, MANY_DOCUMENTS):
            found |= self._stored(self._documents.query(f"id in {some}", FIELDS), tries)
        return found

    def _stored(self, rows: Sequence[Mapping[str, Any]], tries: int = TRIES) -> dict[str, Stored]:
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
            found[row["id"]] = document, self._code(row)
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
