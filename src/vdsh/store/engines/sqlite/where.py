"""Filters as SQLite conditions, with bound parameters only."""

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from vdsh.store.where import ALWAYS as ALWAYS
from vdsh.store.where import NEVER, ORDERS, Compare, IsThere, Tree, join, kind_of, sql_of
from vdsh.store.where import Sql as Sql

# json_extract cuts a text off at a NUL, so documents with one are read by `json_value` instead.
HAS_NUL = r"instr(metadata, '\u0000')"
KINDS = {"text": "('text')", "number": "('integer', 'real')"}
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
            return _compare("id", (), operator, [one for one in values if isinstance(one, str)])
        case Compare("labels", _, values):
            return _label([one for one in values if isinstance(one, str)])
        case Compare(field, operator, values):
            return _metadata(field, operator, values)


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
    return not _label_set(wanted).isdisjoint(json.loads(labels))


@lru_cache(maxsize=128)  # more than one filter of the service has
def _label_set(labels: str) -> frozenset[str]:
    return frozenset(json.loads(labels))


def _label(labels: list[str]) -> Sql:
    wanted = json.dumps(labels, ensure_ascii=False)
    if len(labels) != 1:
        return Sql("labels IS NOT NULL AND has_label(labels, ?)", (wanted,)) if labels else NEVER
    # The cheap test by instr spares most rows the exact one; it may say yes too often.
    test = "labels IS NOT NULL AND instr(labels, ?) AND has_label(labels, ?)"
    return Sql(test, (wanted[1:-1], wanted))


def _metadata(field: str, operator: str, values: Sequence[Any]) -> Sql:
    """Compare with values of each kind on its own."""
    parts = []
    for kind, types in KINDS.items():
        same = [to_sqlite(value) for value in values if kind_of(value) == kind]
        if not same or (kind == "null" and operator in ORDERS):
            continue
        tests = [Sql(f"IFNULL({_type_of(field)}, '') IN {types}", (json_path(field),))]
        if kind != "null":
            tests.append(_compare(*_value(field, kind), operator, same))
        parts.append(join(" AND ", tests))
    return join(" OR ", parts)


def _compare(value: str, given: tuple[Scalar, ...], operator: str, others: list[Any]) -> Sql:
    if operator in ORDERS:
        return Sql(f"{value} {operator} ?", (*given, *others)) if others else NEVER
    return Sql(f"{value} IN ({', '.join('?' * len(others))})", (*given, *others))


def _type_of(field: str) -> str:
    return "json_type(metadata, ?)" if is_plain(field) else "json_kind(metadata, ?)"


def _value(field: str, kind: str) -> tuple[str, tuple[Scalar, ...]]:
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
