"""Filters: `where` as a user writes it, checked and turned into SQL with bound parameters only.

A filter is a dict of fields and what they must be; several keys mean "and":

    {"label": "space"}                      one of the labels ("labels" is the same)
    {"year": {">=": 1990, "<": 2000}}       = != < <= > >= in
    {"lang": {"in": ["en", "de"]}}
    {"or": [{"id": "a"}, {"not": {"year": 1990}}]}

A document without the field matches nothing but "not". Values of different kinds (text, number,
truth value, null) are never equal and never in order. Metadata fields named id, label, labels, and,
or, not cannot be asked for: those words have a meaning of their own.
"""

import difflib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np

from vdsh.errors import InputError

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in")
RESERVED = ("id", "label", "labels")
MAX_DEPTH = 50  # SQLite refuses expressions much deeper
EXAMPLE = 'Write {"label": "space"} or {"year": {">=": 1990}}.'
# json_extract cuts a text off at a NUL, so documents with one are read by `json_value` instead.
HAS_NUL = r"instr(metadata, '\u0000')"
KINDS = {"text": "('text')", "number": "('integer', 'real')"}
KINDS |= {"truth": "('true', 'false')", "null": "('null')"}

Scalar = str | int | float | None


class Sql(NamedTuple):
    """A condition and its parameters; it is 0 or 1, never NULL."""

    text: str
    parameters: tuple[Scalar, ...] = ()


NEVER, ALWAYS = Sql("0"), Sql("1")


def to_sql(where: Any, fields: Collection[str]) -> Sql:
    """Turn a filter into SQL over the table `documents`.

    Parameters
    ----------
    where : dict
    fields : collection of str
        The known metadata fields; others are refused.

    Examples
    --------
    >>> to_sql({"id": "a"}, [])
    Sql(text='id IN (?)', parameters=('a',))
    """
    return _filter(where, fields, 0)


def json_value(document: str, name: str) -> Scalar:
    """Return a metadata value for comparing: the SQL function for what json_extract cannot do."""
    value = json.loads(document).get(name)
    return None if isinstance(value, dict | list) else _number(value)


def json_kind(document: str, name: str) -> str | None:
    """Return the type of a metadata value as `json_type` does, for names it cannot look up."""
    values = json.loads(document)
    if name not in values:
        return None
    kind, value = _kind(values[name]), values[name]
    names = {"text": "text", "number": "real", "null": "null", None: "object"}
    return ("true" if value else "false") if kind == "truth" else names[kind]


def has_label(labels: str, wanted: str) -> bool:
    """Say whether two JSON arrays have a label in common."""
    return not _label_set(wanted).isdisjoint(json.loads(labels))


@lru_cache(maxsize=16)
def _label_set(labels: str) -> frozenset[str]:
    return frozenset(json.loads(labels))


def _filter(where: Any, fields: Collection[str], depth: int) -> Sql:
    if not isinstance(where, Mapping):
        raise InputError(f"A filter must be a dict. Got {short(where)}. {EXAMPLE}")
    if depth > MAX_DEPTH:
        raise InputError(f"The filter is nested more than {MAX_DEPTH} deep. Make it flatter.")
    return _join(" AND ", [_part(key, value, fields, depth + 1) for key, value in where.items()])


def _part(key: Any, value: Any, fields: Collection[str], depth: int) -> Sql:
    if key in ("and", "or"):
        if not isinstance(value, list | tuple):
            raise InputError(f'"{key}" needs a list of filters. Got {short(value)}.')
        return _join(f" {key.upper()} ", [_filter(part, fields, depth) for part in value])
    if key == "not":
        return _negate(_filter(value, fields, depth))
    if not isinstance(key, str):
        raise InputError(f"A field's name must be a string. Got {short(key)}. {EXAMPLE}")
    _check_field(key, fields)
    tests = value if isinstance(value, Mapping) else {"=": value}
    if not tests:
        raise InputError(f"The filter on '{key}' is empty. {EXAMPLE}")
    return _join(" AND ", [_test(key, name, operand) for name, operand in tests.items()])


def _check_field(name: str, fields: Collection[str]) -> None:
    if name in RESERVED or name in fields:
        return
    known = sorted({"id", "label", *fields})
    close = difflib.get_close_matches(name, known, 3)
    advice = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
    listed = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
    raise InputError(f"No document has the field {short(name)}. {advice}There are: {listed}.")


