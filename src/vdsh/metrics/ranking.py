"""How good a ranking by Hamming distance is, exactly, ties included.

Everything here is computed from a `Tally`: how many documents, and how many relevant ones, a query
finds at each distance. Documents at one distance are tied; each measure is its expectation when
ties are broken at random (F. McSherry and M. Najork, "Computing Information Retrieval Performance
Measures Efficiently in the Presence of Tied Scores", ECIR 2008).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import digamma

from vdsh.codes import Codes, to_words
from vdsh.errors import InputError
from vdsh.jit import spread

Values = NDArray[np.float64]


class Tally(NamedTuple):
    """What each query finds at each distance.

    Attributes
    ----------
    found, relevant : int64 ndarray of shape (n_queries, n_bits + 1)
        Documents, and documents that share a label with the query, at distances 0, 1, ...
    """

    found: NDArray[np.int64]
    relevant: NDArray[np.int64]

    def without_self(self, labelled: NDArray[np.bool_]) -> "Tally":
        """Leave out the query itself, where queries are among the documents.

        It lies at distance 0 and is relevant if it has any label.
        """
        found, relevant = self.found.copy(), self.relevant.copy()
        found[:, 0] -= 1
        relevant[:, 0] -= labelled
        return Tally(found, relevant)


def tally(
    query_codes: Codes, query_labels: NDArray[np.uint8], codes: Codes, labels: NDArray[np.uint8]
) -> Tally:
    """Count for each query the documents, and the relevant ones, at each distance.

    Parameters
    ----------
    query_codes, codes : uint8 ndarray of shape (n, n_bytes)
        Packed codes of the queries and of the database.
    query_labels, labels : uint8 ndarray of shape (n, n_labels)
        0/1 matrices; a document is relevant when it shares a label with the query.
    """
    from vdsh.metrics.distance_kernels import place_counts

    if len(codes) == 0:
        raise InputError("There are no documents to search: got 0.")
    queries = to_words(query_codes), to_words(np.packbits(query_labels, axis=1))
    database = to_words(codes), to_words(np.packbits(labels, axis=1)), 8 * codes.shape[1]
    parts = spread(
        lambda i, j: place_counts(queries[0][i:j], queries[1][i:j], *database), len(query_codes)
    )
    counts = np.concatenate(parts)
    return Tally(counts[:, ::2] + counts[:, 1::2], counts[:, 1::2])


def precision_at(tally: Tally, k: int) -> Values:
    """Compute each query's expected precision at k; with fewer than k documents, of all of them.

    Short codes put hundreds of documents at one distance, so the k-th place usually falls
    inside a group of ties. The expectation takes from that group the share of relevant
    documents it holds instead of trusting one arbitrary order.

    Examples
    --------
    One document at distance 0 (relevant), two tied at distance 1 (one of them relevant):

    >>> codes = np.array([[0], [1], [2]], np.uint8)
    >>> labels = np.array([[1], [1], [0]], np.uint8)
    >>> precision_at(tally(codes[:1], labels[:1], codes, labels), 2)
    array([0.75])
    """
    taken = _taken(tally, k)
    precision: Values = (tally.relevant * taken).sum(axis=1) / _cut(tally, k)
    return precision


def recall_at(tally: Tally, k: int) -> Values:
    """Compute the expected share of a query's relevant documents among the first k."""
    hits: Values = (tally.relevant * _taken(tally, k)).sum(axis=1)
    return _ratio(hits, tally.relevant.sum(axis=1))


def precision_within(tally: Tally, radius: int) -> Values:
    """Compute the relevant share of all documents within a distance; 0 where there are none."""
    near = slice(0, radius + 1)
    return _ratio(tally.relevant[:, near].sum(axis=1), tally.found[:, near].sum(axis=1))


def recall_within(tally: Tally, radius: int) -> Values:
    """Compute the share of a query's relevant documents that lie within a distance."""
    return _ratio(tally.relevant[:, : radius + 1].sum(axis=1), tally.relevant.sum(axis=1))


def average_precision(tally: Tally) -> Values:
    """Compute each query's expected average precision over the whole ranking.

    Of a group of n ties with r relevant documents, behind N documents with R relevant ones, the
    i-th is relevant with probability r / n, and then R + 1 + (i - 1)(r - 1)/(n - 1) relevant ones
    are expected up to it. Summed over i this has a closed form in harmonic numbers.
    """
    n, r = tally.found.astype(np.float64), tally.relevant.astype(np.float64)
    before, relevant_before = np.cumsum(n, axis=1) - n, np.cumsum(r, axis=1) - r
    inverse = digamma(before + n + 1) - digamma(before + 1)  # sum over i of 1 / (N + i)
    rising = n - (before + 1) * inverse  # sum over i of (i - 1) / (N + i)
    others = (r - 1) / np.maximum(n - 1, 1)
    gain = r / np.maximum(n, 1) * ((relevant_before + 1) * inverse + others * rising)
    return _ratio(gain.sum(axis=1), r.sum(axis=1))


def ndcg_at(tally: Tally, k: int) -> Values:
    """Compute each query's expected normalised discounted cumulative gain at k (gain 1 or 0)."""
    k = _cut(tally, k)
    discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])
    after = np.cumsum(tally.found, axis=1)
    before = after - tally.found
    share = tally.relevant / np.maximum(tally.found, 1)
    spans = discounts[np.minimum(after, k)] - discounts[np.minimum(before, k)]
    gain: Values = (share * spans).sum(axis=1)
    return _ratio(gain, discounts[np.minimum(tally.relevant.sum(axis=1), k)])


def cosine_precision(
    queries: csr_array,
    query_labels: NDArray[np.uint8],
    documents: csr_array,
    labels: NDArray[np.uint8],
    *,
    k: int = 100,
) -> NDArray[np.float64]:
    """Compute each query's precision at k by the cosine of unit-length sparse rows, no hashing.

    The yardstick that codes are held against: exact, and thousands of times larger.
    """
    k = min(k, documents.shape[0])
    found: list[Values] = []
    for first in range(0, queries.shape[0], 256):
        block = slice(first, first + 256)
        cosines = (queries[block] @ documents.T).toarray()
        nearest = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        shared = np.einsum("ql,qkl->qk", query_labels[block].astype(np.int32), labels[nearest])
        found.append(np.mean(shared > 0, axis=1, dtype=np.float64))
    return np.concatenate(found, dtype=np.float64)


def random_precision(
    query_labels: NDArray[np.uint8], labels: NDArray[np.uint8]
) -> NDArray[np.float64]:
    """Compute the precision that a random order of the documents has on average."""
    relevant: NDArray[np.bool_] = query_labels.astype(np.float32) @ labels.T.astype(np.float32) > 0
    precision: Values = relevant.mean(axis=1)
    return precision


def _cut(tally: Tally, k: int) -> int:
    """Return k, or the number of documents when there are fewer."""
    if k < 1:
        raise InputError(f"k must be at least 1. Got {k}.")
    return min(k, int(tally.found[0].sum())) if len(tally.found) else k


def _taken(tally: Tally, k: int) -> Values:
    """Compute the share of each distance's documents that is among the first k."""
    before = np.cumsum(tally.found, axis=1) - tally.found
    taken: Values = np.clip(_cut(tally, k) - before, 0, tally.found) / np.maximum(tally.found, 1)
    return taken


def _ratio(part: NDArray[np.generic], whole: NDArray[np.generic]) -> Values:
    """Divide, with 0 where the whole is 0."""
    result = np.zeros(part.shape)
    np.divide(part, whole, out=result, where=whole != 0)
    return result
