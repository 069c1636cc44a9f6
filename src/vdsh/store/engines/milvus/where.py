"""Filters as Milvus expressions over the columns `id` and `fields`.

Milvus cannot say everything a filter can. An expression may therefore let too many documents pass,
never too few; `exact` says that it lets pass just the right ones. All names and texts are keys, so
nothing in them can end a text early.

Keys are texts in a small alphabet, in the same order: Milvus has no escapes that all its versions
agree on, so a text is written in characters that need none. ASCII letters, digits and most signs
stay as they are; each other byte of UTF-8 becomes a sign and two hexadecimal digits, and the signs
are chosen so that keys sort as the texts do.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from vdsh.store.where import ORDERS, All, Compare, IsThere, Not, Some, Tree, by_kind, kind_of

MOST_VALUES = 10_000  # in a list; more are only bounded
MOST_NUMBERS = 50  # numbers in a list are compared one by one
MOST_TESTS = 300  # the parser goes down one call a test
SAFE = 2**52  # numbers below are compared as they are, whether whole or not
LARGEST_FIELDS = 60_000  # bytes; Milvus takes 65,536
PARTIAL = '{"partial":true}'
SIMPLE = re.compile(r"[A-Za-z0-9_]+")
PLAIN = re.compile(r"[(-Za-z]*")
ESCAPED = re.compile(r"[!\[~]([0-9a-f]{2})")
LOW, MIDDLE, HIGH = "!", "[", "~"  # for what is below "(", between "Z" and "a", above "z"


def _byte_key(byte: int) -> str:
    sign = LOW if byte < ord("(") else HIGH if byte > ord("z") else MIDDLE
    return chr(byte) if PLAIN.fullmatch(chr(byte)) else f"{sign}{byte:02x}"


BYTE_KEYS = [_byte_key(byte) for byte in range(256)]


def to_key(text: str) -> str:
    """Write a text as a key.

    >>> to_key("post-7"), to_key('a "b"'), to_key("é")
    ('post-7', 'a!20!22b!22', '~c3~a9')
    """
    if PLAIN.fullmatch(text):
        return text
    return "".join([BYTE_KEYS[byte] for byte in text.encode()])


def from_key(key: str) -> str:
    """Read what `to_key` wrote.

    >>> from_key("a!20!22b!22")
    'a "b"'
    """
    if PLAIN.fullmatch(key):
        return key
    return ESCAPED.sub(lambda match: chr(int(match[1], 16)), key).encode("latin-1").decode()


def in_parts(keys: Sequence[str], size: int) -> list[str]:
    """Write keys as lists for `in`, of up to so many each."""
    starts = range(0, len(keys), size)
    parts = [", ".join([f'"{key}"' for key in keys[i : i + size]]) for i in starts]
    return [f"[{part}]" for part in parts]


class Expression(NamedTuple):
    """An expression; empty where every document passes."""

    text: str
    exact: bool = True


ALWAYS, ANYTHING = Expression(""), Expression("", exact=False)
NEVER = Expression('id == ""')  # no id is empty


def to_expression(tree: Tree | None, *, partial: bool = False) -> Expression:
    """Turn a filter into an expression.

    `partial`: let documents pass whose `fields` do not say everything.

    >>> to_expression(Compare("labels", "=", ("space",))).text
    'json_contains_any(fields["labels"], ["space"])'
    """
    if tree is None:
        return ALWAYS
    text, exact = _expression(tree) if _size(tree) <= MOST_TESTS else ANYTHING
    if partial:
        text = f'({text}) or fields["partial"] == true' if text else ""
    return Expression(text, exact and not partial)


def quoted(texts: Iterable[str]) -> str:
    """Write texts as a list of keys, for `id in`."""
    return f"[{', '.join([_quote(text) for text in texts])}]"


def fields_of(labels: Iterable[str] | None, metadata: Mapping[str, Any]) -> str:
    """Write the column `fields`: labels, names, and a value under its kind and name.

    What is too large for it, or no number that Milvus compares, is `PARTIAL`.
    """
    names = {name: _name(name) for name in metadata}
    fields: dict[str, Any] = {"names": list(names.values()), "has_labels": labels is not None}
    fields["labels"] = [to_key(label) for label in labels or ()]
    fields["null"] = [names[name] for name, value in metadata.items() if value is None]
    for name, value in metadata.items():
        kind = kind_of(value)
        if kind == "number" and not abs(value) < 2**63:
            return PARTIAL
        if kind in ("text", "number", "truth"):
            fields[f"{kind}_{names[name]}"] = to_key(value) if kind == "text" else _whole(value)
    written = orjson.dumps(fields).decode()  # of ASCII
    return written if len(written) <= LARGEST_FIELDS else PARTIAL


def _expression(tree: Tree) -> Expression:
    match tree:
        case All(parts):
            return _all([_expression(part) for part in parts])
        case Some(parts):
            return _some([_expression(part) for part in parts])
        case Not():
            return ANYTHING
        case IsThere("labels"):
            return Expression('fields["has_labels"] == true')
        case IsThere(field):
            return Expression(f'json_contains(fields["names"], "{_name(field)}")')
        case Compare():
            return _some([_test(*one) for one in by_kind(tree)])


def _test(field: str, operator: str, values: Sequence[Any]) -> Expression:
    """Compare with values of one kind."""
    kind, name = kind_of(values[0]), _name(field)
    if field == "labels":
        has = Expression(f'json_contains_any(fields["labels"], {quoted(values)})')
        return has if len(values) <= MOST_VALUES else ANYTHING
    if kind == "null":
        return Expression(f'json_contains(fields["null"], "{name}")')
    compare = {"text": _texts, "number": _numbers}.get(kind or "", _truths)
    return compare("id" if field == "id" else f'fields["{kind}_{name}"]', operator, values)


def _texts(value: str, operator: str, texts: Sequence[str]) -> Expression:
    if operator in ORDERS:
        return Expression(f"{value} {operator} {_quote(texts[0])}")
    if len(texts) > MOST_VALUES:
        low, high = _quote(min(texts)), _quote(max(texts))
        return Expression(f"({value} >= {low} and {value} <= {high})", exact=False)
    return Expression(f"{value} in {quoted(texts)}")


def _numbers(value: str, operator: str, numbers: Sequence[Any]) -> Expression:
    if len(numbers) > MOST_NUMBERS or not all(abs(number) < SAFE for number in numbers):
        return ANYTHING
    sign = operator if operator in ORDERS else "=="
    return _some([Expression(f"{value} {sign} {_whole(number)!r}") for number in numbers])


def _truths(value: str, operator: str, truths: Sequence[bool]) -> Expression:
    compare = ORDERS.get(operator, lambda have, wanted: have == wanted)
    passing = [have for have in (False, True) if any(compare(have, w) for w in truths)]
    return _some([Expression(f"{value} == {str(have).lower()}") for have in passing])


def _all(parts: list[Expression]) -> Expression:
    text = " and ".join(f"({part.text})" for part in parts if part.text)
    return Expression(text, all(part.exact for part in parts))


def _some(parts: list[Expression]) -> Expression:
    if not parts:
        return NEVER
    if not all(part.text for part in parts):
        return ANYTHING
    text = " or ".join(f"({part.text})" for part in parts) if len(parts) > 1 else parts[0].text
    return Expression(text, all(part.exact for part in parts))


def _quote(text: str) -> str:
    return f'"{to_key(text)}"'


def _name(name: str) -> str:
    """Write a field's name in letters, digits and _, so that it can stand in a JSON path."""
    return f"f_{name}" if SIMPLE.fullmatch(name) else f"x_{name.encode().hex()}"


def _whole(number: Any) -> Any:
    """Write a float without a fraction as a whole number: Milvus compares 2 and 2.0 by type."""
    is_whole = isinstance(number, float) and number.is_integer()
    return int(number) if is_whole else number


def _size(tree: Tree) -> int:
    match tree:
        case All(parts) | Some(parts):
            return 1 + sum(_size(part) for part in parts)
        case Compare(_, _, values):
            return 1 + sum(kind_of(value) == "number" for value in values[:MOST_NUMBERS])
        case _:
            return 1
