r"""The tables `filters` and `filter_fields` of a store in a folder: an index for filters.

An entry says that a document has a value in a field. Entries find few documents among many, which
are then looked at as ever: so an entry may be of a document that is gone, texts are cut, and
documents with NUL, where JSON functions of SQLite cut texts off, are under `NUL` with whatever they
have. `last` is the newest row with entries. Where documents are newer, written by a version that
knows nothing of this, the index is not used until it has caught up.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial, reduce
from sqlite3 import Connection, OperationalError
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import WriteError
from vdsh.store.engine import Progress
from vdsh.store.engines.sqlite.database import Database
from vdsh.store.engines.sqlite.schema import FILTERS, make_anew
from vdsh.store.engines.sqlite.where import is_plain, json_path, to_sqlite
from vdsh.store.engines.sqlite.words import begun_anew
from vdsh.store.filters import LONGEST, MOST, WORTH, fields_of
from vdsh.store.where import ORDERS, All, Compare, Some, Sql, Tree, kind_of

NUL = "x'00'"
BATCH = 100_000  # rows that are indexed in a transaction
# What a metadata field and labels have, of some documents.
_FIELD = f"""
SELECT row, CASE instr(metadata, '\\u0000') WHEN 0 THEN json_extract(metadata, ?) ELSE {NUL} END
AS value FROM documents WHERE """
_LABELS = f"""
SELECT documents.row AS row, CASE instr(labels, '\\u0000') WHEN 0 THEN json_each.value ELSE {NUL}
END AS value FROM documents, json_each(labels) WHERE ? = 'labels' AND """
_ENTRIES = f"""
SELECT ?, CASE typeof(value) WHEN 'text' THEN substr(value, 1, {LONGEST}) ELSE value END AS cut, row
FROM (VALUES_OF) WHERE value IS NOT NULL"""

Numbers = NDArray[np.int64]


class Field(NamedTuple):
    """A field with entries: its number, its name, and the newest row that has them."""

    number: int
    name: str
    last: int


def list_fields(connection: Connection) -> list[Field]:
    """List the fields that have entries; none where there is no index, or it is not ours."""
    with suppress(OperationalError):
        connection.execute("SELECT field, value, row FROM filters LIMIT 0")
        rows = connection.execute("SELECT field, name, last FROM filter_fields ORDER BY field")
        fields = [Field(*row) for row in rows]
        sound = all(isinstance(n, int) and isinstance(last, int) for n, _, last in fields)
        return fields if sound else []
    return []


def usable_fields(connection: Connection) -> dict[str, int]:
    """Give the numbers of the fields by name, of those that have entries of all documents."""
    fields = list_fields(connection)
    newest = _newest(connection) if fields else 0
    return {field.name: field.number for field in fields if field.last >= newest}


class FilterIndexes:
    """See `vdsh.store.engine.FilterIndexes`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def prepare(self, where: Tree, progress: Progress | None = None) -> None:
        """Index the fields of a filter, where that is worth it and can be done."""
        wanted = {name for name in fields_of(where) if is_plain(name)}
        with self._database.reading() as connection:
            newest, usable = _newest(connection), usable_fields(connection)
            known = [field.name for field in list_fields(connection)]
        missing = wanted - set(usable)
        if newest < WORTH or len({*known, *missing}) > MOST:
            missing &= set(known)
        if missing and not self._database.read_only:
            with suppress(WriteError):  # another process writes all the time, or the disk is full
                self.make(sorted(missing), progress)

    def make(self, fields: Sequence[str], progress: Progress | None = None) -> None:
        """Index fields, batch by batch; killed in the middle, it goes on where it stopped."""
        self._database.work_off(partial(_catch_up, names=fields), progress)


def add_entries(connection: Connection, first: int, last: int) -> None:
    """Add entries of documents that were just written, to fields that have all before them."""
    with begun_anew(connection, _forget):
        between = "SELECT 1 FROM documents WHERE row > ? AND row < ? LIMIT 1"
        for field in list_fields(connection):
            if not connection.execute(between, (field.last, first)).fetchone():
                _add(connection, field, last)


def remove_entries(connection: Connection, rows: Sequence[int]) -> None:
    """Remove the entries of documents that are deleted next."""
    these = f"documents.row IN ({', '.join(map(str, rows))})"
    with begun_anew(connection, _forget):
        for field in list_fields(connection):
            query, parameters = _entries(field, these)
            delete = f"DELETE FROM filters WHERE (field, value, row) IN ({query})"
            connection.execute(delete, parameters)


def index_anew(connection: Connection) -> None:
    """Make all entries anew."""
    with begun_anew(connection, _forget):
        if fields := list_fields(connection):
            connection.execute("DELETE FROM filters")
        for field in fields:
            _add(connection, field._replace(last=0), _newest(connection))


def missing_entries(connection: Connection) -> bool:
    """Say whether a document lacks an entry in a field that has them all."""
    usable = usable_fields(connection)
    for field in list_fields(connection):
        query, parameters = _entries(field, "1")
        lacking = f"SELECT 1 FROM ({query} EXCEPT SELECT field, value, row FROM filters) LIMIT 1"
        if field.name in usable and connection.execute(lacking, parameters).fetchone():
            return True
    return False


