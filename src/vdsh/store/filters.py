"""Filters as a person types them, and which fields an index for filters is made of."""

import json
import re
from collections.abc import Iterable
from reprlib import repr as short
from typing import Any

from vdsh.errors import InputError
from vdsh.store.where import RESERVED, All, Compare, Some, Tree

WORTH = 20_000  # documents; reading them all takes a few hundredths of a second
MOST = 16  # fields that get an index
LONGEST = 100  # characters of a text by which an index knows it

_COMPARISON = re.compile(r"([^=!<>]+?)\s*(!=|<=|>=|=|<|>)\s*(.*)", re.DOTALL)
_SEVERAL = re.compile(r"\s*(?:\b(and|or)\b|(&&?|\|\|?))\s*[^=!<>]+[=<>]", re.IGNORECASE)


def fields_of(tree: Tree) -> set[str]:
    """Return the fields by which an index can tell few documents from the others.

    >>> sorted(fields_of(All((Compare("year", ">", (1990,)), Compare("id", "=", ("a",))))))
    ['year']
    """
    match tree:
        case All(parts) | Some(parts):
            return set().union(*map(fields_of, parts))
        case Compare(field) if field != "id":
            return {field}
        case _:
            return set()


def parse_where(filters: Iterable[str]) -> dict[str, Any] | None:
    """Read filters that must all hold; the command line and the page take the same ones.

    >>> parse_where(["label=space", "year>=1990"])
    {'and': [{'label': {'=': 'space'}}, {'year': {'>=': 1990}}]}
    >>> parse_where(['{"or": [{"lang": "en"}, {"lang": "de"}]}'])
    {'and': [{'or': [{'lang': 'en'}, {'lang': 'de'}]}]}
    """
    parts = [_parse_filter(text) for text in filters]
    return {"and": parts} if parts else None


def _parse_filter(text: str) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        try:
            return dict(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise InputError(f"The filter is broken JSON ({error}). Got {short(text)}.") from error
    match = _COMPARISON.fullmatch(text)
    if not match:
        raise InputError(f"A filter is field=value or a JSON object. Got {short(text)}.")
    field, operator, value = match.groups()
    if not value.startswith('"') and _SEVERAL.search(value):
        raise InputError(
            f"A filter is one comparison. Got {short(text)}. For `and`, give several filters "
            f"(--where {field}{operator}… --where …); for `or`, a JSON object: "
            '{"or": [{"label": "a"}, {"year": {">": 1990}}]}. A value with such a word goes into '
            'quotes: title="a and b=c".'
        )
    if field in RESERVED:  # always texts, even where they look like numbers
        return {field: {operator: value}}
    try:
        return {field: {operator: json.loads(value)}}
    except (ValueError, RecursionError):
        return {field: {operator: value}}
