"""Queries as a caller gives them, checked and encoded with the model of a store."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from vdsh.codes import Codes
from vdsh.errors import InputError
from vdsh.model import Model, NotLearnedError
from vdsh.retrieval import Query
from vdsh.retrieval.query import encode_texts, encode_vector, read_words
from vdsh.store.model import StoreModel
from vdsh.store.rows import check_query_code

RANKS = ("relevance", "distance", "expected")


class VectorQuery(NamedTuple):
    """A vector to look for, alone or as that of a text whose words are looked for too."""

    vector: Any
    text: Any = ""


# What a caller may look for.
AnyQuery = str | Codes | Query | VectorQuery


def choose_rank(rank: Any, *, is_text: bool, is_vector: bool = False) -> str:
    """Return how hits are ranked, or say why they cannot be; None is the best for the query.

    What is neither a text nor a vector is a code.
    """
    if rank is None:
        return "relevance" if is_text else "expected" if is_vector else "distance"
    if rank not in RANKS:
        raise InputError(f'rank must be "relevance", "distance" or "expected". Got {rank!r}.')
    if rank == "expected" and not is_text and not is_vector:
        raise InputError(
            'rank="expected" needs a text: a code does not say how sure its bits are. '
            'Give the text, or use rank="distance".'
        )
    if rank == "relevance" and not is_text:
        raise InputError(
            f'rank="relevance" needs a text: a {"vector" if is_vector else "code"} has no words. '
            'Give the text, or use rank="distance".'
        )
    return str(rank)


def rank_of(query: AnyQuery, rank: str | None) -> str:
    """Choose how the hits of a query are ranked."""
    if isinstance(query, Query):
        return choose_rank(rank, is_text=query.has_words, is_vector=query.given_vector)
    if isinstance(query, VectorQuery):
        has_text = isinstance(query.text, str) and query.text != ""
        return choose_rank(rank, is_text=has_text, is_vector=True)
    return choose_rank(rank, is_text=isinstance(query, str))


def encode_queries(
    model: StoreModel, queries: Sequence[AnyQuery], rank: str | None, *, by_words: bool = True
) -> list[Query]:
    """Check queries and encode them, all texts together.

    A rank that a query or the model cannot have is refused first, and so is a text that has no
    code where it is not answered by its words.
    """
    given = [
        read_vector(model.model, query, rank) if isinstance(query, VectorQuery) else query
        for query in queries
    ]
    for query in given:
        chosen = rank_of(query, rank)
        if chosen == "expected" and not (isinstance(query, Query) and query.given_vector):
            model.model.check_posterior()
        if chosen != "relevance" or not by_words:
            _check_has_code(model, query)
    texts = [query for query in given if isinstance(query, str)]
    encoded: Iterator[Query] = iter(())
    # Without a text the model need not be loaded.
    if texts:
        order = choose_rank(rank, is_text=True)
        encoded = iter(encode_texts(model.model, [read_words(text, order) for text in texts]))
    found = [
        next(encoded) if isinstance(query, str) else _check_code(model, query) for query in given
    ]
    for query in found:
        if query.lacks_part and (not by_words or rank_of(query, rank) == "distance"):
            raise InputError(
                "The codes of this store have a part of texts and one of vectors, and this query "
                "has one of them. Give a text and its vector, or search by relevance."
            )
    return found


def read_vector(model: Model, query: VectorQuery, rank: str | None) -> Query:
    """Check a vector and encode it."""
    if not isinstance(query.text, str):
        raise InputError("A vector is looked for alone, or with a text. Leave the code out.")
    return encode_vector(model, query.vector, read_words(query.text, rank or "relevance"))


def _check_code(model: StoreModel, query: Codes | Query) -> Query:
    if isinstance(query, Query):
        check_query_code(query.code, model.n_bits)
        return query
    return Query(code=check_query_code(query, model.n_bits))


def _check_has_code(model: StoreModel, query: Codes | Query | str) -> None:
    if not model.n_bits:
        raise NotLearnedError
    is_words = isinstance(query, str) or (isinstance(query, Query) and not query.has_code)
    if is_words and model.model.takes_vectors and not model.model.embedder:
        raise InputError(
            "The model of this store hashes vectors, so a text has no code. Give its vector, or "
            "search by relevance: that looks for its words."
        )
