"""Kernels of the metrics: distances between codes, counted beside shared labels."""

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Words
from vdsh.jit import kernel
from vdsh.jit_kernels import popcount

Places = NDArray[np.uint16]
Mask = NDArray[np.bool_]


@kernel(inline="always")  # five times as fast as a call
def _place(
    query_words: Words, query_masks: Words, q: int, words: Words, masks: Words, i: int
) -> np.uint64:
    """Compute 2 * distance + relevance of a document for a query."""
    distance, shared = np.uint64(0), np.uint64(0)
    for j in range(words.shape[1]):
        distance += popcount(words[i, j] ^ query_words[q, j])
    for j in range(masks.shape[1]):
        shared |= masks[i, j] & query_masks[q, j]
    return 2 * distance + np.uint64(shared != 0)


@kernel()
def place_counts(
    query_words: Words, query_masks: Words, words: Words, masks: Words, n_bits: int
) -> NDArray[np.int64]:
    """Count the documents in each place, 2 * distance + relevance, for each query."""
    counts = np.zeros((len(query_words), 2 * n_bits + 2), np.int64)
    for q in range(len(counts)):
        for i in range(len(words)):
            counts[q, _place(query_words, query_masks, q, words, masks, i)] += 1
    return counts


@kernel()
def fill(
    query_words: Words, query_masks: Words, words: Words, masks: Words, places: Places
) -> None:
    """Fill in the place of each document for each query."""
    for q in range(len(places)):
        for i in range(len(words)):
            places[q, i] = _place(query_words, query_masks, q, words, masks, i)


@kernel()
def move(places: Places, query_before: Mask, before: Mask, query_after: Mask, after: Mask) -> None:
    """Bring places up to date after one bit of queries and documents has changed."""
    for q in range(len(places)):
        for i in range(len(before)):
            places[q, i] += 2 * (after[i] != query_after[q]) - 2 * (before[i] != query_before[q])


@kernel()
def precisions(
    places: Places,
    query_ranks: NDArray[np.int64],
    ranks: NDArray[np.uint8],
    current: int,
    n_candidates: int,
    n_bits: int,
    k: int,
) -> NDArray[np.float64]:
    """Compute precision at k for each query and candidate, ties broken at random."""
    out = np.empty((len(places), n_candidates))
    counts = np.empty((n_candidates + 1, 2 * n_bits + 4), np.int32)  # stays in the first cache
    for q in range(len(places)):
        counts[:] = 0
        for i in range(len(ranks)):
            counts[ranks[i], places[q, i]] += 1
        above = query_ranks[q] > current
        for rank in range(n_candidates + 1):
            if (rank > current) != above:  # the bit differs now: take it out of the distance
                for place in range(counts.shape[1] - 2):
                    counts[rank, place] = counts[rank, place + 2]
        _walk(counts, query_ranks[q], k, out[q])
    return out


@kernel()
def _walk(counts: NDArray[np.int32], query_rank: int, k: int, out: NDArray[np.float64]) -> None:
    """Compute precision at k for each candidate from counts without the bit, by rank and place."""
    low, high = np.zeros(counts.shape[1], np.int64), np.zeros(counts.shape[1], np.int64)
    for rank in range(len(counts)):
        for place in range(len(high)):
            high[place] += counts[rank, place]
    for candidate in range(len(out)):
        for place in range(len(low)):
            low[place] += counts[candidate, place]
            high[place] -= counts[candidate, place]
        near, far = (high, low) if query_rank > candidate else (low, high)
        left, hits = k, 0.0
        for place in range(0, len(low), 2):
            relevant = near[place + 1] + (far[place - 1] if place else 0)
            found = relevant + near[place] + (far[place - 2] if place else 0)
            if found >= left:
                hits += relevant * left / found
                break
            hits += relevant
            left -= found
        out[candidate] = hits / k
