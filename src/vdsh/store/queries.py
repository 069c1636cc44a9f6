"""Queries as a store reads them: a text becomes words, a code, and how sure its bits are."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vdsh.codes import Codes, Scores
from vdsh.model import Model
from vdsh.store.model import StoreModel
from vdsh.store.ranking import choose_rank
from vdsh.store.rows import check_query_code
from vdsh.words import WordQuery, read_query
from vdsh.words.query import plain_query


class EncodedText(NamedTuple):
    """What a model makes of a text.

    Attributes
    ----------
    code : ndarray of uint8 of shape (n_bytes,)
    chances : ndarray of shape (n_bits,)
        Of each bit being 1; the bits themselves where the model does not say how sure it is.
    empty : bool
        Whether it has no known word.
    unknown : list of str
        Its words that the model does not know.
    fingerprint : str
        Of the model.
    """

    code: Codes
    chances: Scores
    empty: bool
    unknown: list[str]
    fingerprint: str


class TextQuery(NamedTuple):
    """A text to look for: its words, and what the model makes of it."""

    words: WordQuery
    encoded: EncodedText


Query = str | Codes | TextQuery


def encode_texts(model: Model, texts: Sequence[str]) -> list[EncodedText]:
    """Encode texts together, which costs hardly more than one."""
    if not texts:
        return []
    counts = model.counts(texts)
    codes, chances = model.codes_and_chances(counts)
    empty = (np.diff(counts.indptr) == 0).tolist()
    unknown = map(model.unknown_words, texts)
    parts = zip(codes, chances, empty, unknown, strict=True)
    return [EncodedText(*part, model.fingerprint) for part in parts]


def read_words(text: str, rank: str) -> WordQuery:
    """Read a text; phrases and words to leave out are known to ranking by relevance alone."""
    return read_query(text) if rank == "relevance" else plain_query(text)


def read_texts(model: Model, texts: Sequence[str], rank: str) -> list[TextQuery]:
    """Read texts and encode them."""
    words = [read_words(text, rank) for text in texts]
    encoded = encode_texts(model, [one.text for one in words])
    return [TextQuery(*pair) for pair in zip(words, encoded, strict=True)]


def read_queries(
    model: StoreModel, queries: Sequence[Query], rank: str | None
) -> list[Codes | TextQuery]:
    """Read queries: texts are encoded together, also those read for another model; codes checked.

    A rank that a query or the model cannot have is refused first.
    """
    for query in queries:
        if choose_rank(rank, is_text=is_text(query)) == "expected":
            model.model.check_knows_doubt()
    texts = [query for query in queries if isinstance(query, str)]
    read = iter(read_texts(model.model, texts, choose_rank(rank, is_text=True)) if texts else ())
    return [next(read) if isinstance(query, str) else _check(model, query) for query in queries]


def _check(model: StoreModel, query: Codes | TextQuery) -> Codes | TextQuery:
    if not isinstance(query, TextQuery):
        return check_query_code(query, model.n_bits)
    if query.encoded.fingerprint == model.fingerprint:
        return query
    return TextQuery(query.words, encode_texts(model.model, [query.words.text])[0])


def is_text(query: Any) -> bool:
    """Say whether a query is a text, read already or not."""
    return isinstance(query, str | TextQuery)
