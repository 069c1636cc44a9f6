"""The two collections of a store in Milvus, and how documents lie in them.

One holds the documents. Milvus keeps texts of up to 65,535 bytes, so a larger document is cut into
pieces, which lie in the second collection; there are also the model's files and what the store
says about itself. Pieces are written before the document that needs them and under a new name each
time, so a document is always whole.
"""

import json
import re
import uuid
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Any

from pymilvus import DataType, Function, FunctionType, MilvusClient

from vdsh.documents import Document
from vdsh.errors import InputError
from vdsh.search.id_kinds import show
from vdsh.store.check_sums import sum_of
from vdsh.store.engines.milvus.where import PARTIAL, fields_of, from_key, to_key
from vdsh.store.rows import Rows, damaged_document
from vdsh.text.languages import Language
from vdsh.words.counting import Counted, count_terms

LONGEST = 65_535  # bytes of a text in Milvus
PIECE = 16_000  # characters of a piece: at most 64,000 bytes
MESSAGE = 16_000_000  # bytes; a server takes 64 MiB
OUR_WORDS = {"tokenizer": "whitespace"}  # which we have put between them
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")


def check_name(name: str) -> str:
    """Return the name of a collection, or say why it is none."""
    if not NAME.fullmatch(name):
        raise InputError(
            "The name of a Milvus collection must be letters, digits and _, and not begin with a "
            f"digit. Got '{name}'."
        )
    return name


def documents_schema(n_bits: int) -> Any:
    """Describe the documents' collection."""
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=LONGEST)
    schema.add_field("code", DataType.BINARY_VECTOR, dim=n_bits or 8)  # it wants one
    schema.add_field("document", DataType.VARCHAR, max_length=LONGEST)
    schema.add_field("pieces", DataType.VARCHAR, max_length=100)
    schema.add_field("version", DataType.VARCHAR, max_length=32)  # another one with each write
    schema.add_field("check_sum", DataType.INT64)  # of the id and the whole document
    schema.add_field("fields", DataType.JSON)
    words = {"max_length": LONGEST, "enable_analyzer": True}
    schema.add_field("words", DataType.VARCHAR, **words, analyzer_params=OUR_WORDS)
    schema.add_field("bm25", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(Function("bm25", FunctionType.BM25, ["words"], ["bm25"]))
    return schema


def values_schema() -> Any:
    """Describe the collection of everything else; Milvus wants a vector in each."""
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("key", DataType.VARCHAR, is_primary=True, max_length=LONGEST)
    schema.add_field("value", DataType.VARCHAR, max_length=LONGEST)
    schema.add_field("nothing", DataType.BINARY_VECTOR, dim=8)
    return schema


def to_entries(
    rows: Rows, texts: Sequence[str], language: Language
) -> tuple[list[dict[str, Any]], dict[str, str], set[str]]:
    """Make rows of the documents' collection, and the pieces of those too long, by their keys.

    `texts` are what words are taken from. The third says whether any is "cut" or "partial".
    """
    entries, pieces, marks = list[dict[str, Any]](), dict[str, str](), set[str]()
    written = zip(rows.rows, rows.documents, to_words(texts, language), strict=True)
    for (id, text, labels, metadata, code, *_), document, words in written:
        key, version, name = to_key(id), uuid.uuid4().hex, ""
        if len(key) > LONGEST:
            size = len(id.encode())
            raise InputError(f"The id {show(id)} is too long for Milvus: {size:,} bytes.")
        body = f"[{json.dumps(text, ensure_ascii=False)},{labels or 'null'},{metadata}]"
        check_sum = sum_of(key, body)
        if len(body) > LONGEST // 4 and len(body.encode()) > LONGEST:
            parts = [body[i : i + PIECE] for i in range(0, len(body), PIECE)]
            body, name = "", f"{version}:{len(parts)}"
            pieces |= zip(piece_keys(name), parts, strict=True)
            marks.add("cut")
        fields = fields_of(None if labels is None else json.loads(labels), document.metadata)
        marks |= {"partial"} if fields == PARTIAL else set()
        entry = {"id": key, "version": version, "code": code or b"\0", "pieces": name}
        entry |= {"document": body, "words": words}
        entries.append(entry | {"fields": fields, "check_sum": check_sum})
    return entries, pieces, marks


def to_words(texts: Sequence[str], language: Language) -> list[str]:
    """Write the stems of each text with spaces between, as many as fit.

    >>> from vdsh.text.languages import language
    >>> to_words(["The moons"], language("english"))
    ['. moon moon moon moon']
    """
    return [
        words
        for _, counted in count_terms(texts, language, named=True)
        for words in _written(counted)
    ]


def _written(counted: Counted) -> Iterator[str]:
    numbers, counts = counted.numbers.tolist(), counted.counts.tolist()
    for i, j in pairwise(counted.ends.tolist()):
        pairs = zip(numbers[i:j], counts[i:j], strict=True)
        stems = [(counted.terms[k], n) for k, n in pairs if counted.terms[k][0] != "="]
        repeated = (stem for stem, n in stems for _ in range(n - 1))
        words = [".", *(stem for stem, _ in stems), *repeated]  # Milvus fails where there are none
        written = " ".join(words)
        if len(written) > LONGEST // 4 and len(written.encode()) > LONGEST:
            ends = list(accumulate(len(word.encode()) + 1 for word in words))
            written = " ".join(words[: bisect_right(ends, LONGEST)])
        yield written


def piece_keys(name: str) -> list[str]:
    """List the keys of a document's pieces."""
    tag, _, count = name.partition(":")
    return [f"piece/{tag}/{number:06}" for number in range(int(count or 0))]


def to_document(key: str, body: str, check_sum: int) -> Document:
    """Make a document of its row or its joined pieces; raise unless they are what was written."""
    if sum_of(key, body) != check_sum:
        raise damaged_document(from_key(key))
    text, labels, metadata = json.loads(body)
    return Document(from_key(key), text, None if labels is None else tuple(labels), metadata)


def chunks(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Divide rows so that each part is small enough for one message."""
    sizes = (sum(len(one) for one in row.values() if isinstance(one, str | bytes)) for row in rows)
    ends = accumulate(4 * size for size in sizes)  # a character has up to four bytes
    for _, part in groupby(zip(ends, rows, strict=True), lambda pair: pair[0] // MESSAGE):
        yield [row for _, row in part]
