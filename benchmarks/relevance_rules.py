"""How words and codes are joined: BM25, the rule that was chosen, and what else was tried.

`docs/relevance.md` has the formula and the measurements.
"""

import sqlite3
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from relevance_codes import content_words
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
    often, unless told otherwise.
    """

    def __init__(self, texts: list[str], opening: tuple[tuple[int, int], ...] = OPENING) -> None:
        words, self.opening = content_words(texts), opening
        self.columns: dict[str, int] = {}
        counts = self._count(words)
        self.frequencies = np.bincount(counts.indices, minlength=len(self.columns))
        n, df = len(texts), self.frequencies
        self.idf = np.maximum(np.log((n - df + 0.5) / (df + 0.5)), 1e-6)
        lengths = counts.sum(axis=1)
        length = np.repeat(lengths / lengths.mean(), np.diff(counts.indptr))
        tf = counts.data * (K1 + 1) / (counts.data + K1 * (1 - B + B * length))
        weights = csr_array((tf * self.idf[counts.indices], counts.indices, counts.indptr))
        self.weights, self.counts = weights.T.tocsr(), counts

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
        return Query(self.weights[columns].T @ weights, self.ceiling(columns, weights))

    def ceiling(self, columns: list[int], weights: np.ndarray) -> float:
        """Compute the score of a document with each of the words without end."""
        return float((K1 + 1) * weights @ self.idf[columns])

    def _count(self, documents: list[list[str]]) -> csr_array:
        columns = self.columns
        indices = [columns.setdefault(word, len(columns)) for words in documents for word in words]
        indptr = np.cumsum([0, *map(len, documents)])
        shape = (len(documents), len(columns))
        places = np.arange(len(indices)) - np.repeat(indptr[:-1], np.diff(indptr))
        weights = np.ones(len(indices))
        for first, more in self.opening:
            weights += more * (places < first)
        counts = csr_array((weights, np.array(indices), indptr), shape=shape)
        counts.sum_duplicates()
        return counts


class FullText(Words):
    """The same from a real FTS5 table, which gives the best 1,000 documents."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__(texts)
        self.n_docs = len(texts)
        self.base = sqlite3.connect(":memory:")
        # With detail=none or column and no content there are no frequencies: bm25() is wrong.
        self.base.execute("CREATE VIRTUAL TABLE t USING fts5(x, content='', tokenize='ascii')")
        spans = zip(self.counts.indptr[:-1], self.counts.indptr[1:], strict=True)
        rows = (
            " ".join(
                f"w{column} " * int(count)
                for column, count in zip(
                    self.counts.indices[i:j], self.counts.data[i:j], strict=True
                )
            )
            for i, j in spans
        )
        self.base.executemany("INSERT INTO t (rowid, x) VALUES (?, ?)", enumerate(rows))
        self.base.execute("INSERT INTO t (t) VALUES ('optimize')")

    def ask(self, words: list[str]) -> Query:
        """Score the documents that the table finds."""
        (columns, weights), bm25 = self.chosen(words), np.zeros(self.n_docs)
        terms = (f"w{c}" for c, n in zip(columns, weights, strict=True) for _ in range(n))
        match = " OR ".join(terms)
        order = f"SELECT rowid, -bm25(t) FROM t WHERE t MATCH ? ORDER BY rank LIMIT {CANDIDATES}"
        for row, score in self.base.execute(order, (match,)) if columns else ():
            bm25[row] = score
        return Query(bm25, self.ceiling(columns, weights))


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


# What else was tried: what BM25 is divided by, how the parts are joined, whose code is wanted.


def plain_sum(query: Query, bits: np.ndarray, chances: np.ndarray, weight: float) -> np.ndarray:
    """Add words, as a share of the best document's, and agreement."""
    return query.bm25 / max(query.bm25.max(), 1e-9) + weight * agreement(bits, chances)


def plain_share(query: Query, bits: np.ndarray, chances: np.ndarray, weight: float) -> np.ndarray:
    """Add words, as a share of the most that they can give, and agreement."""
    return query.bm25 / max(query.ceiling, 1e-9) + weight * agreement(bits, chances)


def squared(query: Query, bits: np.ndarray, chances: np.ndarray, weight: float) -> np.ndarray:
    """Square that share: near the top words decide, further down codes."""
    return (query.bm25 / max(query.ceiling, 1e-9)) ** 2 + weight * agreement(bits, chances)


def standardized(query: Query, bits: np.ndarray, chances: np.ndarray, weight: float) -> np.ndarray:
    """Add standard scores, of words among the documents that have any."""
    found, agree = query.bm25[query.bm25 > 0], agreement(bits, chances)
    words = (query.bm25 - found.mean()) / (found.std() + 1e-9) if len(found) else query.bm25
    return np.where(query.bm25 > 0, words, 0) + weight * (agree - agree.mean()) / agree.std()


def fused(query: Query, bits: np.ndarray, chances: np.ndarray, weight: float) -> np.ndarray:
    """Add reciprocal ranks."""
    scores = np.zeros(len(bits))
    for values, share in ((query.bm25, 1.0), (agreement(bits, chances), weight)):
        order = np.lexsort((np.arange(len(bits)), -values))
        scores[order] += share / (60 + np.arange(len(bits)))
    return scores


def reordered(query: Query, bits: np.ndarray, chances: np.ndarray, weight: float) -> np.ndarray:
    """Order the nearest by code by words."""
    agree = agreement(bits, chances)
    near = best_rows(agree, int(weight))
    scores = agree - 1
    scores[near] += 1 + query.bm25[near]
    return scores


def half_and_half(query: Query, bits: np.ndarray, chances: np.ndarray, weight: float) -> np.ndarray:
    """Take half of the wanted code from the best by words, however well they match."""
    if query.bm25.any():
        best = best_rows(query.bm25, VOTERS)
        votes = (query.bm25[best] / query.bm25[best[0]]) ** SHARPNESS
        chances = 0.5 * chances + 0.5 * votes @ bits[best] / votes.sum()
    return squared(query, bits, chances, weight)


def hard(query: Query, bits: np.ndarray, chances: np.ndarray, weight: float) -> np.ndarray:
    """Follow the rule with a query that is sure of every bit, as for methods without doubt."""
    return combine(query, bits, (chances > 0.5).astype(float))


def narrow(query: Query, bits: np.ndarray, chances: np.ndarray, weight: float) -> np.ndarray:
    """Follow the rule among the best 1,000 by words alone."""
    return np.where(query.bm25 > 0, combine(query, bits, chances), -1)


ALTERNATIVES: dict[str, tuple[Callable[..., np.ndarray], tuple[float, ...]]] = {
    "words / best + weight * agreement": (plain_sum, (0.4, 1.0, 1.6, 2.4)),
    "words / most + weight * agreement": (plain_share, (0.2, 0.4, 0.7)),
    "(words / most)^2 + weight * agreement": (squared, (0.2, 0.25, 0.4)),
    "standard scores": (standardized, (0.5, 1.0)),
    "reciprocal ranks": (fused, (0.3, 1.0)),
    "nearest re-ordered by words": (reordered, (200, 1000)),
    "half of the code from the best by words": (half_and_half, (0.25,)),
    "the rule, sure of every bit": (hard, (0.25,)),
    "the rule, among the best by words alone": (narrow, (0.25,)),
}
