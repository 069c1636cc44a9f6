"""Queries as a store reads them: words, a code, and how sure its bits are."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vdsh.codes import Codes
from vdsh.errors import InputError
from vdsh.model import Model, NotLearnedError
from vdsh.model.joint import JointModel
from vdsh.store.hits import ParsedQuery
from vdsh.store.model import StoreModel
from vdsh.store.ranking import choose_rank
from vdsh.store.rows import check_query_code
from vdsh.words import WordQuery, read_query
from vdsh.words.query import plain_query


class VectorQuery(NamedTuple):
    """A vector to look for, alone or as that of a text whose words are looked for too."""

    vector: Any
    text: Any = ""


Query = str | Codes | ParsedQuery | VectorQuery


def read_words(text: str, rank: str) -> WordQuery:
    """Read a text; phrases and words to leave out are known to ranking by relevance alone."""
    return read_query(text) if rank == "relevance" else plain_query(text)


def signs_of(query: ParsedQuery) -> WordQuery | None:
    """Return the words of a query, where it has phrases or words to leave out."""
    words = query.words
    return words if words is not None and (words.phrases or words.without) else None


def encode_words(
    model: Model, words: Sequence[WordQuery], vectors: Sequence[Any] = ()
) -> list[ParsedQuery]:
    """Encode the texts of queries together, which costs hardly more than one.

    A joint model takes their vectors too, or makes them where it can.
    """
    if isinstance(model, JointModel):
        given = vectors or model.embed_queries([one.text for one in words])
        pairs = zip(encode_words(model.topic, words), given, strict=True)
        joined = (_with_vector(model.second, query, vector) for query, vector in pairs)
        return [query._replace(fingerprint=model.fingerprint) for query in joined]
    if not words:
        return []
    texts = [one.text for one in words]
    if model.takes_vectors and not model.embedder:  # words find documents without a code
        codes = np.zeros((len(texts), model.n_bits // 8), np.uint8)
        chances = np.full((len(texts), model.n_bits), 0.5, np.float32)
        empty = [True] * len(texts)
    else:
        counts = model.counts(texts)
        codes, chances = model.codes_and_weights(counts)
        empty = counts.empty.tolist()
    return [
        ParsedQuery(code, model.fingerprint, one, some, none, model.unknown_words(one.text))
        for code, one, some, none in zip(codes, words, chances, empty, strict=True)
    ]


def _with_vector(second: Model, query: ParsedQuery, vector: Any) -> ParsedQuery:
    """Put the code of a vector behind that of a text; without one, nothing is known of its bits."""
    code, chances = np.zeros(second.n_bits // 8, np.uint8), np.full(second.n_bits, 0.5)
    of_text, turned = np.asarray(query.chances), None
    if vector is not None:
        rows = second.rows([vector])
        (code,), (chances,) = second.codes_and_weights(rows)
        (turned,) = second.scores_of(rows) - second.thresholds
        of_text = np.full(len(of_text), 0.5) if query.empty else of_text
    return query._replace(
        code=np.concatenate([query.code, code]),
        chances=np.concatenate([of_text, chances]),
        empty=query.empty and vector is None,
        vector_bits=second.n_bits,
        turned=turned,
        half=vector is None or query.words is None or not query.words.text,
    )


def read_vector(model: Model, query: VectorQuery, rank: str | None) -> ParsedQuery:
    """Check a vector and encode it."""
    vector, text = query
    if not isinstance(text, str):
        raise InputError("A vector is looked for alone, or with a text. Leave the code out.")
    if not isinstance(vector, Sequence | np.ndarray) or np.ndim(vector[0] if len(vector) else 0):
        raise InputError("A vector to look for must be one list of numbers.")
    return _encode_vector(model, vector, read_words(text, rank or "relevance"))


def _encode_vector(model: Model, vector: Any, words: WordQuery) -> ParsedQuery:
    if model.second is not None:
        return encode_words(model, [words], [vector])[0]._replace(vector=vector)
    codes, chances = model.codes_and_weights(model.counts([words.text], [vector]))
    unknown = [] if model.takes_vectors else model.unknown_words(words.text)
    return ParsedQuery(
        codes[0], model.fingerprint, words, chances[0], unknown=unknown, vector=vector
    )


def read_queries(
    model: StoreModel, queries: Sequence[Query], rank: str | None, *, by_words: bool = True
) -> list[ParsedQuery]:
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
    read: Iterator[ParsedQuery] = iter(())
    if texts:  # or the model need not be loaded
        order = choose_rank(rank, is_text=True)
        read = iter(encode_words(model.model, [read_words(text, order) for text in texts]))
    found = [next(read) if isinstance(query, str) else _check(model, query) for query in given]
    for query in found:
        if query.half and (not by_words or rank_of(query, rank) == "distance"):
            raise InputError(
                "The codes of this store have a part of texts and one of vectors, and this query "
                "has one of them. Give a text and its vector, or search by relevance."
            )
    return found


def _check(model: StoreModel, query: Codes | ParsedQuery) -> ParsedQuery:
    if not isinstance(query, ParsedQuery):
        return ParsedQuery(check_query_code(query, model.n_bits), model.fingerprint)
    if query.fingerprint == model.fingerprint or query.words is None:
        return query
    if query.vector is not None:
        return _encode_vector(model.model, query.vector, query.words)
    return encode_words(model.model, [query.words])[0]


def _has_vector(query: Any) -> bool:
    return isinstance(query, ParsedQuery) and query.vector is not None


def _check_has_code(model: StoreModel, query: Codes | ParsedQuery | str) -> None:
    if not model.n_bits:
        raise NotLearnedError
    is_words = isinstance(query, str) or (isinstance(query, ParsedQuery) and query.empty)
    if is_words and model.model.takes_vectors and not model.model.embedder:
        raise InputError(
            "The model of this store hashes vectors, so a text has no code. Give its vector, or "
            "search by relevance: that looks for its words."
        )


def rank_of(query: Query, rank: str | None) -> str:
    """Choose how the hits of a query are ranked."""
    if isinstance(query, ParsedQuery):
        return choose_rank(rank, is_text=query.is_text, is_vector=query.vector is not None)
    return choose_rank(rank, is_text=isinstance(query, str))
