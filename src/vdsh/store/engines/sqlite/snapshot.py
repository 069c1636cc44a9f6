"""The documents of a store in a folder, as one transaction sees them: filtering and fetching."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vdsh.errors import FolderError, InputError
from vdsh.jit import once
from vdsh.store.engine import Stored
from vdsh.store.engines.sqlite.filters import Narrowing, Numbers
from vdsh.store.engines.sqlite.where import to_sql
from vdsh.store.rows import (
    COLUMNS,
    check_code,
    read_metadata,
    searched_text,
    sort_keys,
    to_document,
)
from vdsh.store.where import ALWAYS, Sql, Tree
from vdsh.text.languages import fold

PER_STATEMENT = 500  # ids looked up at a time
LONGEST = 900_000  # characters of a condition; SQLite takes a million
FEW = 2000  # documents that may pass a filter, when just those are looked at
MOST_ENTRIES = 10_000  # of a test, to find them
# Whether ASCII words may follow each other: all of them in the text, or the first one before it.
# What is longer in bytes may have other letters.
_WIDE = [f"LENGTH(CAST({one} AS BLOB)) > LENGTH({one})" for one in ("text", "metadata", "id")]
MAY_HAVE = f"({' OR '.join(['text LIKE ? OR metadata LIKE ? OR id LIKE ?', *_WIDE])})"
ONE_BY_ONE = 5  # times as long as in a row takes what is looked up


class FilteredDocuments:
    """The documents that a transaction sees and that match a filter.

    It is what a `Searcher` asks (`vdsh.retrieval.searcher.Documents`).
    """

    def __init__(self, connection: sqlite3.Connection, where: Tree | None = None) -> None:
        self._connection = connection
        self._where = where
        self._filter = None if where is None else self._compile(where)

    @property
    def is_filtered(self) -> bool:
        """Whether only documents that match a filter are seen."""
        return self._filter is not None

    def few_rows(self) -> Numbers | None:
        """Return the rows of all that match, in order, where an index says that they are few."""
        return self._few_rows

    @once
    def _few_rows(self) -> Numbers | None:
        candidates = self._narrowed(MOST_ENTRIES)
        if candidates is None or len(candidates) > FEW:
            return None
        return np.sort(self.passing(candidates))

    def passing(self, rows: Numbers) -> Numbers:
        """Return those of some rows that match, in the order given."""
        if self._filter is None:
            return rows
        found = self._look_up("row", rows.tolist(), self._filter, by="row")
        return rows[np.isin(rows, _first_column(found))]

    def all_rows(self) -> Numbers:
        """Return the rows of all that match, in order."""
        few = self.few_rows()
        return np.sort(_first_column(self._all("row"))) if few is None else few

    def id_order(self, rows: Numbers) -> Numbers:
        """Return numbers that sort as the ids of rows do."""
        ids = dict(self._look_up("row, id", rows.tolist(), by="row"))
        return sort_keys([ids[row] for row in rows.tolist()])

    def count(self) -> int:
        """Count the documents."""
        few = self.few_rows()
        if few is not None:
            return len(few)
        if self._some() is not None:
            return len(self.all_rows())
        return int(self._all("COUNT(*)")[0][0])

    def texts(self, rows: Numbers, phrases: Sequence[Sequence[str]]) -> tuple[Numbers, list[str]]:
        """Return rows that match with the texts their words are taken from.

        Rows that cannot have one of the phrases may be left out.
        """
        text, parameters = self._filter or ALWAYS
        folded = [list(map(fold, phrase)) for phrase in phrases]
        folded = [words for words in folded if "".join(words).isascii()]
        likes = [f"%{some}%" for words in folded for some in ("%".join(words), words[0], words[0])]
        conditions = [f"({text})", *([MAY_HAVE] * len(folded))]
        condition = Sql(" AND ".join(conditions), (*parameters, *likes))
        found = self._look_up("row, id, text, metadata", rows.tolist(), condition, by="row")
        texts = [searched_text(id, body, read_metadata(meta)) for _, id, body, meta in found]
        return _first_column(found), texts

    def fetch(self, rows: Numbers) -> list[Stored]:
        """Fetch the documents of some rows, in their order."""
        found = {
            row[0]: row[1:] for row in self._look_up(f"row, {COLUMNS}", rows.tolist(), by="row")
        }
        return [to_stored(_columns_of(found, row)) for row in rows.tolist()]

    def look_up(self, ids: Sequence[str]) -> list[Stored]:
        """Fetch the documents of those ids that are there."""
        return [to_stored(row) for row in self._look_up(COLUMNS, ids)]

    def present(self, ids: Sequence[str]) -> set[str]:
        """Say which of some documents are there."""
        return {id for (id,) in self._look_up("id", ids)}

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


def to_stored(row: Sequence[Any]) -> Stored:
    """Make a document and its code of the columns `COLUMNS`."""
    id, text, labels, metadata, code, check_sum, code_sum = row
    document = to_document((id, text, labels, metadata, check_sum))
    return document, check_code(document.id, code, code_sum)


def _columns_of(found: Mapping[int, Any], row: int) -> Any:
    """Return the columns of a row that the index has."""
    if row not in found:
        raise FolderError(
            f"The index file of this store is of other documents: it has row {row}. "
            "Delete the files index-*.vdsh in its folder; they are made again."
        )
    return found[row]


def _first_column(rows: Sequence[Sequence[Any]]) -> Numbers:
    return np.array([row[0] for row in rows], np.int64)
