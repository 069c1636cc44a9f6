"""How good a ranking by Hamming distance is, exactly, ties included."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.codes import Codes, to_words
from vdsh.errors import InputError
from vdsh.jit import kernel, popcount, spread


def expected_precision(
    query_codes: Codes,
    query_labels: NDArray[np.uint8],
    codes: Codes,
    labels: NDArray[np.uint8],
    *,
    k: int = 100,
) -> NDArray[np.float64]:
    """Compute each query's expected precision at k when ties are broken at random.

    Short codes put hundreds of documents at one distance, so the k-th place usually falls
    inside a group of ties. The expectation takes from that group the share of relevant
    documents it holds instead of trusting one arbitrary order.

    Parameters
    ----------
    query_codes, codes : uint8 ndarray of shape (n, n_bytes)
        Packed codes of the queries and of the database.
    query_labels, labels : uint8 ndarray of shape (n, n_labels)
        0/1 matrices; a document is relevant when it shares a label with the query.
    k : int
        How many of the nearest documents count. With fewer in the database, all of them.

    Returns
    -------
    ndarray of shape (n_queries,)

    Examples
    --------
    One document at distance 0 (relevant), two tied at distance 1 (one of them relevant):

    >>> codes = np.array([[0], [1], [2]], np.uint8)
    >>> labels = np.array([[1], [1], [0]], np.uint8)
    >>> expected_precision(codes[:1], labels[:1], codes, labels, k=2)
    array([0.75])
    """
    if len(codes) == 0 or k < 1:
        raise InputError(f"Precision needs documents and k >= 1. Got {len(codes)} and k={k}.")
    queries = to_words(query_codes), to_words(np.packbits(query_labels, axis=1))
    database = to_words(codes), to_words(np.packbits(labels, axis=1)), 8 * codes.shape[1]
    parts = spread(
        lambda i, j: _distance_counts(queries[0][i:j], queries[1][i:j], *database), len(query_codes)
    )
    found, relevant = (np.concatenate(part) for part in zip(*parts, strict=True))
    k = min(k, len(codes))
    before = np.cumsum(found, axis=1) - found
    taken = np.clip(k - before, 0, found)  # how many of each distance are among the first k
    precision: NDArray[np.float64] = (relevant * (taken / np.maximum(found, 1))).sum(axis=1) / k
    return precision


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
    found: list[NDArray[np.float64]] = []
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
    precision: NDArray[np.float64] = relevant.mean(axis=1)
    return precision


@kernel()
def _distance_counts(
    query_words: NDArray[np.uint64],
    query_masks: NDArray[np.uint64],
    words: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    n_bits: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count, for each query and distance, the documents and the relevant documents."""
    n_queries = len(query_words)
    found = np.zeros((n_queries, n_bits + 1), np.int64)
    relevant = np.zeros((n_queries, n_bits + 1), np.int64)
    for q in range(n_queries):
        for i in range(len(words)):
            distance = np.uint64(0)
            for j in range(words.shape[1]):
                distance += popcount(words[i, j] ^ query_words[q, j])
            shared = np.uint64(0)
            for j in range(masks.shape[1]):
                shared |= masks[i, j] & query_masks[q, j]
            found[q, distance] += 1
            relevant[q, distance] += shared != 0
    return found, relevant
