"""PostgreSQL as an engine: a table of documents, codes as bit(n), exact search by a scan.

Distances are counted by `bit_count`; no extension is needed. What each method does is said in
`Engine`.
"""
# ruff: noqa: D102

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeVar

from vdsh.errors import FolderError, InputError
from vdsh.model import Model
from vdsh.store.addresses import Address
from vdsh.store.engine import Engine, Progress, Snapshot, Stored
from vdsh.store.engines.postgres import tables as sql
from vdsh.store.engines.postgres.filters import FilterIndexes
from vdsh.store.engines.postgres.models import (
    Models,
    hold_codes,
    hold_facts,
    keep_model,
    read_facts,
)
from vdsh.store.engines.postgres.rows import to_code, to_json, to_stored
from vdsh.store.engines.postgres.search import SETTINGS, PostgresSearch
from vdsh.store.engines.postgres.session import Session, StoreCursor
from vdsh.store.engines.postgres.tables import escape, unescape
from vdsh.store.rows import Rows, words_text
from vdsh.store.where import Tree
from vdsh.text.languages import NONE, language

LEAST_VERSION = 14_00_00  # bit_count came with it
SEARCH = "exact, bit_count"
ALL_WORDS = "all words (PostgreSQL text search, BM25)"

T = TypeVar("T")


