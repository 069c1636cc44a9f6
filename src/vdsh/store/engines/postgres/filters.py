"""Filters as PostgreSQL conditions, with bound parameters only; and indexes for them.

An index is GIN for labels, B-trees for the texts and numbers of a field. Those are of what a value
is cut to, for an entry holds 2,704 bytes. Conditions on that let all documents pass that a filter
does, and a few more; the exact ones stand beside them. They hold whether an index is there or not.
"""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from time import monotonic
from typing import Any

from psycopg.sql import Identifier, Literal

from vdsh.errors import EngineError, InputError
from vdsh.store.engine import Progress
from vdsh.store.engines.postgres.session import Session, StoreCursor
from vdsh.store.engines.postgres.tables import MEMORY, escape, json_of
from vdsh.store.filters import LONGEST, MOST, WORTH, fields_of
from vdsh.store.where import ORDERS, All, Compare, IsThere, Some, Sql, Tree, join, kind_of, sql_of

# FIELD is a parameter in conditions, which are planned with its value, and a literal in indexes.
IS_TEXT = "jsonb_typeof(fields -> FIELD) = 'string'"
IS_NUMBER = "jsonb_typeof(fields -> FIELD) = 'number'"
TEXT = f"left(fields ->> FIELD, {LONGEST}) COLLATE \"C\""  # fmt: skip
CUT = "round(least(greatest({}, -1e300), 1e300), 20)"
NUMBER = CUT.format(f"CASE WHEN {IS_NUMBER} THEN (fields ->> FIELD)::numeric END")
INDEXES = {
    "t": f"CREATE INDEX IF NOT EXISTS {{name}} ON {{documents}} (({TEXT})) WHERE {IS_TEXT}",
    "n": f"CREATE INDEX IF NOT EXISTS {{name}} ON {{documents}} (({NUMBER})) WHERE {IS_NUMBER}",
}
LABELS = "CREATE INDEX IF NOT EXISTS {name} ON {documents} USING gin (labels)"
SOFT = {">": ">=", "<": "<="}  # what is cut may be equal
AGAIN = 60  # seconds until it is looked again whether there is an index
PATIENCE = 5  # seconds to wait for writers
MOST_PARAMETERS = 60_000  # the protocol counts them in 16 bits


