"""Mutants: valid bytes, JSON and arrays with something wrong in them, drawn by a seeded Random."""

import json
from copy import deepcopy
from random import Random
from typing import Any

import numpy as np

PIECES = [b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b"\n", b"\r\n", b"\t", b",", b";"]
PIECES += [b"\\ud800", b"NaN", b"-Infinity", b"1e999", b"9" * 400, b"[" * 3000, b'{"a":' * 3000]
PIECES += [b"null", b"../../../evil", b"\xf0\x9f\x98\x80", b"x" * 5000, b"-1", b"\x1f\x8b"]
# Written into JSON as they are, since no Python value is written so.
RAW = [
    "1e999",
    "9" * 5000,
    "-1",
    "[" * 3000 + "]" * 3000,
    "[" * 3000,
    "NaN",
    '"\\ud800"',
    "1.5e-999",
]
VALUES: list[Any] = [None, True, False, 0, -1, 1.5, 2**31, 2**63, 2**64, 10**30, "", "x", "\0"]
VALUES += ["../../../evil", "/evil", "é" * 300, [], {}, [[]], [None], {"": None}, {"a": 1}, b"\xff"]


def of_bytes(data: bytes, rng: Random) -> bytes:
    """Change a few places of some bytes."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        place = rng.randrange(len(out) + 1)
        end = min(len(out), place + rng.choice((1, 1, 2, 4, 8, 64)))
        match rng.randrange(7):
            case 0:
                out[place:end] = bytes(rng.randrange(256) for _ in range(end - place))
            case 1 if place < len(out):
                out[place] ^= 1 << rng.randrange(8)
            case 2:
                del out[place:end]
            case 3:
                out[place:place] = out[place:end]
            case 4:
                out[place:place] = rng.choice(PIECES)
            case 5:
                out[place:end] = rng.choice((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)).to_bytes(
                    8, "little"
                )
            case 6 if rng.random() < 0.2:
                del out[place:]
    return bytes(out)


def of_json(value: Any, rng: Random) -> str:
    """Change a few places of a JSON value; return its text."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = list(_places(value))
        if places:
            _change(*rng.choice(places), rng)
    text = json.dumps(value)
    for number, raw in enumerate(RAW):
        text = text.replace(f'"@{number}@"', raw)
    return text


def of_array(array: np.ndarray, rng: Random) -> np.ndarray:
    """Change the shape, the type or some values of an array."""
    match rng.randrange(6):
        case 0:
            shape = [max(0, n + rng.choice((-2, -1, 0, 1, 7))) for n in array.shape]
            return np.zeros(shape, array.dtype)
        case 1:
            return array.astype(
                rng.choice(("uint8", "int32", "int64", "float64", "bool", "float32"))
            )
        case 2:
            return array.reshape(-1) if array.ndim > 1 else array[None]
        case 3:
            return np.ascontiguousarray(array.T[::-1].T)
        case 4 if array.size and array.dtype.kind == "f":
            array = array.copy()
            array.flat[rng.randrange(array.size)] = rng.choice((np.nan, np.inf, -np.inf, 3e38))
            return array
        case _ if array.size:
            array = array.copy()
            raw = array.reshape(-1).view(np.uint8)
            for _ in range(rng.choice((1, 4, 16))):
                raw[rng.randrange(raw.size)] = rng.choice((0, 1, 127, 128, 255))
            return array
    return array


def odd(rng: Random) -> Any:
    """Draw a value that few expect; one of bytes only where JSON need not hold it."""
    return deepcopy(rng.choice(VALUES))  # a later change may put it into itself


def _odd_json(rng: Random) -> Any:
    if rng.random() < 0.3:
        return f"@{rng.randrange(len(RAW))}@"
    value = odd(rng)
    return value if not isinstance(value, bytes) else "b"


def _places(value: Any) -> Any:
    """Yield every container and key of a JSON value."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def _change(container: Any, key: Any, rng: Random) -> None:
    kind = rng.randrange(4)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, dict):
        container[rng.choice(("", "x", f"{key}_", "../evil", "_scores"))] = container.pop(key)
    elif kind == 2 and len(container) > 1:
        container[key] = rng.choice(
            list(container.values() if isinstance(container, dict) else container)
        )
    else:
        container[key] = _odd_json(rng)
