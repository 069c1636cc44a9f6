"""Filters: `where` as a user writes it, checked and made a tree of tests.

A filter is a dict of fields and what they must be; several keys mean "and":

    {"label": "space"}                      one of the labels ("labels" is the same)
    {"year": {">=": 1990, "<": 2000}}       = != < <= > >= in
    {"lang": {"in": ["en", "de"]}}
    {"or": [{"id": "a"}, {"not": {"year": 1990}}]}

A document without the field matches nothing but "not". Values of different kinds (text, number,
truth value, null) are never equal and never in order. Metadata fields named id, label, labels, and,
or, not cannot be asked for: those words have a meaning of their own.

Each engine makes a condition of its own from the tree; `matches` is the slow one for any document.
Those that speak SQL share `sql_of`.
"""

import difflib
import math
import operator as operators
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np

from vdsh.documents import Document
from vdsh.errors import InputError

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in")
RESERVED = ("id", "label", "labels")
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")  # of surrogates, which UTF-8 cannot hold
LONGEST_SHOWN = 60  # characters of a field's name in a sentence
MAX_DEPTH = 50  # SQLite refuses expressions much deeper
EXAMPLE = 'Write {"label": "space"} or {"year": {">=": 1990}}.'
ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}


class All(NamedTuple):
    """Every part holds; with no parts it is true."""

    parts: tuple["Tree", ...]


class Some(NamedTuple):
    """One of the parts holds; with no parts it is false."""

    parts: tuple["Tree", ...]


class Not(NamedTuple):
    """The part does not hold."""

    part: "Tree"


class IsThere(NamedTuple):
    """A document has the field; "labels" are there when they are known."""

    field: str


class Compare(NamedTuple):
    """A field is compared with values; "=" and "in" hold for one of them, others have one value."""

    field: str
    operator: str
    values: tuple[Any, ...]


Filter = Mapping[str, Any]  # as a user writes it
Tree = All | Some | Not | IsThere | Compare


def parse(where: Any, fields: Collection[str]) -> Tree:
    """Check a filter and make it a tree; metadata fields that are not known are refused.

    >>> parse({"id": "a"}, [])
    Compare(field='id', operator='=', values=('a',))
    """
    return _filter(where, fields, 0)


def matches(tree: Tree, document: Document) -> bool:
    """Say whether a document passes a filter."""
    match tree:
        case All(parts):
            return all(matches(part, document) for part in parts)
        case Some(parts):
            return any(matches(part, document) for part in parts)
        case Not(part):
            return not matches(part, document)
        case IsThere("labels"):
            return document.labels is not None
        case IsThere(field):
            return field in document.metadata
        case Compare("id", operator, values):
            return _holds(document.id, operator, values)
        case Compare("labels", operator, values):
            return any(_holds(label, operator, values) for label in document.labels or ())
        case Compare(field, operator, values):
            there = field in document.metadata
            return there and _holds(document.metadata[field], operator, values)


class Sql(NamedTuple):
    """A condition and its parameters; it is true or false, never NULL."""

    text: str
    parameters: tuple[Any, ...] = ()


NEVER, ALWAYS = Sql("1 = 0"), Sql("1 = 1")


def by_kind(test: Compare) -> list[Compare]:
    """Divide a test into tests of one kind of values each, without those that cannot hold.

    >>> [one.values for one in by_kind(Compare("year", "in", (1990, "1990", 1991)))]
    [('1990',), (1990, 1991)]
    """
    kinds = (*_KINDS, "null") if test.operator not in ORDERS else tuple(_KINDS)
    if test.field in RESERVED:
        kinds = ("text",)
    parts = [tuple(one for one in test.values if kind_of(one) == kind) for kind in kinds]
    return [test._replace(values=part) for part in parts if part]


def sql_of(tree: Tree, test: Callable[[IsThere | Compare], Sql]) -> Sql:
    """Turn a filter into SQL; `test` writes each test of a field, with values of one kind."""
    match tree:
        case All(parts):
            return join(" AND ", [sql_of(part, test) for part in parts])
        case Some(parts):
            return join(" OR ", [sql_of(part, test) for part in parts])
        case Not(part):
            text, parameters = sql_of(part, test)
            return Sql(f"NOT ({text})", parameters)
        case IsThere():
            return test(tree)
        case Compare():
            return join(" OR ", [test(one) for one in by_kind(tree)])


def join(word: str, parts: Sequence[Sql]) -> Sql:
    """Join conditions; none are true together, and false as a choice."""
    if not parts:
        return NEVER if word == " OR " else ALWAYS
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2  # joined as a tree: SQLite refuses deep expressions
    left, right = join(word, parts[:half]), join(word, parts[half:])
    return Sql(f"({left.text}){word}({right.text})", left.parameters + right.parameters)


