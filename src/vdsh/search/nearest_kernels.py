"""Kernels that compare codes with queries and keep what is near: all of it, or the k nearest.

Hits are single numbers, as `parts` has them. A query's bound is a radius, or falls to the distance
of the k-th nearest as hits come in.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.jit_kernels import lowest_bit
from vdsh.search.parts import (
    ALL,
    DISTANCE,
    DISTANCE_SHIFT,
    IN_CACHE,
    PLACE,
    QUERY_SHIFT,
    STRIP,
    Found,
    Part,
    Rows,
    Rules,
)
from vdsh.search.scan_kernels import Whole, lanes_up_to, next_near

KTH, BELOW = 0, 1
LONG = 1024  # strips of one query, for all hits of which there is room


class Near(NamedTuple):
    """What is near to each query."""

    # (n_queries, 2): how far hits may be, which is the k-th distance so far; how many are nearer.
    status: NDArray[np.int64]
    counts: NDArray[np.int64]  # (n_queries, n_bits + 1): hits at each distance
    scratch: NDArray[Any]


@kernel()
def find_in(
    parts: tuple[Part, Part],
    queries: Codes,
    k: int,
    rules: Rules,
    bounds: Rows,
    scratch: NDArray[Any],
) -> Found:
    """Find the k best rows of two parts within a bound of each query, in order.

    ALL are in no order. `scratch` is that of `parts`.
    """
    near, found, size = new_near(queries, bounds, scratch), np.empty(0, np.int64), 0
    block, ranges = IN_CACHE if queries.shape[0] > 1 else LONG, np.empty((1, 2), np.int64)
    for part in parts:
        last = (part.stop + STRIP - 1) // STRIP
        for first in range(part.start // STRIP, last, block):
            ranges[0, 0] = max(part.start, first * STRIP)
            ranges[0, 1] = min(part.stop, (first + block) * STRIP)
            found, size = scan_ranges(part, ranges, 0, queries, k, rules, near, found, size)
    return finish(k, rules, near, found, size)


@kernel()
def new_near(queries: Codes, bounds: Rows, scratch: NDArray[Any]) -> Near:
    """Begin with no hits, and with bounds."""
    n_queries, n_bits = queries.shape[0], 8 * queries.shape[1]
    status = np.zeros((n_queries, 2), np.int64)
    for q in range(n_queries):
        status[q, KTH] = bounds[q]
    return Near(status, np.zeros((n_queries, n_bits + 1), np.int64), scratch)


@kernel()
def scan_ranges(
    part: Part,
    ranges: Rows,
    owner: int,
    queries: Codes,
    k: int,
    rules: Rules,
    near: Near,
    found: Found,
    size: int,
) -> tuple[Found, int]:
    """Add what is near in ranges of positions (n, 2) to the first `size` hits.

    `owner` is the number of the first query.
    """
    # All fields become locals, and the inner loop calls nothing: numba counts references to an
    # array whenever a field is read or passed on, which would cost more than the work itself.
    data, _, _, base, offsets, members = part
    allowed, _, in_order = rules
    status, counts, scratch = near
    grouped, listed, masked = offsets.size > 0, members.size > 0, allowed.size > 0
    strict = 1 if in_order else 0
    most = np.int64(0)
    for i in range(ranges.shape[0]):
        start, stop = ranges[i, 0], ranges[i, 1]
        n_rows = np.int64(offsets[stop]) - np.int64(offsets[start]) if grouped else stop - start
        most += min(n_rows, min(k, n_rows) * (stop - start))
    for q in range(owner, owner + queries.shape[0]):
        found, size = _make_room(found, size, most, status)
        query = queries[q - owner]
        for i in range(ranges.shape[0]):
            start, stop = ranges[i, 0], ranges[i, 1]
            end = (stop + STRIP - 1) // STRIP
            limit = status[q, KTH] - strict
            strip = next_near(data, start // STRIP, end, query, limit, scratch)
            while strip < end:
                lanes = lanes_up_to(scratch, limit)
                while lanes:
                    lane = lowest_bit(lanes)
                    lanes &= lanes - np.uint64(1)
                    position, distance = strip * STRIP + lane, np.int64(scratch[lane])
                    if distance > limit or not start <= position < stop:
                        continue
                    begin = np.int64(offsets[position]) if grouped else position
                    until = np.int64(offsets[position + 1]) if grouped else position + 1
                    offered = 0
                    for j in range(begin, until):
                        row = np.int64(members[j]) if listed else base + j
                        if masked and not allowed[row]:
                            continue
                        # k rows of one code are enough: the others come later in the order.
                        if offered == k or distance > status[q, KTH]:
                            break
                        offered += 1
                        found[size] = (q << QUERY_SHIFT) | (distance << DISTANCE_SHIFT) | row
                        size += 1
                        counts[q, distance] += 1
                        if distance < status[q, KTH]:
                            status[q, BELOW] += 1
                            while status[q, BELOW] >= k:
                                status[q, KTH] -= 1
                                status[q, BELOW] -= counts[q, status[q, KTH]]
                    limit = status[q, KTH] - strict
                strip = next_near(data, strip + 1, end, query, limit, scratch)
    return found, size


@kernel()
def _make_room(
    found: Found, n_found: int, n_more: Whole, status: NDArray[np.int64]
) -> tuple[Found, int]:
    """Drop hits that are too far by now, where there is no room for more; or take more room."""
    if n_found + n_more <= found.size:
        return found, n_found
    size = 0
    for hit in found[:n_found]:
        if (hit >> DISTANCE_SHIFT) & DISTANCE <= status[hit >> QUERY_SHIFT, KTH]:
            found[size] = hit
            size += 1
    if 2 * size + n_more <= found.size:
        return found, size
    grown = np.empty(4 * size + n_more, np.int64)
    for i in range(size):
        grown[i] = found[i]
    return grown, size


@kernel()
def finish(k: int, rules: Rules, near: Near, found: Found, size: int) -> Found:
    """Put the k best of every query in order: by query, distance and key; not all there are."""
    if k == ALL:
        return found[:size]
    status, counts, _ = near
    n_queries, n_distances = counts.shape
    total = 0
    for q in range(n_queries):
        for distance in range(min(status[q, KTH] + 1, n_distances)):
            total += counts[q, distance]
            counts[q, distance] = total - counts[q, distance]
    ordered = np.empty(total, np.int64)
    for hit in found[:size]:
        q, distance = hit >> QUERY_SHIFT, (hit >> DISTANCE_SHIFT) & DISTANCE
        if distance <= status[q, KTH]:
            ordered[counts[q, distance]] = hit
            counts[q, distance] += 1
    first, size = 0, 0
    for q in range(n_queries):
        left = k
        for distance in range(min(status[q, KTH] + 1, n_distances)):
            after = counts[q, distance]
            if first < after and not rules.in_order:
                _sort(ordered[first:after], rules.keys)
            for i in range(first, min(after, first + left)):
                ordered[size] = ordered[i]
                size += 1
            left -= min(left, after - first)
            first = after
    return ordered[:size]


@kernel()
def _sort(hits: Found, keys: NDArray[np.int64]) -> None:
    """Sort rows by key: a shell sort, since numba takes seconds to compile its own sorts."""
    keyed = keys.size > 0
    gap = 1
    while gap < hits.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, hits.size):
            hit, j = hits[i], i
            key = np.int64(keys[hit & PLACE]) if keyed else hit
            while j >= gap:
                other = hits[j - gap]
                if (np.int64(keys[other & PLACE]) if keyed else other) <= key:
                    break
                hits[j] = other
                j -= gap
            hits[j] = hit
        gap //= 3