class FilterIndexes:
    """Which fields of a store have an index, and what to do where one has not."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: set[str] = set()
        self._looked_at: dict[str, float] = {}

    def prepare(self, where: Tree, progress: Progress | None = None) -> None:
        """Index the fields of a filter, where that is worth it and allowed."""
        before = monotonic() - AGAIN
        wanted = {
            field
            for field in fields_of(where) - self._known
            if self._looked_at.get(field, before) <= before
        }
        if not wanted:
            return
        there, n_indexes, is_large = self._session.run(partial(self._look, wanted))
        self._known |= there
        self._looked_at |= dict.fromkeys(wanted, monotonic())
        missing = sorted(wanted - there)
        if missing and is_large and n_indexes + len(missing) <= MOST:
            with suppress(EngineError):  # not allowed, or others write for long
                self.make(missing, progress)

    def make(self, fields: Sequence[str], progress: Progress | None = None) -> None:
        """Index fields that have no index; writers wait for it."""
        for done, field in enumerate(fields):
            if progress is not None:
                n_documents = self._session.run(self._count)
                progress(done * n_documents, len(fields) * n_documents)
            self._session.run(partial(self._make, field))
            self._known.add(field)

    def condition(self, where: Tree | None) -> tuple[Sql, bool]:
        """Turn a filter into SQL with what indexes know of it; say whether they know anything."""
        tree = All(()) if where is None else where
        exact, narrow = sql_of(tree, _test), _narrow(tree, self._known)
        if (n := len(exact.parameters)) > MOST_PARAMETERS:
            raise InputError(f"The filter is too long: {n:,} values. Ask in several parts.")
        if narrow is None:
            return exact, False
        if isinstance(tree, Compare) and tree.field == "labels":
            return narrow, True  # which is exact
        both = join(" AND ", [narrow, exact])
        return (both, True) if len(both.parameters) <= MOST_PARAMETERS else (exact, False)

    def _look(self, fields: set[str], cursor: StoreCursor) -> tuple[set[str], int, bool]:
        """Say which fields have an index, how many there are, and whether documents are many."""
        query = (
            "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
            " WHERE indrelid = %s::regclass AND indisvalid"
        )
        names = {name for (name,) in cursor.ask(query, cursor.tables.all[0])}
        there = {field for field in fields if names.issuperset(self._names(field))}
        ours = {name[-6:] for name in names if name.startswith(cursor.tables.filter_index(""))}
        return there, len(ours), self._count(cursor, WORTH) >= WORTH

    def _count(self, cursor: StoreCursor, most: int | None = None) -> int:
        query = "SELECT count(*) FROM (SELECT FROM {documents} LIMIT %s) AS counted"
        return int(cursor.ask(query, most)[0][0])

    def _make(self, field: str, cursor: StoreCursor) -> None:
        cursor.ask(f"SET LOCAL lock_timeout = '{PATIENCE}s'")
        cursor.take_turns()
        cursor.ask(f"SET LOCAL maintenance_work_mem = '{MEMORY}'")
        statements = [LABELS] if field == "labels" else list(INDEXES.values())
        for name, statement in zip(self._names(field), statements, strict=True):
            text = statement.replace("FIELD", "{field}")
            cursor.ask(text, name=Identifier(name), field=Literal(escape(field)))
        cursor.ask("ANALYZE {documents}")  # or it is not chosen

    def _names(self, field: str) -> list[str]:
        digest = hashlib.sha256(field.encode()).hexdigest()[:6]
        kinds = ["l"] if field == "labels" else list(INDEXES)
        return [self._session.tables.filter_index(f"{kind}{digest}") for kind in kinds]


def _test(tree: IsThere | Compare) -> Sql:
    match tree:
        case IsThere("labels"):
            return Sql("labels IS NOT NULL")
        case IsThere(field):
            return Sql("(fields -> %s::text) IS NOT NULL", (escape(field),))
        case Compare("id", "=" | "in", values):
            return Sql("id = ANY(%s::text[])", (list(map(escape, values)),))
        case Compare("id", operator, values):
            return Sql(f"id {operator} %s::text", (escape(values[0]),))
        case Compare("labels", _, values):
            return Sql("COALESCE(labels && %s::text[], false)", (list(map(escape, values)),))
        case Compare(field, "=" | "in", values):
            test = "COALESCE((fields -> %s::text) = ANY(%s::jsonb[]), false)"
            return Sql(test, (escape(field), list(map(json_of, values))))
        case Compare(field, operator, values):
            return _in_order(escape(field), operator, values[0])


def _in_order(field: str, operator: str, value: Any) -> Sql:
    have, given, of_type = "fields -> %s::text", json_of(value), "jsonb"
    if isinstance(value, str):  # in the order of bytes, which jsonb is not
        have, given, of_type = "fields ->> %s::text", escape(value), 'text COLLATE "C"'
    is_kind = "jsonb_typeof(fields -> %s::text) = jsonb_typeof(%s::jsonb)"
    test = f"COALESCE({is_kind} AND ({have}) {operator} %s::{of_type}, false)"
    return Sql(test, (field, json_of(value), field, given))


def _narrow(tree: Tree, known: set[str]) -> Sql | None:
    match tree:
        case All(parts):
            told = [one for part in parts if (one := _narrow(part, known)) is not None]
            return join(" AND ", told) if told else None
        case Some(parts):
            told = [one for part in parts if (one := _narrow(part, known)) is not None]
            return join(" OR ", told) if len(told) == len(parts) else None
        case Compare("labels", _, values) if "labels" in known:
            texts = [escape(value) for value in values if isinstance(value, str)]
            return Sql("labels && %s::text[]", (texts,))
        case Compare(field, operator, values) if field in known:
            if any(kind_of(value) not in ("text", "number") for value in values):
                return None
            return join(" OR ", list(_tests(escape(field), operator, values)))
        case _:
            return None


def _tests(field: str, operator: str, values: Iterable[Any]) -> Iterable[Sql]:
    """Compare texts with texts and numbers with numbers."""
    texts = [escape(value)[:LONGEST] for value in values if isinstance(value, str)]
    numbers = [_cut(value) for value in values if not isinstance(value, str)]
    kinds = (IS_TEXT, TEXT, "text", texts), (IS_NUMBER, NUMBER, "numeric", numbers)
    for kind, value, type_name, keys in kinds:
        given = [field] * f"{kind}{value}".count("FIELD")
        test = f"{kind} AND {value}".replace("FIELD", "%s::text")
        if keys and operator in ORDERS:
            soft = SOFT.get(operator, operator)
            yield Sql(f"{test} {soft} %s::{type_name}", (*given, keys[0]))
        elif keys:
            yield Sql(f"{test} = ANY(%s::{type_name}[])", (*given, keys))


def _cut(number: Any) -> str:
    """Do what `CUT` does."""
    exact = Context(prec=400, rounding=ROUND_HALF_UP)
    bounded = max(min(Decimal(json_of(number)), Decimal("1e300")), Decimal("-1e300"))
    return str(bounded.quantize(Decimal("1e-20"), context=exact))
