"""Documents as rows of PostgreSQL: as JSON, with the words that its text search has; read back."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import orjson

from vdsh.documents import Document
from vdsh.errors import InputError
from vdsh.search.id_kinds import show
from vdsh.store.engines.postgres.where import escape, fields_json, unescape
from vdsh.store.hits import Found
from vdsh.store.rows import Rows
from vdsh.words.counting import Counted, count_blocks, document_words, worth_counting
from vdsh.words.segment import ABSENT

MOST_COUNTED = 255  # of a word, as in the word index of a folder; PostgreSQL keeps 256 positions
LONGEST = ABSENT - 1  # words of a document, as there
MOST_BYTES = 1_000_000  # of a tsvector; PostgreSQL takes 1,048,575
ALWAYS_FIT = MOST_BYTES // 1000  # different words of any length and number
# How often a document has a word. The sum ends in π²/6, so 1/(π²/6 - sum) - 1/2 is just above n.
COUNT = (
    "round(1 / (1.64493406685 * (1 - ts_rank('{{1,1,1,1}}', words, %s::tsquery)::float8)) - 0.5)"
)

_POSITIONS = ["", ""]  # one position need not be said
_POSITIONS += [":" + ",".join(map(str, range(1, n + 1))) for n in range(2, MOST_COUNTED + 1)]

LONGEST_ID = 2600  # bytes; an entry of a PostgreSQL index holds 2,704


def to_vectors(texts: Sequence[str]) -> list[tuple[str, int]]:
    """Write the words of each text as a tsvector, and count them; stop words are left out.

    >>> to_vectors(["The moon"])
    [("'moon':1,2,3,4", 4)]
    """
    if not worth_counting(texts):
        return [_vector(document_words(text)) for text in texts]
    return [vector for some in count_blocks(texts) for vector in _vectors(*some)]


def _vectors(texts: Sequence[str], counted: Counted) -> Iterator[tuple[str, int]]:
    quoted = [quote(word) for word in counted.words]
    pairs = zip(counted.numbers, counted.counts, strict=True)
    parts = [quoted[i] if n == 1 else quoted[i] + _positions(n) for i, n in pairs]
    for text, (i, j) in zip(texts, pairwise(counted.ends), strict=True):
        if j - i <= ALWAYS_FIT:
            yield " ".join(parts[i:j]), min(sum(counted.counts[i:j]), LONGEST)
        else:  # the first words of a text are kept
            yield _vector(document_words(text))


def _vector(counts: Mapping[str, int]) -> tuple[str, int]:
    kept = counts if len(counts) <= ALWAYS_FIT else _first_that_fit(counts)
    parts = [quote(word) + _positions(n) for word, n in kept.items()]
    return " ".join(parts), min(sum(counts.values()), LONGEST)


def _positions(n: int) -> str:
    return _POSITIONS[min(n, MOST_COUNTED)]


def quote(word: str) -> str:
    """Write a word so that nothing in it is a sign.

    >>> quote("o'neill")
    "'o''neill'"
    """
    if "'" in word or "\\" in word:
        word = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{word}'"


def any_of(words: Iterable[str]) -> str:
    """Ask for documents that have one of some words at least."""
    return " | ".join(map(quote, words))


def all_of(words: Iterable[str], without: Iterable[str] = ()) -> str:
    """Ask for documents that have all of some words, and none of others."""
    return " & ".join([*map(quote, words), *(f"!{quote(word)}" for word in without)])


def _first_that_fit(counts: Mapping[str, int]) -> Mapping[str, int]:
    kept: dict[str, int] = {}
    size = 0
    for word, n in counts.items():
        size += len(word.encode()) + 4 + 2 * min(n, MOST_COUNTED)
        if size > MOST_BYTES:
            break
        kept[word] = n
    return kept


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
