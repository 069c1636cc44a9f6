"""Searches in numpy alone, where few codes are compared and numba is not loaded."""

from collections.abc import Sequence

import numpy as np

from vdsh.codes import Codes
from vdsh.search.partition import Partition
from vdsh.search.parts import RowHits, Rules

BLOCK = 4096  # strips at a time, so that what is counted stays in the cache


def nearest_plainly(
    partitions: Sequence[Partition], queries: Codes, k: int, rules: Rules
) -> RowHits:
    """Find the k best rows of all partitions for each query; there must be k allowed ones."""
    hits = [_sorted(_all(partitions, query, rules), k, rules) for query in queries]
    rows = np.array([hit.rows for hit in hits], np.int64).reshape(len(queries), k)
    return RowHits(rows, np.array([hit.distances for hit in hits], np.int32).reshape(rows.shape))


def within_plainly(
    partitions: Sequence[Partition], queries: Codes, radius: int, rules: Rules
) -> list[RowHits]:
    """Find every allowed row within `radius` of each query, nearest first."""
    hits = []
    for query in queries:
        rows, distances = _all(partitions, query, rules)
        near = distances <= radius
        hits.append(_sorted(RowHits(rows[near], distances[near]), int(near.sum()), rules))
    return hits


def _all(partitions: Sequence[Partition], query: Codes, rules: Rules) -> RowHits:
    """Return all allowed rows and their distances."""
    parts = [_partition(partition, query) for partition in partitions]
    rows, distances = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if not rules.allowed.size:
        return RowHits(rows, distances)
    allowed = rules.allowed[rows]
    return RowHits(rows[allowed], distances[allowed])


def _partition(partition: Partition, query: Codes) -> RowHits:
    data, planes = partition.strips.data, query[:, None]
    parts = [
        np.bitwise_count(data[i : i + BLOCK] ^ planes).sum(axis=1, dtype=np.int32).ravel()
        for i in range(0, len(data), BLOCK)
    ]
    distances = np.concatenate([np.empty(0, np.int32), *parts])[: len(partition.strips)]
    if partition.grouped:
        distances = np.repeat(distances, np.diff(partition.offsets))
    return RowHits(partition.rows(), distances)


def _sorted(hits: RowHits, k: int, rules: Rules) -> RowHits:
    """Return the first k hits by distance and key."""
    rows, distances = hits
    if 0 < k < len(rows):
        near = distances <= np.partition(distances, k - 1)[k - 1]
        rows, distances = rows[near], distances[near]
    order = np.lexsort((rules.keys[rows] if rules.keys.size else rows, distances))[:k]
    return RowHits(rows[order], distances[order])
