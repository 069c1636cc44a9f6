"""The kernels of a search within a radius."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.jit_kernels import lowest_bit
from vdsh.search.nearest_kernels import IN_CACHE
from vdsh.search.parts import Part
from vdsh.search.radius import DISTANCE_SHIFT, PLACE, QUERY_SHIFT, Found
from vdsh.search.strip_kernels import Whole, lanes_up_to, next_near
from vdsh.search.strips import STRIP


@kernel()
def _grown(found: Found) -> Found:
    """Return a copy with twice the room."""
    copy = np.empty(2 * found.size, np.int64)
    for i in range(found.size):
        copy[i] = found[i]
    return copy


@kernel()
def scan_within(
    part: Part, queries: Codes, owners: NDArray[np.int64], radius: int, scratch: NDArray[Any]
) -> Found:
    """Find every position of a part within `radius` of each query.

    `owners` are the numbers under which the queries' hits are reported.
    """
    data, start, stop, _, _, _ = part
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
    """Add the positions of a range within `radius` to the first `size` that were found."""
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
                    found = _grown(found)
                distance = np.int64(scratch[lane]) << DISTANCE_SHIFT
                found[size] = (owner << QUERY_SHIFT) | distance | position
                size += 1
        strip = next_near(data, strip + 1, end, query, radius, scratch)
    return found, size


@kernel()
def expand(found: Found, offsets: NDArray[np.uint32], members: NDArray[np.uint32]) -> Found:
    """Replace each position by the rows that lie there."""
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
