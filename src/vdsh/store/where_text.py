"""Filters as a person types them: `label=space`, `year>=1990`, or a JSON object."""

import json
import re
from collections.abc import Iterable
from reprlib import repr as short
from typing import Any

from vdsh.errors import InputError
from vdsh.store.where import RESERVED

_COMPARISON = re.compile(r"([^=!<>]+?)\s*(!=|<=|>=|=|<|>)\s*(.*)", re.DOTALL)


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
    if field in RESERVED:  # always texts, even where they look like numbers
        return {field: {operator: value}}
    try:
        return {field: {operator: json.loads(value)}}
    except (ValueError, RecursionError):
        return {field: {operator: value}}
