"""Kernels that score documents by the words of a query: BM25 of all, of the best, or of some."""

from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]
from numpy.typing import NDArray

from vdsh.jit import kernel
from vdsh.jit_kernels import lowest_bit, pointer, sort_places

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Shares = NDArray[np.float64]
# Weights of terms, what BM25 adds to a count, and a heap of the best so far, the lowest first; it
# is empty where all texts are wanted.
Rule = tuple[Shares, float, float, Shares]

WINDOW = 4096  # texts at a time: their sums stay in the cache


@kernel()
def add_up(
    places: NDArray[np.uint16 | np.uint32],
    counts: Bytes,
    lengths: NDArray[np.uint16],
    spans: Numbers,
    weights: Shares,
    least: float,
    slope: float,
) -> tuple[Numbers, Shares]:
    """Add up BM25 of terms; give the texts that have some, in order, and their scores."""
    size = (spans[1] - spans[0]).sum()
    found, scores = np.empty(size, np.int64), np.empty(size, np.float64)
    rule, postings = (weights, least, slope, np.zeros(0)), (places, counts, lengths)
    n = _add_up(postings, 0, spans, rule, found, scores, 0)
    return found[:n], scores[:n]


@kernel()
def add_up_all(
    segments: Numbers, spans: Numbers, weights: Shares, least: float, slope: float
) -> tuple[Numbers, Shares]:
    """Add up BM25 of terms in all segments: documents in order, and scores."""
    return _add_up_all(segments, spans, (weights, least, slope, np.zeros(0)))


@kernel()
def best_of_all(
    segments: Numbers,
    spans: Numbers,
    weights: Shares,
    least: float,
    slope: float,
    n: int,
    most: int,
) -> tuple[Numbers, Shares]:
    """Find the n best documents, best first, and the most that tie with the last; their scores."""
    best = np.zeros(n)
    found, scores = _add_up_all(segments, spans, (weights, least, slope, best))
    order, n_left = np.empty(len(found), np.int64), 0
    for i in range(len(found)):
        order[n_left] = i
        n_left += scores[i] >= best[0]
    order = order[:n_left]
    sort_places(order, scores, found)
    order = order[: n + most]
    return found[order], scores[order]


@kernel()
def _add_up_all(segments: Numbers, spans: Numbers, rule: Rule) -> tuple[Numbers, Shares]:
    size, n = (spans[:, 1] - spans[:, 0]).sum(), 0
    found, scores = np.empty(size, np.int64), np.empty(size, np.float64)
    for s in range(len(segments)):
        n_entries = spans[s].max() if len(rule[0]) else 0
        places = carray(pointer(segments[s, 5]), n_entries, np.uint16)
        counts = carray(pointer(segments[s, 6]), n_entries, np.uint8)
        lengths = carray(pointer(segments[s, 7]), segments[s, 2], np.uint16)
        postings = places, counts, lengths
        n = _add_up(postings, segments[s, 0], spans[s], rule, found, scores, n)
    return found[:n], scores[:n]


@kernel()
def _add_up(
    postings: tuple[NDArray[np.uint16 | np.uint32], Bytes, NDArray[np.uint16]],
    first: int,
    spans: Numbers,
    rule: Rule,
    found: Numbers,
    scores: Shares,
    n: int,
) -> int:
    """Write texts, counted on from `first`, and their scores behind the first n.

    Where only the best are wanted, terms come by falling weight: once the light ones together give
    less than the last of the best has, a text with no other term cannot be among the best, so they
    are added to those with others alone (MaxScore: Turtle and Flood, 1995).
    """
    places, counts, lengths = postings
    weights, least, slope, best = rule
    n_terms, one = len(weights), np.uint64(1)
    least_wanted = best[0] if len(best) else 0.0
    sums, marks, at = np.zeros(WINDOW), np.zeros(WINDOW >> 6, np.uint64), spans[0].copy()
    for start in range(0, len(lengths), WINDOW):
        n_heavy, light = n_terms, 0.0
        while n_heavy and light + weights[n_heavy - 1] < least_wanted:
            n_heavy -= 1
            light += weights[n_heavy]
        for term in range(n_terms):
            weight, i = weights[term], at[term]
            while i < spans[1, term]:
                place = np.int64(places[i]) - start
                if place >= WINDOW:
                    break
                bit, count = one << np.uint64(place & 63), np.float64(counts[i])
                # A hostile place may be one that was passed.
                if place >= 0 and (term < n_heavy or marks[place >> 6] & bit):
                    length = lengths[start + place]
                    sums[place] += weight * (count / (count + (least + slope * length)))
                    marks[place >> 6] |= bit
                i += 1
            at[term] = i
        for block in range(WINDOW >> 6):
            left = marks[block]
            marks[block] = 0
            while left:
                place = (block << 6) + lowest_bit(left)
                if sums[place] and sums[place] >= least_wanted:  # a hostile count of 0 adds nothing
                    found[n], scores[n] = first + start + place, sums[place]
                    n += 1
                    if len(best):
                        _replace_lowest(best, sums[place])
                        least_wanted = best[0]
                sums[place] = 0
                left &= left - one
    return n


@kernel()
def find_all(segments: Numbers, wanted: Hashes) -> Numbers:
    """Tell where the entries of terms begin and end in each segment: see `WordIndex._find`.

    `segments` has a row each: see `WordIndex._addresses`.
    """
    spans = np.zeros((len(segments), 2, len(wanted)), np.int64)
    for s in range(len(segments)):
        n_terms = segments[s, 1]
        hashes = carray(pointer(segments[s, 3]), n_terms, np.uint64)
        offsets = carray(pointer(segments[s, 4]), n_terms + 1, np.int64)
        for i in range(len(wanted)):
            low, high = 0, n_terms
            while low < high:
                middle = (low + high) >> 1
                if hashes[middle] < wanted[i]:
                    low = middle + 1
                else:
                    high = middle
            if low < n_terms and hashes[low] == wanted[i]:
                spans[s, 0, i], spans[s, 1, i] = offsets[low], offsets[low + 1]
    return spans


@kernel()
def _replace_lowest(heap: Shares, value: float) -> Any:
    """Put a value in the place of the lowest one, which is first, where it is higher."""
    at = 0
    while value > heap[at]:
        child = 2 * at + 1
        if child + 1 < len(heap) and heap[child + 1] < heap[child]:
            child += 1
        if child >= len(heap) or heap[child] >= value:
            heap[at] = value
        else:
            heap[at] = heap[child]
            at = child


@kernel()
def shares_of(
    segments: Numbers, spans: Numbers, weights: Shares, least: float, slope: float, numbers: Numbers
) -> Shares:
    """Add up BM25 of terms for some documents."""
    shares = np.zeros(len(numbers))
    for i in range(len(numbers) if len(segments) else 0):
        s = len(segments) - 1
        while s > 0 and segments[s, 0] > numbers[i]:
            s -= 1
        place = numbers[i] - segments[s, 0]
        for term in range(len(weights)):
            low, high = spans[s, 0, term], spans[s, 1, term]
            places = carray(pointer(segments[s, 5]), high, np.uint16)
            counts = carray(pointer(segments[s, 6]), high, np.uint8)
            end = high
            while low < high:
                middle = (low + high) >> 1
                if places[middle] < place:
                    low = middle + 1
                else:
                    high = middle
            if low < end and places[low] == place:
                length = carray(pointer(segments[s, 7]), segments[s, 2], np.uint16)[place]
                count = np.float64(counts[low])
                shares[i] += weights[term] * (count / (count + (least + slope * length)))
    return shares
