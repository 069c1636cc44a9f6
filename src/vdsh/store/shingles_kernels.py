"""Kernels of shingles: joining words, comparing two texts, sketches."""

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import kernel

Shingles = NDArray[np.uint64]
MIX = np.uint64(0x9E3779B97F4A7C15)


@kernel()
def join(
    words: NDArray[np.uint64], documents: NDArray[np.int64], whole: NDArray[np.uint64], length: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Join words to shingles; a text shorter than a shingle is one by itself."""
    hashes = np.empty(len(words) + len(whole), np.uint64)
    ends = np.empty(len(whole), np.int64)
    n = 0
    for doc in range(len(whole)):
        first, end = documents[doc], documents[doc + 1]
        for start in range(first, max(first + 1, end - length + 1)):
            value = whole[doc]
            for i in range(start, min(start + length, end)):
                value = (value ^ words[i]) * MIX
                value ^= value >> np.uint64(29)
            hashes[n] = value
            n += 1
        ends[doc] = n
    return hashes[:n], ends


@kernel()
def count_shared(one: Shingles, other: Shingles) -> int:
    """Count what two sorted arrays have in common."""
    i = j = n = 0
    while i < len(one) and j < len(other):
        n += one[i] == other[j]
        first = one[i] <= other[j]
        j += other[j] <= one[i]
        i += first
    return n


@kernel()
def fill_sketches(
    hashes: NDArray[np.uint64], ends: NDArray[np.int64], orders: NDArray[np.uint32], n_together: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Keep the least of each order. In 32 bits: a CPU multiplies four of them or more at once."""
    size = orders.shape[1]
    keys = np.zeros((len(ends), size // n_together), np.uint32)
    bytes_ = np.empty((len(ends), size), np.uint8)
    least = np.empty(size, np.uint32)
    start = 0
    for doc in range(len(ends)):
        least[:] = 0xFFFFFFFF
        for i in range(start, ends[doc]):
            shingle = np.uint32(hashes[i] >> np.uint64(32))
            for j in range(size):
                least[j] = min(least[j], np.uint32(shingle * orders[0, j] + orders[1, j]))
        start = ends[doc]
        for j in range(size):
            bytes_[doc, j] = least[j] & 0xFF
            key = (keys[doc, j // n_together] ^ least[j]) * MIX
            keys[doc, j // n_together] = key >> np.uint64(32)
    return keys, bytes_
