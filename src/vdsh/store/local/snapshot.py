"""One state of a local store: searching, filtering and fetching in a single transaction."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from vdsh.codes import Codes
from vdsh.errors import FolderError, InputError
from vdsh.search import HammingIndex, Hits
from vdsh.search.id_kinds import show
from vdsh.store.base import Hit, Where
from vdsh.store.local.where import Sql, to_sql
from vdsh.store.rows import COLUMNS, hex_of, read_codes, to_document
from vdsh.store.where import parse

PER_STATEMENT = 500  # ids looked up at a time
LONGEST = 900_000  # characters of a condition; SQLite takes a million
MANY_TRIED = 10_000  # nearest documents tried before a filter goes through all of them

Pairs = list[tuple[str, int]]  # id, distance


class Snapshot:
    """What a reader sees between the beginning and the end of a transaction.

    Parameters
    ----------
    connection : sqlite3.Connection
    where : dict, optional
        Only documents that match are seen.
    """

    def __init__(self, connection: sqlite3.Connection, where: Where | None = None) -> None:
        self._connection = connection
        self._filter = None if where is None else self._compile(where)

    def count(self) -> int:
        """Count the documents."""
        condition = self._filter or Sql("1")
        query = f"SELECT COUNT(*) FROM documents WHERE {condition.text}"
        (n_documents,) = self._connection.execute(query, condition.parameters).fetchone()
        return int(n_documents)

    def fields(self) -> list[str]:
        """List the names of the metadata fields, in order."""
        query = "SELECT name FROM fields WHERE typeof(name) = 'text' ORDER BY name"
        return [name for (name,) in self._connection.execute(query)]

    def nearest(self, index: HammingIndex, code: Codes, k: int) -> Pairs:
        """Return the k nearest documents.

        With a filter, some more of the nearest are tried first: a filter that many documents pass
        is then answered without looking at all of them.
        """
        if self._filter is None:
            return _pairs(index.search(code, k)) if len(index) else []
        n_tried = 16 * k + 64
        while n_tried < min(len(index), MANY_TRIED):
            passed = self._passing(_pairs(index.search(code, n_tried)))
            if len(passed) >= k:
                return passed[:k]
            n_tried *= 8
        return self._nearest_of_all_passing(code, k)

    def within(self, index: HammingIndex, code: Codes, radius: int) -> Pairs:
        """Return every document within a radius."""
        if not len(index):
            return []
        hits = index.within(code, radius)
        assert isinstance(hits, Hits)
        return self._passing(_pairs(hits))

    def codes(self, ids: Sequence[str], n_bytes: int) -> Codes:
        """Return the codes of documents, of shape (n_docs, n_bytes)."""
        found = dict(self._look_up("id, code", ids))
        return read_codes([(id, _row(found, id)) for id in ids], n_bytes)[1]

    def hits(self, pairs: Pairs, expected: Sequence[float] | None = None) -> list[Hit]:
        """Fetch documents that were found."""
        found = self._look_up(f"{COLUMNS}, code", [id for id, _ in pairs])
        rows = {row[0]: row[1:] for row in found}
        hits = []
        for i, (id, distance) in enumerate(pairs):
            *columns, code = _row(rows, id)
            document = to_document((id, *columns))
            mean = None if expected is None else expected[i]
            known, fields = document.labels, document.metadata
            hits.append(Hit(id, distance, document.text, known, fields, mean, hex_of(code)))
        return hits

    def _compile(self, where: Where) -> Sql:
        condition = to_sql(parse(where, set(self.fields())))
        n_values, length = len(condition.parameters), len(condition.text)
        most = self._connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) - PER_STATEMENT
        if n_values > most or length > LONGEST:
            raise InputError(f"The filter is too long: {n_values:,} values. Ask in several parts.")
        return condition

    def _passing(self, pairs: Pairs) -> Pairs:
        if self._filter is None:
            return pairs
        passing = {id for (id,) in self._look_up("id", [id for id, _ in pairs], self._filter)}
        return [pair for pair in pairs if pair[0] in passing]

    def _nearest_of_all_passing(self, code: Codes, k: int) -> Pairs:
        condition = self._filter or Sql("1")
        query = f"SELECT id, code FROM documents WHERE {condition.text}"
        rows = self._connection.execute(query, condition.parameters).fetchall()
        if not rows:
            return []
        ids, codes = read_codes(rows, len(code))
        return _pairs(HammingIndex(codes, ids=ids).search(code, k))

    def _look_up(
        self, columns: str, ids: Sequence[str], condition: Sql | None = None
    ) -> Iterator[Any]:
        text, parameters = condition or Sql("1")
        for first in range(0, len(ids), PER_STATEMENT):
            some = ids[first : first + PER_STATEMENT]
            marks = ", ".join("?" * len(some))
            query = f"SELECT {columns} FROM documents WHERE id IN ({marks}) AND ({text})"
            yield from self._connection.execute(query, (*some, *parameters))


def _row(found: dict[str, Any], id: str) -> Any:
    """Return what was found of an id that the index has."""
    if id not in found:
        raise FolderError(
            f"The index file of this store is of other documents: it has {show(id)}. "
            "Delete the files index-*.vdsh in its folder; they are made again."
        )
    return found[id]


def _pairs(hits: Hits) -> Pairs:
    return list(zip(hits.ids.tolist(), hits.distances.tolist(), strict=True))
