"""Bodies of requests and answers of the service, as the objects of a store and back."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from vdsh.codes import to_hex
from vdsh.documents import Document
from vdsh.errors import InputError
from vdsh.store.hits import Hit, Hits
from vdsh.store.queries import VectorQuery
from vdsh.store.rows import check_query_code, to_rows

_NO_CODES = np.zeros((1, 0), np.uint8)  # the service encodes


def to_json(value: Any) -> bytes:
    """Write a value, or say why it cannot be sent."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"This cannot be sent as JSON: {error}.") from error


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the fields that nobody gave."""
    return {name: value for name, value in fields.items() if value is not None}


def to_list(vector: Any) -> list[float] | None:
    """Write a vector as JSON has it, None where there is none."""
    found = vector.tolist() if isinstance(vector, np.ndarray) else vector
    return None if found is None else list(found)


def write_document(document: Document, vector: list[float] | None = None) -> bytes:
    """Check a document as a store does, and write it.

    >>> write_document(Document("a", "moon", ("space",)))
    b'{"id":"a","text":"moon","labels":["space"],"metadata":{}}'
    """
    (row,) = to_rows([document], _NO_CODES, lambda _: _NO_CODES).rows
    id, text, labels, metadata, *_ = row
    parts = (to_json(id), to_json(text), (labels or "null").encode(), metadata.encode())
    more = b"" if vector is None else b',"vector":' + to_json(vector)
    return b'{"id":%b,"text":%b,"labels":%b,"metadata":%b' % parts + more + b"}"


def bodies(
    name: str, items: Iterable[bytes], most: int, most_bytes: int, fields: Mapping[str, Any]
) -> Iterator[bytes]:
    """Put items that are JSON already into bodies of a limited length.

    An item that is too long by itself is sent all the same: the service says what it takes.

    >>> list(bodies("texts", [b'"a"', b'"b"', b'"c"'], 2, 100, {"k": 3}))
    [b'{"k": 3,"texts":["a","b"]}', b'{"k": 3,"texts":["c"]}']
    """
    begin = (to_json(fields)[:-1] + b"," if fields else b"{") + to_json(name) + b":["
    some, size = list[bytes](), len(begin)
    for item in items:
        if some and (len(some) == most or size + len(item) + 3 > most_bytes):
            yield begin + b",".join(some) + b"]}"
            some, size = [], len(begin)
        some.append(item)
        size += len(item) + 1
    if some:
        yield begin + b",".join(some) + b"]}"


def query_fields(query: Any) -> dict[str, Any]:
    """Say what to look for: a text, a vector, alone or with a text, or a code in hex."""
    if isinstance(query, str):
        return {"text": query}
    if isinstance(query, VectorQuery):
        return query_fields(query.text) | {"vector": to_list(query.vector)}
    code = check_query_code(query, 8 * len(query) if np.ndim(query) else 0)
    return {"code": to_hex(code[None])[0]}


def read_hits(answer: Mapping[str, Any]) -> Hits:
    """Read an answer to a search."""
    hits = Hits(map(read_hit, answer["hits"]), answer.get("unknown", ()))
    hits.warning = answer.get("warning")
    return hits


def read_hit(fields: Mapping[str, Any]) -> Hit:
    """Read a hit; fields that a newer service has besides are left out.

    >>> read_hit({"id": "a", "text": "moon", "labels": None, "metadata": {}, "code": "0f"})
    Hit(id='a', distance=0, labels=None, passage='moon')
    """
    known = {"distance": 0} | {name: fields[name] for name in Hit._fields if name in fields}
    for name in ("labels", "words"):
        if known.get(name) is not None:
            known[name] = tuple(known[name])
    return Hit(**known)
