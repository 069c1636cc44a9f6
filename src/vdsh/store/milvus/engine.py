"""Milvus as an engine: binary vectors compared by Hamming distance.

What Milvus cannot filter is looked at here, so answers are those of every other engine.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from vdsh.codes import Codes
from vdsh.errors import FolderError, InputError, MissingFileError
from vdsh.store.addresses import Address
from vdsh.store.engine import Engine, Found, FoundWithin, Stored
from vdsh.store.milvus.collection import MOST, DocumentCollection, Pairs
from vdsh.store.milvus.keys import from_key, to_key
from vdsh.store.milvus.notes import Notes
from vdsh.store.milvus.session import Session
from vdsh.store.milvus.tables import (
    Entry,
    check_name,
    chunks,
    documents_schema,
    partition_of,
    piece_keys,
    to_document,
    to_entry,
)
from vdsh.store.milvus.where import Expression, quoted, to_expression, with_partial
from vdsh.store.rows import Rows
from vdsh.store.where import All, Compare, Tree, matches

MANY_DOCUMENTS = 1000  # fetched at a time
MESSAGE = 16_000_000  # bytes; a server takes 64 MiB
LISTS, PROBED = 1024, 64  # of BIN_IVF_FLAT
OPTIONS = ("index", "partition", "secure", "database", "collection")
FIELDS = ["id", "code", "document", "pieces"]

_making = Lock()


def connect(address: Address, *, wait: float, may_create: bool) -> "Milvus":
    """Connect to Milvus, or start a Milvus Lite; only a store that is made makes a file."""
    address.check_options(OPTIONS)
    if address.scheme == "milvus-lite" and not may_create and not Path(address.place).exists():
        raise MissingFileError(
            f"No store at '{address.shown}'. Give a model to make one: open_store(url, hasher), "
            f"or vdsh index MODEL DOCS --store '{address.shown}'."
        )
    return Milvus(address, wait=wait)


class Milvus(Engine):
    """A connection to Milvus; see `Engine`."""

    def __init__(self, address: Address, *, wait: float) -> None:
        self.shown = address.shown
        self._address = address
        self._collection = check_name(address.name or address.option("collection", "vdsh"))
        self._index = address.option("index", "flat", ("flat", "ivf"))
        self._partition = address.options.get("partition")
        if address.scheme == "milvus-lite" and (self._index != "flat" or self._partition):
            raise InputError(
                "Milvus Lite knows neither ?index= nor ?partition=. Leave them out, or use a "
                "Milvus server."
            )
        self._session = Session(address, wait=wait)
        self._notes = Notes(self._session, f"{self._collection}_vdsh")
        self._documents = DocumentCollection(self._session, self._collection)

    def meta(self) -> dict[str, str]:
        """Return what the store says about itself; an empty dict where it is not made yet."""
        there = set(self._session.call("list_collections"))
        if self._notes.name not in there:
            if self._collection in there:
                raise FolderError(
                    f"'{self.shown}' is not a store: the collection {self._collection} belongs to "
                    "something else. Choose another name."
                )
            return {}
        self._session.load(self._notes.name)
        meta = self._notes.under("meta/")
        if "format" not in meta or self._collection not in there:
            return {}  # making it was interrupted
        self._session.load(self._notes.name, self._collection)
        self._partition, self._index = meta["partition"] or None, meta["index"]
        self._documents.params = {"nprobe": PROBED} if self._index == "ivf" else {}
        return meta

    def create(self, meta: Mapping[str, str], files: Mapping[str, bytes]) -> dict[str, str]:
        """Make both collections; what the store says about itself comes last."""
        with _making:
            return self.meta() or self._create(meta, files)

    def _create(self, meta: Mapping[str, str], files: Mapping[str, bytes]) -> dict[str, str]:
        self._notes.create()
        self._notes.write_files(meta["fingerprint"], files)
        schema = documents_schema(int(meta["n_bits"]), partitioned=self._partition is not None)
        kind = "BIN_IVF_FLAT" if self._index == "ivf" else "BIN_FLAT"
        params = {"nlist": LISTS} if self._index == "ivf" else {}
        self._notes.create_collection(self._collection, schema, "code", kind, params)
        shape = {"partition": self._partition or "", "index": self._index}
        self._notes.write("meta/", {**meta, **shape})
        return self.meta()

    def files(self) -> dict[str, bytes]:
        """Read the model's files."""
        return self._notes.files(self._notes.under("meta/")["fingerprint"])

    def fields(self) -> set[str]:
        """Return the names of all metadata fields."""
        return self._notes.names("field/")

    def labels(self) -> list[str]:
        """Return all labels that documents have or had, in order."""
        return sorted(self._notes.names("label/"))

    def write(self, rows: Rows) -> None:
        """Write rows: names and pieces first, then the documents in one message where they fit."""
        pairs = zip(rows.rows, rows.documents, strict=True)
        entries = [to_entry(row, document, self._partition) for row, document in pairs]
        self._notes.note_names("field/", rows.fields)
        labels = {label for row in rows.rows if row[2] for label in json.loads(row[2])}
        self._notes.note_names("label/", labels)
        if any(entry.is_partial for entry in entries):
            self._notes.note_names("is/", {"partial"})
        if any(entry.pieces for entry in entries):
            self._notes.note_names("is/", {"cut"})
        replaced = self._pieces_of([entry.row["id"] for entry in entries])
        self._write_pieces(entries)
        for part in chunks([entry.row for entry in entries], MESSAGE):
            self._session.call("upsert", self._collection, part)
        self._notes.remove(replaced)

    def remove(self, ids: Sequence[str]) -> int:
        """Delete documents; return how many were there."""
        keys = [to_key(id) for id in ids]
        pieces = self._pieces_of(keys)
        these = f"id in {quoted(ids)}"
        n_there = self._documents.count(these)
        if n_there:
            self._session.call("delete", self._collection, filter=these)
        self._notes.remove(pieces)
        return n_there

    def look_up(self, ids: Sequence[str]) -> list[Stored]:
        """Return the documents of some ids."""
        return list(self._fetch([to_key(id) for id in ids]).values())

    def count(self, where: Tree | None) -> int:
        """Count documents; those that Milvus cannot count are looked at one by one."""
        expression = self._expression(where)
        if where is None or expression.exact:
            return self._documents.count(expression.text)
        pages = self._documents.pages(expression.text, MANY_DOCUMENTS, FIELDS)
        return sum(
            matches(where, stored.document) for page in pages for stored in self._stored(page)
        )

    def nearest(self, code: Codes, k: int, where: Tree | None) -> list[Found]:
        """Return the k nearest documents, ties by id."""
        expression = self._expression(where)
        n_tried = k if expression.exact else 4 * k + 64
        while True:
            pairs = self._documents.nearest(code, n_tried, expression.text)
            found = self._found(pairs, where)
            if len(found) >= k or len(pairs) < n_tried:
                return found[:k]
            n_tried *= 8

    def within(
        self, code: Codes, radius: int, where: Tree | None, limit: int | None = None
    ) -> FoundWithin:
        """Find the documents within a radius; where Milvus can filter, others are but counted."""
        expression = self._expression(where)
        pairs = self._documents.within(code, radius, expression.text)
        if expression.exact:
            return FoundWithin(self._found(pairs[:limit], where), len(pairs))
        found = self._found(pairs, where)
        return FoundWithin(found[:limit], len(found))

    def page(self, after: str, size: int) -> list[Stored]:
        """Return the documents with the lowest ids above `after`."""
        rows = self._documents.page(after and to_key(after), "", min(size, MANY_DOCUMENTS), FIELDS)
        return self._stored(rows)

    def code_page(self, after: str, size: int) -> list[tuple[str, bytes]]:
        """Return the lowest ids above `after` with their codes."""
        rows = self._documents.page(after and to_key(after), "", min(size, MOST), ["id", "code"])
        return [(from_key(row["id"]), row["code"][0]) for row in rows]

    def facts(self) -> dict[str, Any]:
        """Say which engine this is, how it searches, and its bytes on disk where they are known."""
        search = "exact, BIN_FLAT" if self._index == "flat" else "approximate, BIN_IVF_FLAT"
        if self._address.scheme == "milvus-lite":
            size = Path(self._address.place).stat().st_size
            return {"engine": "Milvus Lite", "search": search, "bytes": size}
        return {"engine": "Milvus", "search": search, "bytes": None}

    def close(self) -> None:
        """Close the connection; Milvus Lite stops when nobody uses it any more."""
        self._session.close()

    def _expression(self, where: Tree | None) -> Expression:
        expression = to_expression(where)
        if where is None or "partial" not in self._notes.names("is/"):
            return self._in_partition(where, expression)
        return with_partial(expression)

    def _in_partition(self, where: Tree | None, expression: Expression) -> Expression:
        """Name the partition where the filter asks for one value of its field."""
        parts = where.parts if isinstance(where, All) else (where,)
        for part in parts:
            if isinstance(part, Compare) and (part.field, part.operator) == (self._partition, "="):
                here = f'part == "{partition_of(part.values[0])}"'
                text = f"{here} and ({expression.text})" if expression.text else here
                return Expression(text, expression.exact)
        return expression

    def _found(self, pairs: Pairs, where: Tree | None) -> list[Found]:
        """Fetch documents; what has just been deleted or does not match is left out."""
        stored = self._fetch([key for _, key in pairs])
        found = [Found(distance, stored[key]) for distance, key in pairs if key in stored]
        return [f for f in found if where is None or matches(where, f.stored.document)]

    def _fetch(self, keys: Sequence[str]) -> dict[str, Stored]:
        found: dict[str, Stored] = {}
        for first in range(0, len(keys), MANY_DOCUMENTS):
            some = ", ".join([f'"{key}"' for key in keys[first : first + MANY_DOCUMENTS]])
            rows = self._documents.query(f"id in [{some}]", FIELDS)
            found |= zip([row["id"] for row in rows], self._stored(rows), strict=True)
        return found

    def _stored(self, rows: Sequence[Mapping[str, Any]]) -> list[Stored]:
        wanted = [key for row in rows if row["pieces"] for key in piece_keys(row["pieces"])]
        pieces = self._notes.look_up(wanted)
        stored = []
        for row in rows:
            body = row["document"]
            if row["pieces"]:
                body = "".join([pieces[key] for key in piece_keys(row["pieces"])])
            stored.append(Stored(to_document(row["id"], body), row["code"][0]))
        return stored

    def _pieces_of(self, keys: Sequence[str]) -> list[str]:
        """List the pieces that belong to documents."""
        if "cut" not in self._notes.names("is/"):
            return []
        some = ", ".join([f'"{key}"' for key in keys])
        rows = self._documents.query(f'id in [{some}] and pieces != ""', ["pieces"])
        return [key for row in rows for key in piece_keys(row["pieces"])]

    def _write_pieces(self, entries: Sequence[Entry]) -> None:
        pieces: dict[str, str] = {}
        for entry in entries:
            if entry.pieces:
                keys = piece_keys(entry.row["pieces"])
                pieces |= zip(keys, entry.pieces, strict=True)
        self._notes.write("", pieces)
