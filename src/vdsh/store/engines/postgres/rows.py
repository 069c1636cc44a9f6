"""Documents as rows of PostgreSQL: as JSON, with the words that its text search has; read back."""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import inf
from typing import Any

import orjson

from vdsh.errors import InputError
from vdsh.search.id_kinds import show
from vdsh.store.engine import Stored
from vdsh.store.engines.postgres.tables import escape, fields_json, unescape
from vdsh.store.rows import Rows, array, check_code, to_document
from vdsh.text.languages import Language
from vdsh.words.counting import OPENING, Counted, Opening, count_terms
from vdsh.words.segment import ABSENT, split

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


def to_vectors(
    texts: Sequence[str], language: Language, opening: Opening = OPENING
) -> tuple[list[tuple[str, int]], list[str]]:
    """Write the terms of each text as a tsvector, and count its words; give the vocabulary too.

    >>> from vdsh.text.languages import language
    >>> to_vectors(["The moon"], language("english"))
    ([("'moon':1,2,3,4", 4)], ['moon'])
    """
    vectors, words = list[tuple[str, int]](), set[bytes]()
    for _, counted in count_terms(texts, language, named=True, opening=opening):
        vectors += _vectors(counted)
        words.update(counted.vocabulary.split(b"\n"))
    return vectors, sorted(word.decode() for word in words if word)


def _vectors(counted: Counted) -> Iterator[tuple[str, int]]:
    quoted = [quote(term) for term in counted.terms]
    lengths = counted.lengths.clip(max=LONGEST).tolist()
    numbers, counts = counted.numbers.tolist(), counted.counts.tolist()
    for (i, j), length in zip(pairwise(counted.ends.tolist()), lengths, strict=True):
        pairs = zip(numbers[i:j], counts[i:j], strict=True)
        parts = [quoted[number] + _POSITIONS[min(n, MOST_COUNTED)] for number, n in pairs]
        if j - i > ALWAYS_FIT:  # so many of the first have room in a tsvector
            sizes = accumulate(len(part.encode()) + 4 for part in parts)
            parts = parts[: bisect_right(list(sizes), MOST_BYTES)]
        yield " ".join(parts), length


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


def asking(words: Iterable[str], needed: Iterable[str], without: Iterable[str]) -> str:
    """Ask for documents that have one of some words, all that are needed, and none of others."""
    others = (*map(quote, needed), *(f"!{quote(word)}" for word in without))
    return " & ".join([f"({any_of(words)})", *others])


def to_json(rows: Rows, texts: Sequence[str], language: Language) -> tuple[str, str, list[str]]:
    """Write rows and the passages of long texts as JSON, nothing where there are none; and words.

    Rows are in the order of ids: so writers lock rows in the same order.
    """
    vectors, words = to_vectors(texts, language)
    values = []
    for i in sorted(range(len(rows.rows)), key=lambda i: rows.rows[i][0]):
        id, text, labels, metadata, code, check_sum, code_sum = rows.rows[i]
        if len(id) > LONGEST_ID // 4 and len(escape(id).encode()) > LONGEST_ID:
            raise InputError(
                f"The id {show(id)} is too long: {len(id.encode()):,} bytes. PostgreSQL finds ids "
                f"of up to {LONGEST_ID:,}. Shorten it, for example to a hash."
            )
        fields = fields_json(rows.documents[i].metadata, metadata)
        row = {"id": escape(id), "text": escape(text), "labels": _labels(labels)}
        row |= {"metadata": metadata, "fields": fields, "code": f"x{code.hex()}"}
        sums = {"check_sum": check_sum, "code_sum": code_sum}
        values.append({**row, **sums, "words": vectors[i][0], "n_words": vectors[i][1]})
    pairs = zip(rows.documents, texts, strict=True)
    spans = [(document.id, text, *span) for document, text in pairs for span in split(text)]
    inside, _ = to_vectors([text[i:j] for _, text, i, j in spans], language, opening=())
    passages = [
        {"id": escape(id), "first": i, "last": j, "words": vector, "n_words": n_words}
        for (id, _, i, j), (vector, n_words) in zip(spans, inside, strict=True)
    ]
    return orjson.dumps(values).decode(), orjson.dumps(passages).decode() if passages else "", words


def to_stored(row: Sequence[Any]) -> Stored:
    """Read what the `columns` of `Tables` hold."""
    id, text, labels, metadata, code, check_sum, code_sum = row
    known = None if labels is None else array(tuple(map(unescape, labels)))
    columns = (unescape(id), unescape(text), known, metadata, check_sum)
    # To bring a long text here took longer than to compare its check sum.
    document = to_document(columns, longest=inf)
    return document, check_code(document.id, to_code(code), code_sum)


def to_code(bits: bytes) -> bytes:
    """Read a column of bits."""
    return bits[4:]  # after four bytes that say how many there are


def to_bits(code: bytes) -> str:
    """Write a code as PostgreSQL writes bits."""
    return f"{int.from_bytes(code):0{8 * len(code)}b}"


def _labels(labels: str | None) -> str | None:
    if labels is None or "\\u000" not in labels:
        return labels
    return json.dumps([escape(label) for label in json.loads(labels)])
