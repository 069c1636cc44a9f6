"""Stores of before there was a word index get one: columns first, then batch by batch.

What the store says about itself under `words` is "some" while documents of before are without them
and "all" when none is. An interrupted upgrade goes on where it was.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from vdsh.store.engine import REORDERS, WORDS_LATER
from vdsh.store.engines.postgres.driver import SQL
from vdsh.store.engines.postgres.rows import to_vectors
from vdsh.store.engines.postgres.session import NotAllowedError, Session
from vdsh.store.engines.postgres.tables import NOTED, TOTALS, WORD_INDEX, Tables
from vdsh.store.engines.postgres.where import unescape

ALL_WORDS = "all words (PostgreSQL text search, BM25)"
BATCH = 500  # documents at a time
MEMORY = "1GB"  # at most, while an index is made
# Programs of before, which write no words, are refused from then on.
COLUMNS = (
    "ALTER TABLE {documents} ADD COLUMN words tsvector, ADD COLUMN n_words int,"
    " ADD COLUMN n_before int, ADD CONSTRAINT {words} CHECK (words IS NOT NULL) NOT VALID",
    TOTALS,
    "UPDATE {meta} SET value = '2' WHERE key = 'format'",
    "INSERT INTO {meta} VALUES ('words', 'some')",
)
# Who may read or write documents may do so with their totals.
ROLES = """
SELECT coalesce(quote_ident(rolname), 'PUBLIC'),
  bool_or(privilege_type IN ('INSERT', 'UPDATE', 'DELETE'))
FROM pg_class CROSS JOIN aclexplode(relacl) LEFT JOIN pg_roles ON pg_roles.oid = grantee
WHERE pg_class.oid = %s::regclass GROUP BY 1
"""
WITHOUT = (
    "SELECT id, text FROM {documents} WHERE words IS NULL AND id > %s::text"
    " ORDER BY id LIMIT %s FOR UPDATE"
)
FILL = """
UPDATE {documents} AS old SET words = new.words::tsvector, n_words = new.n_words
FROM json_to_recordset(%s::json) AS new(id text, words text, n_words int)
WHERE old.id = new.id AND old.words IS NULL RETURNING old.n_words, NULL::int AS n_before
"""
MAY_CHANGE = """
SELECT pg_has_role(relowner, 'USAGE') AND NOT pg_is_in_recovery()
  AND current_setting('transaction_read_only') = 'off'
FROM pg_class WHERE oid = %s::regclass
"""


class WordColumns:
    """The words of a store's documents: whether they are there, and what to do where not."""

    def __init__(self, session: Session, tables: Tables) -> None:
        self._session = session
        self._tables = tables
        self._may_change = True
        self._state = ""  # "all", "some", or "" without the columns

    def are_there(self, cursor: Any) -> bool:
        """Say whether documents are written with words; somebody may just have begun that."""
        self._state = self._state or _state(cursor, self._tables)
        return bool(self._state)

    def add(self) -> None:
        """Make room for words, where that is allowed."""
        if not self._state and not self._session.run(self.are_there) and self._may_change:
            try:
                self._state = self._session.run(partial(_add_columns, tables=self._tables))
            except NotAllowedError:
                self._may_change = False

    def prepare(self, progress: Callable[[int, int], None] | None = None) -> bool:
        """Give all documents their words; say no where that is not allowed."""
        self.add()
        try:
            if self._state == "some":
                self._fill(progress)
        except NotAllowedError:
            self._state = ""
        return self._state == "all"

    def describe(self, cursor: Any) -> str:
        """Say in a few words how words are looked for."""
        if _state(cursor, self._tables) == "all":
            return ALL_WORDS
        found = cursor.execute(MAY_CHANGE, (self._tables.all[0],)).fetchone()
        return WORDS_LATER if found[0] else REORDERS

    def _fill(self, progress: Callable[[int, int], None] | None) -> None:
        tables, last, done = self._tables, "", 0
        n_left = self._session.run(partial(_count_without, tables=tables))
        while self._state == "some":
            last, n = self._session.run(partial(_fill_some, tables=tables, after=last))
            done += n
            if progress is not None:
                progress(min(done, n_left), n_left)
            if not n:
                self._state = self._session.run(partial(_finish, tables=tables))
                last = ""


def take_turns(cursor: Any, tables: Tables) -> None:
    """Wait until no other process makes or upgrades this store."""
    cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (tables.name,))


def _state(cursor: Any, tables: Tables) -> str:
    """Return "all", "some", or "" where the store has no words."""
    found = cursor.execute(tables.sql("SELECT value FROM {meta} WHERE key = 'words'")).fetchone()
    return str(found[0]) if found else ""


def _add_columns(cursor: Any, tables: Tables) -> str:
    """Make room for words, unless another process was faster; return the state then."""
    take_turns(cursor, tables)
    if not _state(cursor, tables):
        for statement in COLUMNS:
            cursor.execute(tables.sql(statement))
        for role, writes in cursor.execute(ROLES, (tables.all[0],)).fetchall():
            rights = "SELECT, INSERT, UPDATE, DELETE" if writes else "SELECT"
            cursor.execute(tables.sql(f"GRANT {rights} ON {{totals}} TO {{role}}", role=SQL(role)))
    return _state(cursor, tables)


def _count_without(cursor: Any, tables: Tables) -> int:
    """Count the documents without words."""
    query = tables.sql("SELECT count(*) FROM {documents} WHERE words IS NULL")
    return int(cursor.execute(query).fetchone()[0])


def _fill_some(cursor: Any, tables: Tables, after: str) -> tuple[str, int]:
    """Give some documents their words; return the last id of them and how many there were."""
    take_turns(cursor, tables)
    rows = cursor.execute(tables.sql(WITHOUT), (after, BATCH)).fetchall()
    if not rows:
        return after, 0
    vectors = to_vectors([unescape(text) for _, text in rows])
    pairs = zip(rows, vectors, strict=True)
    new = [{"id": id, "words": words, "n_words": n} for (id, _), (words, n) in pairs]
    fill = tables.sql(NOTED.replace("CHANGE", FILL))
    cursor.execute(fill, (orjson.dumps(new).decode(),))
    return rows[-1][0], len(rows)


def _finish(cursor: Any, tables: Tables) -> str:
    """Make the index when all documents have words; once over all is fastest."""
    take_turns(cursor, tables)
    if not _count_without(cursor, tables):
        cursor.execute("SELECT set_config('maintenance_work_mem', %s, true)", (MEMORY,))
        cursor.execute(tables.sql(WORD_INDEX))
        cursor.execute(tables.sql("UPDATE {meta} SET value = 'all' WHERE key = 'words'"))
    return _state(cursor, tables)
