r"""Filters as PostgreSQL conditions, with bound parameters only.

The column `fields` holds what filters look at: the metadata values that can be compared, as jsonb.
PostgreSQL's texts cannot hold the character NUL, so all texts are escaped in a way that keeps their
order: NUL is written as \x01\x01 and \x01 as \x01\x02.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vdsh.errors import InputError
from vdsh.store.where import All, Compare, IsThere, Not, Some, Tree, kind_of

MOST_PARAMETERS = 60_000  # the protocol counts them in 16 bits
CONTROL = "\\u000"  # how JSON writes what must be escaped, and a little more
WHOLE = 2**53  # floats from here on are whole numbers
TYPES = {"text": "string", "number": "number", "truth": "boolean", "null": "null"}
VALUES = {
    "text": ("(fields ->> %s::text) COLLATE \"C\"", "text"),
    "number": ("(fields ->> %s::text)::numeric", "numeric"),
    "truth": ("(fields ->> %s::text)::boolean::int", "int"),
}  # fmt: skip
_ESCAPED = re.compile("\x01([\x01\x02])")


class Sql(NamedTuple):
    """A condition and its parameters; it is true or false, never NULL."""

    text: str
    parameters: tuple[Any, ...] = ()


NEVER, ALWAYS = Sql("false"), Sql("true")


def to_sql(tree: Tree | None) -> Sql:
    """Turn a filter into SQL over the columns id, labels and fields.

    >>> to_sql(Compare("id", "=", ("a",)))
    Sql(text='id = ANY(%s::text[])', parameters=(['a'],))
    """
    condition = ALWAYS if tree is None else _condition(tree)
    if len(condition.parameters) > MOST_PARAMETERS:
        n = len(condition.parameters)
        raise InputError(f"The filter is too long: {n:,} values. Ask in several parts.")
    return condition


def escape(text: str) -> str:
    r"""Write a text without NUL.

    >>> unescape(escape("a\0b")) == "a\0b"
    True
    """
    if "\x00" in text or "\x01" in text:
        return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
    return text


def unescape(text: str) -> str:
    """Read what `escape` wrote."""
    if "\x01" not in text:
        return text
    return _ESCAPED.sub(lambda match: "\x00" if match[1] == "\x01" else "\x01", text)


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


def _condition(tree: Tree) -> Sql:
    match tree:
        case All(parts):
            return join(" AND ", [_condition(part) for part in parts])
        case Some(parts):
            return join(" OR ", [_condition(part) for part in parts])
        case Not(part):
            text, parameters = _condition(part)
            return Sql(f"NOT ({text})", parameters)
        case IsThere("id"):
            return ALWAYS
        case IsThere("labels"):
            return Sql("labels IS NOT NULL")
        case IsThere(field):
            return Sql("(fields -> %s::text) IS NOT NULL", (escape(field),))
        case Compare("id", operator, values):
            return _compare(Sql("id"), "text", operator, _texts(values))
        case Compare("labels", _, values):
            return Sql("COALESCE(labels && %s::text[], false)", (_texts(values),))
        case Compare(field, operator, values):
            return _metadata(escape(field), operator, values)


def _metadata(field: str, operator: str, values: Sequence[Any]) -> Sql:
    """Compare with values of each kind on its own."""
    parts = []
    for kind, type_name in TYPES.items():
        same = [to_parameter(value) for value in values if kind_of(value) == kind]
        is_type = "jsonb_typeof(fields -> %s::text)"
        if same and kind == "null":
            test = Sql(f"COALESCE({is_type} = 'null', false)", (field,))
            parts.append(test if operator in ("=", "in") else NEVER)
        elif same:
            text, type_of_values = VALUES[kind]
            inner = _compare(Sql(text, (field,)), type_of_values, operator, same)
            # CASE keeps the cast away from values of another type.
            test_text = f"CASE {is_type} WHEN '{type_name}' THEN {inner.text} ELSE false END"
            parts.append(Sql(test_text, (field, *inner.parameters)))
    return join(" OR ", parts)


def _compare(value: Sql, type_name: str, operator: str, others: list[Any]) -> Sql:
    if not others:
        return NEVER
    if operator in ("=", "in"):
        return Sql(f"{value.text} = ANY(%s::{type_name}[])", (*value.parameters, others))
    return Sql(f"{value.text} {operator} %s::{type_name}", (*value.parameters, others[0]))


def _texts(values: Sequence[Any]) -> list[str]:
    return [escape(value) for value in values if isinstance(value, str)]


def to_parameter(value: Any) -> Any:
    """Give a value in a form that keeps it whole: numbers as texts."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and abs(value) >= WHOLE:
        value = int(value) if abs(value) != float("inf") else value
    if isinstance(value, int | float):
        try:
            return str(value).replace("inf", "Infinity")
        except ValueError:  # thousands of digits
            return "Infinity" if value > 0 else "-Infinity"
    return escape(value) if isinstance(value, str) else value


def join(word: str, parts: Sequence[Sql]) -> Sql:
    """Join conditions; none are true together, and false as a choice."""
    if not parts:
        return NEVER if word == " OR " else ALWAYS
    parameters = tuple(value for part in parts for value in part.parameters)
    return Sql(word.join(f"({part.text})" for part in parts), parameters)
