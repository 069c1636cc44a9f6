"""PostgreSQL as an engine: a table of documents, codes as bit(n), exact search by a scan.

Distances are counted by pgvector's `<~>` where the extension is installed, else by `bit_count`.
With `?index=hnsw` pgvector's graph answers `search`, faster and not always exactly. It is made at
the first search: filling a table that has a graph takes much longer.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.errors import FolderError, InputError
from vdsh.model import Model
from vdsh.search.id_kinds import show
from vdsh.store.addresses import Address
from vdsh.store.engine import Engine
from vdsh.store.engines.postgres.session import Session
from vdsh.store.engines.postgres.tables import Tables, Vector
from vdsh.store.engines.postgres.where import escape, fields_json, to_sql, unescape
from vdsh.store.found import Choose, Found, choose_from
from vdsh.store.model import from_files, to_files
from vdsh.store.rows import Rows
from vdsh.store.where import Tree

LONGEST_ID = 2600  # bytes; an entry of a PostgreSQL index holds 2,704
LEAST_VERSION = 14_00_00  # bit_count came with it
LEAST_VECTOR = (0, 7)  # bit vectors came with it
PIECE = 8_000_000  # bytes of a model's file in a row
MOST_BY_GRAPH = 1000  # the longest list that hnsw keeps
GRAPH_MEMORY = "1GB"  # at most, while it is made


class Postgres(Engine):
    """A connection to PostgreSQL; see `Engine`."""

    def __init__(self, address: Address, *, wait: float) -> None:
        self.shown = address.shown
        self._by_graph = address.option("index", "exact", ("exact", "hnsw")) == "hnsw"
        self._has_graph = False
        self._tables = Tables(address.option("table", "vdsh"))
        self._session = Session(address, wait=wait)
        try:
            self._version, self._vector = self._look_at_server()
        except BaseException:
            self._session.close()
            raise

    def meta(self) -> dict[str, str]:
        """Return what the store says about itself; an empty dict where it is not made yet."""
        return self._session.run(self._read_meta)

    def create(self, meta: Mapping[str, str], model: Model | None) -> dict[str, str]:
        """Make the tables in one transaction, unless another process was faster."""
        tables, files = self._tables, to_files(model)

        def work(cursor: Any) -> dict[str, str]:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (tables.name,))
            there = self._read_meta(cursor)
            if there:
                return there
            for statement in tables.create(int(meta["n_bits"])):
                cursor.execute(statement)
            cursor.executemany(tables.sql("INSERT INTO {meta} VALUES (%s, %s)"), meta.items())
            insert = tables.sql("INSERT INTO {model} VALUES (%s, %s, %s)")
            cursor.executemany(insert, list(_pieces(files)))
            return self._read_meta(cursor)

        return self._session.run(work)

    def load_model(self) -> Model:
        """Load the model that is kept inside."""
        found: dict[str, bytes] = {}
        for name, data in self._ask("SELECT name, data FROM {model} ORDER BY name, piece"):
            found[name] = found.get(name, b"") + data
        return from_files(found)

    def fields(self) -> set[str]:
        """Return the names of all metadata fields."""
        return {unescape(name) for (name,) in self._ask("SELECT name FROM {fields}")}

    def labels(self) -> list[str]:
        """Return all labels, in order."""
        rows = self._ask("SELECT DISTINCT unnest(labels) FROM {documents}")
        return sorted(unescape(label) for (label,) in rows)

    def write(self, rows: Rows) -> None:
        """Write rows and the names of their fields in one transaction."""
        batch, n_bits = _batch(rows), 8 * len(rows.rows[0][4])
        names = sorted(escape(name) for name in rows.fields)

        def work(cursor: Any) -> None:
            cursor.execute(self._tables.upsert(n_bits), (batch,))
            cursor.execute(self._tables.note_fields(), (names,))

        self._session.run(work)

    def remove(self, ids: Sequence[str]) -> int:
        """Delete documents; return how many were there."""
        query = self._tables.sql("DELETE FROM {documents} WHERE id = ANY(%s::text[])")
        wanted = [escape(id) for id in ids]
        return self._session.run(lambda cursor: int(cursor.execute(query, (wanted,)).rowcount))

    def look_up(self, ids: Sequence[str]) -> list[Found]:
        """Return the documents of some ids."""
        query = "SELECT {columns} FROM {documents} WHERE id = ANY(%s::text[])"
        return [_found(row) for row in self._ask(query, [escape(id) for id in ids])]

    def count(self, where: Tree | None) -> int:
        """Count documents."""
        text, parameters = to_sql(where)
        rows = self._ask(f"SELECT count(*) FROM {{documents}} WHERE {text}", *parameters)
        return int(rows[0][0])

    def nearest(
        self, code: Codes, n: int, where: Tree | None, choose: Choose | None = None
    ) -> list[Found]:
        """Return the n nearest documents, ties by id, or those that are chosen of them."""
        found = self._nearest_by_graph(code, n, where) if self._by_graph else []
        if len(found) < n:
            found = self._search("nearest", code, where, n)
        return choose_from(found, choose)

    def within(
        self, code: Codes, radius: int, where: Tree | None, limit: int | None = None
    ) -> tuple[list[Found], int]:
        """Find the documents within a radius, nearest first, ties by id."""
        if limit is None:
            found = self._search("within", code, where, radius)
            return found, len(found)
        rows = self._search_rows("within at most", code, where, radius, limit)
        return [_found(row) for *row, _ in rows], rows[0][-1] if rows else 0

    def page(self, after: str, size: int) -> list[Found]:
        """Return the documents with the lowest ids above `after`."""
        query = "SELECT {columns} FROM {documents} WHERE id > %s::text ORDER BY id LIMIT %s"
        return [_found(row) for row in self._ask(query, escape(after), size)]

    def code_page(self, after: str, size: int) -> list[tuple[str, bytes]]:
        """Return the lowest ids above `after` with their codes."""
        query = "SELECT id, code FROM {documents} WHERE id > %s::text ORDER BY id LIMIT %s"
        return [(unescape(id), code[4:]) for id, code in self._ask(query, escape(after), size)]

    def facts(self) -> dict[str, Any]:
        """Say which engine this is, how it searches, and its bytes on disk."""
        sizes = self._ask("SELECT pg_total_relation_size(unnest(%s::regclass[]))", self._tables.all)
        search = "exact, bit_count (pgvector is not installed: CREATE EXTENSION vector)"
        if self._vector is not None:
            how = "approximate, hnsw" if self._by_graph else "exact"
            search = f"{how}, pgvector {self._vector.version}"
        size = sum(size for (size,) in sizes)
        return {"engine": f"PostgreSQL {self._version}", "search": search, "bytes": size}

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _ask(self, query: str, *parameters: Any) -> list[Any]:
        composed = self._tables.sql(query)
        return self._session.run(lambda cursor: cursor.execute(composed, parameters).fetchall())

    def _search(self, query: str, *given: Any, list_size: int = 0) -> list[Found]:
        return [_found(row) for row in self._search_rows(query, *given, list_size=list_size)]

    def _search_rows(
        self, query: str, code: Codes, where: Tree | None, *more: Any, list_size: int = 0
    ) -> list[Any]:
        condition, bits = to_sql(where), _bits(code.tobytes())
        composed = self._tables.search(query, self._vector, condition.text, len(bits))

        def work(cursor: Any) -> list[Any]:
            if list_size:
                size = str(max(list_size, 40))
                cursor.execute("SELECT set_config('hnsw.ef_search', %s, true)", (size,))
            rows: list[Any] = cursor.execute(
                composed, (bits, *condition.parameters, *more)
            ).fetchall()
            return rows

        return self._session.run(work)

    def _nearest_by_graph(self, code: Codes, n: int, where: Tree | None) -> list[Found]:
        """Return about the n nearest, none where there are too many for the graph."""
        if n > MOST_BY_GRAPH:
            return []
        if not self._has_graph:
            self._session.run(self._make_graph)
            self._has_graph = True
        bits = _bits(code.tobytes())
        return self._search("nearest by graph", code, where, bits, n, list_size=n)

    def _read_meta(self, cursor: Any) -> dict[str, str]:
        there = cursor.execute("SELECT to_regclass(unnest(%s::text[]))::text", (self._tables.all,))
        documents, meta, *_ = [name for (name,) in there.fetchall()]
        if documents is None and meta is None:
            return {}
        if documents is None or meta is None:
            raise FolderError(
                f"'{self.shown}' is not a store: the table {documents or meta} belongs to "
                "something else. Choose another name by ?table=."
            )
        facts = dict(cursor.execute(self._tables.sql("SELECT key, value FROM {meta}")).fetchall())
        return facts

    def _make_graph(self, cursor: Any) -> None:
        """Make the graph, unless it is there: once over all documents is fastest."""
        there = cursor.execute("SELECT to_regclass(%s)::text", (self._tables.graph,)).fetchone()
        if there[0] is None:
            # A graph that does not fit is made many times slower.
            cursor.execute("SELECT set_config('maintenance_work_mem', %s, true)", (GRAPH_MEMORY,))
            cursor.execute(self._tables.create_graph(self._vector))

    def _look_at_server(self) -> tuple[str, Vector | None]:
        """Return the server's version and pgvector, where it is installed."""
        number, version, encoding = self._ask(
            "SELECT current_setting('server_version_num')::int, current_setting('server_version'),"
            " current_setting('server_encoding')"
        )[0]
        if number < LEAST_VERSION:
            raise InputError(f"PostgreSQL {version} is too old. A store needs 14 or newer.")
        if encoding != "UTF8":
            raise InputError(
                f"The database of '{self.shown}' is encoded in {encoding}. A store needs one in "
                "UTF8: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0."
            )
        found = self._ask(
            "SELECT extversion, nspname FROM pg_extension JOIN pg_namespace"
            " ON pg_namespace.oid = extnamespace WHERE extname = 'vector'"
        )
        vector = Vector(*found[0]) if found and _numbers(found[0][0]) >= LEAST_VECTOR else None
        if self._by_graph and vector is None:
            raise InputError(
                f"?index=hnsw needs pgvector 0.7 or newer in the database of '{self.shown}'. Run "
                "there: CREATE EXTENSION vector; or leave ?index= out for exact search."
            )
        return version.split()[0], vector


