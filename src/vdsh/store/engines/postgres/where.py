r"""Filters as PostgreSQL conditions, with bound parameters only.

The column `fields` holds what filters look at: the metadata values that can be compared, as jsonb.
PostgreSQL's texts cannot hold the character NUL, so all texts are escaped in a way that keeps their
order: NUL is written as \x01\x01 and \x01 as \x01\x02.
"""

import json
from collections.abc import Mapping
from typing import Any

from vdsh.errors import InputError
from vdsh.store.where import ALWAYS, Compare, IsThere, Sql, Tree, kind_of, sql_of

MOST_PARAMETERS = 60_000  # the protocol counts them in 16 bits
CONTROL = "\\u000"  # how JSON writes what must be escaped, and a little more
WHOLE = 2**53  # floats from here on are whole numbers


def to_sql(tree: Tree | None) -> Sql:
    """Turn a filter into SQL over the columns id, labels and fields.

    >>> to_sql(Compare("id", "=", ("a",)))
    Sql(text='id = ANY(%s::text[])', parameters=(['a'],))
    """
    condition = ALWAYS if tree is None else sql_of(tree, _test)
    if len(condition.parameters) > MOST_PARAMETERS:
        n = len(condition.parameters)
        raise InputError(f"The filter is too long: {n:,} values. Ask in several parts.")
    return condition


def escape(text: str) -> str:
    r"""Write a text without NUL.

    >>> unescape(escape("a\0b")) == "a\0b"
    True
    """
    return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")


def unescape(text: str) -> str:
    """Read what `escape` wrote."""
    return text.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")


def fields_json(metadata: Mapping[str, Any], written: str) -> str:
    """Write the column `fields` of a document; most often that is the metadata as written."""
    if CONTROL not in written and all(isinstance(v, str | int | None) for v in metadata.values()):
        return written
    return json.dumps({escape(name): _comparable(value) for name, value in metadata.items()})


def _comparable(value: Any) -> Any:
    kind = kind_of(value)
    if kind == "text":
        return escape(value)
    if isinstance(value, float) and abs(value) >= WHOLE:
        return int(value)  # the number itself, not the shortest one that rounds to it
    return {} if kind is None else value


def to_json(value: Any) -> str:
    """Write a value as `fields` have it; what no JSON can hold is beyond all that they have."""
    try:
        return json.dumps(_comparable(value))
    except (OverflowError, ValueError):  # endless, or thousands of digits
        return "1e5000" if value > 0 else "-1e5000"


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
            return Sql(test, (escape(field), list(map(to_json, values))))
        case Compare(field, operator, values):
            return _in_order(escape(field), operator, values[0])


def _in_order(field: str, operator: str, value: Any) -> Sql:
    have, given, of_type = "fields -> %s::text", to_json(value), "jsonb"
    if isinstance(value, str):  # in the order of bytes, which jsonb is not
        have, given, of_type = "fields ->> %s::text", escape(value), 'text COLLATE "C"'
    is_kind = "jsonb_typeof(fields -> %s::text) = jsonb_typeof(%s::jsonb)"
    test = f"COALESCE({is_kind} AND ({have}) {operator} %s::{of_type}, false)"
    return Sql(test, (field, to_json(value), field, given))
