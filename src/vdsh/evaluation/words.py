"""Search by words alone, BM25 and tf-idf: what a store's rankings are held against."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from vdsh.text import BagOfWords, inverse_document_frequency, weigh

K1, B = 1.2, 0.75  # as SQLite's FTS5 and Lucene have them
_LEAST_IDF = 1e-6  # FTS5's, for words that most documents have
_ALL = 10**9  # words of a vocabulary


class WordSearch:
    """Ranks documents by the words they share with a query, in memory.

    `ids` and `texts`: of the documents, in the order that decides between equal scores.
    `stop_words`: words that do not count.
    """

    def __init__(
        self, ids: Sequence[str], texts: Sequence[str], queries: Sequence[str], stop_words: Any
    ) -> None:
        bag = BagOfWords(_ALL, stop_words=stop_words)
        counts, asked = bag.fit_transform(texts), bag.transform(queries)
        idf = inverse_document_frequency(counts)
        self._ids = ids
        self._sides = {
            "BM25": (asked, bm25(counts)),
            "tf-idf": (weigh(asked, "tfidf", idf), weigh(counts, "tfidf", idf)),
        }

    def rankings(self, k: int) -> Iterator[tuple[str, Iterator[list[str]]]]:
        """Give the name of each ranking, and the ids that it finds for one query after another."""
        for name, (asked, weights) in self._sides.items():
            yield name, self._search(asked, weights.T.tocsr(), k)

    def _search(self, asked: csr_array, weights: csr_array, k: int) -> Iterator[list[str]]:
        for i in range(asked.shape[0]):
            scores = asked[i : i + 1] @ weights  # of documents that have a word of the query
            best = np.lexsort((scores.indices, -scores.data))[:k]
            yield [self._ids[row] for row in scores.indices[best]]


def bm25(counts: csr_array) -> csr_array:
    """Weigh counts so that the sum over a query's words is BM25, with FTS5's constants.

    S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).

    Parameters
    ----------
    counts : csr_array of shape (n_docs, n_terms)
    """
    n_docs, n_terms = counts.shape
    df = np.bincount(counts.indices, minlength=n_terms)
    idf = np.maximum(np.log((n_docs - df + 0.5) / (df + 0.5)), _LEAST_IDF)
    lengths = counts.sum(axis=1)
    relative = np.repeat(lengths / lengths.mean(), np.diff(counts.indptr))
    weights = counts.data * (K1 + 1) / (counts.data + K1 * (1 - B + B * relative))
    weights *= idf[counts.indices]
    return csr_array((weights, counts.indices, counts.indptr), shape=counts.shape)
