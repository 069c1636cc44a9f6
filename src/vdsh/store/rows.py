"""Documents as rows of the table, checked on the way in."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.cancel import while_wanted
from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.documents.document import check_characters
from vdsh.documents.values import DEPTH, is_too_deep
from vdsh.errors import FolderError, InputError
from vdsh.model import NotLearnedError
from vdsh.search.id_kinds import show
from vdsh.store.check_sums import sum_of, sum_of_code

_ADVICE = "Restore a copy, or index the documents into a new store."
# Where a single document is damaged, and the others are not.
REPLACE = "Delete it and add it again (vdsh delete, vdsh add), or restore a backup."
COLUMNS = "id, text, labels, metadata, code, check_sum, code_sum"
# Characters of a text whose check sum is compared whenever it is read, which takes up to 0.05
# milliseconds; `vdsh check` and backups compare those of longer ones too.
CHECKED_WHEN_READ = 50_000

_SIGNS = re.compile(r"[# \n]*")
_LETTERS = re.compile(r"[^\W\d_]{3}")
_ENDING = re.compile(r"\.[A-Za-z]\w{0,4}$")  # of a file

# id, text, labels, metadata, code, check sum of the first four, check sum of the code
Row = tuple[str, str, str | None, str, bytes, int, int]


class Rows(NamedTuple):
    """Rows to write, one an id, their documents, and the names of all metadata fields in them.

    `fingerprint` is that of the model that made the codes, which have `n_bytes` bytes.
    """

    rows: list[Row]
    fields: set[str]
    documents: list[Document]
    fingerprint: str
    n_bytes: int


def to_rows(
    documents: Sequence[Document],
    codes: Codes | None,
    encode: Callable[[list[str]], Codes],
    fingerprint: str = "",
) -> Rows:
    """Check documents and make rows of them; of those with the same id the last one stays."""
    _check_documents(documents)
    if codes is None:
        codes = encode([document.text for document in documents])
    if len(codes) != len(documents):
        raise InputError(f"There are more documents than codes: {show(documents[-1].id)} has none.")
    fields: set[str] = set()
    rows: dict[str, Row] = {}
    kept: dict[str, Document] = {}
    packed, size = codes.tobytes(), codes.shape[1]
    for i, document in enumerate(while_wanted(documents)):
        labels = None if document.labels is None else _labels_json(document)
        metadata = _metadata_json(document) if document.metadata else "{}"
        fields.update(document.metadata)
        code = packed[i * size : (i + 1) * size]
        columns = (document.id, document.text, labels, metadata)
        rows[document.id] = (*columns, code, sum_of(*columns), sum_of_code(code))
        kept[document.id] = document
    return Rows(list(rows.values()), fields, list(kept.values()), fingerprint, size)


def searched_text(id: str, text: str, metadata: Mapping[str, Any]) -> str:
    r"""Give what the words of a document are taken from: title, name and text.

    Its name is its id where that is a name: not a number, nor that of a line in a file.

    >>> searched_text("howto/keys.md", "Rotate them.", {"title": "Signing"})
    'Signing\nhowto/keys\nRotate them.'
    """
    return searched_head(id, text, metadata) + text


def searched_head(id: str, text: str, metadata: Mapping[str, Any]) -> str:
    """Give the lines before the text of a document that words are taken from, too."""
    title, begin = metadata.get("title"), _SIGNS.match(text)
    is_there = isinstance(title, str) and text.startswith(title, begin.end() if begin else 0)
    lines = [title] if isinstance(title, str) and not is_there else []
    if _LETTERS.search(id) and not id[-1].isdecimal():
        lines.append(_ENDING.sub("", id))
    return "".join(f"{line}\n" for line in lines)


def words_text(document: Document) -> str:
    """Give what the words of a document are taken from."""
    return searched_text(document.id, document.text, document.metadata)


def sort_keys(ids: Sequence[str]) -> NDArray[np.int64]:
    """Give numbers that sort as ids do."""
    keys = np.empty(len(ids), np.int64)
    keys[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return keys


def check_given_codes(codes: Any, documents: Iterable[Document], n_bits: int) -> None:
    """Raise unless these can be the codes of the documents."""
    shape, kind = np.shape(codes), getattr(codes, "dtype", None)
    if kind != np.uint8 or len(shape) != 2:
        raise InputError(
            "codes must be a uint8 array of shape (n_docs, n_bytes). "
            f"Got {kind or type(codes).__name__} of shape {shape}."
        )
    if shape[1] and not n_bits:
        raise NotLearnedError
    if 8 * shape[1] != n_bits:
        raise InputError(
            f"This store holds {n_bits}-bit codes but the new ones have {8 * shape[1]}. "
            "Encode the documents with the store's own model."
        )
    if isinstance(documents, Sequence) and len(documents) != shape[0]:
        raise InputError(f"There are {shape[0]} codes but {len(documents)} documents.")


def check_query_code(code: Any, n_bits: int) -> Codes:
    """Return a single query code, or say why it is none."""
    given = np.asarray(code)
    if given.dtype != np.uint8 or given.ndim != 1:
        raise InputError(
            "A query must be a text or a code: a uint8 array of shape (n_bytes,). "
            f"Got {type(code).__name__} of type {given.dtype} and shape {given.shape}."
        )
    if 8 * len(given) != n_bits:
        raise InputError(
            f"This store holds {n_bits}-bit codes but the query has {8 * len(given)}. "
            "Encode it with the store's own model."
        )
    checked: Codes = given
    return checked


def _check_documents(documents: Sequence[Document]) -> None:
    """Raise for the first document that cannot be stored."""
    for document in while_wanted(documents):
        if not isinstance(document, Document):
            raise InputError(f"A store holds Documents. Got {type(document).__name__}.")
        check_characters(check_id(document.id))
        if not isinstance(document.text, str):
            raise InputError(
                f"The text of document {show(document.id)} must be a string. "
                f"Got {type(document.text).__name__}."
            )
        if not isinstance(document.metadata, dict):
            raise InputError(
                f"The metadata of document {show(document.id)} must be a dict. "
                f"Got {type(document.metadata).__name__}."
            )
        # Almost all text is ASCII or was decoded from UTF-8; the slow look is for the rest.
        if not document.text.isascii():
            _check_unicode(document.text, document.id)


def check_id(id: Any) -> str:
    """Return an id, or say why it is none."""
    if not isinstance(id, str):
        raise InputError(f"An id must be a string. Got {show(id)}.")
    if not id:
        raise InputError("An id must not be empty. Give the document a name.")
    if not id.isascii():
        _check_unicode(id, id)
    return id


def to_document(row: Sequence[Any], *, longest: float = CHECKED_WHEN_READ) -> Document:
    """Make a document of its id, text, labels, metadata and check sum.

    That is compared for texts up to the `longest`.
    """
    id, text, labels, metadata, check_sum = row
    if not (isinstance(id, str) and isinstance(text, str)):
        raise FolderError(
            f"Document {show(id)} of this store is damaged: it is not text. {_ADVICE}"
        )
    if len(text) <= longest and sum_of(id, text, labels, metadata) != check_sum:
        raise damaged_document(id)
    return Document(id, text, read_labels(labels), read_metadata(metadata))


def damaged_document(id: str) -> FolderError:
    """Say that a document is not as it was written."""
    return FolderError(f"Document {show(id)} of this store is damaged. {REPLACE}")


@lru_cache(maxsize=1024)  # many documents have the same
def read_labels(labels: str | None) -> tuple[str, ...] | None:
    """Read the column `labels`."""
    if labels is None:
        return None
    found = _from_json(labels)
    if not isinstance(found, list) or not all(isinstance(label, str) for label in found):
        raise FolderError(f"Labels of this store are damaged: {show(labels)}. {_ADVICE}")
    return tuple(found)


def read_metadata(metadata: str) -> dict[str, Any]:
    """Read the column `metadata`."""
    if metadata == "{}":
        return {}
    found = _from_json(metadata)
    if not isinstance(found, dict):
        raise FolderError(f"Metadata of this store are damaged: {show(metadata)}. {_ADVICE}")
    return found


def read_codes(pairs: Sequence[tuple[str, bytes]], n_bytes: int) -> tuple[list[str], Codes]:
    """Divide pairs of an id and a code into ids and an array of shape (n_docs, n_bytes)."""
    ids, codes = [id for id, _ in pairs], [code for _, code in pairs]
    kinds = set(map(type, ids)) <= {str} and set(map(type, codes)) <= {bytes, memoryview}
    if not kinds or not set(map(len, codes)) <= {n_bytes}:
        raise FolderError(
            f"A document of this store is damaged: its id is not text, or its code has not "
            f"{n_bytes} bytes. {_ADVICE}"
        )
    packed = bytearray().join(codes)
    return ids, np.frombuffer(packed, np.uint8).reshape(len(ids), n_bytes)


def divide(page: Sequence[tuple[Document, bytes]], n_bytes: int) -> tuple[list[Document], Codes]:
    """Divide documents with their codes into documents and an array of codes."""
    pairs = [(document.id, code) for document, code in page]
    return [document for document, _ in page], read_codes(pairs, n_bytes)[1]


def check_code(id: str, code: Any, code_sum: Any) -> bytes:
    """Return what the column `code` of a document holds; raise unless that is what was written."""
    if not isinstance(code, bytes) or sum_of_code(code) != code_sum:
        raise FolderError(f"The code of document {show(id)} of this store is damaged. {REPLACE}")
    return code


def _from_json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def _labels_json(document: Document) -> str:
    labels = document.labels
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InputError(
            f"The labels of document {show(document.id)} must be a tuple of strings. "
            f"Got {show(labels)}."
        )
    labels = tuple(labels)
    for label in labels:
        if not isinstance(label, str):
            raise InputError(
                f"A label of document {show(document.id)} must be a string. Got {show(label)}."
            )
        _check_unicode(label, document.id)
    return array(labels)


@lru_cache(maxsize=1024)
def array(labels: tuple[str, ...]) -> str:
    """Write labels as the column `labels` has them."""
    return json.dumps(labels, ensure_ascii=False)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _metadata_json(document: Document) -> str:
    if any(map(is_too_deep, document.metadata.values())):
        raise InputError(
            f"The metadata of document {show(document.id)} is nested deeper than {DEPTH} levels. "
            "Make it flatter."
        )
    try:
        if not all(isinstance(name, str) for name in document.metadata):
            raise TypeError("names must be strings")
        text = _encode(document.metadata)
        if not text.isascii():
            text.encode()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The metadata of document {show(document.id)} does not fit into JSON: {error}. "
            "Use texts, finite numbers, true, false, null, lists and dicts of them."
        ) from error
    return text


def _check_unicode(text: str, id: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"Document {show(id)} is not valid Unicode: half a surrogate pair at character "
            f"{error.start}. Replace it, for example by U+FFFD."
        ) from error