class Postgres(Engine):
    """A connection to PostgreSQL; see `Engine`."""

    own_tool = "Use pg_dump."
    filters: FilterIndexes

    def __init__(self, address: Address, *, wait: float, may_create: bool) -> None:
        self.shown = address.shown
        connect = partial(Session, address, wait=wait)
        self._session = self.values = connect()
        self.hold = partial(_hold, connect)
        self.models = Models(self._session, self.shown)
        self.filters = FilterIndexes(self._session)
        self._counted: dict[str, dict[str, int]] = {}
        try:
            self._version = self._look_at_server()
        except BaseException:
            self._session.close()
            raise

    def meta(self) -> dict[str, str]:
        return self._session.run(self._read_meta)

    def create(self, meta: Mapping[str, str], model: Model) -> dict[str, str]:
        def work(cursor: StoreCursor) -> dict[str, str]:
            cursor.take_turns()
            if not self._read_meta(cursor):
                for statement in sql.SCHEMA:
                    cursor.ask(statement, n_bits=int(meta["n_bits"]))
                cursor.set("meta", meta)
                keep_model(cursor, model)
            return self._read_meta(cursor)

        return self._session.run(work)

    def fields(self) -> set[str]:
        return {unescape(name) for (name,) in self._ask("SELECT name FROM {fields}")}

    def labels(self) -> list[str]:
        rows = self._ask("SELECT DISTINCT unnest(labels) FROM {documents}")
        return sorted(unescape(label) for (label,) in rows)

    def write(self, rows: Rows) -> None:
        texts = [words_text(document) for document in rows.documents]
        spoken = self._settled_language(texts, partial(self._session.ask, sql.NOTE_LANGUAGE))
        documents, passages, words = to_json(rows, texts, spoken)
        ids = sorted(escape(document.id) for document in rows.documents)
        names = sorted(escape(name) for name in rows.fields)
        made_by = rows.fingerprint, rows.n_bytes

        def work(cursor: StoreCursor) -> None:
            hold_codes(cursor, *made_by, mode="ROW EXCLUSIVE")
            cursor.ask(sql.UPSERT, documents, n_bits=8 * rows.n_bytes)
            cursor.ask(sql.FORGET_PASSAGES, ids)
            if passages:
                cursor.ask(sql.ADD_PASSAGES, passages)
            cursor.ask(sql.NOTE_FIELDS, names)

        # On their own: other writers would wait for the words until the documents are written.
        if words:
            self._session.ask(sql.NOTE_WORDS, words)
        self._session.run(work)

    def remove(self, ids: Sequence[str]) -> int:
        return int(self._ask(sql.DELETE, [escape(id) for id in ids])[0][0])

    def look_up(self, ids: Sequence[str]) -> list[Stored]:
        query = "SELECT {columns} FROM {documents} WHERE id = ANY(%s::text[])"
        return [to_stored(row) for row in self._ask(query, [escape(id) for id in ids])]

    def present(self, ids: Sequence[str]) -> set[str]:
        query = "SELECT id FROM {documents} WHERE id = ANY(%s::text[])"
        return {unescape(id) for (id,) in self._ask(query, [escape(id) for id in ids])}

    def count(self, where: Tree | None) -> int:
        (text, parameters), _ = self.filters.condition(where)
        rows = self._ask(f"SELECT count(*) FROM {{documents}} WHERE {text}", *parameters)
        return int(rows[0][0])

    def read(
        self,
        work: Callable[[Snapshot], T],
        *,
        where: Tree | None = None,
        by_words: bool = False,
        progress: Progress | None = None,
    ) -> T:
        condition, is_narrow = self.filters.condition(where)

        def read_once(cursor: StoreCursor) -> T:
            # Before anything is read.
            cursor.connection.execute(SETTINGS)
            facts = hold_facts(cursor)
            spoken = language(facts.get("language", NONE))
            search = PostgresSearch(cursor, condition, is_narrow, self._counted, spoken)
            return work(Snapshot(facts, spoken, search, search.fetch))

        return self._session.run(read_once)

    def page(self, after: str, size: int, of: str | None = None) -> list[Stored]:
        query = "SELECT {columns} FROM {documents} WHERE id > %s::text ORDER BY id LIMIT %s"
        return [to_stored(row) for row in self._ask(query, escape(after), size, of=of)]

    def code_page(self, after: str, size: int, of: str | None = None) -> list[tuple[str, bytes]]:
        query = "SELECT id, code FROM {documents} WHERE id > %s::text ORDER BY id LIMIT %s"
        rows = self._ask(query, escape(after), size, of=of)
        return [(unescape(id), to_code(code)) for id, code in rows]

    def facts(self) -> dict[str, Any]:
        sizes = self._ask(
            "SELECT coalesce(pg_total_relation_size(to_regclass(name)), 0)"
            " FROM unnest(%s::text[]) AS name",
            self._session.tables.all,
        )
        size, engine = sum(size for (size,) in sizes), f"PostgreSQL {self._version}"
        return {"engine": engine, "search": SEARCH, "words": ALL_WORDS, "bytes": size}

    def compact(self) -> None:
        """Forget models that are not used; let the server use the space of what was deleted."""
        self.models.forget()
        self._session.run_alone("VACUUM (ANALYZE) {documents}")

    def interrupt(self) -> None:
        self._session.interrupt()

    def close(self) -> None:
        self._session.close()

    def _ask(self, query: str, *parameters: Any, of: str | None = None) -> list[Any]:
        return self._run(lambda cursor: cursor.ask(query, *parameters), of)

    def _run(self, work: Callable[[StoreCursor], T], of: str | None) -> T:
        """Do some work; codes stay those of the model with a fingerprint meanwhile."""

        def held(cursor: StoreCursor) -> T:
            if of is not None:
                hold_codes(cursor, of)
            return work(cursor)

        return self._session.run(held)

    def _read_meta(self, cursor: StoreCursor) -> dict[str, str]:
        there = cursor.ask("SELECT to_regclass(unnest(%s::text[]))::text", cursor.tables.all)
        documents, meta, *_ = [name for (name,) in there]
        if documents is None and meta is None:
            return {}
        if documents is None or meta is None:
            raise FolderError(
                f"'{self.shown}' is not a store: the table {documents or meta} belongs to "
                "something else. Choose another name by ?table=."
            )
        return read_facts(cursor)

    def _look_at_server(self) -> str:
        """Return the server's version."""
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
        return str(version.split()[0])


@contextmanager
def _hold(connect: Callable[[], Session], name: str) -> Iterator[bool]:
    """Hold a lock in a transaction of its own, which a pooler leaves on one connection."""
    query = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
    with closing(connect()) as other:
        other.run_alone("BEGIN")
        yield other.ask(query, f"{other.tables.name} {name}")[0][0]
