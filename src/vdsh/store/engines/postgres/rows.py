"""Documents as rows of PostgreSQL: written as JSON, read back."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from vdsh.documents import Document
from vdsh.errors import InputError
from vdsh.search.id_kinds import show
from vdsh.store.engines.postgres.vectors import to_vectors
from vdsh.store.engines.postgres.where import escape, fields_json, unescape
from vdsh.store.found import Found
from vdsh.store.rows import Rows

LONGEST_ID = 2600  # bytes; an entry of a PostgreSQL index holds 2,704
PIECE = 8_000_000  # bytes of a model's file in a row


def to_batch(rows: Rows) -> str:
    """Write rows as JSON, in the order of ids: so writers lock rows in the same order."""
    values = []
    vectors = to_vectors([row[1] for row in rows.rows])
    for i in sorted(range(len(rows.rows)), key=lambda i: rows.rows[i][0]):
        id, text, labels, metadata, code = rows.rows[i]
        _check_id_length(id)
        fields = fields_json(rows.documents[i].metadata, metadata)
        words, n_words = vectors[i]
        row = {"id": escape(id), "text": escape(text), "labels": _labels(labels)}
        row |= {"metadata": metadata, "fields": fields, "code": f"x{code.hex()}"}
        values.append({**row, "words": words, "n_words": n_words})
    return orjson.dumps(values).decode()


def to_found(row: Sequence[Any]) -> Found:
    """Read what the `columns` of `Tables` and a distance hold."""
    id, text, labels, metadata, code, *distance = row
    known = None if labels is None else tuple(map(unescape, labels))
    document = Document(unescape(id), unescape(text), known, json.loads(metadata))
    return Found(document, to_code(code), *distance)


def to_code(bits: bytes) -> bytes:
    """Read a column of bits."""
    return bits[4:]  # after four bytes that say how many there are


def to_bits(code: bytes) -> str:
    """Write a code as PostgreSQL writes bits."""
    return f"{int.from_bytes(code):0{8 * len(code)}b}"


def to_pieces(files: Mapping[str, bytes]) -> Iterator[tuple[str, int, bytes]]:
    """Cut files into rows."""
    for name, content in files.items():
        for number, first in enumerate(range(0, max(len(content), 1), PIECE)):
            yield name, number, content[first : first + PIECE]


def _check_id_length(id: str) -> None:
    if len(id) > LONGEST_ID // 4 and len(escape(id).encode()) > LONGEST_ID:
        raise InputError(
            f"The id {show(id)} is too long: {len(id.encode()):,} bytes. PostgreSQL finds ids of "
            f"up to {LONGEST_ID:,}. Shorten it, for example to a hash."
        )


def _labels(labels: str | None) -> str | None:
    if labels is None or "\\u000" not in labels:
        return labels
    return json.dumps([escape(label) for label in json.loads(labels)])
