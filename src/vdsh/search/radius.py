"""Exact radius search over strips: every row within a distance, found by a scan.

What is found travels as one integer a hit, `query << 51 | distance << 40 | position`, so that
sorting the integers sorts the hits.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.search.nearest import IN_CACHE, Part
from vdsh.search.strips import STRIP, Whole, distance_type, lanes_up_to, lowest_bit, next_near

QUERY_SHIFT, DISTANCE_SHIFT = 51, 40
MAX_QUERIES = 1 << (63 - QUERY_SHIFT)  # so many queries can be told apart
PLACE = (1 << DISTANCE_SHIFT) - 1
DISTANCE = (1 << (QUERY_SHIFT - DISTANCE_SHIFT)) - 1
DIGIT_BITS = 11
DIGIT = (1 << DIGIT_BITS) - 1
FEW_HITS = 4096  # numpy sorts so few faster

Found = NDArray[np.int64]
Mask = NDArray[np.bool_]


def scan_within(part: Part, queries: Codes, owners: NDArray[np.int64], radius: int) -> Found:
    """Find every position of a part within `radius` of each query.

    `owners` are the numbers under which the queries' hits are reported.
    """
    scratch = np.empty(STRIP, distance_type(8 * queries.shape[1]))
    radius = min(radius, 8 * queries.shape[1])
    found: Found = _scan(part.data, part.start, part.stop, queries, owners, radius, scratch)
    return found


def to_rows(part: Part, allowed: Mask, found: Found) -> Found:
    """Replace each position by the allowed rows that lie there."""
    if part.offsets.size:
        found = _expand(found, part.offsets, part.members)
    elif part.members.size:
        found = (found & ~PLACE) | part.members[found & PLACE]
    else:
        found = found + part.base
    return found[allowed[found & PLACE]] if allowed.size else found


def sort_hits(found: Found) -> Found:
    """Sort by query, distance and row."""
    if len(found) < FEW_HITS:
        return np.sort(found)
    varying = int(np.bitwise_or.reduce(found) ^ np.bitwise_and.reduce(found))
    spare = np.empty_like(found)
    for shift in range(0, 63, DIGIT_BITS):
        if (varying >> shift) & DIGIT:
            _sort_by_digit(found, spare, shift)
            found, spare = spare, found
    return found


@kernel()
def _sort_by_digit(found: Found, ordered: Found, shift: int) -> None:
    """Move hits to `ordered` by one digit, keeping their order where digits are equal."""
    ends = np.zeros(DIGIT + 2, np.int64)
    for hit in found:
        ends[((hit >> shift) & DIGIT) + 1] += 1
    for digit in range(DIGIT + 1):
        ends[digit + 1] += ends[digit]
    for hit in found:
        digit = (hit >> shift) & DIGIT
        ordered[ends[digit]] = hit
        ends[digit] += 1


@kernel()
def grown(found: Found) -> Found:
    """Return a copy with twice the room."""
    copy = np.empty(2 * found.size, np.int64)
    for i in range(found.size):
        copy[i] = found[i]
    return copy


@kernel()
def _scan(
    data: Codes,
    start: int,
    stop: int,
    queries: Codes,
    owners: NDArray[np.int64],
    radius: int,
    scratch: NDArray[Any],
) -> Found:
    found = np.empty(4 * STRIP, np.int64)
    size = 0
    last = (stop + STRIP - 1) // STRIP
    block = IN_CACHE if queries.shape[0] > 1 else max(last, 1)
    for first in range(start // STRIP, last, block):
        begin, end = max(start, first * STRIP), min(stop, (first + block) * STRIP)
        for q in range(queries.shape[0]):
            found, size = collect(
                data, begin, end, queries[q], owners[q], radius, scratch, found, size
            )
    return found[:size]


@kernel()
def collect(
    data: Codes,
    start: Whole,
    stop: Whole,
    query: Codes,
    owner: Whole,
    radius: int,
    scratch: NDArray[Any],
    found: Found,
    size: int,
) -> tuple[Found, int]:
    """Add the positions of a stretch within `radius` to the first `size` that were found."""
    end = (stop + STRIP - 1) // STRIP
    strip = next_near(data, start // STRIP, end, query, radius, scratch)
    while strip < end:
        near = lanes_up_to(scratch, radius)
        while near:
            lane = lowest_bit(near)
            near &= near - np.uint64(1)
            position = strip * STRIP + lane
            if start <= position < stop:
                if size == found.size:
                    found = grown(found)
                distance = np.int64(scratch[lane]) << DISTANCE_SHIFT
                found[size] = (owner << QUERY_SHIFT) | distance | position
                size += 1
        strip = next_near(data, strip + 1, end, query, radius, scratch)
    return found, size


@kernel()
def _expand(found: Found, offsets: NDArray[np.uint32], members: NDArray[np.uint32]) -> Found:
    total = np.int64(0)
    for hit in found:
        position = hit & PLACE
        total += np.int64(offsets[position + 1]) - np.int64(offsets[position])
    expanded = np.empty(total, np.int64)
    size = 0
    for hit in found:
        position = hit & PLACE
        for j in range(offsets[position], offsets[position + 1]):
            expanded[size] = (hit - position) | np.int64(members[j])
            size += 1
    return expanded
