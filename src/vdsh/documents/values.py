"""The values of fields: JSON as it is met in the wild, plain enough to store."""

import json
import math
import re
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

_PLAIN = frozenset((str, bool, type(None)))
_NESTING = (dict, list, tuple)
DEPTH = 100  # levels of lists and objects; databases refuse a thousand
_WIDEST = 24  # characters of the longest float, -1.7976931348623157e+308
# A surrogate pair, half of one (group 1), or any other escape.
_ESCAPE = re.compile(r"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(\\u[dD][89a-fA-F]\w\w)|\\.")


def parse_json(line: str) -> Any:
    """Read JSON; raise ValueError or RecursionError where it is none."""
    if "\\ud" in line or "\\uD" in line:
        line = _ESCAPE.sub(lambda match: r"\ufffd" if match[1] else match[0], line)
    try:
        return orjson.loads(line)
    except ValueError:  # json takes a little more (NaN), and its sentences are the ones we show
        return json.loads(line)


def is_too_deep(value: Any) -> bool:
    """Say whether lists and objects in a field are nested deeper than any door lets in.

    >>> is_too_deep({"a": [1]}), is_too_deep(json.loads("[" * 101 + "]" * 101))
    (False, True)
    """
    level = [value]
    for _ in range(DEPTH + 1):
        nested = [outer for outer in level if isinstance(outer, _NESTING)]
        if not nested:
            return False
        inside = (outer.values() if isinstance(outer, dict) else outer for outer in nested)
        level = [inner for some in inside for inner in some]
    return True


def plain(value: Any) -> Any:
    """Turn a value into one that JSON can hold, or raise ValueError with what it is.

    >>> plain([date(1969, 7, 20), timedelta(minutes=1), b"moon", Decimal("1.50"), math.nan])
    ['1969-07-20', 60.0, 'moon', 1.5, None]
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int:
        return value if -(2**63) <= value < 2**64 else str(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is dict:
        return {name: plain(inner) for name, inner in value.items()}
    if kind is list:
        return [plain(inner) for inner in value]
    return _plain_rarity(value)


def _plain_rarity(value: Any) -> Any:
    """Make plain what only Parquet has."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, tuple):
        return plain(list(value))
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        number = float(value)
        return plain(number if Decimal(repr(number)) == value else str(value))
    if isinstance(value, UUID):
        return str(value)
    if not isinstance(value, bytes):
        raise ValueError(f"holds a {type(value).__name__}, which is neither text nor number")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError("holds bytes that are no UTF-8 text") from None


def number_or_text(cell: str) -> str | int | float:
    """Read a cell as the number that is written just so, which filters can then compare.

    >>> [number_or_text(cell) for cell in ("1990", "-2.5", "007", "1.10", "1e3", "", "9" * 400)][:6]
    [1990, -2.5, '007', '1.10', '1e3', '']
    """
    if len(cell) > _WIDEST:
        return cell
    for kind in (int, float):
        try:
            number = kind(cell)
        except ValueError:
            continue
        if str(number) == cell and math.isfinite(number) and abs(number) < 2**63:
            return number
    return cell
