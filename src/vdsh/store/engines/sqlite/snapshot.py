"""One state of a store in a folder: searching, filtering and fetching in a single transaction."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from vdsh.codes import Codes
from vdsh.errors import FolderError, InputError
from vdsh.jit import once
from vdsh.search import HammingIndex
from vdsh.search.id_kinds import show
from vdsh.store.engines.sqlite.filters import Narrowing, Numbers
from vdsh.store.engines.sqlite.where import to_sql
from vdsh.store.hits import Found
from vdsh.store.rows import (
    COLUMNS,
    check_code,
    read_codes,
    read_metadata,
    searched_text,
    to_document,
)
from vdsh.store.where import ALWAYS, Sql, Tree
from vdsh.text.languages import fold

PER_STATEMENT = 500  # ids looked up at a time
LONGEST = 900_000  # characters of a condition; SQLite takes a million
MANY_TRIED = 10_000  # nearest documents tried before a filter goes through all of them
FEW = 2000  # documents that may pass a filter, when just those are looked at
MOST_ENTRIES = 10_000  # of a test, to find them
# Whether ASCII words may follow each other: all of them in the text, or the first one before it.
# What is longer in bytes may have other letters.
_WIDE = [f"LENGTH(CAST({one} AS BLOB)) > LENGTH({one})" for one in ("text", "metadata", "id")]
MAY_HAVE = f"({' OR '.join(['text LIKE ? OR metadata LIKE ? OR id LIKE ?', *_WIDE])})"
ONE_BY_ONE = 5  # times as long as in a row takes what is looked up

Pairs = list[tuple[str, int]]  # id, distance


class Snapshot:
    """What a reader sees between the beginning and the end of a transaction.

    `where`: only documents that match are seen.
    """

    def __init__(self, connection: sqlite3.Connection, where: Tree | None = None) -> None:
        self._connection = connection
        self._where = where
        self._filter = None if where is None else self._compile(where)

    @once
    def few(self) -> list[tuple[int, str, bytes]] | None:
        """Row, id and code of all that match, in order, where an index says that they are few."""
        rows = self._narrowed(MOST_ENTRIES)
        return None if rows is None or len(rows) > FEW else self.rows("id, code", rows.tolist())

    def count(self) -> int:
        """Count the documents."""
        if self.few is not None:
            return len(self.few)
        return int(self._all("COUNT(*)")[0][0]) if self._some() is None else len(self.all_rows())

    def nearest(self, index: HammingIndex, code: Codes, k: int) -> Pairs | None:
        """Return the k nearest documents, or None where the index cannot tell.

        With a filter, some more of the nearest are tried: a filter that many documents pass is
        answered so. For others there is `nearest_of_all_passing`.
        """
        if self._filter is None or not len(code):
            return to_pairs(index.search(code, k)) if len(index) else []
        n_tried = 16 * k + 64
        while self.few is None and n_tried < min(len(index), MANY_TRIED):
            passed = self.passing(to_pairs(index.search(code, n_tried)))
            if len(passed) >= k:
                return passed[:k]
            n_tried *= 8
        return None

    def passing(self, pairs: Pairs) -> Pairs:
        """Return those documents that match."""
        if self._filter is None:
            return pairs
        passing = {id for (id,) in self._look_up("id", [id for id, _ in pairs], self._filter)}
        return [pair for pair in pairs if pair[0] in passing]

    def nearest_of_all_passing(self, code: Codes, k: int) -> Pairs:
        """Return the k nearest of the documents that match, by looking at all of those."""
        index = self._index_of_all(code)
        return to_pairs(index.search(code, k)) if len(index) else []

    def within(self, index: HammingIndex, code: Codes, radius: int) -> Pairs:
        """Return the documents that match within a radius."""
        if self.few is None:
            return self.passing(to_pairs(index.within(code, radius)) if len(index) else [])
        index = self._index_of_all(code)
        return to_pairs(index.within(code, radius)) if len(index) else []

    @property
    def is_filtered(self) -> bool:
        """Whether only documents that match a filter are seen."""
        return self._filter is not None

    def rows(self, columns: str, numbers: Sequence[int]) -> list[Any]:
        """Look up columns of those rows that match, in the order of their numbers."""
        return self._look_up(f"row, {columns}", numbers, self._filter, by="row")

    def texts(
        self, numbers: Sequence[int], phrases: Sequence[Sequence[str]] = ()
    ) -> list[tuple[int, str, str]]:
        """Look up row, id and what words are taken from, of those rows that match.

        Rows that cannot have some phrases may be left out.
        """
        text, parameters = self._filter or ALWAYS
        folded = [list(map(fold, phrase)) for phrase in phrases]
        folded = [words for words in folded if "".join(words).isascii()]
        likes = [f"%{some}%" for words in folded for some in ("%".join(words), words[0], words[0])]
        conditions = [f"({text})", *([MAY_HAVE] * len(folded))]
        condition = Sql(" AND ".join(conditions), (*parameters, *likes))
        rows = self._look_up("row, id, text, metadata", numbers, condition, by="row")
        return [(row, id, searched_text(id, text, read_metadata(m))) for row, id, text, m in rows]

    def rows_of(self, pairs: Pairs) -> list[int]:
        """Look up the rows of documents that were found."""
        return [row for (row,) in self._look_up("row", [id for id, _ in pairs])]

    def all_rows(self) -> list[int]:
        """Return the numbers of all rows that match."""
        return [row for row, *_ in self.few or self._all("row")]

    def fetch(self, pairs: Pairs) -> list[Found]:
        """Fetch documents that were found."""
        rows = {row[0]: row for row in self._look_up(COLUMNS, [id for id, _ in pairs])}
        return [to_found(_row(rows, id), distance) for id, distance in pairs]

    def fetch_rows(self, numbers: Sequence[int]) -> list[Found]:
        """Fetch the documents of some rows."""
        rows = {row[0]: row for row in self._look_up(f"row, {COLUMNS}", numbers, by="row")}
        return [to_found(_row(rows, number)[1:]) for number in numbers]

    def look_up(self, ids: Sequence[str]) -> list[Found]:
        """Fetch those documents that are there."""
        return [to_found(row) for row in self._look_up(COLUMNS, ids)]

    def present(self, ids: Sequence[str]) -> set[str]:
        """Say which of some documents are there."""
        return {id for (id,) in self._look_up("id", ids)}

    def _index_of_all(self, code: Codes) -> HammingIndex:
        found = self.few or self._all("row, id, code")
        ids, codes = read_codes([(id, code) for _, id, code in found], len(code))
        return HammingIndex(codes, ids=ids)

    def _all(self, columns: str) -> list[Any]:
        """Look up columns of all rows that match, by an index or by reading all documents."""
        rows = self._some()
        if rows is not None:
            return self._look_up(columns, rows.tolist(), self._filter, by="row")
        text, parameters = self._filter or ALWAYS
        query = f"SELECT {columns} FROM documents WHERE {text}"
        return self._connection.execute(query, parameters).fetchall()

    def _some(self) -> Numbers | None:
        """Return rows of which all that match are some, where looking them up is quicker."""
        query = "SELECT IFNULL(MAX(row), 0) FROM documents"
        (newest,) = self._connection.execute(query).fetchone()
        return self._narrowed(newest // ONE_BY_ONE)

    def _narrowed(self, most: int) -> Numbers | None:
        return None if self._where is None else Narrowing(self._connection).rows(self._where, most)

    def _compile(self, where: Tree) -> Sql:
        condition = to_sql(where)
        n_values, length = len(condition.parameters), len(condition.text)
        most = self._connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) - PER_STATEMENT
        if n_values > most or length > LONGEST:
            raise InputError(f"The filter is too long: {n_values:,} values. Ask in several parts.")
        return condition

    def _look_up(
        self,
        columns: str,
        keys: Sequence[str] | Sequence[int],
        condition: Sql | None = None,
        by: str = "id",
    ) -> list[Any]:
        text, parameters = condition or ALWAYS
        rows: list[Any] = []
        for first in range(0, len(keys), PER_STATEMENT):
            some = keys[first : first + PER_STATEMENT]
            marks = ", ".join("?" * len(some))
            query = f"SELECT {columns} FROM documents WHERE {by} IN ({marks}) AND ({text})"
            rows += self._connection.execute(query, (*some, *parameters)).fetchall()
        return rows


def to_found(row: Sequence[Any], distance: int = 0) -> Found:
    """Make a document and its code of the columns `COLUMNS`."""
    id, text, labels, metadata, code, check_sum, code_sum = row
    document = to_document((id, text, labels, metadata, check_sum))
    return Found(document, check_code(document.id, code, code_sum), distance)


def _row(found: Mapping[Any, Any], id: str | int) -> Any:
    """Return what was found of an id, or a row, that the index has."""
    if id not in found:
        raise FolderError(
            f"The index file of this store is of other documents: it has {show(id)}. "
            "Delete the files index-*.vdsh in its folder; they are made again."
        )
    return found[id]


def to_pairs(hits: Any) -> Pairs:
    """Give the answer of an index to one query as pairs."""
    return list(zip(hits.ids.tolist(), hits.distances.tolist(), strict=True))
