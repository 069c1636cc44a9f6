"""Kernels of exact top-k: the scan of strips, and what it keeps of each query's best rows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.jit_kernels import lowest_bit
from vdsh.search.parts import IN_CACHE, STRIP, Distances, Part, Rows, Rules
from vdsh.search.scan_kernels import Whole, lanes_up_to, next_near

SIZE, KTH, BELOW, WORST_KEY = 0, 1, 2, 3
FAR = np.iinfo(np.int32).max
NO_KEY = np.iinfo(np.int64).max


class Best(NamedTuple):
    """Candidates of each query: unordered, cut back to the k best whenever the room is full."""

    distances: NDArray[np.uint16]
    rows: Rows
    counts: NDArray[np.int64]
    status: NDArray[np.int64]
    scratch: NDArray[Any]


@kernel()
def nearest_in(
    parts: tuple[Part, Part],
    queries: Codes,
    k: int,
    rules: Rules,
    n_rows: int,
    bounds: Rows,
    scratch: NDArray[Any],
) -> tuple[Rows, Distances]:
    """Find the k best rows of two parts together, for each query, in order.

    No more than `n_rows` rows will be met, and k of them lie within `bounds` (n_queries,). Where
    there are fewer than k, row -1 follows at a far distance. `scratch` is that of `parts`.
    """
    best = empty_best(queries, k, n_rows, scratch)
    for q in range(bounds.size):
        best.status[q, KTH] = bounds[q]
    _scan(parts[0], queries, k, rules, best)
    _scan(parts[1], queries, k, rules, best)
    return finish(k, rules, best)


@kernel()
def empty_best(queries: Codes, k: int, n_rows: int, scratch: NDArray[Any]) -> Best:
    """Make room for the candidates of some queries."""
    n_queries, n_bits = queries.shape[0], 8 * queries.shape[1]
    room = min(2 * k + STRIP, n_rows + 1)
    best = Best(
        np.empty((n_queries, room), np.uint16),
        np.empty((n_queries, room), np.int64),
        np.zeros((n_queries, n_bits + 1), np.int64),
        np.zeros((n_queries, 4), np.int64),
        scratch,
    )
    best.status[:, KTH] = n_bits + 1
    best.status[:, WORST_KEY] = NO_KEY
    return best


@kernel()
def _scan(part: Part, queries: Codes, k: int, rules: Rules, best: Best) -> None:
    """Offer every code of a part to every query's candidates."""
    last = (part.stop + STRIP - 1) // STRIP
    block = IN_CACHE if queries.shape[0] > 1 else max(last, 1)
    for first in range(part.start // STRIP, last, block):
        start, stop = max(part.start, first * STRIP), min(part.stop, (first + block) * STRIP)
        scan_range(part, start, stop, 0, queries, k, rules, best)


@kernel()
def scan_range(
    part: Part,
    start: Whole,
    stop: Whole,
    owner: int,
    queries: Codes,
    k: int,
    rules: Rules,
    best: Best,
) -> None:
    """Offer the codes at positions from `start` to `stop` to each query's candidates.

    `owner` is the number under which the first query's candidates are kept.
    """
    # All fields become locals, and the inner loop calls nothing: numba counts references to an
    # array whenever a field is read or passed on, which would cost more than the work itself.
    data, _, _, base, offsets, members = part
    allowed, keys, in_order = rules
    distances, rows, counts, status, scratch = best
    grouped, listed = offsets.size > 0, members.size > 0
    masked, keyed = allowed.size > 0, keys.size > 0
    room, strict = rows.shape[1], 1 if in_order else 0
    end = (stop + STRIP - 1) // STRIP
    for q in range(owner, owner + queries.shape[0]):
        query = queries[q - owner]
        limit = status[q, KTH] - strict
        strip = next_near(data, start // STRIP, end, query, limit, scratch)
        while strip < end:
            near = lanes_up_to(scratch, limit)
            while near:
                lane = lowest_bit(near)
                near &= near - np.uint64(1)
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
                    if distance == status[q, KTH]:
                        if (np.int64(keys[row]) if keyed else row) > status[q, WORST_KEY]:
                            break
                    size = status[q, SIZE]
                    distances[q, size] = distance
                    rows[q, size] = row
                    status[q, SIZE] = size + 1
                    counts[q, distance] += 1
                    if distance < status[q, KTH]:
                        status[q, BELOW] += 1
                        while status[q, BELOW] >= k:
                            status[q, KTH] -= 1
                            status[q, BELOW] -= counts[q, status[q, KTH]]
                            status[q, WORST_KEY] = NO_KEY
                    if size + 1 == room:
                        _cut(q, k, rules, best)
                limit = status[q, KTH] - strict
            strip = next_near(data, strip + 1, end, query, limit, scratch)


@kernel()
def _key(row: int, rules: Rules) -> np.int64:
    return np.int64(rules.keys[row]) if rules.keys.size else np.int64(row)


@kernel()
def _cut(q: int, k: int, rules: Rules, best: Best) -> None:
    """Drop all candidates but the k best."""
    status, distances, rows = best.status[q], best.distances[q], best.rows[q]
    needed = k - status[BELOW]
    if not rules.in_order and best.counts[q, status[KTH]] > needed:
        status[WORST_KEY] = _worst_key(rows, distances, status[SIZE], status[KTH], needed, rules)
    kept, kept_ties = 0, 0
    for i in range(status[SIZE]):
        if distances[i] > status[KTH]:
            continue
        if distances[i] == status[KTH]:
            late = not rules.in_order and _key(rows[i], rules) > status[WORST_KEY]
            if late or kept_ties == needed:
                continue
            kept_ties += 1
        distances[kept], rows[kept] = distances[i], rows[i]
        kept += 1
    status[SIZE] = kept
    best.counts[q, status[KTH]] = kept_ties


@kernel()
def _worst_key(
    rows: Rows, distances: NDArray[np.uint16], size: int, distance: int, needed: int, rules: Rules
) -> np.int64:
    """Return the key that so many of the candidates at one distance do not exceed: quickselect."""
    keys = np.empty(size, np.int64)
    n_keys = 0
    for i in range(size):
        if distances[i] == distance:
            keys[n_keys] = _key(rows[i], rules)
            n_keys += 1
    first, last = 0, n_keys - 1
    while first < last:
        pivot, low, high = keys[(first + last) // 2], first, last
        while low <= high:
            while keys[low] < pivot:
                low += 1
            while keys[high] > pivot:
                high -= 1
            if low <= high:
                keys[low], keys[high] = keys[high], keys[low]
                low += 1
                high -= 1
        if needed - 1 <= high:
            last = high
        elif needed - 1 >= low:
            first = low
        else:
            break
    worst: np.int64 = keys[needed - 1]
    return worst


@kernel()
def finish(k: int, rules: Rules, best: Best) -> tuple[Rows, Distances]:
    """Put the k best of every query in order: by distance, then by key."""
    n_queries = best.rows.shape[0]
    rows = np.full((n_queries, k), -1, np.int64)
    distances = np.full((n_queries, k), FAR, np.int32)
    for q in range(n_queries):
        if best.status[q, SIZE] > k:
            _cut(q, k, rules, best)
        counts, first = best.counts[q], 0
        for distance in range(min(best.status[q, KTH] + 1, counts.size)):
            first += counts[distance]
            counts[distance] = first - counts[distance]
        for i in range(best.status[q, SIZE]):
            distance = best.distances[q, i]
            rows[q, counts[distance]], distances[q, counts[distance]] = best.rows[q, i], distance
            counts[distance] += 1
        first = 0
        while first < best.status[q, SIZE] and not rules.in_order:
            after = counts[distances[q, first]]
            _sort(rows[q, first:after], rules.keys)
            first = after
    return rows, distances


@kernel()
def _sort(rows: Rows, keys: NDArray[np.int64]) -> None:
    """Sort rows by key: a shell sort, since numba takes seconds to compile its own sorts."""
    keyed = keys.size > 0
    gap = 1
    while gap < rows.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, rows.size):
            row, j = rows[i], i
            key = np.int64(keys[row]) if keyed else row
            while j >= gap:
                other = rows[j - gap]
                if (np.int64(keys[other]) if keyed else other) <= key:
                    break
                rows[j] = other
                j -= gap
            rows[j] = row
        gap //= 3
