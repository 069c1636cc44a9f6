"""Kernels of a vocabulary: the letters of its words, and the words that few edits make of one."""

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import kernel

Numbers = NDArray[np.int64]
Bits = NDArray[np.uint64]
Letters = NDArray[np.uint8 | np.uint32]

MOST_NEAR = 20_000  # words that few edits make of another, in all segments


@kernel()
def letters_of(data: Letters) -> tuple[Numbers, Bits]:
    """Tell where the words of a vocabulary begin, and which letters each has, as bits."""
    size = 1
    for i in range(len(data)):
        size += data[i] == 10
    starts, letters = np.empty(size, np.int64), np.empty(size, np.uint64)
    n, start = 0, 0
    while start < len(data):
        starts[n] = start
        stop = _end_of(data, start, 9)
        letters[n] = _letters(data, start, stop)
        start = _end_of(data, stop, 10) + 1
        n += 1
    return starts[:n].copy(), letters[:n].copy()


@kernel()
def within_edits(
    data: Letters, starts: Numbers, letters: Bits, word: Letters, most: int
) -> NDArray[np.int64]:
    """Find words of a vocabulary that few edits make of a word: where they lie, and the edits.

    An edit changes at most two of the letters that a word has any number of times.
    """
    found, n = np.empty((MOST_NEAR, 3), np.int64), 0
    wanted = _letters(word, 0, len(word))
    rows = np.empty((3, 128), np.int64)
    for i in range(len(starts)):
        differing = letters[i] ^ wanted
        for _ in range(2 * most):
            differing &= differing - np.uint64(1)  # one bit less
        if differing or n == len(found):
            continue
        stop = _end_of(data, starts[i], 9)
        if stop - starts[i] < 128 and abs(stop - starts[i] - len(word)) <= most:
            edits = _count_edits(data, starts[i], stop, word, most, rows)
            if edits <= most:
                found[n, 1], found[n, 2] = _end_of(data, stop, 10), edits
                found[n, 0] = starts[i] if found[n, 1] == stop else stop + 1
                n += 1
    return found[:n].copy()


@kernel()
def _end_of(data: Letters, start: int, sign: int) -> int:
    """Find the end of a line, or a sign before it: the word as it is written comes behind a tab."""
    while start < len(data) and data[start] != 10 and data[start] != sign:
        start += 1
    return start


@kernel()
def _letters(data: Letters, start: int, stop: int) -> np.uint64:
    bits = np.uint64(0)
    for i in range(start, stop):
        bits |= np.uint64(1) << np.uint64(data[i] & 63)
    return bits


@kernel()
def _count_edits(
    data: Letters, start: int, stop: int, word: Letters, most: int, rows: NDArray[np.int64]
) -> int:
    """Count edits, letters that are swapped as one; see `vocabulary.count_edits`."""
    size = stop - start
    for j in range(size + 1):
        rows[0, j] = j
    for i in range(1, len(word) + 1):
        now, last, before = i % 3, (i + 2) % 3, (i + 1) % 3
        rows[now, 0], least = i, i
        for j in range(1, size + 1):
            one = data[start + j - 1]
            cost = min(rows[last, j] + 1, rows[now, j - 1] + 1)
            cost = min(cost, rows[last, j - 1] + (word[i - 1] != one))
            if i > 1 and j > 1 and word[i - 1] == data[start + j - 2] and word[i - 2] == one:
                cost = min(cost, rows[before, j - 2] + 1)
            rows[now, j] = cost
            least = min(least, cost)
        if least > most:
            return most + 1
    return rows[len(word) % 3, size]  # type: ignore[no-any-return]
