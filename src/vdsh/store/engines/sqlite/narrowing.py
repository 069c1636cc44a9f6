"""Which documents may pass a filter, by the entries of `filters`: all that do, and a few more."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.store.engines.sqlite.filters import NUL, usable_fields
from vdsh.store.engines.sqlite.where import Sql, to_sqlite
from vdsh.store.filters import LONGEST
from vdsh.store.where import ORDERS, All, Compare, Some, Tree, kind_of

Numbers = NDArray[np.int64]


class Narrowing:
    """Finds rows by entries, as a transaction sees them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._fields = usable_fields(connection)

    def rows(self, tree: Tree, most: int) -> Numbers | None:
        """Return the rows that may pass, in order; None where they cannot be told.

        Nor can they where a test has more than `most` of them and no other has fewer.
        """
        match tree:
            case All(parts):
                told = [rows for rows in self._parts(parts, most) if rows is not None]
                return reduce(_in_both, told) if told else None
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
                return None if None in values else self._equal(field, values, most)
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

    def _equal(self, field: str, values: Sequence[Any], most: int) -> Numbers | None:
        keys = [_key(value) for value in values if field != "labels" or isinstance(value, str)]
        return self._entries(field, Sql(f"value IN ({_marks(keys)})", tuple(keys)), most)

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
    """Give a value as entries have it."""
    return value[:LONGEST] if isinstance(value, str) else to_sqlite(value)


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _in_order(*rows: Sequence[int] | Numbers) -> Numbers:
    return np.unique(np.concatenate([np.asarray(some, np.int64) for some in rows]))


def _in_both(some: Numbers, others: Numbers) -> Numbers:
    both: Numbers = np.intersect1d(some, others, assume_unique=True)
    return both
