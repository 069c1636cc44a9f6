"""PostgreSQL as an engine: a table of documents, codes as bit(n), exact search by a scan.

Distances are counted by pgvector's `<~>` where the extension is installed, else by `bit_count`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from functools import partial
from typing import Any, TypeVar

from psycopg.sql import SQL

from vdsh.codes import Codes
from vdsh.errors import FolderError, InputError
from vdsh.model import Model
from vdsh.store.addresses import Address
from vdsh.store.engine import Engine, Progress
from vdsh.store.engines.postgres.filters import FilterIndexes
from vdsh.store.engines.postgres.models import (
    KeyValues,
    Models,
    hold_codes,
    keep_model,
    read_facts,
)
from vdsh.store.engines.postgres.relevant import SETTINGS, Relevant
from vdsh.store.engines.postgres.rows import (
    to_batch,
    to_bits,
    to_code,
    to_found,
    to_passages,
    to_vectors,
)
from vdsh.store.engines.postgres.session import NotAllowedError, Session
from vdsh.store.engines.postgres.tables import (
    ADD_PASSAGES,
    DELETE,
    FORGET_PASSAGES,
    NOTE_FIELDS,
    NOTE_WORDS,
    SCHEMA,
    UPSERT,
    Tables,
    Vector,
    take_turns,
)
from vdsh.store.engines.postgres.where import Sql, escape, to_sql, unescape
from vdsh.store.hits import Choose, Found, ParsedQuery, choose_from
from vdsh.store.ranking import ByRelevance, keep_fitting, words_text
from vdsh.store.rows import Rows
from vdsh.store.where import Tree
from vdsh.text.languages import NONE, Language, find_language, language
from vdsh.words import WordQuery

LEAST_VERSION = 14_00_00  # bit_count came with it
LEAST_VECTOR = (0, 7)  # bit vectors came with it
ALL_WORDS = "all words (PostgreSQL text search, BM25)"

T = TypeVar("T")


class Postgres(Engine):
    """A connection to PostgreSQL; see `Engine`."""

    own_tool = "Use pg_dump."
    filters: FilterIndexes

    def __init__(self, address: Address, *, wait: float, may_create: bool) -> None:
        self.shown = address.shown
        self._tables = Tables(address.option("table", "vdsh"))
        connect = partial(Session, address, wait=wait)
        self._session = connect()
        self.hold = partial(_hold, connect, self._tables)
        self.models = Models(self._session, self._tables, self.shown)
        self.values = KeyValues(self._session, self._tables)
        self.filters = FilterIndexes(self._session, self._tables)
        self._counted: dict[str, dict[str, int]] = {}
        self._language: Language | None = None  # of the words, once it is known
        try:
            self._version, self._vector = self._look_at_server()
        except BaseException:
            self._session.close()
            raise

    def meta(self) -> dict[str, str]:
        """Return what the store says about itself; an empty dict where it is not made yet."""
        return self._session.run(self._read_meta)

    def create(self, meta: Mapping[str, str], model: Model) -> dict[str, str]:
        """Make the tables in one transaction, unless another process was faster."""
        tables = self._tables

        def work(cursor: Any) -> dict[str, str]:
            take_turns(cursor, tables)
            there = self._read_meta(cursor)
            if there:
                return there
            for statement in SCHEMA:
                cursor.execute(tables.sql(statement, int(meta["n_bits"])))
            insert = tables.sql("INSERT INTO {meta} VALUES (%s, %s)")
            cursor.executemany(insert, list(meta.items()))
            keep_model(cursor, tables, model)
            return self._read_meta(cursor)

        return self._session.run(work)

    def fields(self) -> set[str]:
        """Return the names of all metadata fields."""
        return {unescape(name) for (name,) in self._ask("SELECT name FROM {fields}")}

    def labels(self) -> list[str]:
        """Return all labels, in order."""
        rows = self._ask("SELECT DISTINCT unnest(labels) FROM {documents}")
        return sorted(unescape(label) for (label,) in rows)

    def write(self, rows: Rows) -> None:
        """Write rows and the names of their fields in one transaction."""
        texts = [words_text(document) for document in rows.documents]
        spoken = self._settle_language(texts)
        vectors, words = to_vectors(texts, spoken)
        batch = to_batch(rows, vectors)
        ids = [escape(document.id) for document in rows.documents]
        passages = to_passages(ids, texts, spoken)
        made_by = rows.fingerprint, rows.n_bytes
        names = sorted(escape(name) for name in rows.fields)

        def work(cursor: Any) -> None:
            hold_codes(cursor, self._tables, *made_by, mode="ROW EXCLUSIVE")
            cursor.execute(self._tables.sql(UPSERT, 8 * rows.n_bytes), (batch,))
            cursor.execute(self._tables.sql(FORGET_PASSAGES), (sorted(ids),))
            if passages:
                cursor.execute(self._tables.sql(ADD_PASSAGES), (passages,))
            cursor.execute(self._tables.sql(NOTE_FIELDS), (names,))

        # On their own: other writers would wait for the words until the documents are written.
        if words:
            note_words = self._tables.sql(NOTE_WORDS)
            self._session.run(lambda cursor: cursor.execute(note_words, (words,)))
        self._session.run(work)

    def _settle_language(self, texts: Sequence[str]) -> Language:
        """Return the language of the words; of the first texts, where there are no others."""
        if self._language is None:
            note = "INSERT INTO {meta} VALUES ('language', %s) ON CONFLICT DO NOTHING"

            def work(cursor: Any) -> str:
                cursor.execute(self._tables.sql(note), (find_language(texts),))
                return self._read_meta(cursor)["language"]

            self._language = language(self._session.run(work))
        return self._language

    def remove(self, ids: Sequence[str]) -> int:
        """Delete documents; return how many were there."""
        return int(self._ask(DELETE, [escape(id) for id in ids])[0][0])

    def look_up(self, ids: Sequence[str]) -> list[Found]:
        """Return the documents of some ids."""
        query = "SELECT {columns} FROM {documents} WHERE id = ANY(%s::text[])"
        return [to_found(row) for row in self._ask(query, [escape(id) for id in ids])]

    def count(self, where: Tree | None) -> int:
        """Count documents."""
        text, parameters = self._condition(where)
        rows = self._ask(f"SELECT count(*) FROM {{documents}} WHERE {text}", *parameters)
        return int(rows[0][0])

    def nearest(
        self, query: ParsedQuery, n: int, where: Tree | None, choose: Choose | None = None
    ) -> list[Found]:
        """Return the n nearest documents, ties by id, or those that are chosen of them."""
        search = partial(self._nearest, code=query.code, n=n, where=where)
        found = self._run(search, query.fingerprint)
        return choose_from(found, choose)

    def relevant(
        self, ranking: ByRelevance, where: Tree | None, progress: Progress | None = None
    ) -> list[Found]:
        """Return the documents that words and codes together find, best first."""
        nearest = partial(self._nearest, where=where)

        def work(cursor: Any) -> tuple[list[Found], ByRelevance]:
            attempt = copy(ranking)  # which learns from what it sees
            attempt.meant = {}
            condition = self._condition(where)
            narrow = condition != to_sql(where)
            cursor.connection.execute(SETTINGS)  # before anything is read
            hold_codes(cursor, self._tables, ranking.query.fingerprint)
            spoken = language(self._read_meta(cursor).get("language", NONE))
            parts = (cursor, self._tables, condition, narrow, nearest, self._counted, spoken)
            return Relevant(*parts).find(attempt), attempt

        try:
            found, attempt = self._session.run(work)
        except NotAllowedError:  # to read the totals
            return super().relevant(ranking, where)
        vars(ranking).update(vars(attempt))
        return found

    def within(
        self,
        query: ParsedQuery,
        radius: int,
        where: Tree | None,
        limit: int | None = None,
        words: WordQuery | None = None,
    ) -> tuple[list[Found], int]:
        """Find the documents within a radius, nearest first, ties by id."""
        most = None if words is not None else limit  # LIMIT NULL is none
        more = (radius, most)
        search = partial(self._search, query="within", code=query.code, where=where, more=more)
        rows = self._run(search, query.fingerprint)
        found = [to_found(row) for *row, _ in rows]
        if words is not None:
            return keep_fitting(found, words, limit, self.language())
        return found, rows[0][-1] if rows else 0

    def page(self, after: str, size: int, of: str | None = None) -> list[Found]:
        """Return the documents with the lowest ids above `after`."""
        query = "SELECT {columns} FROM {documents} WHERE id > %s::text ORDER BY id LIMIT %s"
        return [to_found(row) for row in self._ask(query, escape(after), size, of=of)]

    def code_page(self, after: str, size: int, of: str | None = None) -> list[tuple[str, bytes]]:
        """Return the lowest ids above `after` with their codes."""
        query = "SELECT id, code FROM {documents} WHERE id > %s::text ORDER BY id LIMIT %s"
        rows = self._ask(query, escape(after), size, of=of)
        return [(unescape(id), to_code(code)) for id, code in rows]

    def facts(self) -> dict[str, Any]:
        """Say which engine this is, how it searches, and its bytes on disk."""
        sizes = self._ask(
            "SELECT coalesce(pg_total_relation_size(to_regclass(name)), 0)"
            " FROM unnest(%s::text[]) AS name",
            self._tables.all,
        )
        search = "exact, bit_count (pgvector is not installed: CREATE EXTENSION vector)"
        if self._vector is not None:
            search = f"exact, pgvector {self._vector.version}"
        size = sum(size for (size,) in sizes)
        engine = f"PostgreSQL {self._version}"
        return {"engine": engine, "search": search, "words": ALL_WORDS, "bytes": size}

    def compact(self) -> None:
        """Forget models that are not used; let the server use the space of what was deleted."""
        self.models.forget()
        self._session.run_alone(self._tables.sql("VACUUM (ANALYZE) {documents}"))

    def interrupt(self) -> None:
        """Make a statement that another thread runs give up."""
        self._session.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _ask(self, query: str, *parameters: Any, of: str | None = None) -> list[Any]:
        composed = self._tables.sql(query)
        return self._run(lambda cursor: cursor.execute(composed, parameters).fetchall(), of)

    def _run(self, work: Callable[[Any], T], of: str | None) -> T:
        """Do some work; codes stay those of the model with a fingerprint meanwhile."""

        def held(cursor: Any) -> T:
            if of is not None:
                hold_codes(cursor, self._tables, of)
            return work(cursor)

        return self._session.run(held)

    def _condition(self, where: Tree | None) -> Sql:
        return self.filters.narrow(where, to_sql(where))

    def _search(
        self, cursor: Any, query: str, code: Codes, where: Tree | None, more: tuple[Any, ...]
    ) -> list[Any]:
        condition, bits = self._condition(where), to_bits(code.tobytes())
        composed = self._tables.search(query, self._vector, condition.text, len(bits))
        rows: list[Any] = cursor.execute(composed, (bits, *condition.parameters, *more)).fetchall()
        return rows

    def _nearest(self, cursor: Any, code: Codes, n: int, where: Tree | None) -> list[Found]:
        rows = self._search(cursor, "nearest", code, where, (n,))
        return [to_found(row) for row in rows]

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
        return read_facts(cursor, self._tables)

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
        return version.split()[0], vector


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


@contextmanager
def _hold(connect: Callable[[], Session], tables: Tables, name: str) -> Iterator[bool]:
    """Hold a lock in a transaction of its own, which a pooler leaves on one connection."""
    query = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
    given = (f"{tables.name} {name}",)
    with closing(connect()) as other:
        other.run_alone(SQL("BEGIN").format())
        yield other.run(lambda cursor: cursor.execute(query, given).fetchall()[0][0])
