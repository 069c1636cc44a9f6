"""One search over several partitions and threads, with one answer whatever their number.

Where few codes are compared and numba is not loaded, numpy does the same.
"""

from collections.abc import Sequence

import numpy as np

from vdsh.codes import Codes
from vdsh.jit import in_threads
from vdsh.search.partition import Partition
from vdsh.search.parts import STRIP, Found, Part, RowHits, Rows, Rules, scratch, to_rows

BLOCK = 4096  # strips at a time, so that what is counted stays in the cache
QUERY_BLOCK = 64  # queries compared with codes while these are in cache
CANDIDATES_AT_ONCE = 1 << 20  # bounds memory when k is large
WORTH_A_THREAD = 1 << 18  # comparisons below which a second thread costs more than it gains

Task = tuple[slice, tuple[Part, Part]]  # some queries, and parts to compare them with


def nearest(
    partitions: Sequence[Partition],
    queries: Codes,
    k: int,
    rules: Rules,
    threads: int,
    bounds: Rows | None = None,
) -> RowHits:
    """Find the k best rows of all partitions for each query; there must be k allowed ones.

    `bounds` are distances within which they are known to lie.
    """
    if k == 0 or not len(queries):
        return RowHits(np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.int32))
    from vdsh.search.nearest_kernels import nearest_in

    n_bytes = queries.shape[1]
    known = np.full(len(queries), 8 * n_bytes + 1) if bounds is None else bounds
    n_rows = sum(partition.n_rows for partition in partitions)
    most = min(QUERY_BLOCK, max(1, CANDIDATES_AT_ONCE // k))

    def run(task: Task) -> RowHits:
        some, parts = task
        args = queries[some], k, rules, n_rows, known[some], scratch(n_bytes)
        return RowHits(*nearest_in(parts, *args))

    n_codes = sum(len(partition.strips) for partition in partitions)
    if n_codes * len(queries) < WORTH_A_THREAD and len(queries) <= most:
        # Where the work takes microseconds, so would planning it.
        return run((slice(None), _whole(partitions)))
    tasks, n_cuts = _plan(partitions, len(queries), threads, most)
    answers = in_threads(run, tasks, threads)
    if len(answers) == 1:
        return answers[0]
    merged = [_merge(answers[i : i + n_cuts], k, rules) for i in range(0, len(answers), n_cuts)]
    return RowHits(*(np.concatenate(arrays) for arrays in zip(*merged, strict=True)))


def within(
    partitions: Sequence[Partition],
    queries: Codes,
    owners: Rows,
    radius: int,
    rules: Rules,
    threads: int,
) -> list[Found]:
    """Find every allowed row within `radius` of each query, in no certain order.

    `owners` are the numbers under which the queries' hits are reported.
    """
    from vdsh.search.scan_kernels import scan_within

    def run(task: Task) -> list[Found]:
        some, parts = task
        args = queries[some], owners[some], radius, scratch(queries.shape[1])
        some_rows = [part for part in parts if part.start < part.stop]
        return [to_rows(part, rules.allowed, scan_within(part, *args)) for part in some_rows]

    tasks, _ = _plan(partitions, len(queries), threads, QUERY_BLOCK)
    return [found for answer in in_threads(run, tasks, threads) for found in answer]


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


def _merge(answers: Sequence[RowHits], k: int, rules: Rules) -> RowHits:
    """Take the k best of the best of every cut."""
    if len(answers) == 1:
        return answers[0]
    rows, distances = (np.concatenate(arrays, axis=1) for arrays in zip(*answers, strict=True))
    keys = rules.keys[rows] if rules.keys.size else rows
    order = np.lexsort((keys, distances), axis=1)[:, :k]
    return RowHits(np.take_along_axis(rows, order, 1), np.take_along_axis(distances, order, 1))


def find_plainly(
    partitions: Sequence[Partition], queries: Codes, k: int, radius: int, rules: Rules
) -> list[RowHits]:
    """Find the k best allowed rows within `radius` of each query, without kernels."""
    hits = []
    for query in queries:
        parts = [_distances(partition, query) for partition in partitions]
        rows, distances = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        near = distances <= radius
        if rules.allowed.size:
            near &= rules.allowed[rows]
        if 0 < k < np.count_nonzero(near):
            near &= distances <= np.partition(distances[near], k - 1)[k - 1]
        rows, distances = rows[near], distances[near]
        order = np.lexsort((rules.keys[rows] if rules.keys.size else rows, distances))[:k]
        hits.append(RowHits(rows[order], distances[order]))
    return hits


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
