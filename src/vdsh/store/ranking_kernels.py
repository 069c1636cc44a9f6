"""The rule of `ranking` for words and codes in memory; numpy takes a fifth of a search longer."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.jit_kernels import lowest_bit, popcount
from vdsh.search.view_kernels import Facts, Numbers, take

SAMPLED = 16  # of so many matches one is looked at first

Floats = NDArray[np.float64]


@kernel()
def _sort(order: Numbers, values: Floats, keys: Numbers) -> None:
    """Put places in order, the highest value first, ties by key: a shell sort compiles quickly."""
    gap = 1
    while gap < len(order) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(order)):
            one, j = order[i], i
            while j >= gap:
                other = order[j - gap]
                if values[other] > values[one]:
                    break
                if values[other] == values[one] and keys[other] <= keys[one]:
                    break
                order[j] = other
                j -= gap
            order[j] = one
        gap //= 3


@kernel()
def _nth_best(shares: Floats, step: int, n: int) -> Any:
    """Find the n-th highest of every so many shares; 0 where there are fewer."""
    heap = np.zeros(n)  # the n highest, of which the lowest is first
    for i in range(0, len(shares), step):
        share, at = shares[i], 0
        while share > heap[at]:
            child = 2 * at + 1
            if child + 1 < n and heap[child + 1] < heap[child]:
                child += 1
            if child >= n or heap[child] >= share:
                heap[at] = share
            else:
                heap[at] = heap[child]
                at = child
    return heap[0]


@kernel()
def find_best(numbers: Numbers, shares: Floats, n: int, most: int) -> tuple[Numbers, Floats]:
    """Give the n best by words, best first, with the most that tie with the last; their shares."""
    places, size = np.empty(len(shares), np.int64), 0
    least = _nth_best(shares, SAMPLED, n)  # what is below the n best of a sample is not seen
    for i in range(len(shares)):
        places[size] = i
        size += shares[i] >= least
    least, left = _nth_best(shares[places[:size]], 1, n), 0
    for i in range(size):
        places[left] = places[i]
        left += shares[places[i]] >= least
    _sort(places[:left], shares, numbers)
    places = places[: min(left, n + most)]
    return numbers[places], shares[places]


@kernel()
def vote(
    view: Facts, rows: Numbers, values: Floats, given: Floats, n_voters: int, sharpness: int
) -> Floats:
    """Have the best by words, of which the first is best, say how probable each bit is."""
    if not len(rows):
        return given
    n_tied = min(n_voters, len(rows))
    while n_tied < len(rows) and values[n_tied] == values[n_tied - 1]:  # ids decide
        n_tied += 1
    codes, keys = take(view, rows[:n_tied])
    order = np.arange(n_tied)
    _sort(order, values, keys)
    total, voted = 0.0, np.zeros(len(given))
    for voter in order[:n_voters]:
        vote = (values[voter] / values[0]) ** sharpness
        total += vote
        for bit in range(len(given)):
            voted[bit] += vote * (codes[voter, bit >> 3] >> (7 - (bit & 7)) & 1)
    for bit in range(len(given)):
        voted[bit] = (1 - values[0]) * given[bit] + values[0] * (voted[bit] / total)
    return voted


@kernel()
def choose(
    view: Facts,
    numbers: Numbers,
    shares: Floats,
    rows: Numbers,
    row_numbers: Numbers,
    best_shares: Floats,
    chances: Floats,
    query: Codes,
    weight: float,
    far: float,
    k: int,
) -> tuple[Numbers, Numbers, Floats, NDArray[np.bool_]]:
    """Choose the first k of some rows: the best by words, whose shares are given, and the nearest.

    `numbers` and `shares` are of all that words match. Gives numbers, distances, scores, and
    whether they are only related. The nearest that are among the best are left out in place.
    """
    n_best = n = len(best_shares)
    values = np.append(best_shares, np.zeros(len(rows) - n))
    for i in range(n_best, len(rows)):
        new, number = True, row_numbers[i]
        for row in rows[:n_best]:
            new = new and row != rows[i]
        if new:
            at = np.searchsorted(numbers, number)
            there = at < len(numbers) and numbers[at] == number
            rows[n], row_numbers[n], values[n] = rows[i], number, shares[at] if there else 0.0
            n += 1
    codes, keys = take(view, rows[:n])
    topics, distances = _compare(codes, chances, query)
    values = values[:n]
    top, most = values.max() or topics.max(), max(topics.max(), 1e-9)
    scores = np.empty(n)
    for i in range(n):
        joined = (values[i] ** 2 + top**2 * (weight * topics[i] / most)) / (1 + weight)
        scores[i] = np.rint(1e9 * np.sqrt(joined)) / 1e9
    related = (scores < far * scores.max()) | (values == 0)
    order = np.arange(n)
    _sort(order, scores - 2.0 * related, keys)  # scores are 1 at most
    order = order[:k]
    return row_numbers[order], distances[order], scores[order], related[order]


@kernel()
def _compare(codes: Codes, chances: Floats, query: Codes) -> tuple[Floats, Numbers]:
    """Tell how far topics agree beyond chance, and count the bits that differ from the query."""
    n_bytes, total = len(chances) >> 3, chances.sum()
    parts = np.zeros((n_bytes, 256))  # what each byte of a code adds to its expected distance
    for byte in range(n_bytes):
        for value in range(1, 256):
            bit = 8 * byte + 7 - lowest_bit(np.uint64(value))
            parts[byte, value] = parts[byte, value & (value - 1)] + (1 - 2 * chances[bit])
    topics, distances = np.empty(len(codes)), np.zeros(len(codes), np.int64)
    for i in range(len(codes)):
        expected = total
        for byte in range(n_bytes):
            expected += parts[byte, codes[i, byte]]
            distances[i] += popcount(codes[i, byte] ^ query[byte])
        topics[i] = max(0.0, 1 - 2 * expected / len(chances))
    return topics, distances