def _batch(rows: Rows) -> str:
    """Write rows as JSON, in the order of ids: so writers lock rows in the same order."""
    values = []
    for i in sorted(range(len(rows.rows)), key=lambda i: rows.rows[i][0]):
        id, text, labels, metadata, code = rows.rows[i]
        _check_id_length(id)
        row = {"id": escape(id), "text": escape(text), "labels": _labels(labels)}
        fields = fields_json(rows.documents[i].metadata, metadata)
        values.append({**row, "metadata": metadata, "fields": fields, "code": f"x{code.hex()}"})
    return orjson.dumps(values).decode()


def _check_id_length(id: str) -> None:
    if len(id) > LONGEST_ID // 4 and len(escape(id).encode()) > LONGEST_ID:
        raise InputError(
            f"The id {show(id)} is too long: {len(id.encode()):,} bytes. PostgreSQL finds ids of "
            f"up to {LONGEST_ID:,}. Shorten it, for example to a hash."
        )


def _labels(labels: str | None) -> str | None:
    if labels is None or "\\u000" not in labels:
        return labels
    return json.dumps([escape(label) for label in json.loads(labels)])


def _found(row: Sequence[Any]) -> Found:
    id, text, labels, metadata, code, *distance = row
    known = None if labels is None else tuple(map(unescape, labels))
    document = Document(unescape(id), unescape(text), known, json.loads(metadata))
    return Found(document, code[4:], *distance)  # after four bytes that say how many bits


def _bits(code: bytes) -> str:
    return f"{int.from_bytes(code):0{8 * len(code)}b}"


def _pieces(files: Mapping[str, bytes]) -> Iterator[tuple[str, int, bytes]]:
    for name, content in files.items():
        for number, first in enumerate(range(0, max(len(content), 1), PIECE)):
            yield name, number, content[first : first + PIECE]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