_KINDS: dict[str, tuple[str, Callable[[str], Tree]]] = {  # how each is written, and found
    "text": ('a text, such as "5"', lambda field: Compare(field, ">=", ("",))),
    "number": (
        "a number, such as 5",
        lambda field: Some((Compare(field, "<", (0,)), Compare(field, ">=", (0,)))),
    ),
    "truth": ("true or false", lambda field: Compare(field, "in", (False, True))),
}


def check_possible(tree: Tree, count: Callable[[Tree], int]) -> None:
    """Raise where a filter found nothing because no document has such a kind of value there.

    `count` says how many documents match. Null is never blamed: it may well be looked for in vain.
    """
    match tree:
        case All(parts):
            for part in parts:
                check_possible(part, count)
        case Compare(field, operator, values) if (
            values and field not in RESERVED and None not in values
        ):
            asked = {kind_of(value) for value in values}
            there = {kind for kind, (_, exists) in _KINDS.items() if count(exists(field))}
            if there and asked.isdisjoint(there):
                written = " or ".join(_KINDS[kind][0] for kind in _KINDS if kind in there)
                raise InputError(
                    f"No document can match {field} {operator} {short(values[0])}: in documents, "
                    f"'{field}' is {written}. Compare it with such a value."
                )


def kind_of(value: Any) -> str | None:
    """Name the kind of a value; None for lists and dicts, which are never compared."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "null" if value is None else None


def _holds(have: Any, operator: str, values: tuple[Any, ...]) -> bool:
    kind = kind_of(have)
    same = [value for value in values if kind is not None and kind_of(value) == kind]
    if operator in ("=", "in"):
        return have in same
    return kind != "null" and any(ORDERS[operator](have, value) for value in same)


def _filter(where: Any, fields: Collection[str], depth: int) -> Tree:
    if not isinstance(where, Mapping):
        raise InputError(f"A filter must be a dict. Got {short(where)}. {EXAMPLE}")
    if depth > MAX_DEPTH:
        raise InputError(f"The filter is nested more than {MAX_DEPTH} deep. Make it flatter.")
    return _all([_part(key, value, fields, depth + 1) for key, value in where.items()])


def _part(key: Any, value: Any, fields: Collection[str], depth: int) -> Tree:
    if key in ("and", "or"):
        if not isinstance(value, list | tuple):
            raise InputError(f'"{key}" needs a list of filters. Got {short(value)}.')
        parts = [_filter(part, fields, depth) for part in value]
        return _all(parts) if key == "and" else Some(tuple(parts))
    if key == "not":
        return Not(_filter(value, fields, depth))
    if not isinstance(key, str):
        raise InputError(f"A field's name must be a string. Got {short(key)}. {EXAMPLE}")
    check_field(key, fields)
    tests = value if isinstance(value, Mapping) else {"=": value}
    if not tests:
        raise InputError(f"The filter on '{key}' is empty. {EXAMPLE}")
    return _all([_test(key, name, operand) for name, operand in tests.items()])


def _all(parts: list[Tree]) -> Tree:
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def check_field(name: str, fields: Collection[str]) -> None:
    """Raise where no document has a field."""
    if name in RESERVED or name in fields:
        return
    known = sorted({"id", "label", *fields})
    close = difflib.get_close_matches(name, known, 3)
    advice = f"Did you mean {' or '.join(map(short, close))}? " if close else ""
    shown = [one if len(one) <= LONGEST_SHOWN else short(one) for one in known[:20]]
    listed = ", ".join(shown) + (", …" if len(known) > 20 else "")
    raise InputError(f"No document has the field {short(name)}. {advice}There are: {listed}.")


def _test(name: str, operator: Any, operand: Any) -> Tree:
    if operator not in OPERATORS:
        raise InputError(
            f"'{name}' cannot be compared by {short(operator)}. Use one of {' '.join(OPERATORS)}."
        )
    if operator == "in" and not isinstance(operand, list | tuple | set | frozenset):
        raise InputError(f"\"in\" needs a list of values for '{name}'. Got {short(operand)}.")
    values = tuple(_check_value(name, v) for v in (operand if operator == "in" else [operand]))
    field = "labels" if name == "label" else name
    if field == "labels" and operator not in ("=", "!=", "in"):
        raise InputError(f"Labels have no order: compare them by =, != or in. Got '{operator}'.")
    if operator == "!=":
        differs = Not(Compare(field, "=", values))
        return differs if field == "id" else All((IsThere(field), differs))
    return Compare(field, operator, values)


def _check_value(field: str, value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, str | int | float | bool | None):
        raise InputError(
            f"'{field}' is compared with a text, a number, true, false or null. "
            f'Got {short(value)}. Several values: {{"in": [...]}}.'
        )
    if isinstance(value, float) and math.isnan(value):
        raise InputError(f"'{field}' cannot be compared with NaN.")
    if isinstance(value, str) and _HALF_A_PAIR.search(value):
        raise InputError(f"The value for '{field}' is not valid Unicode: {short(value)}.")
    return value
