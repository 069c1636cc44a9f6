"""Kernels that probe tables: the buckets near a query, table by table and radius by radius.

`next_buckets` lists buckets of the first table; what to do with them is up to the caller. Probing
goes on in the table where the next radius costs least, so tables of large buckets are left alone;
after each step all codes within one bit more have been met.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.jit_kernels import lowest_bit
from vdsh.search.parts import STRIP
from vdsh.search.probing import BUCKET, STRIP_BYTE
from vdsh.search.scan_kernels import Whole, lanes_up_to, next_near
from vdsh.search.tables import WORD, Tables

TABLE, LEVEL, FLIP, START, STOP, STRIP_AT, LAST = 0, 1, 2, 3, 4, 5, 6
EVERYTHING = 1 << 20
AT_HAND = 2  # radii of the first table that are looked up before anything is estimated


Waiting = NDArray[np.int64]  # buckets, and how near their codes seem: shape (2, n)


class Probe(NamedTuple):
    """How far the tables have been probed for a query."""

    substrings: NDArray[np.int64]  # (n_tables,): what each table reads of the query
    entries: Codes  # (n_tables, n_entry): the query's own entries
    radii: NDArray[np.int64]  # (n_tables,): the next radius of each table
    # (n_tables, width + 1): how many codes a bucket has at each radius, as far as that is known.
    sizes: NDArray[np.float64]
    place: NDArray[np.int64]  # table, radius, flipped bits, bucket and strip at hand
    near: NDArray[np.uint64]  # (1,): entries of that strip still to follow
    seen: NDArray[np.uint64]  # A bit for each bucket of the first table
    spent: NDArray[np.float64]  # (1,): nanoseconds so far, by estimate
    scratch: NDArray[np.uint8]  # (64,)


@kernel()
def read(lut: NDArray[np.uint64], code: Codes) -> np.uint64:
    """Return what a table reads of one code."""
    value = np.uint64(0)
    for byte in range(code.size):
        value |= lut[byte, code[byte]]
    return value


@kernel()
def new_probe(tables: Tables) -> Probe:
    """Make room for probing, for one query after the other."""
    n_tables, n_entry = tables.starts.shape[0], tables.entries.shape[2]
    return Probe(
        np.empty(n_tables, np.int64),
        np.empty((n_tables, n_entry), np.uint8),
        np.empty(n_tables, np.int64),
        np.empty((n_tables, tables.width + 1), np.float64),
        np.zeros(7, np.int64),
        np.zeros(1, np.uint64),
        np.empty((tables.starts.shape[1] + 62) // 64, np.uint64),
        np.zeros(1, np.float64),
        np.empty(STRIP, np.uint8),
    )


@kernel()
def begin_probe(probe: Probe, tables: Tables, query: Codes) -> None:
    """Stand before the first step for a query."""
    n_entry = probe.entries.shape[1]
    for t in range(probe.substrings.size):
        for word in range(1, tables.luts.shape[1]):
            value = read(tables.luts[t, word], query)
            first = WORD * (word - 1)
            for byte in range(min(first + WORD, n_entry) - 1, first - 1, -1):
                probe.entries[t, byte] = np.uint8(value & np.uint64(0xFF))
                value >>= np.uint64(8)
        substring = np.int64(read(tables.luts[t, 0], query))
        probe.substrings[t], probe.radii[t] = substring, 0
        probe.sizes[t, 0] = float(_size(tables.starts[t], substring))
        total = 0
        for bit in range(tables.width):
            total += _size(tables.starts[t], substring ^ (1 << bit))
        _expect(probe.sizes[t], 1, total / tables.width)
    for i in range(probe.seen.size):
        probe.seen[i] = np.uint64(0)
    probe.spent[0] = 0.0


@kernel()
def met_within(radii: NDArray[np.int64], width: int) -> Whole:
    """Return the distance up to which all codes have been met, by the next radii of tables."""
    # A table that was looked up wholly has shown all codes.
    return EVERYTHING if radii.max() > width else radii.sum() - 1


@kernel()
def time_left(probe: Probe, tables: Tables, wanted: Whole) -> float:
    """Estimate the nanoseconds until all codes up to a distance have been met."""
    radii, left = probe.radii.copy(), 0.0
    while met_within(radii, tables.width) < wanted:
        table, cost = _cheapest(radii, probe, tables)
        left += cost
        radii[table] += 1
    return left


@kernel()
def take_step(probe: Probe, tables: Tables) -> None:
    """Begin with the cheapest next step; the first two are in the table that is the codes."""
    table, _ = _cheapest(probe.radii, probe, tables)
    if probe.radii[0] < AT_HAND:
        table = 0
    place, radius = probe.place, probe.radii[table]
    place[TABLE], place[LEVEL] = table, radius
    place[FLIP] = (1 << radius) - 1
    place[STRIP_AT] = place[LAST] = 0
    probe.near[0] = np.uint64(0)
    probe.radii[table] = radius + 1
    probe.sizes[table, radius] = 0.0


@kernel()
def _cheapest(radii: NDArray[np.int64], probe: Probe, tables: Tables) -> tuple[int, float]:
    """Return the table whose next radius takes the least time, and that time."""
    best, least = -1, np.inf
    for t in range(radii.size):
        n_bytes = tables.luts.shape[2] if t == 0 else tables.entries.shape[2]
        n_strips = probe.sizes[t, radii[t]] / STRIP + 1
        cost = _n_buckets(tables.width, radii[t]) * (BUCKET + STRIP_BYTE * n_bytes * n_strips)
        if cost < least:
            best, least = t, cost
    return best, least


@kernel()
def _n_buckets(width: int, radius: int) -> float:
    n_buckets = 1.0
    for i in range(radius):
        n_buckets *= (width - i) / (i + 1)
    return n_buckets


@kernel()
def _expect(sizes: NDArray[np.float64], radius: int, size: float) -> None:
    """Note the size of buckets at a radius; beyond it they shrink as they did up to there."""
    shrink = min(1.0, max(0.3, size / max(sizes[radius - 1], 1e-9))) if radius else 1.0
    for i in range(radius, sizes.size):
        sizes[i] = size
        size *= shrink


@kernel()
def _size(starts: NDArray[np.uint32], substring: Whole) -> Whole:
    return np.int64(starts[substring + 1]) - np.int64(starts[substring])


@kernel()
def next_buckets(probe: Probe, tables: Tables, limit: Whole, waiting: Waiting) -> int:
    """List buckets of this step that may hold a code within `limit`; return how many.

    Fewer than `waiting` has room for mean that the step is at its end.
    """
    _, width, starts, entries = tables
    place, seen, scratch = probe.place, probe.seen, probe.scratch
    table, level = place[TABLE], place[LEVEL]
    planes, entry = entries[max(table - 1, 0)], probe.entries[table]
    n_probes, n_codes, n_strips, size = 0, np.int64(0), np.int64(0), 0
    flip, end = place[FLIP], np.int64(1) << width
    strip, last = place[STRIP_AT], place[LAST]
    lanes = probe.near[0]
    while size < waiting.shape[1]:
        if lanes:
            lane = lowest_bit(lanes)
            lanes &= lanes - np.uint64(1)
            distance = np.int64(scratch[lane]) + level
            bucket = _first_substring(planes, strip, lane, width)
            bit = np.uint64(1) << np.uint64(bucket & 63)
            if distance <= limit and not seen[bucket >> 6] & bit:
                waiting[0, size], waiting[1, size] = bucket, distance
                size += 1
            continue
        if strip + 1 < last:
            before = strip
            strip = next_near(planes, strip + 1, last, entry, limit - level, scratch)
            n_strips += strip - before
            if strip < last:
                lanes = lanes_up_to(scratch, limit - level)
                lanes &= _inside(place[START], place[STOP], strip)
            continue
        if flip >= end or level > limit:
            break
        substring = probe.substrings[table] ^ flip
        flip = _next_flip(flip) if level else end
        start, stop = np.int64(starts[table, substring]), np.int64(starts[table, substring + 1])
        n_probes += 1
        n_codes += stop - start
        if start == stop:
            continue
        if table == 0:
            waiting[0, size], waiting[1, size] = substring, level
            size += 1
        else:
            place[START], place[STOP] = start, stop
            strip, last = start // STRIP - 1, (stop + STRIP - 1) // STRIP
    place[FLIP], place[STRIP_AT], place[LAST] = flip, strip, last
    probe.near[0] = lanes
    probe.sizes[table, level] += n_codes
    probe.spent[0] += n_probes * BUCKET + n_strips * STRIP_BYTE * planes.shape[1]
    return size


@kernel()
def end_step(probe: Probe, tables: Tables) -> None:
    """Note what the buckets of this step had on average."""
    table, level = probe.place[TABLE], probe.place[LEVEL]
    size = probe.sizes[table, level] / _n_buckets(tables.width, level)
    if level:
        _expect(probe.sizes[table], level, size)


@kernel()
def _first_substring(planes: Codes, strip: Whole, lane: Whole, width: int) -> Whole:
    """Read the first substring of a code from its entry."""
    value, n_bytes = np.int64(0), (width + 7) // 8
    for byte in range(n_bytes):
        value = (value << 8) | np.int64(planes[strip, byte, lane])
    return value >> (8 * n_bytes - width)


@kernel()
def enter_bucket(probe: Probe, tables: Tables, bucket: Whole) -> tuple[Whole, Whole]:
    """Return where the codes of a bucket begin and end; the second time it has none."""
    seen, bit = probe.seen, np.uint64(1) << np.uint64(bucket & 63)
    if seen[bucket >> 6] & bit:
        return np.int64(0), np.int64(0)
    seen[bucket >> 6] |= bit
    return np.int64(tables.starts[0, bucket]), np.int64(tables.starts[0, bucket + 1])


@kernel()
def _inside(start: Whole, stop: Whole, strip: Whole) -> np.uint64:
    """Mark the lanes of a strip that lie between two positions."""
    first, after = max(start - strip * STRIP, 0), min(stop - strip * STRIP, STRIP)
    lanes = ~np.uint64(0) << np.uint64(first)
    return lanes & (~np.uint64(0) >> np.uint64(STRIP - after))


@kernel()
def _next_flip(flip: Whole) -> Whole:
    """Return the next larger number with as many bits."""
    lowest = flip & -flip
    carried = flip + lowest
    return carried | (((flip ^ carried) >> 2) // lowest)