def _test(field: str, operator: Any, operand: Any) -> Sql:
    if operator not in OPERATORS:
        raise InputError(
            f"'{field}' cannot be compared by {short(operator)}. Use one of {' '.join(OPERATORS)}."
        )
    if operator == "in" and not isinstance(operand, list | tuple | set | frozenset):
        raise InputError(f"\"in\" needs a list of values for '{field}'. Got {short(operand)}.")
    values = [_check_value(field, v) for v in (operand if operator == "in" else [operand])]
    compare = {"id": _id, "label": _label, "labels": _label}.get(field, _metadata)
    if operator == "!=":
        return _join(" AND ", [_is_there(field), _negate(compare(field, "=", values))])
    return compare(field, operator, values)


def _check_value(field: str, value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, str | int | float | bool | None):
        raise InputError(
            f"'{field}' is compared with a text, a number, true, false or null. "
            f'Got {short(value)}. Several values: {{"in": [...]}}.'
        )
    if isinstance(value, float) and math.isnan(value):
        raise InputError(f"'{field}' cannot be compared with NaN.")
    if isinstance(value, str) and not _encodable(value):
        raise InputError(f"The value for '{field}' is not valid Unicode: {short(value)}.")
    return value


def _id(field: str, operator: str, values: Sequence[Any]) -> Sql:
    texts = tuple(value for value in values if isinstance(value, str))
    return _compare("id", (), operator, texts)


def _label(field: str, operator: str, values: Sequence[Any]) -> Sql:
    if operator not in ("=", "in"):
        raise InputError(f"Labels have no order: compare them by =, != or in. Got '{operator}'.")
    texts = [value for value in values if isinstance(value, str)]
    wanted = json.dumps(texts, ensure_ascii=False)
    if len(texts) != 1:
        return Sql("labels IS NOT NULL AND has_label(labels, ?)", (wanted,)) if texts else NEVER
    # The cheap test by instr spares most rows the exact one; it may say yes too often.
    test = "labels IS NOT NULL AND instr(labels, ?) AND has_label(labels, ?)"
    return Sql(test, (wanted[1:-1], wanted))


def _metadata(field: str, operator: str, values: Sequence[Any]) -> Sql:
    """Compare with values of each kind on its own."""
    parts = []
    for kind, types in KINDS.items():
        same = [_number(value) for value in values if _kind(value) == kind]
        if same and kind == "null":
            parts.append(_of_type(field, types) if operator in ("=", "in") else NEVER)
        elif same:
            compared = _compare(*_value(field, kind), operator, tuple(same))
            parts.append(_join(" AND ", [_of_type(field, types), compared]))
    return _join(" OR ", parts)


def _compare(value: str, given: tuple[Scalar, ...], operator: str, others: tuple[Any, ...]) -> Sql:
    if not others:
        return NEVER
    if operator in ("=", "in"):
        return Sql(f"{value} IN ({', '.join('?' * len(others))})", (*given, *others))
    return Sql(f"{value} {operator} ?", (*given, *others))


def _is_there(field: str) -> Sql:
    if field == "id":
        return ALWAYS
    if field in ("label", "labels"):
        return Sql("labels IS NOT NULL")
    return _negate(_of_type(field, "('')"))


def _of_type(field: str, types: str) -> Sql:
    look_up = "json_type" if _plain(field) else "json_kind"
    return Sql(f"IFNULL({look_up}(metadata, ?), '') IN {types}", (_key(field),))


def _value(field: str, kind: str) -> tuple[str, tuple[Scalar, ...]]:
    """Return the SQL of a metadata value and its parameters."""
    if not _plain(field):
        return "json_value(metadata, ?)", (field,)
    if kind != "text":
        return "json_extract(metadata, ?)", (_key(field),)
    careful = f"CASE {HAS_NUL} WHEN 0 THEN json_extract(metadata, ?) ELSE json_value(metadata, ?)"
    return f"{careful} END", (_key(field), field)


def _plain(field: str) -> bool:
    """Say whether SQLite can look the name up: older versions know no escapes in a path."""
    return bool(field) and not any(c in '"\\' or c < " " for c in field)


def _key(field: str) -> str:
    return f'$."{field}"' if _plain(field) else field


def _kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "null" if value is None else None


def _number(value: Any) -> Any:
    """Return the value as SQLite can hold it: large integers become floats, as in its JSON."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return int(value) if isinstance(value, bool) else value


def _join(word: str, parts: Sequence[Sql]) -> Sql:
    """Join conditions; none are true together, and false as a choice."""
    if not parts:
        return NEVER if word == " OR " else ALWAYS
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2  # joined as a tree: SQLite refuses deep expressions
    left, right = _join(word, parts[:half]), _join(word, parts[half:])
    return Sql(f"({left.text}){word}({right.text})", left.parameters + right.parameters)


def _negate(part: Sql) -> Sql:
    return Sql(f"NOT ({part.text})", part.parameters)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
