"""Filters as SQLite conditions, with bound parameters only."""

import json
import math
from collections.abc import Sequence
from typing import Any

from vdsh.store.where import ORDERS, Compare, IsThere, Sql, Tree, join, kind_of, sql_of

# json_extract cuts a text off at a NUL, so documents with one are read by `json_value` instead.
HAS_NUL = r"instr(metadata, '\u0000')"
HAS_LABEL = r"""
CASE instr(labels, '\u0000') WHEN 0 THEN EXISTS (
SELECT 1 FROM json_each(labels) WHERE value IN (SELECT value FROM json_each(?)))
ELSE has_label(labels, ?) END"""
KINDS: dict[str | None, str] = {"text": "('text')", "number": "('integer', 'real')"}
KINDS |= {"truth": "('true', 'false')", "null": "('null')"}

Scalar = str | int | float | None


def to_sql(tree: Tree) -> Sql:
    """Turn a filter into SQL over the table `documents`.

    >>> to_sql(Compare("id", "=", ("a",)))
    Sql(text='id IN (?)', parameters=('a',))
    """
    return sql_of(tree, _test)


def _test(tree: IsThere | Compare) -> Sql:
    match tree:
        case IsThere("labels"):
            return Sql("labels IS NOT NULL")
        case IsThere(field):
            return Sql(f"{_type_of(field)} IS NOT NULL", (json_path(field),))
        case Compare("id", operator, values):
            return _compare("id", (), operator, values)
        case Compare("labels", _, values):
            return _label(values)
        case Compare(field, operator, values):
            kind = kind_of(values[0])
            is_kind = Sql(f"IFNULL({_type_of(field)}, '') IN {KINDS[kind]}", (json_path(field),))
            if kind == "null":
                return is_kind
            compared = _compare(*_value(field, kind), operator, list(map(to_sqlite, values)))
            return join(" AND ", [is_kind, compared])


def json_value(document: str, name: str) -> Scalar:
    """Return a metadata value for comparing: the SQL function for what json_extract cannot do."""
    value = json.loads(document).get(name)
    return None if isinstance(value, dict | list) else to_sqlite(value)


def json_kind(document: str, name: str) -> str | None:
    """Return the type of a metadata value as `json_type` does, for names it cannot look up."""
    values = json.loads(document)
    if name not in values:
        return None
    kind, value = kind_of(values[name]), values[name]
    names = {"text": "text", "number": "real", "null": "null", None: "object"}
    return ("true" if value else "false") if kind == "truth" else names[kind]


def has_label(labels: str, wanted: str) -> bool:
    """Say whether two JSON arrays have a label in common."""
    return not set(json.loads(wanted)).isdisjoint(json.loads(labels))


def _label(labels: Sequence[str]) -> Sql:
    # In SQL alone other threads can run meanwhile; with a NUL it would compare what is before it.
    plain = [label for label in labels if "\0" not in label]
    given = [json.dumps(some, ensure_ascii=False) for some in (plain, labels)]
    if len(labels) != 1:
        return Sql(f"labels IS NOT NULL AND {HAS_LABEL}", tuple(given))
    # The cheap test by instr spares most rows the exact one; it may say yes too often.
    text = f"labels IS NOT NULL AND instr(labels, ?) AND {HAS_LABEL}"
    return Sql(text, (given[1][1:-1], *given))


def _compare(value: str, given: tuple[Scalar, ...], operator: str, others: Sequence[Any]) -> Sql:
    compared = f"{operator} ?" if operator in ORDERS else f"IN ({', '.join('?' * len(others))})"
    return Sql(f"{value} {compared}", (*given, *others))


def _type_of(field: str) -> str:
    return "json_type(metadata, ?)" if is_plain(field) else "json_kind(metadata, ?)"


def _value(field: str, kind: str | None) -> tuple[str, tuple[Scalar, ...]]:
    """Return the SQL of a metadata value and its parameters."""
    if not is_plain(field):
        return "json_value(metadata, ?)", (field,)
    if kind != "text":
        return "json_extract(metadata, ?)", (json_path(field),)
    careful = f"CASE {HAS_NUL} WHEN 0 THEN json_extract(metadata, ?) ELSE json_value(metadata, ?)"
    return f"{careful} END", (json_path(field), field)


def is_plain(field: str) -> bool:
    """Say whether SQLite can look the name up: older versions know no escapes in a path."""
    return bool(field) and not any(c in '"\\' or c < " " for c in field)


def json_path(field: str) -> str:
    """Give the path of a field as SQLite looks it up; the name itself where it cannot."""
    return f'$."{field}"' if is_plain(field) else field


def to_sqlite(value: Any) -> Any:
    """Return the value as SQLite can hold it: large integers become floats, as in its JSON."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return int(value) if isinstance(value, bool) else value
