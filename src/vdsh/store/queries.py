"""Queries as a store reads them: words, a code, and how sure its bits are."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vdsh.codes import Codes, Scores
from vdsh.errors import InputError
from vdsh.model import Model
from vdsh.store.found import QueryCode
from vdsh.store.model import StoreModel
from vdsh.store.ranking import choose_rank
from vdsh.store.rows import check_query_code
from vdsh.words import WordQuery, read_query
from vdsh.words.query import plain_query


class EncodedText(NamedTuple):
    """What a model makes of a text or a vector."""

    code: Codes  # (n_bytes,)
    # (n_bits,): of each bit being 1; the bits themselves where the model does not say how sure it
    # is.
    chances: Scores
    empty: bool  # whether it has no known word; a text has none for a model of vectors
    unknown: list[str]  # its words that the model does not know
    fingerprint: str  # of the model

    @property
    def query_code(self) -> QueryCode:
        """The code, with the fingerprint of its model."""
        return QueryCode(self.code, self.fingerprint)


class TextQuery(NamedTuple):
    """What to look for, read: its words, and what the model makes of it, or of its vector."""

    words: WordQuery
    encoded: EncodedText
    vector: Any = None

    @property
    def is_text(self) -> bool:
        """Whether there are words to look for: there are none beside a vector that came alone."""
        return self.vector is None or bool(self.words.text)


class VectorQuery(NamedTuple):
    """A vector to look for, alone or as that of a text whose words are looked for too."""

    vector: Any
    text: Any = ""


Query = str | Codes | TextQuery | VectorQuery


def encode_texts(model: Model, texts: Sequence[str]) -> list[EncodedText]:
    """Encode texts together, which costs hardly more than one."""
    if not texts:
        return []
    if model.takes_vectors and not model.embedder:  # words find documents without it
        nothing = np.zeros(model.n_bits // 8, np.uint8), np.full(model.n_bits, 0.5, np.float32)
        found = EncodedText(*nothing, True, [], model.fingerprint)
        return [found._replace(unknown=model.unknown_words(text)) for text in texts]
    counts = model.counts(texts)
    codes, chances = model.codes_and_weights(counts)
    empty = counts.empty.tolist()
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


def read_vector(model: Model, query: VectorQuery, rank: str | None) -> TextQuery:
    """Check a vector and encode it."""
    vector, text = query
    if not isinstance(text, str):
        raise InputError("A vector is looked for alone, or with a text. Leave the code out.")
    if not isinstance(vector, Sequence | np.ndarray) or np.ndim(vector[0] if len(vector) else 0):
        raise InputError("A vector to look for must be one list of numbers.")
    words = read_words(text, rank or "relevance")
    codes, chances = model.codes_and_weights(model.counts([words.text], [vector]))
    unknown = [] if model.takes_vectors else model.unknown_words(words.text)
    encoded = EncodedText(codes[0], chances[0], False, unknown, model.fingerprint)
    return TextQuery(words, encoded, vector)


def read_queries(
    model: StoreModel, queries: Sequence[Query], rank: str | None, *, by_words: bool = True
) -> list[QueryCode | TextQuery]:
    """Read queries: texts are encoded together, also those read for another model; codes checked.

    A rank that a query or the model cannot have is refused first, and so is a text that has no
    code where it is not answered by its words.
    """
    given = [
        read_vector(model.model, query, rank) if isinstance(query, VectorQuery) else query
        for query in queries
    ]
    for query in given:
        chosen = rank_of(query, rank)
        if chosen == "expected" and not _has_vector(query):
            model.model.check_posterior()
        if chosen != "relevance" or not by_words:
            _check_has_code(model, query)
    texts = [query for query in given if isinstance(query, str)]
    read = iter(read_texts(model.model, texts, choose_rank(rank, is_text=True)) if texts else ())
    return [next(read) if isinstance(query, str) else _check(model, query) for query in given]


def _check(model: StoreModel, query: Codes | TextQuery) -> QueryCode | TextQuery:
    if not isinstance(query, TextQuery):
        return QueryCode(check_query_code(query, model.n_bits), model.fingerprint)
    if query.encoded.fingerprint == model.fingerprint:
        return query
    if query.vector is not None:
        read = read_vector(model.model, VectorQuery(query.vector, query.words.text), "distance")
        return query._replace(encoded=read.encoded)
    return TextQuery(query.words, encode_texts(model.model, [query.words.text])[0])


def _has_vector(query: Any) -> bool:
    return isinstance(query, TextQuery) and query.vector is not None


def _check_has_code(model: StoreModel, query: Codes | TextQuery | str) -> None:
    is_words = isinstance(query, str) or (isinstance(query, TextQuery) and query.encoded.empty)
    if is_words and model.model.takes_vectors and not model.model.embedder:
        raise InputError(
            "The model of this store hashes vectors, so a text has no code. Give its vector, or "
            "search by relevance: that looks for its words."
        )


def rank_of(query: Query, rank: str | None) -> str:
    """Choose how the hits of a query are ranked."""
    if isinstance(query, TextQuery):
        return choose_rank(rank, is_text=query.is_text, is_vector=not query.is_text)
    return choose_rank(rank, is_text=isinstance(query, str))
