"""What codes are held against: a random order, and exact tf-idf cosine of all terms."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from vdsh.labels import Labels, in_common, read_labels
from vdsh.metrics import ranking
from vdsh.text.counts import inverse_document_frequency, weigh


def yardsticks(
    queries: tuple[csr_array, Sequence[Any]],
    documents: tuple[csr_array, Sequence[Any]],
    *,
    k: int = 100,
) -> dict[str, float]:
    """Measure precision at k of a random order, and of exact tf-idf cosine of all terms.

    Parameters
    ----------
    queries, documents : (counts, labels)
        Term counts of shape (n, n_terms), and the labels of each.
    k : int
    """
    query_counts, query_labels = queries
    counts, labels = documents
    of_queries, of_documents = read_both(query_labels, labels)
    query_matrix = of_queries.matrix[of_queries.known]
    matrix = of_documents.matrix[of_documents.known]
    idf = inverse_document_frequency(counts)
    weights = weigh(counts, "tfidf", idf)[np.flatnonzero(of_documents.known)]
    query_weights = weigh(query_counts, "tfidf", idf)[np.flatnonzero(of_queries.known)]
    cosine = ranking.cosine_precision(query_weights, query_matrix, weights, matrix, k=k)
    chance = ranking.random_precision(query_matrix, matrix)
    return {"random": float(chance.mean()), "exact tf-idf cosine": float(cosine.mean())}


def read_both(query_labels: Any, labels: Any) -> tuple[Labels, Labels]:
    """Read the labels of queries and documents; those of one side alone are left out."""
    of_documents = read_labels(labels)
    of_queries = read_labels(query_labels, of_documents.names)
    return in_common(of_queries, of_documents)
