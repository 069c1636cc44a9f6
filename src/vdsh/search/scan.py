"""One search over several segments and threads, with one answer whatever their number."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from vdsh.codes import Codes
from vdsh.jit import in_threads
from vdsh.search.nearest import Distances, Part, Rows, Rules, nearest_in
from vdsh.search.radius import (
    DISTANCE,
    DISTANCE_SHIFT,
    PLACE,
    QUERY_SHIFT,
    Found,
    scan_within,
    sort_hits,
    to_rows,
)
from vdsh.search.segment import Segment
from vdsh.search.strips import STRIP, distance_type

QUERY_BLOCK = 64  # queries compared with codes while these are in cache
CANDIDATES_AT_ONCE = 1 << 20  # bounds memory when k is large
WORTH_A_THREAD = 1 << 18  # comparisons below which a second thread costs more than it gains

BLOCK = 4096  # strips at a time, so that what is counted stays in the cache


class RowHits(NamedTuple):
    """Row numbers, nearest first, and their distances."""

    rows: Rows
    distances: Distances


class Task(NamedTuple):
    """Some queries to compare with some parts."""

    queries: slice
    parts: tuple[Part, Part]


def nearest(
    segments: Sequence[Segment],
    queries: Codes,
    k: int,
    rules: Rules,
    threads: int,
    bounds: Rows | None = None,
) -> RowHits:
    """Find the k best rows of all segments for each query; there must be k allowed ones.

    `bounds` are distances within which they are known to lie.
    """
    if k == 0 or not len(queries):
        return RowHits(np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.int32))

    n_bits = 8 * queries.shape[1]
    known = np.full(len(queries), n_bits + 1) if bounds is None else bounds
    scratch = distance_type(n_bits)
    n_rows = sum(segment.n_rows for segment in segments)
    most = min(QUERY_BLOCK, max(1, CANDIDATES_AT_ONCE // k))

    def run(task: Task) -> RowHits:
        some, within = queries[task.queries], known[task.queries]
        room = np.empty(STRIP, scratch)
        return RowHits(*nearest_in(task.parts, some, k, rules, n_rows, within, room))

    n_codes = sum(len(segment.strips) for segment in segments)
    if n_codes * len(queries) < WORTH_A_THREAD and len(queries) <= most:
        # Where the work takes microseconds, so would planning it.
        return run(Task(slice(None), _whole(segments)))
    blocks, pieces = _plan(segments, len(queries), threads, most)
    tasks = [Task(block, parts) for block in blocks for parts in pieces]
    answers = in_threads(run, tasks, threads)
    if len(answers) == 1:
        return answers[0]
    merged = [
        _merge(answers[i : i + len(pieces)], k, rules) for i in range(0, len(answers), len(pieces))
    ]
    return RowHits(*(np.concatenate(arrays) for arrays in zip(*merged, strict=True)))


def within(
    segments: Sequence[Segment],
    queries: Codes,
    owners: Rows,
    radius: int,
    rules: Rules,
    threads: int,
) -> list[Found]:
    """Find every allowed row within `radius` of each query, in no certain order."""

    def run(task: Task) -> list[Found]:
        some = queries[task.queries]
        numbers = owners[task.queries]
        return [
            to_rows(part, rules.allowed, scan_within(part, some, numbers, radius))
            for part in task.parts
            if part.start < part.stop
        ]

    blocks, pieces = _plan(segments, len(queries), threads, QUERY_BLOCK)
    tasks = [Task(block, parts) for block in blocks for parts in pieces]
    return [found for answer in in_threads(run, tasks, threads) for found in answer]


def sort_found(found: Sequence[Found], n_queries: int, rules: Rules) -> list[RowHits]:
    """Order what was found by query, distance and key, and cut it into one answer a query."""
    hits = np.concatenate([np.empty(0, np.int64), *found])
    if rules.keys.size:
        hits = hits[np.lexsort((rules.keys[hits & PLACE], hits >> DISTANCE_SHIFT))]
    else:
        hits = sort_hits(hits)
    rows = hits & PLACE
    distances = ((hits >> DISTANCE_SHIFT) & DISTANCE).astype(np.int32)
    starts = np.searchsorted(hits, np.arange(n_queries) << QUERY_SHIFT)
    bounds = pairwise([*starts, len(hits)])
    return [RowHits(rows[begin:end], distances[begin:end]) for begin, end in bounds]


def _plan(
    segments: Sequence[Segment], n_queries: int, threads: int, most: int
) -> tuple[list[slice], list[tuple[Part, Part]]]:
    """Cut queries into blocks and positions into pieces, so that every thread has work."""
    n_codes = sum(len(segment.strips) for segment in segments)
    threads = max(1, min(threads, n_codes * n_queries // WORTH_A_THREAD))
    by_query = n_queries >= 4 * threads
    size = min(most, -(-n_queries // threads) if by_query else n_queries)
    blocks = [slice(i, min(i + size, n_queries)) for i in range(0, n_queries, max(size, 1))]
    return blocks, _pieces(segments, 1 if by_query else threads)


def _pieces(segments: Sequence[Segment], n_pieces: int) -> list[tuple[Part, Part]]:
    """Cut the first segment, which is the large one, into even pieces; the last takes the other."""
    main, tail = _whole(segments)
    if n_pieces == 1:
        return [(main, tail)]
    size = max(STRIP, -(-main.stop // (n_pieces * STRIP)) * STRIP)
    nothing = tail._replace(start=0, stop=0)
    pieces = [
        (main._replace(start=start, stop=min(start + size, main.stop)), nothing)
        for start in range(0, max(main.stop, 1), size)
    ]
    return [*pieces[:-1], (pieces[-1][0], tail)]


def _whole(segments: Sequence[Segment]) -> tuple[Part, Part]:
    """Return all of one or two segments."""
    main = segments[0].part()
    return main, segments[1].part() if len(segments) > 1 else main._replace(stop=0)


def _merge(answers: Sequence[RowHits], k: int, rules: Rules) -> RowHits:
    """Take the k best of the best of every piece."""
    if len(answers) == 1:
        return answers[0]
    rows, distances = (np.concatenate(arrays, axis=1) for arrays in zip(*answers, strict=True))
    keys = rules.keys[rows] if rules.keys.size else rows
    order = np.lexsort((keys, distances), axis=1)[:, :k]
    return RowHits(np.take_along_axis(rows, order, 1), np.take_along_axis(distances, order, 1))


def nearest_plainly(segments: Sequence[Segment], queries: Codes, k: int, rules: Rules) -> RowHits:
    """Find the k best rows of all segments for each query; there must be k allowed ones."""
    hits = [_sorted(_all(segments, query, rules), k, rules) for query in queries]
    rows = np.array([hit.rows for hit in hits], np.int64).reshape(len(queries), k)
    return RowHits(rows, np.array([hit.distances for hit in hits], np.int32).reshape(rows.shape))


def within_plainly(
    segments: Sequence[Segment], queries: Codes, radius: int, rules: Rules
) -> list[RowHits]:
    """Find every allowed row within `radius` of each query, nearest first."""
    hits = []
    for query in queries:
        rows, distances = _all(segments, query, rules)
        near = distances <= radius
        hits.append(_sorted(RowHits(rows[near], distances[near]), int(near.sum()), rules))
    return hits


def _all(segments: Sequence[Segment], query: Codes, rules: Rules) -> RowHits:
    """Return all allowed rows and their distances."""
    parts = [_segment(segment, query) for segment in segments]
    rows, distances = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if not rules.allowed.size:
        return RowHits(rows, distances)
    allowed = rules.allowed[rows]
    return RowHits(rows[allowed], distances[allowed])


def _segment(segment: Segment, query: Codes) -> RowHits:
    data, planes = segment.strips.data, query[:, None]
    parts = [
        np.bitwise_count(data[i : i + BLOCK] ^ planes).sum(axis=1, dtype=np.int32).ravel()
        for i in range(0, len(data), BLOCK)
    ]
    distances = np.concatenate([np.empty(0, np.int32), *parts])[: len(segment.strips)]
    if segment.grouped:
        distances = np.repeat(distances, np.diff(segment.offsets))
    return RowHits(segment.rows(), distances)


def _sorted(hits: RowHits, k: int, rules: Rules) -> RowHits:
    """Return the first k hits by distance and key."""
    rows, distances = hits
    if 0 < k < len(rows):
        near = distances <= np.partition(distances, k - 1)[k - 1]
        rows, distances = rows[near], distances[near]
    order = np.lexsort((rules.keys[rows] if rules.keys.size else rows, distances))[:k]
    return RowHits(rows[order], distances[order])