def _catch_up(connection: Connection, names: Collection[str]) -> int:
    """Index some documents for the first field that lacks some; return how many rows are left."""
    if not list_fields(connection):
        _forget(connection)
    new = "INSERT OR IGNORE INTO filter_fields(name, last) VALUES (?, 0)"
    connection.executemany(new, [(name,) for name in names])
    newest = _newest(connection)
    behind = [f for f in list_fields(connection) if f.name in names and f.last < newest]
    n_left = sum(newest - field.last for field in behind)
    if behind:
        last = min(newest, behind[0].last + BATCH)
        _add(connection, behind[0], last)
        n_left -= last - behind[0].last
    return n_left


def _add(connection: Connection, field: Field, last: int) -> None:
    query, parameters = _entries(field, f"documents.row BETWEEN {field.last + 1} AND {last}")
    add = f"INSERT OR IGNORE INTO filters {query} ORDER BY cut, row"
    connection.execute(add, parameters)
    connection.execute("UPDATE filter_fields SET last = ? WHERE field = ?", (last, field.number))


def _entries(field: Field, these: str) -> tuple[str, tuple[int, str]]:
    """Give the query for entries of some documents, and its parameters."""
    is_labels = field.name == "labels"
    values = (_LABELS if is_labels else _FIELD) + these
    key = field.name if is_labels else json_path(field.name)
    return _ENTRIES.replace("VALUES_OF", values), (field.number, key)


def _newest(connection: Connection) -> int:
    (newest,) = connection.execute("SELECT IFNULL(MAX(row), 0) FROM documents").fetchone()
    return int(newest)


def _forget(connection: Connection) -> None:
    """Make the tables anew; the next filter fills them."""
    make_anew(connection, FILTERS)


class Narrowing:
    """Finds rows by entries, as a transaction sees them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._fields = usable_fields(connection)

    def rows(self, tree: Tree, most: int) -> Numbers | None:
        """Return the rows that may pass, in order; None where they cannot be told.

        Nor can they where a test has more than `most` of them and no other has fewer.
        """
        match tree:
            case All(parts):
                told = [rows for rows in self._parts(parts, most) if rows is not None]
                return reduce(partial(np.intersect1d, assume_unique=True), told) if told else None
            case Some(parts):
                told = [rows for part in parts if (rows := self.rows(part, most)) is not None]
                return _in_order([], *told) if len(told) == len(parts) else None
            case Compare("id", "=" | "in", values):
                ids = [value for value in values if isinstance(value, str)]
                return self._ask(
                    f"SELECT row FROM documents WHERE id IN ({_marks(ids)})", ids, most
                )
            case Compare(field, operator, values) if field in self._fields:
                if operator in ORDERS:
                    return self._between(field, [tree], most)
                if None in values:
                    return None
                keys = [_key(one) for one in values if field != "labels" or isinstance(one, str)]
                return self._entries(field, Sql(f"value IN ({_marks(keys)})", tuple(keys)), most)
            case _:
                return None

    def _parts(self, parts: Iterable[Tree], most: int) -> Iterable[Numbers | None]:
        """Find the rows of each part; tests of one field's order make one range."""
        ranges: dict[tuple[str, str | None], list[Compare]] = defaultdict(list)
        for part in parts:
            if isinstance(part, Compare) and part.operator in ORDERS and part.field in self._fields:
                ranges[part.field, kind_of(part.values[0])].append(part)
            else:
                yield self.rows(part, most)
        for (field, _), tests in ranges.items():
            yield self._between(field, tests, most)

    def _between(self, field: str, tests: Sequence[Compare], most: int) -> Numbers | None:
        """Find what is between bounds of one kind; numbers come before texts, texts before NUL."""
        kind = kind_of(tests[0].values[0])
        low = [_key(test.values[0]) for test in tests if test.operator in (">", ">=")]
        high = [_key(test.values[0]) for test in tests if test.operator in ("<", "<=")]
        if kind == "null":  # which has no order
            return _in_order([])
        if kind == "text" and not low:
            low = [""]
        above = "value >= ? AND " if low else ""
        below = "value <= ?" if high else "value < x''" if kind == "text" else "value < ''"
        bounds = ([max(low)] if low else []) + ([min(high)] if high else [])
        return self._entries(field, Sql(above + below, tuple(bounds)), most)

    def _entries(self, field: str, condition: Sql, most: int) -> Numbers | None:
        number = self._fields[field]
        query = (
            f"SELECT row FROM filters WHERE field = ? AND {condition.text}"
            f" UNION ALL SELECT row FROM filters WHERE field = ? AND value = {NUL}"
        )
        return self._ask(query, [number, *condition.parameters, number], most)

    def _ask(self, query: str, parameters: Sequence[Any], most: int) -> Numbers | None:
        count = f"SELECT COUNT(*) FROM ({query} LIMIT {most + 1})"  # quicker than to fetch many
        if self._connection.execute(count, parameters).fetchone()[0] > most:
            return None
        return _in_order([row for (row,) in self._connection.execute(query, parameters)])


def _key(value: Any) -> Any:
    return value[:LONGEST] if isinstance(value, str) else to_sqlite(value)


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _in_order(*rows: Sequence[int] | Numbers) -> Numbers:
    return np.unique(np.concatenate([np.asarray(some, np.int64) for some in rows]))
