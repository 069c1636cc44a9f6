"""The rule of `ranking` for words and codes in memory; numpy takes a fifth of a search longer."""

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.jit_kernels import lowest_bit, popcount, sort_places
from vdsh.search.view_kernels import Facts, Numbers, take

Floats = NDArray[np.float64]


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
    sort_places(order, values, keys)
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
    rows: Numbers,
    numbers: Numbers,
    shares: Floats,
    chances: Floats,
    query: Codes,
    n_best: int,
    weight: float,
    k: int,
) -> tuple[Numbers, Numbers, Floats, NDArray[np.bool_]]:
    """Choose the first k of some rows: the best by words, and the nearest after these.

    Gives numbers, distances, scores, and whether they are only related. The nearest that are among
    the best are left out in place.
    """
    n = n_best
    for i in range(n_best, len(rows)):
        new = True
        for row in rows[:n_best]:
            new = new and row != rows[i]
        if new:
            rows[n], numbers[n], shares[n] = rows[i], numbers[i], shares[i]
            n += 1
    codes, keys = take(view, rows[:n])
    topics, distances = _compare(codes, chances, query)
    values = shares[:n]
    top, most = values.max() or topics.max(), max(topics.max(), 1e-9)
    scores = np.empty(n)
    for i in range(n):
        joined = (values[i] ** 2 + top**2 * (weight * topics[i] / most)) / (1 + weight)
        scores[i] = np.rint(1e9 * np.sqrt(joined)) / 1e9
    related = values == 0
    order = np.arange(n)
    sort_places(order, scores - 2.0 * related, keys)  # scores are 1 at most
    order = order[:k]
    return numbers[order], distances[order], scores[order], related[order]


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
