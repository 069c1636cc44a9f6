"""How words and codes are joined: BM25 and the rule, as `docs/relevance.md` has them."""

from typing import NamedTuple

import numpy as np
from relevance_tasks import content_words
from scipy.sparse import csr_array

K1, B = 1.2, 0.75  # as SQLite's FTS5 has them
CANDIDATES = 1000  # known by words
WEIGHT, VOTERS, SHARPNESS = 0.25, 10, 6  # the rule's constants, chosen on the first half of queries
MOST_WORDS, MOST_REPEATS = 32, 2  # of a query, by frequency in it and rarity
OPENING = ((8, 2), (24, 1))  # the first so many words of a document count so much more


class Query(NamedTuple):
    """What the words of one query found: a score for each document, and the most there can be."""

    bm25: np.ndarray
    ceiling: float


class Words:
    """BM25 as SQLite's FTS5 computes it, over all words but stop words.

    The opening of a document says what it is about: its words count as if they stood there more
    often.
    """

    def __init__(self, texts: list[str]) -> None:
        words = content_words(texts)
        self.columns: dict[str, int] = {}
        counts = self._count(words)
        self.frequencies = np.bincount(counts.indices, minlength=len(self.columns))
        n, df = len(texts), self.frequencies
        self.idf = np.maximum(np.log((n - df + 0.5) / (df + 0.5)), 1e-6)
        lengths = counts.sum(axis=1)
        length = np.repeat(lengths / lengths.mean(), np.diff(counts.indptr))
        tf = counts.data * (K1 + 1) / (counts.data + K1 * (1 - B + B * length))
        weights = csr_array((tf * self.idf[counts.indices], counts.indices, counts.indptr))
        self.weights = weights.T.tocsr()

    def chosen(self, words: list[str]) -> tuple[list[int], np.ndarray]:
        """Give the columns of a query's known words, the most telling where many, and weights.

        A word that the query repeats counts twice: a whole document says so what it is about.
        """
        known = [self.columns[word] for word in words if word in self.columns]
        columns, counts = np.unique(np.array(known, int), return_counts=True)
        best = np.lexsort((columns, -counts * self.idf[columns]))[:MOST_WORDS]
        return columns[best].tolist(), np.minimum(counts[best], MOST_REPEATS)

    def ask(self, words: list[str]) -> Query:
        """Score all documents."""
        columns, weights = self.chosen(words)
        # The most there can be: a document with each of the words without end.
        ceiling = float((K1 + 1) * weights @ self.idf[columns])
        return Query(self.weights[columns].T @ weights, ceiling)

    def _count(self, documents: list[list[str]]) -> csr_array:
        columns = self.columns
        indices = [columns.setdefault(word, len(columns)) for words in documents for word in words]
        indptr = np.cumsum([0, *map(len, documents)])
        shape = (len(documents), len(columns))
        places = np.arange(len(indices)) - np.repeat(indptr[:-1], np.diff(indptr))
        weights = np.ones(len(indices))
        for first, more in OPENING:
            weights += more * (places < first)
        counts = csr_array((weights, np.array(indices), indptr), shape=shape)
        counts.sum_duplicates()
        return counts


def combine(query: Query, bits: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """Score documents by words and codes.

    Parameters
    ----------
    query : Query
    bits : ndarray of shape (n_docs, n_bits)
    chances : ndarray of shape (n_bits,)
        Of each bit of the query's code being 1.
    """
    if not query.bm25.any():
        return WEIGHT * agreement(bits, chances)
    best = best_rows(query.bm25, VOTERS)
    match = query.bm25 / query.ceiling  # from 0 to 1: how much of the query a document answers
    trust = match[best[0]]
    votes = (match[best] / trust) ** SHARPNESS
    wanted = (1 - trust) * chances + trust * (votes @ bits[best] / votes.sum())
    return match**2 + WEIGHT * agreement(bits, wanted)


def agreement(bits: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """Compute the share of bits that are expected to agree; rounded, so that equal codes tie."""
    return 1 - np.round(chances.sum() + bits @ (1 - 2 * chances), 9) / len(chances)


def best_rows(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the rows of the k highest scores, ties by row."""
    k = min(k, len(scores))
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    rows = np.flatnonzero(scores >= least)
    return rows[np.lexsort((rows, -scores[rows]))][:k]


def known(query: Query) -> Query:
    """Forget all but the best 1,000 documents, as a full-text index gives them."""
    best = best_rows(query.bm25, CANDIDATES)
    bm25 = np.zeros_like(query.bm25)
    bm25[best] = query.bm25[best]
    return query._replace(bm25=bm25)
