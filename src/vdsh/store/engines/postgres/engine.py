"""PostgreSQL as an engine: a table of documents, codes as bit(n), exact search by a scan.

Distances are counted by pgvector's `<~>` where the extension is installed, else by `bit_count`.
With `?index=hnsw` pgvector's graph answers `search`, faster and not always exactly. It is made at
the first search: filling a table that has a graph takes much longer.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, TypeVar

from vdsh.codes import Codes
from vdsh.errors import FolderError, InputError
from vdsh.model import Model
from vdsh.store.addresses import Address
from vdsh.store.engine import Engine
from vdsh.store.engines.postgres.filters import FilterIndexes
from vdsh.store.engines.postgres.reencoding import Reencoding, hold_codes
from vdsh.store.engines.postgres.relevant import Counted, Relevant
from vdsh.store.engines.postgres.rows import to_batch, to_bits, to_code, to_found, to_pieces
from vdsh.store.engines.postgres.session import NotAllowedError, Session
from vdsh.store.engines.postgres.tables import Tables, Vector
from vdsh.store.engines.postgres.upgrade import MEMORY, WordColumns, take_turns
from vdsh.store.engines.postgres.where import Sql, escape, to_sql, unescape
from vdsh.store.found import Choose, Found, choose_from
from vdsh.store.model import FOLDER, to_files
from vdsh.store.ranking import ByRelevance
from vdsh.store.rows import Rows
from vdsh.store.where import Tree

LEAST_VERSION = 14_00_00  # bit_count came with it
LEAST_VECTOR = (0, 7)  # bit vectors came with it
MOST_BY_GRAPH = 1000  # the longest list that hnsw keeps

T = TypeVar("T")


class Postgres(Engine):
    """A connection to PostgreSQL; see `Engine`."""

    care = "Use pg_dump."

    def __init__(self, address: Address, *, wait: float) -> None:
        self.shown = address.shown
        self._by_graph = address.option("index", "exact", ("exact", "hnsw")) == "hnsw"
        self._has_graph = False
        self._tables = Tables(address.option("table", "vdsh"))
        self._session = Session(address, wait=wait)
        self._words = WordColumns(self._session, self._tables)
        self._reencoding = Reencoding(self._session, self._tables, self.shown)
        self._codes = ""  # which codes the store has: `reencode` gives it others
        self._model_name = FOLDER
        self._filters = FilterIndexes(self._session, self._tables)
        self._counted = Counted()
        try:
            self._version, self._vector = self._look_at_server()
        except BaseException:
            self._session.close()
            raise

    def meta(self) -> dict[str, str]:
        """Return what the store says about itself; an empty dict where it is not made yet."""
        return self._note(self._session.run(self._read_meta))

    def create(self, meta: Mapping[str, str], model: Model | None) -> dict[str, str]:
        """Make the tables in one transaction, unless another process was faster."""
        tables, files = self._tables, to_files(model)

        def work(cursor: Any) -> dict[str, str]:
            take_turns(cursor, tables)
            there = self._read_meta(cursor)
            if there:
                return there
            for statement in tables.create(int(meta["n_bits"])):
                cursor.execute(statement)
            rows = [*meta.items(), ("words", "all")]
            cursor.executemany(tables.sql("INSERT INTO {meta} VALUES (%s, %s)"), rows)
            insert = tables.sql("INSERT INTO {model} VALUES (%s, %s, %s)")
            cursor.executemany(insert, list(to_pieces(files)))
            return self._read_meta(cursor)

        return self._note(self._session.run(work))

    def load_model(self) -> Model:
        """Load the model that is kept inside."""
        return self._reencoding.load(self._model_name)

    def fields(self) -> set[str]:
        """Return the names of all metadata fields."""
        return {unescape(name) for (name,) in self._ask("SELECT name FROM {fields}")}

    def labels(self) -> list[str]:
        """Return all labels, in order."""
        rows = self._ask("SELECT DISTINCT unnest(labels) FROM {documents}")
        return sorted(unescape(label) for (label,) in rows)

    def write(self, rows: Rows) -> None:
        """Write rows and the names of their fields in one transaction."""
        batch, n_bits = to_batch(rows), 8 * len(rows.rows[0][4])
        names = sorted(escape(name) for name in rows.fields)
        self._words.add()

        def work(cursor: Any) -> None:
            hold_codes(cursor, self._tables, self._codes, "ROW EXCLUSIVE")
            statement = self._tables.upsert(n_bits, words=self._words.are_there(cursor))
            cursor.execute(statement, (batch,))
            cursor.execute(self._tables.note_fields(), (names,))

        self._session.run(work)

    def remove(self, ids: Sequence[str]) -> int:
        """Delete documents; return how many were there."""
        wanted = [escape(id) for id in ids]

        def work(cursor: Any) -> int:
            statement = self._tables.delete(words=self._words.are_there(cursor))
            return int(cursor.execute(statement, (wanted,)).fetchone()[0])

        return self._session.run(work)

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
        self, code: Codes, n: int, where: Tree | None, choose: Choose | None = None
    ) -> list[Found]:
        """Return the n nearest documents, ties by id, or those that are chosen of them."""
        self._need_graph()
        found = self._run(lambda cursor: self._nearest(cursor, code, n, where))
        return choose_from(found, choose)

    def prepare_filter(
        self, where: Tree, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Index the fields of a filter, where documents are many and that is allowed."""
        self._filters.prepare(where, progress)

    def index_fields(
        self, fields: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Index fields for filters."""
        self._filters.make(fields, progress)

    def prepare_words(self, progress: Callable[[int, int], None] | None = None) -> bool:
        """Give documents of before their words; say no where the tables may not be changed."""
        return self._words.prepare(progress)

    def relevant(self, ranking: ByRelevance, where: Tree | None) -> list[Found]:
        """Return the documents that words and codes together find, best first."""
        self._need_graph()

        def nearest(cursor: Any, code: Codes, n: int) -> list[Found]:
            return self._nearest(cursor, code, n, where)

        def work(cursor: Any) -> tuple[list[Found], ByRelevance]:
            attempt = copy(ranking)  # which learns from what it sees
            condition = self._condition(where)
            narrow = condition != to_sql(where)
            parts = (cursor, self._tables, condition, nearest, self._counted)
            relevant = Relevant(*parts, narrow=narrow)
            hold_codes(cursor, self._tables, self._codes)
            return relevant.find(attempt), attempt

        try:
            found, attempt = self._session.run(work)
        except NotAllowedError:  # to read the totals
            return super().relevant(ranking, where)
        ranking.scores, ranking.missing = attempt.scores, attempt.missing
        return found

    def within(
        self, code: Codes, radius: int, where: Tree | None, limit: int | None = None
    ) -> tuple[list[Found], int]:
        """Find the documents within a radius, nearest first, ties by id."""
        if limit is None:
            rows = self._run(lambda cursor: self._search(cursor, "within", code, where, radius))
            return [to_found(row) for row in rows], len(rows)
        rows = self._run(
            lambda cursor: self._search(cursor, "within at most", code, where, radius, limit)
        )
        return [to_found(row) for *row, _ in rows], rows[0][-1] if rows else 0

    def page(self, after: str, size: int) -> list[Found]:
        """Return the documents with the lowest ids above `after`."""
        query = "SELECT {columns} FROM {documents} WHERE id > %s::text ORDER BY id LIMIT %s"
        return [to_found(row) for row in self._ask_for_codes(query, escape(after), size)]

    def code_page(self, after: str, size: int) -> list[tuple[str, bytes]]:
        """Return the lowest ids above `after` with their codes."""
        query = "SELECT id, code FROM {documents} WHERE id > %s::text ORDER BY id LIMIT %s"
        rows = self._ask_for_codes(query, escape(after), size)
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
            how = "approximate, hnsw" if self._by_graph else "exact"
            search = f"{how}, pgvector {self._vector.version}"
        size = sum(size for (size,) in sizes)
        engine = f"PostgreSQL {self._version}"
        return {
            "engine": engine,
            "search": search,
            "words": self._session.run(self._words.describe),
            "bytes": size,
        }

    def compact(self) -> None:
        """Forget models that are not used; let the server use the space of what was deleted."""
        self._reencoding.forget()
        self._session.run_alone(self._tables.sql("VACUUM (ANALYZE) {documents}"))

    def reencode(
        self,
        model: Model,
        *,
        restart: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Encode all documents with another model, and switch to it in one transaction."""
        self._words.add()  # changes the table as well
        self._reencoding.run(model, restart=restart, progress=progress)

    def previous_model(self) -> Model:
        """Load the model that the store had before."""
        return self._reencoding.previous()

    def interrupt(self) -> None:
        """Make a statement that another thread runs give up."""
        self._session.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _ask(self, query: str, *parameters: Any) -> list[Any]:
        composed = self._tables.sql(query)
        return self._session.run(lambda cursor: cursor.execute(composed, parameters).fetchall())

    def _ask_for_codes(self, query: str, *parameters: Any) -> list[Any]:
        composed = self._tables.sql(query)
        return self._run(lambda cursor: cursor.execute(composed, parameters).fetchall())

    def _run(self, work: Callable[[Any], T]) -> T:
        """Do what has to do with codes, which stay the same meanwhile."""

        def held(cursor: Any) -> T:
            hold_codes(cursor, self._tables, self._codes)
            return work(cursor)

        return self._session.run(held)

    def _note(self, meta: dict[str, str]) -> dict[str, str]:
        """Remember which codes the store has, and of which model."""
        if meta and meta.get("uuid") != self._codes:
            self._codes = str(meta.get("uuid"))
            self._model_name = str(meta.get("model"))
            self._has_graph = False
        return meta

    def _condition(self, where: Tree | None) -> Sql:
        return self._filters.narrow(where, to_sql(where))

    def _search(
        self, cursor: Any, query: str, code: Codes, where: Tree | None, *more: Any
    ) -> list[Any]:
        condition, bits = self._condition(where), to_bits(code.tobytes())
        composed = self._tables.search(query, self._vector, condition.text, len(bits))
        rows: list[Any] = cursor.execute(composed, (bits, *condition.parameters, *more)).fetchall()
        return rows

    def _nearest(self, cursor: Any, code: Codes, n: int, where: Tree | None) -> list[Found]:
        rows: list[Any] = []
        if self._by_graph and n <= MOST_BY_GRAPH:
            cursor.execute("SELECT set_config('hnsw.ef_search', %s, true)", (str(max(n, 40)),))
            bits = to_bits(code.tobytes())
            rows = self._search(cursor, "nearest by graph", code, where, bits, n)
        if len(rows) < n:
            rows = self._search(cursor, "nearest", code, where, n)
        return [to_found(row) for row in rows]

    def _need_graph(self) -> None:
        if self._by_graph and not self._has_graph:
            self._session.run(self._make_graph)
            self._has_graph = True

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
            cursor.execute("SELECT set_config('maintenance_work_mem', %s, true)", (MEMORY,))
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


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
