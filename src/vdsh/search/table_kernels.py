"""Kernels that build tables, and search by them: the k nearest, and all within a radius.

A query is left to a scan where that seems faster: by an estimate, for which distances are counted
in a sample of the codes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.search.nearest_kernels import KTH, Near, finish, new_near, scan_ranges
from vdsh.search.parts import ALL, STRIP, Found, Mask, Part, Rows, Rules
from vdsh.search.probing import STRIP_BYTE
from vdsh.search.probing_kernels import (
    AT_HAND,
    EVERYTHING,
    Probe,
    Waiting,
    begin_probe,
    end_step,
    enter_bucket,
    met_within,
    new_probe,
    next_buckets,
    take_step,
    time_left,
)
from vdsh.search.scan_kernels import Whole
from vdsh.search.tables import Order, Tables

WORTH = 0.7  # share of a scan's time within which probing should end
WAITING = 512  # buckets put in order before they are scanned
VISIT = 600.0  # nanoseconds to begin with a bucket
RANGES, SAMPLED = 64, 1 / 64  # here and there, since codes with tables are sorted


@kernel()
def read_all(data: Codes, n_codes: int, lut: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return what a table reads of every code."""
    values = np.zeros(n_codes, np.uint64)
    for strip in range((n_codes + STRIP - 1) // STRIP):
        first = strip * STRIP
        for byte in range(data.shape[1]):
            for lane in range(min(STRIP, n_codes - first)):
                values[first + lane] |= lut[byte, data[strip, byte, lane]]
    return values


@kernel()
def sort_by_substring(substrings: NDArray[np.uint64], starts: NDArray[np.uint32]) -> Order:
    """List positions by substring: count, add up, put in place."""
    for substring in substrings:
        starts[np.int64(substring) + 1] += 1
    for v in range(starts.size - 1):
        starts[v + 1] += starts[v]
    filled = starts.copy()
    order = np.empty(substrings.size, np.uint32)
    for i in range(substrings.size):
        substring = np.int64(substrings[i])
        order[filled[substring]] = i
        filled[substring] += 1
    return order


@kernel()
def place_entries(values: NDArray[np.uint64], order: Order, planes: Codes) -> None:
    """Write the entries of a table into its strips."""
    n_entry = planes.shape[1]
    for i in range(order.size):
        value = values[order[i]]
        for byte in range(n_entry):
            planes[i // STRIP, n_entry - 1 - byte, i % STRIP] = value & np.uint64(0xFF)
            value >>= np.uint64(8)


@kernel()
def find_by_tables(
    tables: Tables,
    parts: tuple[Part, Part],
    queries: Codes,
    k: int,
    rules: Rules,
    bounds: Rows,
    scan: float,
    scratch: NDArray[Any],
) -> tuple[Found, Mask]:
    """Find the k best rows of two parts, the first of which has tables, as `find_in` does.

    It says which queries were answered, since for others a scan is faster, and lowers `bounds` to
    distances within which the k best lie.
    """
    near, found, size = new_near(queries, bounds, scratch), np.empty(0, np.int64), 0
    done, n_bits = np.zeros(queries.shape[0], np.bool_), 8 * queries.shape[1]
    probe, status = new_probe(tables), near.status
    waiting, ranges = np.empty((2, WAITING), np.int64), np.empty((WAITING, 2), np.int64)
    main, tail = parts
    for q in range(queries.shape[0]):
        query, before = queries[q : q + 1], size
        begin_probe(probe, tables, queries[q])
        if tail.stop:
            ranges[0, 0], ranges[0, 1] = 0, tail.stop
            found, size = scan_ranges(tail, ranges[:1], q, query, k, rules, near, found, size)
        limit, guess, sampled = status[q, KTH], bounds[q], bounds[q] < n_bits
        while limit > met_within(probe.radii, tables.width):
            wanted = min(limit, max(guess, met_within(probe.radii, tables.width) + 1))
            if probe.radii[0] >= AT_HAND and (
                probe.spent[0] + time_left(probe, tables, wanted) > WORTH * scan
            ):
                if sampled:
                    break
                bound, guess = sample(main, query, k, rules, bounds[q : q + 1], scratch)
                limit, sampled = min(limit, bound), True
                probe.spent[0] += SAMPLED * scan
                continue
            take_step(probe, tables)
            found, size = _follow(
                probe, tables, waiting, ranges, main, q, query, k, limit, rules, near, found, size
            )
            end_step(probe, tables)
            limit = min(limit, status[q, KTH])
        done[q], bounds[q] = limit <= met_within(probe.radii, tables.width), limit
        if not done[q]:  # hits that were found so far are not all
            status[q, KTH] = -1
            size = before if k == ALL else size
    return finish(k, rules, near, found, size), done


@kernel()
def _follow(
    probe: Probe,
    tables: Tables,
    waiting: Waiting,
    ranges: Rows,
    main: Part,
    q: int,
    query: Codes,
    k: int,
    limit: Whole,
    rules: Rules,
    near: Near,
    found: Found,
    size: int,
) -> tuple[Found, int]:
    """Scan the buckets of one step, those that seem nearest first: others may then be too far."""
    status, n_waiting = near.status, WAITING
    strip_cost = STRIP_BYTE * query.shape[1]
    while n_waiting == WAITING:
        limit = min(limit, status[q, KTH])
        n_waiting = next_buckets(probe, tables, limit, waiting)
        distance, cost = np.int64(0), 0.0
        while distance <= min(limit, status[q, KTH]):
            following, n_ranges = np.int64(EVERYTHING), 0
            for i in range(n_waiting):
                if waiting[1, i] == distance:
                    start, stop = enter_bucket(probe, tables, waiting[0, i])
                    if start < stop:
                        ranges[n_ranges, 0], ranges[n_ranges, 1] = start, stop
                        n_ranges += 1
                        cost += VISIT + strip_cost * ((stop - start) // STRIP + 1)
                elif waiting[1, i] > distance:
                    following = min(following, waiting[1, i])
            if n_ranges:
                some = ranges[:n_ranges]
                found, size = scan_ranges(main, some, q, query, k, rules, near, found, size)
            distance = following
        probe.spent[0] += cost
    return found, size


@kernel()
def sample(
    part: Part, query: Codes, k: int, rules: Rules, bounds: Rows, scratch: NDArray[Any]
) -> tuple[Whole, Whole]:
    """Return distances within which k rows lie, surely and probably."""
    near, ranges = new_near(query, bounds, scratch), np.empty((RANGES, 2), np.int64)
    rules = Rules(rules.allowed, rules.keys, True)  # any of those that tie will do
    step = (part.stop // STRIP) / RANGES
    for i in range(RANGES):
        strip = int(i * step)
        end = min(strip + int(step * SAMPLED) + 1, part.stop // STRIP)
        ranges[i, 0], ranges[i, 1] = strip * STRIP, end * STRIP
    scan_ranges(part, ranges, 0, query, k, rules, near, np.empty(0, np.int64), 0)
    kth, n_near = near.status[0, KTH], 0
    for guess in range(kth):
        n_near += near.counts[0, guess]
        if n_near >= k * SAMPLED:
            return kth, guess
    return kth, kth
