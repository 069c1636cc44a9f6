"""One search over several partitions and threads, with one answer whatever their number.

Where few codes are compared and numba is not loaded, numpy does the same.
"""

from collections.abc import Sequence

import numpy as np

from vdsh.codes import Codes
from vdsh.jit import in_threads
from vdsh.search.partition import Partition
from vdsh.search.parts import (
    ALL,
    DISTANCE_SHIFT,
    QUERY_SHIFT,
    STRIP,
    Found,
    Part,
    RowHits,
    Rows,
    Rules,
    in_order,
    scratch,
)

BLOCK = 4096  # strips at a time, so that what is counted stays in the cache
QUERY_BLOCK = 64  # queries compared with codes while these are in cache
CANDIDATES_AT_ONCE = 1 << 20  # bounds memory when k is large
WORTH_A_THREAD = 1 << 19  # comparisons below which a second thread costs more than it gains

Task = tuple[slice, tuple[Part, Part]]  # some queries, and parts to compare them with


def scan(
    partitions: Sequence[Partition],
    queries: Codes,
    k: int,
    bounds: Rows,
    rules: Rules,
    threads: int,
) -> Found:
    """Find the k best allowed rows of all partitions within a bound of each query, in order.

    The bound of a scan in order is the first distance that is too far.
    """
    from vdsh.search.nearest_kernels import find_in

    most = QUERY_BLOCK if k == ALL else min(QUERY_BLOCK, max(1, CANDIDATES_AT_ONCE // k))
    n_codes = sum(len(partition.strips) for partition in partitions)

    def run(task: Task) -> Found:
        some, parts = task
        hits = find_in(parts, queries[some], k, rules, bounds[some], scratch(queries.shape[1]))
        return hits + (some.start << QUERY_SHIFT) if some.start else hits

    if n_codes * len(queries) < WORTH_A_THREAD and len(queries) <= most:
        # Where the work takes microseconds, so would planning it.
        hits, n_cuts = run((slice(0, len(queries)), _whole(partitions))), 1
    else:
        tasks, n_cuts = _plan(partitions, len(queries), threads, most)
        hits = np.concatenate(in_threads(run, tasks, threads))
    return hits if n_cuts == 1 and k != ALL else in_order(hits, k, rules)


def _plan(
    partitions: Sequence[Partition], n_queries: int, threads: int, most: int
) -> tuple[list[Task], int]:
    """Cut queries or positions, so that every thread has work; say how many cuts of positions.

    The first partition, which is the large one, is cut evenly; the last cut takes the other too.
    """
    n_codes = sum(len(partition.strips) for partition in partitions)
    threads = max(1, min(threads, n_codes * n_queries // WORTH_A_THREAD))
    by_query = n_queries >= 4 * threads
    size = min(most, -(-n_queries // threads) if by_query else n_queries)
    blocks = [slice(i, i + size) for i in range(0, n_queries, max(size, 1))]
    main, tail = _whole(partitions)
    cut = max(STRIP, -(-main.stop // STRIP // (1 if by_query else threads)) * STRIP)
    parts = [
        (main._replace(start=start, stop=min(start + cut, main.stop)), tail._replace(stop=0))
        for start in range(0, main.stop - cut, cut)
    ]
    last = cut * len(parts)
    parts.append((main._replace(start=last), tail))
    return [(block, cuts) for block in blocks for cuts in parts], len(parts)


def _whole(partitions: Sequence[Partition]) -> tuple[Part, Part]:
    """Return all of one or two partitions."""
    main = partitions[0].part()
    return main, partitions[1].part() if len(partitions) > 1 else main._replace(stop=0)


def find_plainly(
    partitions: Sequence[Partition], queries: Codes, k: int, radius: int, rules: Rules
) -> Found:
    """Find the k best allowed rows within `radius` of each query, without kernels, in order."""
    found = [np.empty(0, np.int64)]
    for q, query in enumerate(queries):
        parts = [_distances(partition, query) for partition in partitions]
        rows, distances = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        near = distances <= radius
        if rules.allowed.size:
            near &= rules.allowed[rows]
        if k < np.count_nonzero(near):
            near &= distances <= np.partition(distances[near], k - 1)[k - 1]
        found.append(
            (q << QUERY_SHIFT) | (distances[near].astype(np.int64) << DISTANCE_SHIFT) | rows[near]
        )
    return in_order(np.concatenate(found), k, rules)


def _distances(partition: Partition, query: Codes) -> RowHits:
    """Return all rows and their distances."""
    data, planes = partition.strips.data, query[:, None]
    parts = [
        np.bitwise_count(data[i : i + BLOCK] ^ planes).sum(axis=1, dtype=np.int32).ravel()
        for i in range(0, len(data), BLOCK)
    ]
    distances = np.concatenate([np.empty(0, np.int32), *parts])[: len(partition.strips)]
    if partition.grouped:
        distances = np.repeat(distances, np.diff(partition.offsets))
    return RowHits(partition.rows(), distances)
